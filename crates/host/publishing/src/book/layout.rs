// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies the pages to the layout that mdBook needs. In this layout, `src/` mirrors the repository, with the pages and
//! the files to which they link, and has `SUMMARY.md` at its top.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use super::summary;

/// Copies the pages of the repository at `root` to their layout in `to`.
pub fn write_pages(root: &Path, pages: &[String], to: &Path) -> Result<()> {
    copy_file(&root.join("docs/book.toml"), &to.join("book.toml"))?;
    let source = to.join("src");
    for page in pages {
        let text = copy_file(&root.join(page), &source.join(page))?;
        for file in linked_files(page, &String::from_utf8_lossy(&text)) {
            // Pages in the list are copied separately. If the list lacks a page, the link check finds the broken link.
            if file.extension().is_none_or(|end| end != "md") && root.join(&file).is_file() {
                copy_file(&root.join(&file), &source.join(&file))?;
            }
        }
    }
    let list = fs::read_to_string(root.join(summary::FILE)).context(summary::FILE)?;
    fs::write(source.join("SUMMARY.md"), links_from_top(&list))?;
    Ok(())
}

/// Returns the list of pages, with links relative to the top of the repository.
fn links_from_top(list: &str) -> String {
    list.replace("](", "](docs/").replace("](docs/../", "](")
}

/// Returns the files to which a page links, by their paths in the repository.
fn linked_files(page: &str, text: &str) -> Vec<PathBuf> {
    let folder = Path::new(page).parent().unwrap_or(Path::new(""));
    let links = summary::link_targets(text);
    let paths = links.filter(|link| !link.contains("://"));
    let paths = paths.map(|link| link.split('#').next().unwrap_or(link));
    let paths = paths.filter(|path| !path.is_empty());
    paths.map(|path| without_dots(&folder.join(path))).collect()
}

/// Returns a path without `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::Normal(name) => plain.push(name),
            _ => {}
        }
    }
    plain
}

fn copy_file(from: &Path, to: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(from).with_context(|| from.display().to_string())?;
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::write(to, &bytes).with_context(|| to.display().to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_the_list_begin_at_the_top() {
        let list = "[R](../README.md)\n- [A](a.md)\n    - [B](guides/b.md)\n";
        assert_eq!(
            links_from_top(list),
            "[R](README.md)\n- [A](docs/a.md)\n    - [B](docs/guides/b.md)\n"
        );
    }

    #[test]
    fn a_page_brings_what_it_links_to() {
        let text = "[a](../../x/y.toml), [b](c.json#d), [e](#f), [g](https://h/i.txt)";
        let wanted = ["x/y.toml", "docs/guides/c.json"].map(PathBuf::from);
        assert_eq!(linked_files("docs/guides/p.md", text), wanted);
    }
}
