// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `report`: makes a page from runs and from logs.

mod options;

pub use options::ReportArgs;

mod charts;
pub mod inputs;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use page::document::Document;
use page::scale::Scale;
use page::{layer_costs, machines};
use results::Results;
use results::json;
use results::merge::{self, Run};

use crate::format::{Format, FormatArgs};
use crate::watts;
use charts::Charts;
use inputs::Input;
use shell::failure::bad_input;
use shell::folder;
use shell::output::Output;
use shell::terminal::{self, note, say};
use shell::{output, places};

/// Name of the page in a folder.
pub const PAGE: &str = "report.html";

/// Runs `cargo xtask report`.
pub fn report(args: &ReportArgs) -> Result<()> {
    if args.inputs.is_empty() {
        bad_input!(
            "nothing to report is named; name {}",
            crate::saved_runs::possible_inputs()
        );
    }
    let watts = args.watts.as_deref().map(watts::read).transpose()?;
    let inputs: Vec<Input> = args
        .inputs
        .iter()
        .map(|path| Input::read_input(path))
        .collect::<Result<_>>()?;
    for input in &inputs {
        let complaints = input.first_complaints();
        complaints.iter().for_each(|line| note!("warning: {line}"));
    }
    // A single input that is already a results.json need not be written again.
    let as_it_is = watts.is_none() && matches!(inputs.as_slice(), [input] if !input.is_log);
    if inputs.iter().all(|input| input.results.cells.is_empty()) {
        bad_input!("no cell of this is whole; capture the console again, or name other inputs");
    }
    let places = Places::choose_places(args, &inputs, !as_it_is)?;
    let claim = |path: &Path| Output::claim("--out", path);
    let out = claim(&places.page)?;
    args.format.claim()?;
    let data = places.data.as_deref().map(|folder| {
        let files = ["results.json", "results.csv"].map(|name| claim(&folder.join(name)));
        let [json, csv] = files;
        anyhow::Ok((json?, csv?))
    });
    let data = data.transpose()?;
    let mut runs = merge::join_sweeps(inputs.into_iter().map(Input::into_run).collect());
    if let Some(watts) = &watts {
        runs.iter_mut()
            .for_each(|run| run.results.model_energy(watts));
    }
    let charts = args
        .svg
        .as_deref()
        .map(|folder| Charts::claim_files(folder, &runs));
    let charts = charts.transpose()?;
    let page = page::results_page(args.title.as_deref(), &runs);
    let setups = merge::group_repetitions(&runs);
    let firsts: Vec<Run> = setups.iter().map(|group| group[0].clone()).collect();
    let mut sentences = Document::default();
    sentences.extend(machines::order_sentences(&machines::comparable_groups(
        &first_run_per_machine(&firsts),
    )));
    sentences
        .terminal(terminal::width())
        .iter()
        .for_each(|line| say!("{line}"));
    for run in &firsts {
        let sentence = layer_costs::cost_sentence(&run.results, Scale::for_results(&run.results));
        sentence
            .iter()
            .for_each(|line| say!("{}: {line}", run.label));
    }
    out.write(&page)?;
    if let Some((json, csv)) = data {
        let merged = merge::into_one(&runs);
        json.write(&json::text(&merged)?)?;
        csv.write(&results::csv(&merged)?)?;
    }
    if let Some(charts) = charts {
        charts.write_files()?;
    }
    if args.format.format == Format::Table {
        for setup in &setups {
            if setups.len() > 1 {
                say!("{}:", label_range(setup));
            }
            let repeated: Vec<Run> = setup.iter().map(|run| (*run).clone()).collect();
            args.format.show_results(&merge::into_one(&repeated))?;
            say!("");
        }
    } else {
        let tables = runs_document(&runs, &args.format);
        args.format.show_or_data(&tables, &merge::into_one(&runs))?;
    }
    say!("report: {}", output::shown(&places.page));
    Ok(())
}

