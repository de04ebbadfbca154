// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of the command line. Each verb has its options next to its code.

pub mod examples;
mod old_verbs;

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use counting::cost::CostArgs;
use doctor::DoctorArgs;
use examples::examples_help;
use kernels::KernelArgs;
use reporting::compare::CompareArgs;
use reporting::report::ReportArgs;
use running::options::{DISK_BOARD, ImageArgs, RunArgs, arranged};
use shell::args::CommonArgs;

pub use old_verbs::answer_to_old_verb;

/// Text about the exit status of every verb, for the help.
pub const STATUS: &str = "\
Exit status:
  0  what was asked for happened
  1  it failed while running: a hang, a crash, damaged records, a failed test
  2  it could not be tried: an unknown word, board or option, a file that is
     not a guest image, a missing tool, a folder that can't be written
  128 + N  signal N asked for the end: 130 for Ctrl-C, 143 for SIGTERM. Cells
     measured so far are kept and shown; a second signal ends it at once";

/// One line about the verb `experiment`, which is in the program `xtask-dev`.
pub const EXPERIMENT: &str =
    "Repeat published measurements of idling, and show their figures next to ours";
/// One line about the verb `explain`.
pub const EXPLAIN: &str =
    "Show a median sample function by function, or the difference between two";
/// One line about the verb `governors`.
pub const GOVERNORS: &str =
    "Replay a trace of idle intervals to every governor and to an oracle, on this machine";
/// One line about the verb `test`.
pub const TEST: &str = "Run the tests: the host's, then those that boot (tests/*.toml)";
/// One line about the verb `dev`.
pub const DEV: &str =
    "For maintainers: soak, publish, dist, build, book, pages, audit, completions, man";

const COMPARE: &str = "\
Runs:
  compare A B                    one run of each, or several that --repeat put into one folder
  compare A1 A2 A3 --with B1 B2 B3
  compare --over-time DIR        the same cells in many runs
Instructions repeat, and so do the cycles of a simulator: each difference is one.
Time does not: there is no verdict below five runs of each side, and more cells need
more runs. docs/significance.md has the method and what it relies on.";

const LISTS: &str = "\
A LIST is values with commas between them, or `all`. The cells are the product \
of the lists; what is not named has a default. A cell that contradicts itself \
or that the machine can't run is listed as skipped, with the reason.";

/// Rouse: what it costs to wake an idle CPU.
///
/// Builds the hypervisor and its guest, boots them on a board, and shows what
/// each way of waiting costs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, after_help = STATUS)]
pub struct Cli {
    /// Options of every verb.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Verbs, in the order of `--help`: everyday verbs, and another program's verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    #[command(flatten)]
    Everyday(Everyday),
    #[command(about = EXPERIMENT)]
    Experiment(Passed),
    #[command(about = EXPLAIN)]
    Explain(Passed),
    #[command(about = GOVERNORS)]
    Governors(Passed),
    #[command(about = TEST)]
    Test(Passed),
    #[command(about = DEV)]
    Dev(Passed),
}

/// Verbs that a measurement needs.
#[derive(Debug, Subcommand)]
pub enum Everyday {
    /// Build, boot, measure, print the table and write the results
    #[command(mut_args(arranged), after_help = "`--help` has all options.", after_long_help = format!("{}\n\n{LISTS}\n\n{STATUS}", examples_help("run")))]
    Run(Box<RunArgs>),
    /// Compare runs cell by cell: is B better or worse than A?
    #[command(after_help = format!("{}\n\n{COMPARE}\n\n{STATUS}", examples_help("compare")))]
    Compare(CompareArgs),
    /// Make a report from runs or from serial logs, whole or damaged, of one machine or of several
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("report")))]
    Report(ReportArgs),
    /// Build an arm64 kernel from source and patches, as a guest to measure
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("kernel")))]
    Kernel(KernelArgs),
    /// Count the cost of each path through the hypervisor: instructions, registers, barriers, exceptions
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("cost")))]
    Cost(CostArgs),
    /// Write a file for another machine: a disk for UEFI, such as an instance's root disk, a program for Linux with
    /// KVM, or the files of a Raspberry Pi's card
    #[command(mut_arg("board", |arg| arg.default_value(DISK_BOARD)), after_help = format!("{}\n\n{LISTS}\n\n{STATUS}", examples_help("image")))]
    Image(Box<ImageArgs>),
    /// Check tools, boards, or whether Rouse can run on a machine: what is there, what is missing, and the fix
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("doctor")))]
    Doctor(DoctorArgs),
}

