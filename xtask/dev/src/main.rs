// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs that need more code than a run: experiments, governors, tests, and the maintainers' verbs.

mod cli;
mod completions;
mod man;

use std::process::ExitCode;

use boot_tests::{audit, soak, suite};
use guests::kernel::Given;
use plan::Program;
use publishing::{book, dist, pages, publish};
use running::board::Board;
use running::images::{self, Guest};
use shell::places;
use shell::terminal::say;

use cli::{BuildArgs, Dev, DevCli, Verb};

fn main() -> ExitCode {
    xtask::run_program(
        |line: &DevCli| line.common,
        |line| dispatch(line.verb).map(|()| None),
    )
}

fn dispatch(verb: Verb) -> anyhow::Result<()> {
    match verb {
        Verb::Everyday(verb) => xtask::run_everyday(verb),
        Verb::Experiment(args) => experiments::run(&args),
        Verb::Explain(args) => explaining::explain(&args),
        Verb::Governors(args) => governing::governors(&args),
        Verb::Test(args) => suite::run(&args),
        Verb::Dev { verb } => match verb {
            Dev::Soak(args) => soak::run(&args),
            Dev::Publish(args) => publish::publish(&args),
            Dev::Dist(args) => dist::dist(&args),
            Dev::Build(args) => build(&args),
            Dev::Book => book::book(),
            Dev::Pages(args) => pages::pages(&args),
            Dev::Audit(args) => audit::run(&args),
            Dev::Completions { shell } => completions::completions(shell),
            Dev::Man { verb } => man::man(verb.as_deref()),
        },
    }
}

/// The verb `dev build`.
fn build(args: &BuildArgs) -> anyhow::Result<()> {
    let board = Board::load(&args.board)?;
    let given = Given::read(&args.given)?;
    let ours = Guest::Ours(Program::Measuring);
    let packed = given.as_ref().map_or(ours, Guest::Given);
    let image = images::build_for_others(&board.name, packed)?;
    say!("{}", places::shown(&image));
    Ok(())
}
