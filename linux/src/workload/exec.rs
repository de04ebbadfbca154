// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a program as it is. A sample is a run, from its first instruction to its end; its loading is none of it.

use std::io;

use plan::Cell;

use super::SampleBlock;
use crate::commands::{self, Command};
use crate::cpus;
use crate::program::{self, Ending, Loaded, Output};

/// The end of a run, and its output.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why it is no sample, if it failed.
    pub failure: Option<String>,
    /// A remark on a run that succeeded.
    pub note: Option<&'static str>,
    /// The end of the output of the last run, and the number of bytes before that.
    pub output: (Vec<u8>, u64),
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
        let mut output = Output::new()?;
        let is_sample = number >= command.warm_up;
        let run = once(block, &command, &output, is_sample);
        let (failure, note) = match &run {
            Ok((_, Ending::Exited(0), true)) => (
                None,
                Some("it left processes that still ran, and these were ended"),
            ),
            Ok((_, Ending::Exited(0), false)) => (None, None),
            Ok((_, ending, _)) => (Some(described(ending, output.is_full()?)), None),
            Err(error) => (Some(error.to_string()), None),
        };
        if run.is_err() {
            program::end_all_children()?;
        }
        let failed = failure.is_some();
        block.outcome = Outcome {
            failure,
            note,
            output: output.end()?,
        };
        match run {
            Ok((of_run, ..)) if is_sample && !failed => {
                block.record(of_run);
                ticks += of_run;
            }
            _ if failed => break,
            _ => {}
        }
    }
    Ok(ticks)
}

/// Runs the program once. Returns its ticks, its end, and whether it left processes that still ran.
fn once(
    block: &mut SampleBlock<'_>,
    command: &Command,
    output: &Output,
    is_sample: bool,
) -> io::Result<(u64, Ending, bool)> {
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
    Ok((ticks, ending, left))
}

/// Describes the end of a run that is no sample.
fn described(ending: &Ending, is_full: bool) -> String {
    match ending {
        _ if is_full => "it printed more than 4 MiB".into(),
        Ending::Exited(status) => format!("it exited with status {status}"),
        Ending::Signalled(signal) => format!("signal {signal} ended it"),
        Ending::TimedOut => "it did not end in time; --exec-seconds gives more".into(),
    }
}
