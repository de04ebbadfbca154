// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program as it is. A sample is a run, from its first instruction to its end; its loading is none of it.

use std::io;

use plan::Cell;

use super::SampleBlock;
use crate::commands::{self, Command};
use crate::cpus;
use crate::program::{self, Ending, Loaded, OutputFile, Printed};

/// The end of a run, and its output.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it is no sample, if it failed.
    pub failure: Option<String>,
    /// A remark on a run that succeeded.
    pub note: Option<&'static str>,
    /// The output.
    pub output: Printed,
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
    // Whatever is below, this thread is not in the way of the program's.
    cpus::unpin(block.cpus)?;
    let mut ticks = 0;
    for number in 0..command.warm_up + block.count {
        let is_sample = number >= command.warm_up;
        let mut output = OutputFile::new()?;
        let run = once(block, &command, &output, is_sample);
        if run.is_err() {
            program::end_all_children()?;
        }
        let (failure, note) = judged(&run, output.is_full()?);
        block.outcome = Outcome {
            failure,
            note,
            output: output.end()?,
        };
        match run {
            Ok(run) if block.outcome.failure.is_none() => {
                if is_sample {
                    block.record(run.ticks);
                    ticks += run.ticks;
                }
            }
            _ => break,
        }
    }
    Ok(ticks)
}

/// A run from its first instruction to its end.
struct Run {
    ticks: u64,
    ending: Ending,
    /// Whether it left processes that still ran.
    left: bool,
}

/// Runs the program once.
fn once(
    block: &mut SampleBlock<'_>,
    command: &Command,
    output: &OutputFile,
    is_sample: bool,
) -> io::Result<Run> {
    let loaded = Loaded::new(command, block.cpus, output)?;
    if is_sample {
        block.begin()?;
    }
    let ended = loaded.run()?;
    if is_sample {
        block.end()?;
    }
    let ticks = ended.ticks;
    let (ending, left) = ended.finish()?;
    Ok(Run {
        ticks,
        ending,
        left,
    })
}

/// Returns why a run is no sample, and a remark on it.
fn judged(run: &io::Result<Run>, is_full: bool) -> (Option<String>, Option<&'static str>) {
    let run = match run {
        Ok(run) => run,
        Err(error) => return (Some(error.to_string()), None),
    };
    let failure = match run.ending {
        _ if is_full => Some("it printed more than 4 MiB".into()),
        Ending::Exited(0) => None,
        Ending::Exited(status) => Some(format!("it exited with status {status}")),
        Ending::Signalled(signal) => Some(format!("signal {signal} ended it")),
        Ending::TimedOut => Some("it did not end in time; --exec-seconds gives more".into()),
    };
    let left = "it left processes that still ran, and these were ended";
    (failure, run.left.then_some(left))
}
