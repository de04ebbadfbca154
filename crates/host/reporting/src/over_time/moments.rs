// SPDX-License-Identifier: MIT OR Apache-2.0
//! The runs in some folders, with the repetitions of a run joined.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use results::merge::{self, Run};
use results::{Build, Results};
use shell::terminal::note;

use crate::report::inputs::Input;
use crate::saved_runs;

/// A moment of a history: a run, or all repetitions of a run.
pub struct Moment {
    /// The moment's name.
    pub label: String,
    /// The run, or its repetitions.
    pub runs: Vec<Run>,
}

impl Moment {
    /// Creates the moment of a run that was made only once.
    pub fn of_one_run(run: Run) -> Self {
        Self {
            label: run.label.clone(),
            runs: vec![run],
        }
    }

    /// Returns the results of the first run, which give the machine and the unit.
    pub fn first_results(&self) -> &Results {
        &self.runs[0].results
    }

    /// Returns the short commit, if known.
    pub fn commit(&self) -> String {
        let build = self.first_results().build.as_ref();
        build.map(Build::short_tree).unwrap_or_default()
    }

    /// Describes the moment in a line.
    pub fn describe(&self) -> String {
        let results = self.first_results();
        let Self { label, runs } = self;
        let times = match runs.len() {
            1 => String::new(),
            times => format!(" ({times} times)"),
        };
        let kernel = results.machine.kernel_text();
        let kernel = kernel.map_or(String::new(), |kernel| format!(", {kernel}"));
        format!(
            "{label}{times}, {} ({}), {}, {}{kernel}",
            results.board,
            results.machine.cpu,
            results.began.split('.').next().unwrap_or_default(),
            self.commit()
        )
    }
}

/// Reads the runs in `folders`, each boot once.
pub fn read_moments(folders: &[PathBuf]) -> Result<Vec<Moment>> {
    let named = match folders {
        [] => vec![saved_runs::saved_folder()],
        some => some.iter().map(|folder| saved_runs::find(folder)).collect(),
    };
    let mut runs = Vec::new();
    // For each run, the number and the name of its input.
    let mut inputs: Vec<(usize, String)> = Vec::new();
    for folder in named {
        for place in run_folders(&folder) {
            let input = Input::read_input(&place)?;
            let complaints = input.first_complaints();
            complaints.iter().for_each(|line| note!("warning: {line}"));
            let run = input.into_run();
            let input = (inputs.len(), run.label.clone());
            runs.push(run);
            runs = merge::distinct_runs(runs);
            inputs.resize(runs.len(), input);
        }
    }
    Ok(join_repetitions(runs, &inputs))
}

/// Joins the repetitions that one input has.
fn join_repetitions(runs: Vec<Run>, inputs: &[(usize, String)]) -> Vec<Moment> {
    let mut of_inputs: Vec<(&(usize, String), Vec<Run>)> = Vec::new();
    for (run, input) in runs.into_iter().zip(inputs) {
        match of_inputs.last_mut() {
            Some((known, runs)) if *known == input => runs.push(run),
            _ => of_inputs.push((input, vec![run])),
        }
    }
    let moments = of_inputs.into_iter().flat_map(|((_, label), runs)| {
        let setups = merge::group_repetitions(&runs);
        let single = setups.len() == 1;
        let moments = setups.into_iter().map(|setup| Moment {
            label: match single {
                true => label.clone(),
                false => setup[0].label.clone(),
            },
            runs: setup.into_iter().cloned().collect(),
        });
        moments.collect::<Vec<_>>()
    });
    moments.collect()
}

/// Returns `folder` if it is a run, or else the runs in it, sorted by name.
fn run_folders(folder: &Path) -> Vec<PathBuf> {
    let has = |place: &Path| place.join("results.json").is_file();
    let is_json = |place: &Path| {
        place
            .extension()
            .is_some_and(|extension| extension == "json")
    };
    if has(folder) || !folder.is_dir() {
        return vec![folder.to_owned()];
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let places = entries.map(|entry| entry.path());
    let mut places: Vec<PathBuf> = places
        .filter(|place| has(place) || is_json(place))
        .collect();
    places.sort();
    places
}
