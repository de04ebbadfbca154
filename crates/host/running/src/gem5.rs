// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of gem5 for a job.
//!
//! The machine is ours: `boards/gem5/machine.py` assembles it from gem5's parts, with the values of `parameters.toml`
//! ([`parameters`]).

pub mod parameters;
mod simulation;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use plan::CORE_MHZ;
use providing::gem5::{Emulator, checkpoints};

use crate::images::Built;
use crate::job::{Job, Variant};
use simulation::Simulation;

/// Returns the period of a core's clock in gem5's ticks, which are picoseconds (gem5's `src/sim/core.hh`).
pub fn period(job: &Job) -> Result<u64> {
    let clock = job.parameters.get(CORE_MHZ);
    let clock = clock.with_context(|| format!("board {}: no {CORE_MHZ}", job.board().name))?;
    Ok(1_000_000 / clock.value)
}

/// Returns the command that boots `job` once. gem5 writes its own files to `place`.
pub fn command(
    gem5: &Emulator,
    job: &Job,
    variant: Variant,
    built: &Built,
    place: &Path,
) -> Result<Command> {
    let board = job.board();
    let script = board.beside(&board.gem5("--board")?.script);
    let simulation = Simulation::new(job, variant, built, place)?;
    let mut command = Command::new(&gem5.program);
    command
        .args(["--quiet", "--quiet", "--listener-mode=off", "--outdir"])
        .arg(place)
        .arg(&script)
        .args(["--cpu-model", &job.model])
        .args(["--parameters", &parameters::json(&job.parameters)]);
    for name in parameters::DELAYS {
        if let Some(delay) = job.parameters.get(name) {
            command
                .arg(format!("--{name}"))
                .arg(delay.value.to_string());
        }
    }
    simulation.add_arguments(&mut command);
    if board.machine.breaks_lse(&job.model) && simulation.is_linux {
        command.arg("--without-lse");
    }
    let Some(rest) = &simulation.after_checkpoint else {
        if simulation.is_linux {
            // Another kernel may lack the mark that shows the end of the boot.
            command.arg("--whole");
        }
        return Ok(command);
    };
    let arguments = place.join("arguments");
    fs::write(&arguments, rest)?;
    let files = simulation.files().chain([&*script]);
    let checkpoint = checkpoints::folder(&gem5.program, &command, place, files.clone())?;
    command.arg("--arguments").arg(&arguments);
    if let Some(rest) = &simulation.after_guest_checkpoint {
        // The guest's boot depends on its monitor's command line, too.
        let files = files.chain([&*arguments]);
        let checkpoint = checkpoints::folder(&gem5.program, &command, place, files)?;
        command.arg("--guest-checkpoint").arg(checkpoint);
        let arguments = place.join("guest-arguments");
        fs::write(&arguments, rest)?;
        command.arg("--guest-arguments").arg(arguments);
    }
    command.arg("--checkpoint").arg(checkpoint);
    Ok(command)
}
