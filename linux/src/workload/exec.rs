// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs an unchanged program. A sample is a run of the program from its first instruction to its end, excluding the
//! time to load it.

use std::io;

use plan::Cell;

use super::SampleBlock;
use crate::commands::{self, Command};
use crate::cpus;
use crate::program::{self, Ending, Loaded, OutputFile, Printed};

/// How a run ended, and its output.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why the run is not a sample, if it failed.
    pub failure: Option<String>,
    /// A remark on a run that succeeded.
    pub note: Option<&'static str>,
    /// The program's output.
    pub output: Printed,
}

/// If a cell's command can't run, returns the reason.
pub fn missing_need(cell: &Cell) -> Option<String> {
    let name = cell.command.to_string();
    commands::read_command(&name)
        .err()
        .map(|error| error.to_string())
}

/// Runs a block of a cell, and stores the outcome of the last run in the block. Returns the ticks of the block's runs.
///
/// # Errors
/// The kernel does not let this program start other programs.
pub fn run(block: &mut SampleBlock<'_>, cell: &Cell) -> io::Result<u64> {
    let command = commands::read_command(&cell.command.to_string())?;
    // Under every hypervisor, this thread must leave the CPUs to the program's threads.
    cpus::unpin(block.cpus)?;
    let mut ticks = 0;
    for number in 0..command.warm_up + block.count {
        let is_sample = number >= command.warm_up;
        let mut output = OutputFile::new()?;
        let run = run_once(block, &command, &output, is_sample);
        if run.is_err() {
            program::end_all_children()?;
        }
        let (failure, note) = judge_run(&run, output.is_full()?);
        block.outcome = Outcome {
            failure,
            note,
            output: output.read_end()?,
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

/// A run of a program from its first instruction to its end.
struct Run {
    ticks: u64,
    ending: Ending,
    /// Whether the program left processes that were still running.
    left: bool,
}

/// Runs the program once.
fn run_once(
    block: &mut SampleBlock<'_>,
    command: &Command,
    output: &OutputFile,
    is_sample: bool,
) -> io::Result<Run> {
    let loaded = Loaded::new(command, block.cpus, output)?;
    if is_sample {
        block.begin_block()?;
    }
    let ended = loaded.run()?;
    if is_sample {
        block.end_block()?;
    }
    let ticks = ended.ticks;
    let (ending, left) = ended.finish()?;
    Ok(Run {
        ticks,
        ending,
        left,
    })
}

/// Returns the reason if a run is not a sample, and a remark on the run if there is one.
fn judge_run(run: &io::Result<Run>, is_full: bool) -> (Option<String>, Option<&'static str>) {
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
