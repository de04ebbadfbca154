// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of Rouse. Libraries in `crates/host` implement the verbs. The program `xtask` has the verbs that a
//! measurement needs, and `xtask-dev` has all verbs.

// Only the program `xtask-dev` uses this crate as a library. A verb with a clear help text needs no comment.
#![allow(missing_docs)]

pub mod cli;

use std::env;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use counting::asm::list_path;
use counting::cost::cost;
use providing::qemu;
use reporting::compare::compare;
use reporting::over_time::over_time;
use reporting::report::report;
use running::options::For;
use running::{card, disk, kvm, limits, run};
use shell::args::{self, CommonArgs};
use shell::failure::{self, BadInput};
use shell::terminal;

use cli::{Everyday, answer_to_old_verb};

/// Reads the command line `C` with its `common` options, and runs its verb through `dispatch`. If `dispatch` returns
/// the status of another program, returns that status.
pub fn run_program<C: Parser>(
    common: impl FnOnce(&C) -> CommonArgs,
    dispatch: impl FnOnce(C) -> Result<Option<ExitCode>>,
) -> ExitCode {
    limits::start();
    qemu::without_io_uring();
    let line = match env::args()
        .nth(1)
        .and_then(|verb| answer_to_old_verb(&verb))
    {
        Some(now) => Err(BadInput::error(now)),
        None => args::read::<C>(),
    };
    let done = line.and_then(|line| {
        let Some(line) = line else { return Ok(None) };
        common(&line).set();
        dispatch(line)
    });
    let status = match done {
        Ok(Some(status)) => return status,
        Ok(None) => terminal::finish(),
        Err(error) => Err(error),
    };
    match status {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Runs an everyday verb.
pub fn run_everyday(verb: Everyday) -> Result<()> {
    match verb {
        Everyday::Run(args) => match hypervisors::of_run(&args) {
            Some(table) => hypervisors::hypervisors(&table),
            None => run::run(&args),
        },
        Everyday::Compare(args) => match args.over_time {
            true => over_time(&args),
            false => compare(&args),
        },
        Everyday::Report(args) => report(&args),
        Everyday::Kernel(args) => kernels::kernel(&args),
        Everyday::Cost(args) => match &args.asm {
            Some(path) => list_path(path, &args),
            None => cost(&args),
        },
        Everyday::Image(args) => match card::what(&args)? {
            For::Uefi => disk::image(&args),
            For::Kvm => kvm::program::image(&args),
            For::Card => card::image(&args),
        },
        Everyday::Doctor(args) => doctor::doctor(&args),
    }
}
