// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of Rouse: `cargo xtask <verb>`.
//!
//! [`run`]: options become a checked [`job`]; [`boot`] finds an emulator ([`qemu`]),
//! builds ([`images`], [`pack`]), starts it ([`launch`]) and follows the [`console`];
//! a [`session`] makes [`results`] of its records; the [`page`] shows and draws
//! them, and the [`verdict`] becomes the exit
//! status. A boot ends when its [`limits`] are reached, in time without progress: of
//! the emulator's own time ([`own_time`]) since something showed that the run gets
//! on ([`advance`]).
//!
//! The verb `image` puts the same image on a [`disk`], or its guest into a program for
//! machines with [`kvm`]; [`dist`] makes a folder of these to publish, with the [`book`] of the documents. [`report`] does the same as
//! [`run`] with runs and with a captured console; [`compare`] holds
//! two of them against each other. [`governors`] replays traces of idle intervals to
//! the guest's governors, on the host; [`experiment`] boots what others have
//! published and lays their figures beside ours. [`soak`] boots again and again,
//! until something breaks.

mod advance;
mod apt;
mod asm;
mod audit;
mod before;
mod board;
mod boards;
mod book;
mod boot;
mod browser;
mod cli;
mod compare;
mod completeness;
mod console;
mod cost;
mod coverage;
mod critical;
mod debug;
mod debug_info;
mod disk;
mod dist;
mod disturb;
mod doctor;
mod emulator;
mod emulator_process;
mod experiment;
mod failure;
mod files;
mod folder;
mod format;
mod gem5;
mod given;
#[cfg(test)]
mod goldens;
mod governors;
mod history;
mod hypervisors;
mod images;
mod interrupt;
mod job;
mod kvm;
mod launch;
mod limits;
mod log;
mod manager;
mod memory;
mod miri;
mod mistake;
mod once;
mod output;
mod own_time;
mod pack;
mod pages;
mod partial;
mod places;
mod progress;
mod publish;
mod qemu;
mod report;
mod run;
mod saved;
mod session;
mod shell;
mod side_by_side;
mod soak;
mod spent;
mod store;
mod strict;
mod suite;
mod symbols;
mod terminal;
mod timings;
mod toolchain;
mod trusted_firmware;
mod u_boot;
mod verdict;
mod watts;
mod xen;

use std::process::ExitCode;

use anyhow::Context;
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use cli::{BuildArgs, Cli, For, Verb};
use failure::BadInput;
use given::Given;
use images::Guest;
use plan::Program;
use terminal::say;

fn main() -> ExitCode {
    limits::start();
    qemu::without_io_uring();
    let done = parse().and_then(|cli| cli.map_or(Ok(()), dispatch));
    match done.and(terminal::finish()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}

/// Reads the command line; `None` if it asked for help or the version, which were
/// printed as they are. Mistakes are told in one line like every other error.
fn parse() -> anyhow::Result<Option<Cli>> {
    let mut command = Cli::command();
    let typed = command.try_get_matches_from_mut(std::env::args_os());
    let typed = typed.inspect(|typed| output::named::words(&command, typed));
    let error = match typed.and_then(|typed| Cli::from_arg_matches(&typed)) {
        Ok(cli) => return Ok(Some(cli)),
        Err(error) => error.format(&mut command),
    };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let printed = terminal::unless_reader_left(error.print());
            printed.context("standard output can't be written")?;
            Ok(None)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => error.exit(),
        _ => Err(BadInput::error(request::one_line(&error))),
    }
}

fn dispatch(cli: Cli) -> anyhow::Result<()> {
    match cli.verb {
        Verb::Run(args) => run::run(&args),
        Verb::Report(args) => report::report(&args),
        Verb::Compare(args) => compare::compare(&args),
        Verb::History(args) => history::history(&args),
        Verb::Governors(args) => governors::governors(&args),
        Verb::Test(args) => suite::run(&args),
        Verb::Soak(args) => soak::run(&args),
        Verb::Build(args) => build(&args),
        Verb::Cost(args) => cost::cost(&args),
        Verb::Asm(args) => asm::asm(&args),
        Verb::Publish(args) => publish::publish(&args),
        Verb::Experiment(args) => experiment::run(&args),
        Verb::Hypervisors(args) => hypervisors::hypervisors(&args),
        Verb::Debug(args) => debug::debug(&args),
        Verb::Book => book::book(),
        Verb::Dist(args) => dist::dist(&args),
        Verb::Image(args) => match args.what {
            For::Uefi => disk::image(&args),
            For::Kvm => kvm::program::image(&args),
        },
        Verb::Completions { shell } => shell::completions(shell),
        Verb::Man { verb } => shell::man(verb.as_deref()),
        Verb::Pages(args) => pages::pages(&args),
        Verb::Boards => boards::list(),
        Verb::Doctor(args) => doctor::doctor(&args),
    }
}

/// The verb `build`.
fn build(args: &BuildArgs) -> anyhow::Result<()> {
    let board = board::Board::load(&args.board)?;
    let given = Given::read(&args.given)?;
    let ours = Guest::Ours(Program::Measuring);
    let packed = given.as_ref().map_or(ours, Guest::Given);
    let image = images::build_for_others(&board.name, packed)?;
    say!("{}", places::shown(&image));
    Ok(())
}
