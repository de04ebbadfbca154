// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use std::path::PathBuf;

use clap::Args;

use crate::format::FormatArgs;

/// Probability that `compare` calls anything better or worse when nothing differs.
const LEVEL: &str = "5%";

/// Options of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// A, the reference, and B, each a run folder, the name of a saved run, a results.json or a serial log, which may
    /// hold several runs. With --with, all of these are runs of A. With --over-time, any number of runs and folders of
    /// runs [default there: the saved ones]
    #[arg(value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Runs of B
    #[arg(long, value_name = "RUN", num_args = 1..)]
    pub with: Vec<PathBuf>,
    /// Instead, show the medians of each cell in all of these runs, from the oldest to the newest
    #[arg(long, conflicts_with_all = ["with", "fail_if_worse", "level", "see", "allow"])]
    pub over_time: bool,
    /// The page [default: in target/reports/TIME]
    #[arg(long, value_name = "FILE.html")]
    pub out: Option<PathBuf>,
    /// Exit with status 1 if medians, tails or exits of a cell are worse by more than this much, or cells are lost;
    /// with 2 if these runs can't decide it [without a number: 0]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "0")]
    pub fail_if_worse: Option<String>,
    /// Maximum probability that anything is called better or worse if nothing is
    #[arg(long, value_name = "PERCENT", default_value = LEVEL)]
    pub level: String,
    /// Print how many runs would show a difference of this much
    #[arg(long, value_name = "PERCENT")]
    pub see: Option<String>,
    /// Differences between A and B, other than the code, that --fail-if-worse accepts: compiler, emulator, ...
    #[arg(long, value_name = "LIST")]
    pub allow: Option<String>,
    /// The form of the output.
    #[command(flatten)]
    pub format: FormatArgs,
}

impl CompareArgs {
    /// Returns the default comparison of `runs`.
    pub fn of(runs: Vec<PathBuf>) -> Self {
        Self {
            runs,
            with: Vec::new(),
            over_time: false,
            out: None,
            fail_if_worse: None,
            level: LEVEL.into(),
            see: None,
            allow: None,
            format: FormatArgs::default(),
        }
    }
}
