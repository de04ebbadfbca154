// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of machines: `boards/<name>.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use plan::{Under, Word};
use serde::Deserialize;

use crate::cli::Metric;
use crate::failure::{BadInput, bad_input};
use crate::places;
use crate::terminal::say;

/// A machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Its name: that of the file.
    #[serde(skip)]
    pub name: String,
    /// One line for people.
    pub about: String,
    /// Where the loader puts the image.
    pub image_base: u64,
    /// How many CPUs it can have.
    pub cpus: Cpus,
    /// CPU models.
    pub models: Models,
    /// How to launch it.
    pub qemu: Qemu,
}

/// Numbers of CPUs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpus {
    /// Unless asked otherwise.
    pub default: u32,
    /// The most.
    pub max: u32,
}

/// CPU models.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    /// Unless asked otherwise.
    pub default: String,
    /// Properties that each known model is started with.
    pub properties: BTreeMap<String, String>,
}

/// How QEMU emulates it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Qemu {
    /// Size of RAM.
    pub memory: String,
    /// `-M` by what the guest runs under.
    pub machine: BTreeMap<String, String>,
    /// What each metric adds.
    pub metric: BTreeMap<Metric, Mode>,
}

/// A way to run the emulator.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mode {
    /// Its name in the results.
    pub mode: String,
    /// Arguments that select it.
    pub args: Vec<String>,
}

impl Board {
    /// Reads board `name`.
    pub fn load(name: &str) -> Result<Self> {
        let path = folder().join(format!("{name}.toml"));
        let Ok(text) = fs::read_to_string(&path) else {
            let known = names()?.join(", ");
            bad_input!("--board: there is no `{name}`; use {known}, or add boards/{name}.toml");
        };
        Self::parse(name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let place = || BadInput::error(format!("boards/{name}.toml can't be used; correct it"));
        let mut board: Self = toml::from_str(text)
            .map_err(|error| BadInput::error(one_line(&error)))
            .with_context(place)?;
        board.name = name.into();
        Ok(board)
    }

    /// The number of CPUs to use when `asked` were asked for.
    pub fn cpus(&self, asked: Option<u32>) -> Result<u32> {
        let (cpus, max) = (asked.unwrap_or(self.cpus.default), self.cpus.max);
        if !(1..=max).contains(&cpus) {
            let nearest = cpus.clamp(1, max);
            bad_input!(
                "--cpus: board {} has 1 to {max}, not {cpus}; the nearest is {nearest}",
                self.name
            );
        }
        Ok(cpus)
    }

    /// The value of `-cpu` for `asked`, and the model's name.
    pub fn model(&self, asked: Option<&str>) -> Result<(String, String)> {
        let model = asked.unwrap_or(&self.models.default);
        let Some(properties) = self.models.properties.get(model) else {
            let known: Vec<&str> = self.models.properties.keys().map(String::as_str).collect();
            bad_input!(
                "--cpu: board {} has no `{model}`; use {}",
                self.name,
                known.join(", ")
            );
        };
        let separator = if properties.is_empty() { "" } else { "," };
        Ok((format!("{model}{separator}{properties}"), model.into()))
    }

    /// The value of `-M`.
    pub fn machine(&self, under: Under) -> Result<&str> {
        let machine = self.qemu.machine.get(under.name());
        machine
            .map(String::as_str)
            .ok_or_else(|| self.lacks("--under", under))
    }

    /// The emulator's mode for a metric.
    pub fn mode(&self, metric: Metric) -> Result<&Mode> {
        let mode = self.qemu.metric.get(&metric);
        mode.ok_or_else(|| self.lacks("--metric", metric))
    }

    fn lacks(&self, option: &str, value: impl std::fmt::Display) -> anyhow::Error {
        BadInput::error(format!(
            "{option}: boards/{}.toml does not say how to run `{value}`; add it there",
            self.name
        ))
    }
}

/// Names of the boards, sorted.
pub fn names() -> Result<Vec<String>> {
    let folder = folder();
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| Some(file.strip_suffix(".toml")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Prints the boards: the verb `boards`.
pub fn list() -> Result<()> {
    for name in names()? {
        let board = Board::load(&name)?;
        say!("{name}: {}", board.about);
        say!(
            "    CPUs    1 to {}, {} by default",
            board.cpus.max,
            board.cpus.default
        );
        let models: Vec<&str> = board.models.properties.keys().map(String::as_str).collect();
        say!(
            "    models  {}; {} by default",
            models.join(", "),
            board.models.default
        );
    }
    Ok(())
}

fn folder() -> PathBuf {
    places::inside("boards")
}

/// A parser's message without its picture of the place.
pub fn one_line(error: &toml::de::Error) -> String {
    error.message().lines().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::is_bad_input;

    #[test]
    fn every_board_of_the_tree_can_be_used() {
        for name in names().unwrap() {
            let board = Board::load(&name).unwrap();
            board.cpus(None).unwrap();
            board.model(None).unwrap();
            for &under in Under::ALL {
                board.machine(under).unwrap();
            }
        }
    }

    #[test]
    fn what_a_board_has_not_is_bad_input() {
        let board = Board::load("virt").unwrap();
        for error in [
            board.cpus(Some(0)).unwrap_err(),
            board.cpus(Some(9)).unwrap_err(),
            board.model(Some("z80")).unwrap_err(),
            Board::load("no-such").unwrap_err(),
            Board::parse("x", "about = 3").unwrap_err(),
        ] {
            assert!(is_bad_input(&error), "{error:#}");
        }
        let error = board.cpus(Some(99)).unwrap_err().to_string();
        assert!(error.ends_with("the nearest is 8"), "{error}");
    }

    #[test]
    fn models_bring_their_properties() {
        let board = Board::load("virt").unwrap();
        assert_eq!(board.model(None).unwrap().0, "max");
        let (value, name) = board.model(Some("neoverse-n1")).unwrap();
        assert_eq!(
            (value.as_str(), name.as_str()),
            ("neoverse-n1,cntfrq=1000000000", "neoverse-n1")
        );
    }
}
