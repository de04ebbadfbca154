// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `report`: a page made from runs and from logs.

pub mod across;
pub mod inputs;
pub mod merge;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use jiff::Timestamp;

use crate::cli::ReportArgs;
use crate::failure::bad_input;
use crate::folder::Copy;
use crate::page;
use crate::results::{self, Results};
use crate::terminal::say;
use crate::{json, places};
use inputs::Input;
use merge::Run;

/// Name of the page in a folder.
pub const PAGE: &str = "report.html";

/// Does what `cargo xtask report` promises.
pub fn report(args: &ReportArgs) -> Result<()> {
    let inputs: Vec<Input> = args
        .inputs
        .iter()
        .map(|path| Input::read(path))
        .collect::<Result<_>>()?;
    for input in &inputs {
        input
            .complaints()
            .for_each(|line| eprintln!("warning: {line}"));
    }
    // What is already a results.json, and alone, need not be written again.
    let as_it_is = matches!(inputs.as_slice(), [input] if !input.is_log);
    let places = Places::choose(args, &inputs, !as_it_is)?;
    let runs = merge::runs(inputs);
    if runs.iter().all(|run| run.results.cells.is_empty()) {
        bad_input!("no cell of this is whole; capture the console again, or name other inputs");
    }
    let page = page::html(args.title.as_deref(), &runs)?;
    across::sentences(&across::groups(&runs))
        .iter()
        .for_each(|line| say!("{line}"));
    Copy::claim("--out", &places.page)?.write(&page)?;
    if let Some(folder) = &places.data {
        let merged = merge::into_one(&runs);
        Copy::claim("--out", &folder.join("results.json"))?.write(&json::text(&merged)?)?;
        Copy::claim("--out", &folder.join("results.csv"))?.write(&results::csv(&merged)?)?;
    }
    say!("report: {}", places::shown(&places.page));
    Ok(())
}

/// The page of one run that was just made.
pub fn of_run(label: &str, results: &Results, commands: &str) -> Result<String> {
    let run = Run {
        label: label.into(),
        results: results.clone(),
        commands: vec![commands.into()],
    };
    page::html(None, &[run])
}

/// Where things are written.
struct Places {
    page: PathBuf,
    /// Folder for the data, if that is to be written.
    data: Option<PathBuf>,
}

impl Places {
    fn choose(args: &ReportArgs, inputs: &[Input], data: bool) -> Result<Self> {
        let folder = match (&args.out, inputs) {
            (Some(out), _) if is_page(out) => {
                let (page, data) = (out.clone(), None);
                return Ok(Self { page, data });
            }
            (Some(out), _) => out.clone(),
            (None, [input]) if input.folder.is_some() => input.folder.clone().unwrap_or_default(),
            (None, _) => fresh(),
        };
        let shown = places::shown(&folder);
        // What a run measured is not to be replaced by what is made from it.
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
    !out.is_dir() && matches!(extension, Some("html" | "htm"))
}

/// A folder that does not exist yet.
fn fresh() -> PathBuf {
    let time = Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let reports = places::target().join("reports");
    let numbered = (2..).map(|number| format!("{time}-{number}"));
    let mut names = std::iter::once(time.clone()).chain(numbered);
    let free = names.find(|name| !reports.join(name).exists());
    reports.join(free.unwrap_or(time))
}
