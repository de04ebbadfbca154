// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/SUMMARY.md`: the list of all documents, in order.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The folder of the documents.
const DOCS: &str = "docs";
/// The list of pages.
pub const FILE: &str = "docs/SUMMARY.md";

/// Returns the pages, by their paths in the repository at `root`, in order.
pub fn listed_pages(root: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(root.join(FILE)).context(FILE)?;
    let pages: Vec<String> = link_targets(&text).map(repository_path).collect();
    let mut documents = BTreeSet::new();
    find_pages(root, DOCS, &mut documents)?;
    documents.remove(FILE);
    let wrong = list_mistakes(&pages, &documents, |page| root.join(page).is_file());
    if !wrong.is_empty() {
        bail!("{FILE}: {}", wrong.join("; "));
    }
    Ok(pages)
}

/// Returns the mistakes in a list of pages, compared with `documents`.
fn list_mistakes(
    pages: &[String],
    documents: &BTreeSet<String>,
    exists: impl Fn(&str) -> bool,
) -> Vec<String> {
    let named: BTreeSet<&String> = pages.iter().collect();
    let mut wrong = Vec::new();
    if named.len() != pages.len() {
        wrong.push("it names a page twice".into());
    }
    let gone = pages.iter().filter(|page| !exists(page));
    wrong.extend(gone.map(|page| format!("it names {page}, which is not there")));
    let forgotten = documents.iter().filter(|page| !named.contains(page));
    wrong.extend(forgotten.map(|page| format!("it forgets {page}; add a line for it")));
    wrong
}

/// Returns the targets of the links in a Markdown text.
pub fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("](").skip(1);
    behind.filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Returns a link in the list as a path in the repository.
fn repository_path(link: &str) -> String {
    match link.strip_prefix("../") {
        Some(path) => path.into(),
        None => format!("{DOCS}/{link}"),
    }
}

/// Finds all pages below `folder`.
fn find_pages(root: &Path, folder: &str, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| folder.to_owned())? {
        let entry = entry?;
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            find_pages(root, &name, found)?;
        } else if name.ends_with(".md") {
            found.insert(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::places;

    #[test]
    fn every_document_is_a_page() {
        let pages = listed_pages(places::root()).unwrap();
        assert_eq!(pages[0], "README.md");
        assert!(pages.contains(&"docs/guides/maintainer.md".into()));
    }

    #[test]
    fn pages_that_are_forgotten_gone_or_twice_are_told() {
        let text = "- [A](a.md)\n    - [B](guides/b.md)\n- [A](a.md)\n[R](../README.md)\n";
        let pages: Vec<String> = link_targets(text).map(repository_path).collect();
        assert_eq!(
            pages,
            ["docs/a.md", "docs/guides/b.md", "docs/a.md", "README.md"]
        );
        let documents = ["docs/a.md", "docs/c.md"].map(str::to_owned);
        let wrong = list_mistakes(&pages, &documents.into(), |page| !page.contains("b.md"));
        assert_eq!(
            wrong,
            [
                "it names a page twice",
                "it names docs/guides/b.md, which is not there",
                "it forgets docs/c.md; add a line for it"
            ]
        );
    }
}
