// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `book`: makes a searchable site from the documents with mdBook.
//!
//! The documents stay in place, since they link to each other there. mdBook needs all pages below one folder, with
//! `SUMMARY.md` at its top. This verb [lays them out](layout) as in the repository, with the README at the top, so that
//! every link keeps its target. The verb then checks the output: it fails if a [link](links) is broken, or if a page is
//! missing from docs/SUMMARY.md ([`summary`]).

mod layout;
mod links;
mod summary;
mod tool;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use shell::failure;
use shell::partial_files::Scratch;
use shell::terminal::say;
use shell::{interrupt, places};

/// Makes the site in `target/book`.
pub fn book() -> Result<()> {
    interrupt::catch()?;
    let to = places::target().join("book");
    interrupt::or(make_site(&to))?;
    say!("{}", places::shown(&to.join("index.html")));
    Ok(())
}

/// Makes the site in `to`, and replaces an older site there.
pub fn make_site(to: &Path) -> Result<()> {
    let pages = summary::listed_pages(places::root())?;
    let mdbook = tool::ensure_mdbook()?;
    let place = Scratch::new()?;
    layout::write_pages(places::root(), &pages, place.path())?;
    let output = Command::new(&mdbook)
        .arg("build")
        .arg(place.path())
        .arg("--dest-dir")
        .arg(std::path::absolute(to)?)
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .output()
        .with_context(|| mdbook.display().to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    // mdBook warns about text that it leaves out of a page, for instance text that looks like an HTML tag.
    if !output.status.success() || said.contains("WARN") {
        let message = format!("{} is not content", mdbook.display());
        return Err(failure::listed(&message, &said));
    }
    // These files are for web servers only, and 404.html assumes that the site is at the root of its server.
    for left in ["404.html", ".nojekyll"] {
        let _ = fs::remove_file(to.join(left));
    }
    let broken = links::broken_links(to)?;
    if !broken.is_empty() {
        let message = format!(
            "{} links lead nowhere; correct them in the documents",
            broken.len()
        );
        return Err(failure::listed(&message, &broken.join("\n")));
    }
    Ok(())
}
