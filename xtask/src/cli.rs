// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options, as they are typed.

mod verbs;
mod work;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub use verbs::{
    AsmArgs, BuildArgs, CompareArgs, CostArgs, DebugArgs, DoctorArgs, ExperimentArgs, For,
    HypervisorsArgs, ImageArgs, Place, ReportArgs, RunArgs, SoakArgs, SoakMetric, TestArgs,
};
pub use work::{Boot, DeadlineArgs, JobArgs, LimitArgs, LoadArgs, Metric, Unders};

use publishing::dist::DistArgs;
use governing::GovernorsArgs;
use reporting::history::HistoryArgs;
use publishing::pages::PagesArgs;
use publishing::publish::PublishArgs;

const STATUS: &str = "\
Exit status:
  0  what was asked for happened
  1  it failed while running: a hang, a crash, damaged records, a failed test
  2  it could not be tried: an unknown word, board or option, a file that is no
     guest image, a missing tool, a folder that can't be written
  128 + N  signal N asked for the end: 130 for Ctrl-C, 143 for SIGTERM. Cells
     measured so far are kept and shown; a second signal ends it at once";

const SOAK: &str = "\
Each boot is a round with a seed of its own: wake-ups in every way of waiting, and
between them SGIs of all shapes, timers, SPIs, masks, priorities, knobs, CPUs turned
off and on, switches of delivery. It ends at the first lost wake-up, stuck list
register, interrupt that comes twice, mask that stays, counter that goes back or leak,
with the state and the last operations of every CPU and the command that shows it
again. The folder has soak.json (rates by kind, seeds), serial.log, command.txt and,
if something was wrong, dump.txt. Ctrl-C ends it with the summary so far.";

const COMPARE: &str = "\
  compare A B                    one run of each, or several that --repeat put into one folder
  compare A1 A2 A3 --with B1 B2 B3
Instructions repeat, and so do the cycles of a simulator: each difference is one.
Time does not: there is no verdict below five runs of each side, and more cells need
more runs. docs/significance.md has the method and what it relies on.";

const LISTS: &str = "\
A LIST is values with commas between them, or `all`. The cells are the product of
the lists; what is not named has a default. A cell that contradicts itself or that
the machine can't run is listed as skipped, with the reason.";

/// Rouse: what it costs to wake an idle CPU.
///
/// Builds the hypervisor and its guest, boots them on a board, and shows what
/// each way of waiting costs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, after_help = STATUS)]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Verbs, in the order of `--help`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Build, boot, measure, print the table and write the results
    #[command(after_help = format!("{LISTS}\n\n{STATUS}"))]
    Run(Box<RunArgs>),
    /// Run the tests: the host's, then those that boot (tests/*.toml)
    #[command(after_help = STATUS)]
    Test(TestArgs),
    /// Count what each path through the hypervisor costs: instructions, registers, barriers, exceptions
    #[command(after_help = STATUS)]
    Cost(CostArgs),
    /// Show the instructions of a path, with how often each is executed
    #[command(after_help = STATUS)]
    Asm(AsmArgs),
    /// Boot over and over with everything at random, until an invariant is broken
    #[command(after_help = format!("{SOAK}\n\n{STATUS}"))]
    Soak(SoakArgs),
    /// Build and pack the image and print its path
    #[command(after_help = STATUS)]
    Build(BuildArgs),
    /// Write what is taken to another machine: a disk for one with UEFI, an instance's root disk for example, or a program for Linux
    /// with KVM
    #[command(after_help = format!("{LISTS}\n\n{STATUS}"))]
    Image(Box<ImageArgs>),
    /// Make a folder to publish: what is taken to other machines, with sums, licences and a page on how to use it
    #[command(after_help = STATUS)]
    Dist(DistArgs),
    /// Make a site of the documents, to read and to search: target/book
    #[command(after_help = STATUS)]
    Book,
    /// Make a report from runs or from serial logs, whole or damaged, of one machine or of several
    #[command(after_help = STATUS)]
    Report(ReportArgs),
    /// Compare runs cell by cell: is B better or worse than A?
    #[command(after_help = format!("{COMPARE}\n\n{STATUS}"))]
    Compare(CompareArgs),
    /// Show the same cells in many runs, from the oldest to the newest: a table, and a page of curves
    #[command(after_help = STATUS)]
    History(HistoryArgs),
    /// Repeat published measurements of idling, and show their figures beside ours
    #[command(after_help = STATUS)]
    Experiment(ExperimentArgs),
    /// Measure boards, Linux, a neighbour and the hypervisors, and write results/ and every document that has their figures
    #[command(after_help = STATUS, alias = "results")]
    Publish(PublishArgs),
    /// Run one guest under nothing, Rouse, Xen and KVM, and show what each adds to a wake-up
    #[command(after_help = STATUS)]
    Hypervisors(HypervisorsArgs),
    /// Replay a trace of idle intervals to every governor and to an oracle, on this machine
    #[command(after_help = STATUS)]
    Governors(GovernorsArgs),
    /// Boot with the CPUs stopped and a debugger's port open, and print the command of the debugger that is here
    #[command(after_help = format!("{LISTS}\n\n{STATUS}"))]
    Debug(Box<DebugArgs>),
    /// Look at pages in a headless browser: widths, contrast, keyboard, print
    #[command(after_help = STATUS)]
    Pages(PagesArgs),
    /// List the boards, and what each models of its machine
    Boards,
    /// Write what makes a shell complete the words of `xtask`, for a function or an alias of that name, to standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual page of a verb, or of all of them together, to standard output: `cargo xtask man run | man -l -`
    Man {
        /// The verb
        verb: Option<String>,
    },
    /// List the tools that are there, those that are missing, and how to get them; or whether Rouse can run on machines, by their descriptions
    #[command(after_help = STATUS)]
    Doctor(DoctorArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_options_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }

    #[test]
    fn mistakes_are_told_in_one_line() {
        for (line, told) in [
            (["run", "--wiat", "wfi"], "'--wait'"),
            (["run", "--metric", "x"], "insns, cycles, time"),
            (["run", "--timeout", "0"], "--timeout"),
            (["debug", "--timeout", "9"], "--timeout"),
            (["soak", "--time-limit", "0"], "--time-limit"),
            (["report", "--title", "x"], "provided: <INPUT>..."),
        ] {
            let error = Cli::try_parse_from(["xtask"].into_iter().chain(line)).unwrap_err();
            let text = request::one_line(&error);
            assert!(text.contains(told) && !text.contains('\n'), "{text}");
        }
    }
}
