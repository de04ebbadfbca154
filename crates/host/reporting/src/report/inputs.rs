// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the inputs of a report or a comparison.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use foreign::Quoted;
use results::capture;
use results::merge::Run;
use results::{Repeated, Results};

use crate::saved_runs;
use shell::failure::bad_input;
use shell::output::file_arguments;
use shell::{files, mistake, places};

/// Largest number of kinds of complaints to print for a file.
const KINDS: usize = 20;
/// Largest number of characters in a sentence that quotes foreign text.
const LONG: usize = 600;

const REMEDY: &str = "name a run folder, a results.json or a serial log";

/// One input: a run folder, a `results.json` or a log.
#[derive(Debug)]
pub struct Input {
    /// The input's path, as messages show it.
    pub shown: String,
    /// Label that distinguishes this input from the other inputs.
    pub label: String,
    /// The input's folder, if a folder was named.
    pub folder: Option<PathBuf>,
    /// Whether the input was read from records and not from a results.json.
    pub is_log: bool,
    pub results: Results,
    /// The commands that produced the input, if known.
    pub commands: Option<String>,
}

impl Input {
    /// Returns the input's run, or part of a run.
    pub fn into_run(self) -> Run {
        Run {
            label: self.label,
            results: self.results,
            commands: self.commands.into_iter().collect(),
        }
    }

    /// Reads an input of any kind.
    pub fn read_input(path: &Path) -> Result<Self> {
        let path = &saved_runs::find(path);
        let shown = places::shown(path);
        let mut input = if path.is_dir() {
            Self::read_folder(path, &shown)?
        } else {
            Self::read_file(path, &shown)?
        };
        if input.is_log {
            input.results.notes.push(
                "read from a serial log, which does not say what the board is called, nor \
                 whether and how it is emulated"
                    .into(),
            );
        }
        Ok(input)
    }

    fn read_folder(folder: &Path, shown: &str) -> Result<Self> {
        let names = ["results.json", "serial.log"];
        let Some(file) = names
            .iter()
            .map(|name| folder.join(name))
            .find(|file| file.is_file())
        else {
            bad_input!("{shown}: there is neither results.json nor serial.log; {REMEDY}");
        };
        let input = Self::read_file(&file, &places::shown(&file))?;
        Ok(Self {
            shown: shown.into(),
            label: input_label(folder),
            folder: Some(folder.into()),
            commands: fs::read_to_string(folder.join("command.txt")).ok(),
            ..input
        })
    }

    fn read_file(file: &Path, shown: &str) -> Result<Self> {
        file_arguments::note("INPUTS", file);
        let bytes = match files::read(file) {
            Ok(bytes) => bytes,
            Err(error) => bad_input!(
                "{shown} can't be read ({error}); {REMEDY}{}",
                saved_runs::saved_names()
            ),
        };
        let text = String::from_utf8_lossy(&bytes);
        let is_log = !text.trim_start().starts_with('{')
            || capture::has_records(text.lines().next().unwrap_or_default());
        let results = if is_log {
            from_log(&text, shown)?
        } else {
            from_json(&text, shown)?
        };
        Ok(Self {
            shown: shown.into(),
            label: input_label(file),
            folder: None,
            is_log,
            results,
            commands: None,
        })
    }

    /// Returns the first complaint of each kind about the input, for people.
    pub fn first_complaints(&self) -> Vec<String> {
        let damaged = self.results.damaged.iter();
        let damaged = damaged.map(|cell| format!("{} is damaged, not used", Quoted::new(cell)));
        let problems = self.results.problems.iter();
        let problems = problems.map(|problem| Quoted::up_to(LONG, problem).to_string());
        let incomplete = self.results.incomplete_text();
        let incomplete =
            incomplete.map(|missing| format!("incomplete: {}", Quoted::up_to(LONG, &missing)));
        let mut kinds = Repeated::default();
        let all = damaged.chain(problems).chain(incomplete);
        all.for_each(|text| kinds.add_text(0, text));
        let mut lines: Vec<String> = kinds
            .into_texts()
            .map(|text| format!("{}: {text}", self.shown))
            .collect();
        let more = lines.len().saturating_sub(KINDS);
        if more > 0 {
            lines.truncate(KINDS);
            lines.push(format!(
                "{}: and {more} kinds more; the page has all",
                self.shown
            ));
        }
        lines
    }
}

fn from_log(text: &str, shown: &str) -> Result<Results> {
    if !capture::has_records(text) {
        bad_input!("{shown} has no record (a line with `@r1 `); {REMEDY}");
    }
    match capture::results(text) {
        Some(results) => Ok(results),
        None => bad_input!("{shown}: every record is damaged; capture the console again"),
    }
}

fn from_json(text: &str, shown: &str) -> Result<Results> {
    let mut results = match Results::read_json(text, mistake::of_json) {
        Ok(results) => results,
        Err(why) => bad_input!("{shown} is not a results.json ({why}); {REMEDY}"),
    };
    if results.schema != 1 {
        bad_input!(
            "{shown}: schema {} is not known, only 1 is; use the version that wrote it ({})",
            results.schema,
            Quoted::new(&results.tool)
        );
    }
    results.round_percentiles();
    Ok(results)
}

/// Returns the name that distinguishes an input from other inputs: its folder's name, or its file's
/// name if that is more specific.
fn input_label(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    let file = name(&path).unwrap_or_default();
    match file.as_str() {
        "results.json" | "serial.log" => path.parent().and_then(name).unwrap_or(file),
        _ if path.is_dir() => file,
        _ => path
            .file_stem()
            .map_or(file.clone(), |stem| stem.to_string_lossy().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::samples::results;
    use shell::failure::is_bad_input;

    #[test]
    fn every_form_of_a_run_reads_the_same() {
        let parent = tempfile::tempdir().unwrap();
        let run = parent.path().join("first");
        fs::create_dir(&run).unwrap();
        let log = results::samples::lines().join("\r\n");
        fs::write(run.join("serial.log"), format!("boot\n{log}")).unwrap();
        let from_log = Input::read_input(&run).unwrap();
        fs::write(run.join("results.json"), results().to_json().unwrap()).unwrap();
        fs::write(run.join("command.txt"), "cargo xtask run\n").unwrap();
        let from_folder = Input::read_input(&run).unwrap();
        let from_json = Input::read_input(&run.join("results.json")).unwrap();
        assert!(from_log.is_log && !from_folder.is_log && !from_json.is_log);
        assert_eq!(from_folder.commands.as_deref(), Some("cargo xtask run\n"));
        for input in [from_log, from_folder, from_json] {
            assert_eq!(input.label, "first");
            assert_eq!(
                serde_json::to_value(&input.results.cells).unwrap(),
                serde_json::to_value(&results().cells).unwrap()
            );
        }
    }

    #[test]
    fn what_is_no_input_is_refused_with_the_remedy() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        for text in [
            "",
            "hello",
            "{}",
            "{\"schema\":2}",
            "{\"schema\":\"x\"}",
            "@r1 broken",
        ] {
            fs::write(&file, text).unwrap();
            let error = Input::read_input(&file).unwrap_err();
            assert!(is_bad_input(&error), "{text}");
            let error = error.to_string();
            assert!(error.contains(';') && !error.contains('\n'), "{error}");
        }
        assert!(is_bad_input(&Input::read_input(parent.path()).unwrap_err()));
        assert!(is_bad_input(
            &Input::read_input(&file.join("x")).unwrap_err()
        ));
    }
}
