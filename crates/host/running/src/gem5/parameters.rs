// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parameters of a machine that a script assembles from gem5's parts, read from the board's `parameters.toml`.
//!
//! Every parameter has a value in each preset, with the source of the value, so that a result identifies the machine
//! that produced it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;

use shell::failure::{BadInput, bad_input};
use shell::{files, mistake, places};

/// The default preset.
pub const DEFAULT: &str = "plain";

/// Parameters that may be 0. The machine has none of these delays while it boots, so one boot serves all values.
pub const DELAYS: [&str; 2] = ["irq-ns", "wake-ns"];

/// A value, and its source.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Value {
    /// The value. The parameter's name ends with the unit.
    pub value: u64,
    /// A publication, `chosen` or `assumed`.
    pub source: String,
}

/// The values of a machine, by parameter.
pub type Values = BTreeMap<String, Value>;

#[derive(Debug, Deserialize)]
struct Parameter {
    /// Its description, with the unit.
    about: String,
    #[serde(flatten)]
    presets: Values,
}

/// All parameters of a board.
#[derive(Debug)]
pub struct Parameters(BTreeMap<String, Parameter>);

impl Parameters {
    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self> {
        let shown = places::shown(path);
        let place = || BadInput::context(format!("{shown} can't be used; correct it"));
        let text = files::read_text(path).with_context(place)?;
        Self::parse(&text).with_context(place)
    }

    fn parse(text: &str) -> Result<Self> {
        let parsed: BTreeMap<String, Parameter> =
            toml::from_str(text).map_err(|error| anyhow!(mistake::told(text, &error)))?;
        let parameters = Self(parsed);
        let presets = parameters.presets();
        for (name, parameter) in &parameters.0 {
            let of_it: BTreeSet<&str> = parameter.presets.keys().map(String::as_str).collect();
            if of_it != presets {
                let presets: Vec<&str> = presets.into_iter().collect();
                bad_input!(
                    "{name} has to have a value in each preset: {}",
                    presets.join(", ")
                );
            }
        }
        Ok(parameters)
    }

    pub fn presets(&self) -> BTreeSet<&str> {
        let all = self
            .0
            .values()
            .flat_map(|parameter| parameter.presets.keys());
        all.map(String::as_str).collect()
    }

    /// Returns the names and descriptions of the parameters.
    pub fn about(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, parameter)| (name.as_str(), parameter.about.as_str()))
    }

    /// Returns the values of `preset`, with the changes in `set`, such as `core-mhz=3000,l2-kib=512`.
    pub fn pick_values(&self, preset: Option<&str>, set: Option<&str>) -> Result<Values> {
        let preset = preset.unwrap_or(DEFAULT);
        if !self.presets().contains(preset) {
            let known: Vec<&str> = self.presets().into_iter().collect();
            bad_input!("--preset: there is no `{preset}`; use {}", known.join(", "));
        }
        let chosen = self
            .0
            .iter()
            .map(|(name, parameter)| (name.clone(), parameter.presets[preset].clone()));
        let mut values: Values = chosen.collect();
        for word in set.into_iter().flat_map(|set| set.split(',')) {
            let Some((name, value)) = word.split_once('=') else {
                bad_input!("--set: `{word}` is not NAME=VALUE; for instance core-mhz=3000");
            };
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let Some(entry) = values.get_mut(name) else {
                bad_input!(
                    "--set: there is no parameter `{name}`; use {}",
                    known.join(", ")
                );
            };
            match value.parse() {
                Ok(value) if value > 0 || DELAYS.contains(&name) => {
                    let source = "--set".into();
                    *entry = Value { value, source };
                }
                _ => {
                    let least = u64::from(!DELAYS.contains(&name));
                    bad_input!(
                        "--set: `{value}` is not a value of {name}; use a whole number from {least}"
                    )
                }
            }
        }
        Ok(values)
    }
}

/// Returns the values, without sources, as JSON for the machine's script. [`DELAYS`] are the script's arguments.
pub fn json(values: &Values) -> String {
    let pairs = values
        .iter()
        .filter(|(name, _)| !DELAYS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.value.into()));
    serde_json::Value::Object(pairs.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use shell::failure::is_bad_input;

    const TEXT: &str = "[core-mhz]\nabout = 'clock'\nplain = { value = 2000, source = 'chosen' }\n\
                        fast = { value = 3000, source = 'assumed' }\n";

    #[test]
    fn a_preset_is_chosen_and_changed() {
        let parameters = Parameters::parse(TEXT).unwrap();
        let values = parameters.pick_values(Some("fast"), None).unwrap();
        assert_eq!(json(&values), r#"{"core-mhz":3000}"#);
        let values = parameters.pick_values(None, Some("core-mhz=1000")).unwrap();
        assert_eq!(values["core-mhz"].source, "--set");
        assert_eq!(parameters.about().next(), Some(("core-mhz", "clock")));
    }

    #[test]
    fn what_there_is_not_is_refused_with_what_there_is() {
        let parameters = Parameters::parse(TEXT).unwrap();
        for (preset, set, remedy) in [
            (Some("slow"), None, "use fast, plain"),
            (None, Some("core=1"), "use core-mhz"),
            (None, Some("core-mhz=0"), "a whole number from 1"),
            (None, Some("core-mhz"), "core-mhz=3000"),
        ] {
            let error = parameters.pick_values(preset, set).unwrap_err();
            assert!(
                is_bad_input(&error) && error.to_string().contains(remedy),
                "{error:#}"
            );
        }
        let hole = format!("{TEXT}[l2-kib]\nabout = 'x'\nplain = {{ value = 1, source = 'x' }}\n");
        let error = Parameters::parse(&hole).unwrap_err().to_string();
        assert!(
            error.contains("l2-kib") && error.contains("fast, plain"),
            "{error}"
        );
    }

    #[test]
    fn a_file_with_a_mistake_is_bad_input() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("parameters.toml");
        fs::write(&file, TEXT.replace("2000", "'2 GHz'")).unwrap();
        let error = Parameters::load(&file).unwrap_err();
        let text = format!("{error:#}");
        assert!(
            is_bad_input(&error) && text.contains("line ") && text.contains("parameters.toml"),
            "{text}"
        );
    }
}
