// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use reporting::format::FormatArgs;
use running::options::LimitArgs;

/// Options of `experiment`.
#[derive(Args, Debug)]
pub struct ExperimentArgs {
    #[arg(value_name = "NAME", required = true, help = format!("all, posted (all of posted patches), or some of: {}", super::names()))]
    pub names: Vec<String>,
    /// Machine: the NAME in boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Folder with the patches of the experiments `posted-*`, each named by its number: 000-NAME.patch, or 000-NAME.on-6.12.patch if
    /// there is one for each kernel
    #[arg(long, value_name = "DIR")]
    pub patches: Option<PathBuf>,
    /// Draw random times from other seeds; each number is another choice. Verdicts should not depend on it
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,
    /// How many emulators run at a time, for the boots of an experiment. The results do not depend on it; where values
    /// are times, it is 1 [default: as many as this computer has CPUs and memory for]
    #[arg(long, value_name = "N", value_parser = running::options::at_least_one)]
    pub jobs: Option<NonZeroUsize>,
    /// Folder for the report and its runs; new or empty [default: target/runs/TIME-experiment]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a copy of experiments.json to FILE; - is standard output, and the tables then go to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How long the experiments may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// The format of the output.
    #[command(flatten)]
    pub format: FormatArgs,
}
