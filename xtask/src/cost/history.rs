// SPDX-License-Identifier: MIT OR Apache-2.0
//! The baselines that were kept: `docs/cost/NN-label.json`. The first one is what
//! it all began with, the last one is what new ones are held against.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::costs::{Costs, SCHEMA};
use super::document;
use crate::failure::{BadInput, bad_input};
use crate::output::Output;
use crate::places;

const FOLDER: &str = "docs/cost";
const DOCUMENT: &str = "docs/cost.md";

/// Reads a baseline.
pub fn read(path: &Path) -> Result<Costs> {
    let shown = places::shown(path);
    let text = fs::read_to_string(path).map_err(|error| {
        BadInput::error(format!("{shown} can't be read ({error}); name a baseline"))
    })?;
    let costs: Costs = serde_json::from_str(&text)
        .map_err(|error| BadInput::error(format!("{shown} is no baseline ({error})")))?;
    if costs.schema != SCHEMA {
        bad_input!(
            "{shown} has format {}, not {SCHEMA}; save a new one",
            costs.schema
        );
    }
    Ok(costs)
}

/// The files of the baselines that were kept, the oldest first.
fn files() -> Result<Vec<PathBuf>> {
    let folder = places::inside(FOLDER);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(&folder).with_context(|| FOLDER.to_owned())?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.sort();
    Ok(files)
}

/// The baselines that were kept, the oldest first.
pub fn all() -> Result<Vec<Costs>> {
    files()?.iter().map(|path| read(path)).collect()
}

/// The file of the newest baseline.
pub fn newest() -> Result<PathBuf> {
    let Some(newest) = files()?.pop() else {
        bad_input!(
            "--compare: there is no baseline in {FOLDER}; name a file, or keep one with --save"
        );
    };
    Ok(newest)
}

/// Keeps `costs` under `label` and writes the page anew.
pub fn save(mut costs: Costs, label: &str) -> Result<String> {
    let number = files()?.len();
    let slug = slug(label);
    costs.label = label.into();
    let folder = places::inside(FOLDER);
    fs::create_dir_all(&folder).with_context(|| FOLDER.to_owned())?;
    let file = folder.join(format!("{number:02}-{slug}.json"));
    let text = serde_json::to_string_pretty(&costs)? + "\n";
    Output::claim("--save", &file)?.write(&text)?;
    write_document()?;
    Ok(places::shown(&file))
}

/// Writes the page from the baselines.
pub fn write_document() -> Result<()> {
    let page = document::page(&all()?);
    Output::claim("--save", &places::inside(DOCUMENT))?.write(&page)
}

/// A label as part of a file's name.
fn slug(label: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    label.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_what_the_cards_make_of_it() {
        let page = fs::read_to_string(places::inside(DOCUMENT)).unwrap();
        assert!(
            page == document::page(&all().unwrap()),
            "{DOCUMENT} is not what the baselines in {FOLDER} make of it; run `cargo xtask cost --page`"
        );
    }

    #[test]
    fn the_newest_card_is_a_card() {
        assert!(!read(&newest().unwrap()).unwrap().paths.is_empty());
    }

    #[test]
    fn labels_become_names_of_files() {
        assert_eq!(slug("In assembly: WFI"), "in-assembly--wfi");
    }
}
