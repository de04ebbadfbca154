// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `pages`: checks pages in a headless browser.
//!
//! The program crates/test/browser does the check. Since it is a separate program, only this verb compiles
//! it. This module chooses the pages: files that the user names, or one page of each kind, made without a
//! boot.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use results::goldens;
use results::merge;

use counting::cost;
use providing::{browser, toolchain};
use reporting::{compare, over_time};
use shell::failure::bad_input;
use shell::terminal::say;
use shell::{files, places};

/// Options of `pages`.
#[derive(Args, Debug)]
pub struct PagesArgs {
    /// Pages to check [default: one of each kind, made from results that tests keep]
    #[arg(value_name = "FILE.html")]
    pub files: Vec<PathBuf>,
    /// Keep a picture of each page in each width and colour scheme, and its PDF
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,
}

/// Runs `cargo xtask dev pages`.
pub fn pages(args: &PagesArgs) -> Result<()> {
    if let Some(missing) = args.files.iter().find(|file| !file.is_file()) {
        bad_input!("{} is not a file; name pages", missing.display());
    }
    let program = browser::provide()?;
    let files = match args.files.as_slice() {
        [] => make()?,
        named => named.to_vec(),
    };
    let mut words: Vec<OsString> = Vec::new();
    if let Some(folder) = &args.pictures {
        words.extend(["--pictures".into(), folder.into()]);
    }
    words.extend(files.into_iter().map(OsString::from));
    let manifest = places::inside("Cargo.toml");
    let status = toolchain::cargo()
        .args(["run", "--quiet", "--package", "browser", "--manifest-path"])
        .arg(manifest)
        .arg("--")
        .args(words)
        .env(browser::VARIABLE, program)
        .status();
    if !status.with_context(toolchain::no_cargo)?.success() {
        bail!("some pages have mistakes, which are listed above");
    }
    if let Some(folder) = &args.pictures {
        say!("pictures: {}", places::shown(folder));
    }
    Ok(())
}

/// Writes a page of each kind to files.
pub fn make() -> Result<Vec<PathBuf>> {
    let folder = places::target().join("pages");
    files::make_folder(&folder)?;
    let runs = goldens::logs_as_runs();
    let mut made: Vec<(String, String)> = Vec::new();
    for run in &runs {
        let label = run.label.clone();
        made.push((label, page::results_page(None, std::slice::from_ref(run))));
    }
    made.push(("over-time".into(), over_time::sample_page(&runs)));
    made.push(("compare".into(), compare::page::sample_page(&runs)));
    made.push((
        "all".into(),
        page::results_page(None, &merge::join_sweeps(runs)),
    ));
    made.push(("experiments".into(), experiments::sample()));
    made.push(("cost-scale".into(), cost::sample()));
    let files = made.into_iter().map(|(name, page)| {
        let file = folder.join(format!("{name}.html"));
        fs::write(&file, page).with_context(|| places::shown(&file))?;
        Ok(file)
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_of_each_kind() {
        let files = make().unwrap();
        for name in [
            "whole",
            "all",
            "compare",
            "over-time",
            "experiments",
            "cost-scale",
        ] {
            let file = files
                .iter()
                .find(|file| file.ends_with(format!("{name}.html")));
            let page = fs::read_to_string(file.expect(name)).unwrap();
            assert!(
                page.starts_with("<!DOCTYPE html>")
                    && (page.contains("<svg") || page.contains("class=\"fill")),
                "{name}"
            );
        }
    }
}
