// SPDX-License-Identifier: MIT OR Apache-2.0
//! Examines pages in files, and prints the errors of each: `browser [--pictures DIR] FILE...`. The exit status is 1 if
//! there are any errors.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use browser::{Look, Tab, paper};
use serde_json::json;

fn main() -> Result<ExitCode> {
    let mut files: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let pictures = match files
        .first()
        .is_some_and(|file| file.as_os_str() == "--pictures")
    {
        true => {
            let folder = files.drain(..2.min(files.len())).nth(1);
            Some(folder.context("--pictures: name a folder")?)
        }
        false => None,
    };
    let mut browser = browser::from_environment()?;
    let mut tab = Tab::new(&mut browser)?;
    let mut wrong = 0;
    for file in &files {
        let found = browser::check_page(&mut tab, file)?;
        let verdict = if found.is_empty() { "ok" } else { "WRONG" };
        println!("{}: {verdict}", file.display());
        for finding in &found {
            println!("  {finding}");
        }
        wrong += usize::from(!found.is_empty());
        if let Some(folder) = &pictures {
            write_pictures(&mut tab, file, folder).with_context(|| file.display().to_string())?;
        }
    }
    Ok(ExitCode::from(u8::from(wrong > 0)))
}

/// Writes the page as readers see it: a picture for each look on a screen, and a PDF.
fn write_pictures(tab: &mut Tab<'_>, file: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    for look in Look::ALL {
        tab.open(file, look)?;
        let picture = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = tab.call("Page.captureScreenshot", picture)?;
        let name = look.shown().replace(" px, ", "-");
        let bytes = paper::decoded(&picture)?;
        fs::write(folder.join(format!("{stem}-{name}.png")), bytes)?;
    }
    tab.open(file, Look::ALL[0])?;
    let printed = paper::print(tab)?;
    fs::write(folder.join(format!("{stem}.pdf")), printed)?;
    Ok(())
}
