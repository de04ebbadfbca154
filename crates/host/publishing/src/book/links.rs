// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds broken links on a site: links to a missing file, or to an anchor that its page does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The page that joins all pages, where an anchor may occur twice.
const PRINTED: &str = "print.html";

/// A page of the site.
#[derive(Debug)]
struct Page {
    links: Vec<String>,
    places: BTreeSet<String>,
}

/// Returns the broken links of the site in `folder`, each with its page.
pub fn broken_links(folder: &Path) -> Result<Vec<String>> {
    let folder = &folder.canonicalize()?;
    let mut pages = BTreeMap::new();
    read_pages(folder, &mut pages)?;
    let mut broken = Vec::new();
    for (path, page) in &pages {
        let shown = path.strip_prefix(folder).unwrap_or(path).display();
        for link in &page.links {
            if !has_target(path, link, &pages) {
                broken.push(format!("{shown}: {link}"));
            }
        }
    }
    Ok(broken)
}

/// Whether the target of `link` on the page at `path` exists. Links to other sites are not checked.
fn has_target(path: &Path, link: &str, pages: &BTreeMap<PathBuf, Page>) -> bool {
    if link.contains("://") || link.starts_with("mailto:") || link.starts_with("javascript:") {
        return true;
    }
    let (file, place) = link.split_once('#').unwrap_or((link, ""));
    let file = file.split('?').next().unwrap_or(file);
    let target = match file {
        "" => path.to_owned(),
        _ => path.parent().unwrap_or(path).join(file),
    };
    // The site has no symbolic links, so the path is also right in a browser.
    let Ok(target) = target.canonicalize() else {
        return false;
    };
    match pages.get(&target) {
        Some(page) => place.is_empty() || page.places.contains(place),
        None => target.is_file(),
    }
}

/// Reads the pages below `folder`.
fn read_pages(folder: &Path, pages: &mut BTreeMap<PathBuf, Page>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path().canonicalize()?;
        if path.is_dir() {
            read_pages(&path, pages)?;
        } else if path.extension().is_some_and(|end| end == "html") && !path.ends_with(PRINTED) {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let links = ["href", "src"]
                .map(|name| attribute_values(&text, name))
                .concat();
            let places = attribute_values(&text, "id").into_iter().collect();
            pages.insert(path, Page { links, places });
        }
    }
    Ok(())
}

/// Returns the values of an attribute in HTML.
fn attribute_values(text: &str, name: &str) -> Vec<String> {
    let begin = format!(" {name}=\"");
    let behind = text.split(&begin).skip(1);
    let values = behind.filter_map(|rest| Some(rest.split_once('"')?.0));
    values.map(|value| value.replace("&amp;", "&")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::partial_files::Scratch;

    #[test]
    fn links_to_what_is_not_there_are_told_with_their_page() {
        let place = Scratch::new().unwrap();
        let folder = place.path();
        fs::create_dir(folder.join("a")).unwrap();
        let page = r##"<h1 id="top">x</h1><a class="l" href="#top"><a href="#bottom"><a href="../b.html#here">
            <a href="../b.html#there"><a href="c.html"><img src="../d.png"><a href="https://e/f"><a href="../b.html?x&amp;y">"##;
        fs::write(folder.join("a/a.html"), page).unwrap();
        fs::write(folder.join("b.html"), r#"<p id="here">"#).unwrap();
        let wanted = ["#bottom", "../b.html#there", "c.html", "../d.png"];
        let wanted = wanted.map(|link| format!("a/a.html: {link}"));
        assert_eq!(broken_links(folder).unwrap(), wanted);
    }
}
