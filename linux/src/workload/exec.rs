// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program as it is. A sample is a run, from its first instruction to its end; its loading is none of it.

use std::io;

use plan::Cell;

use super::SampleBlock;
use crate::commands;
use crate::program::{self, Ending, Loaded, Run};

/// The end of a run, and its output.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it is no sample, if it failed.
    pub failure: Option<String>,
    /// A remark on a run that succeeded.
    pub note: Option<&'static str>,
    /// The output of the last run.
    pub output: Vec<u8>,
}

/// Returns why a command can't run, if it can't.
pub fn lacking(cell: &Cell) -> Option<String> {
    let name = cell.command.to_string();
    commands::named(&name).err().map(|error| error.to_string())
}

/// Runs a block of a cell, and leaves the outcome of its last run there. Returns the ticks of its runs.
///
/// # Errors
/// The kernel does not let this program start others.
pub fn run(block: &mut SampleBlock<'_>, cell: &Cell) -> io::Result<u64> {
    let command = commands::named(&cell.command.to_string())?;
    let mut ticks = 0;
    for number in 0..command.warm_up + block.count {
        let is_sample = number >= command.warm_up;
        let loaded = match Loaded::new(&command, block.cpus) {
            Ok(loaded) => loaded,
            Err(error) => {
                block.outcome = Outcome {
                    failure: Some(error.to_string()),
                    note: None,
                    output: program::shown()?,
                };
                break;
            }
        };
        if is_sample {
            block.begin()?;
        }
        let run = loaded.run()?;
        if is_sample {
            block.end()?;
        }
        let of_run = run.ticks;
        block.outcome = judged(run);
        if block.outcome.failure.is_some() {
            break;
        }
        if is_sample {
            block.record(of_run);
            ticks += of_run;
        }
    }
    Ok(ticks)
}

/// Describes a run: a failed one is no sample.
fn judged(run: Run) -> Outcome {
    let failure = match run.ending {
        Ending::Exited(0) => None,
        Ending::Exited(status) => Some(format!("it exited with status {status}")),
        Ending::Signalled(signal) => Some(format!("signal {signal} ended it")),
        Ending::TimedOut => Some("it did not end in time; --exec-seconds gives more".into()),
        Ending::Flooded => Some("it printed more than 4 MiB and was ended".into()),
    };
    Outcome {
        failure,
        note: run
            .left_children
            .then_some("it left processes that still ran, and these were ended"),
        output: run.output,
    }
}