/// Returns the first run on each machine, in each unit.
fn first_run_per_machine(runs: &[Run]) -> Vec<Run> {
    let mut known = BTreeSet::new();
    let machine = |run: &&Run| {
        let Results {
            board,
            machine,
            unit,
            ..
        } = &run.results;
        known.insert([board.clone(), machine.cpu.clone(), unit.clone()])
    };
    runs.iter().filter(machine).cloned().collect()
}

/// Names the repetitions of a run by the first and the last label.
fn label_range(setup: &[&Run]) -> String {
    match setup {
        [first, .., last] => format!("{} to {}", first.label, last.label),
        single => single.iter().map(|run| run.label.as_str()).collect(),
    }
}

/// Returns the tables of all runs.
fn runs_document(runs: &[Run], format: &FormatArgs) -> Document {
    let mut document = Document::default();
    for run in runs {
        if runs.len() > 1 {
            document.extend([String::new(), format!("{}:", run.label)]);
        }
        document.append(format.answer_and_tables(&run.results));
    }
    document
}

/// Returns the page of the measurement that has just ended, with one run or several.
pub fn of_run(label: &str, results: &Results, commands: &str) -> String {
    let run = Run {
        label: label.into(),
        results: results.clone(),
        commands: vec![commands.into()],
    };
    page::results_page(None, &merge::join_sweeps(vec![run]))
}

/// Writes a page that a command makes in addition to its answer, to `out` if that was named, or else to a new folder,
/// and prints the page's path. If the new folder can't be created, prints a warning instead of writing the page.
pub fn write_page(page: &str, out: Option<(Output, &Path)>) -> Result<()> {
    let (out, place) = match out {
        Some((out, place)) => (out, place.to_owned()),
        None => match new_folder() {
            Ok(folder) => {
                let place = folder.join(PAGE);
                (Output::claim("the page", &place)?, place)
            }
            Err(error) => {
                note!("warning: no page: {error:#}");
                return Ok(());
            }
        },
    };
    out.write(page)?;
    say!("page: {}", output::shown(&place));
    Ok(())
}

/// The paths of the output.
struct Places {
    page: PathBuf,
    /// Folder for the data, if data is written.
    data: Option<PathBuf>,
}

impl Places {
    fn choose_places(args: &ReportArgs, inputs: &[Input], data: bool) -> Result<Self> {
        let folder = match (&args.out, inputs) {
            (Some(out), _) if is_page(out) => {
                let (page, data) = (out.clone(), None);
                return Ok(Self { page, data });
            }
            (Some(out), _) => out.clone(),
            (None, [input]) if input.folder.is_some() => input.folder.clone().unwrap_or_default(),
            (None, _) => new_folder()?,
        };
        let shown = places::shown(&folder);
        // Results of a run must not be replaced by results derived from them.
        if data && folder.join("serial.log").exists() && folder.join("results.json").exists() {
            bad_input!(
                "--out: {shown} is a run's folder with results of its own; name another one"
            );
        }
        if let Err(error) = fs::create_dir_all(&folder) {
            bad_input!("--out: {shown} can't be created ({error}); name a folder that can");
        }
        Ok(Self {
            page: folder.join(PAGE),
            data: data.then_some(folder),
        })
    }
}

fn is_page(out: &Path) -> bool {
    let extension = out.extension().and_then(|extension| extension.to_str());
    let named = matches!(extension, Some("html" | "htm")) || out == Path::new("-");
    let exists = out.metadata().map(|what| what.file_type());
    // A path that is neither a folder nor a file is used for the page, if it is writable at all.
    exists.map_or(named, |what| !what.is_dir() && (named || !what.is_file()))
}

/// Creates a new folder for a report, named by the time.
fn new_folder() -> Result<PathBuf> {
    folder::create_numbered(&places::target().join("reports"), &folder::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_a_run_has_its_cells_and_how_it_was_made() {
        let results = results::samples::results();
        let page = of_run("evening", &results, "cargo xtask run --quick");
        assert!(page.starts_with("<!DOCTYPE html>"));
        for text in ["pingpong", "cargo xtask run --quick"] {
            assert!(page.contains(text), "{text}");
        }
    }
}