/// Words of a verb that another program has.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Passed {
    /// The words, which are passed on unchanged.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use shell::args::{self, Colour};
    use shell::output::file_arguments;

    #[test]
    fn the_options_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn verbs_of_the_other_program_are_known_where_it_is_built() {
        let here: Vec<String> = Everyday::augment_subcommands(clap::Command::new(""))
            .get_subcommands()
            .map(|verb| verb.get_name().to_owned())
            .collect();
        let all = Cli::command();
        let all = all.get_subcommands().map(clap::Command::get_name);
        let others: Vec<&str> = all
            .filter(|name| here.iter().all(|one| one != name))
            .collect();
        assert_eq!(others, start::OF_DEV);
    }

    #[test]
    fn options_of_every_verb_are_taken_by_each_and_leave_the_short_help_alone() {
        for line in [
            "run -q",
            "-q compare a b",
            "cost --quiet --color never",
            "report a --color=always",
        ] {
            let words = ["xtask"].into_iter().chain(line.split(' '));
            let read = Cli::try_parse_from(words).unwrap().common;
            assert!(
                read.quiet != (read.color != Colour::Auto) || line.contains("cost"),
                "{line}: {read:?}"
            );
        }
        let help = Cli::try_parse_from(["xtask", "run", "-h"])
            .unwrap_err()
            .to_string();
        assert!(
            help.lines().count() <= 26 && !help.contains("--color"),
            "{help}"
        );
        let all = Cli::try_parse_from(["xtask", "run", "--help"])
            .unwrap_err()
            .to_string();
        for option in ["--color <WHEN>", "-q, --quiet", "--list"] {
            assert!(all.contains(option), "{option}");
        }
    }

    #[test]
    fn an_image_is_of_a_board_that_boots_it() {
        let Ok(Cli {
            verb: Verb::Everyday(Everyday::Image(args)),
            ..
        }) = Cli::try_parse_from(["xtask", "image"])
        else {
            panic!("`image` alone is a command");
        };
        assert!(running::disk::text(&running::job::Load::of_disk(&args.load).unwrap()).is_ok());
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, told) in [
            (["rn", "--wait", "wfi"], "use run;"),
            (["run", "--jobs", "0"], "use a whole number from 1"),
            (["run", "--wiat", "wfi"], "'--wait'"),
            (["run", "--metric", "x"], "insns, cycles, time"),
            (["run", "--timeout", "0"], "--timeout"),
            (["run", "--debug", "--timeout=9"], "--timeout"),
            (["report", "--titles", "x"], "'--title'"),
        ] {
            let error = Cli::try_parse_from(["xtask"].into_iter().chain(line)).unwrap_err();
            let text = args::told(&Cli::command(), &error);
            assert!(text.contains(told) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn every_verb_s_values_are_noted() {
        for (typed, option, value) in [
            ("doctor --dtb a --json b", "--json", "b"),
            ("doctor --acpi a --json b", "--acpi", "a"),
            ("run --guest g --json b", "--guest", "g"),
            ("cost --compare=c", "--compare", "c"),
            ("report a b --out c", "INPUTS", "b"),
            ("image --out o", "--out", "o"),
        ] {
            let words = ["xtask"].into_iter().chain(typed.split(' '));
            let mut command = Cli::command();
            let matches = command.try_get_matches_from_mut(words).unwrap();
            let values = file_arguments::values(&command, &matches);
            assert!(
                values.contains(&(option.into(), value.into())),
                "{typed}: {values:?}"
            );
        }
    }
}
