// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of this program, and the whole command line.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use xtask::cli::{DEV, EXPERIMENT, Everyday, GOVERNORS, STATUS, TEST};

use boot_tests::audit::AuditArgs;
use boot_tests::soak::SoakArgs;
use boot_tests::suite::TestArgs;
use experiments::ExperimentArgs;
use governing::GovernorsArgs;
use publishing::dist::DistArgs;
use publishing::pages::PagesArgs;
use publishing::publish::PublishArgs;
use running::guest_kernel::GivenArgs;
use shell::args::CommonArgs;

const SOAK: &str = "\
Each boot is a round with a seed of its own: wake-ups in every way of waiting, and
between them SGIs of all shapes, timers, SPIs, masks, priorities, knobs, CPUs turned
off and on, switches of delivery. It ends at the first lost wake-up, stuck list
register, interrupt that comes twice, mask that stays, counter that goes back or leak,
with the state and the last operations of every CPU and the command that shows it
again. The folder has soak.json (rates by kind, seeds), serial.log, command.txt and,
if something was wrong, dump.txt. Ctrl-C ends it with the summary so far.";

/// Rouse: what it costs to wake an idle CPU.
///
/// Builds the hypervisor and its guest, boots them on a board, and shows what
/// each way of waiting costs.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, after_help = STATUS)]
pub struct DevCli {
    /// Options of every verb.
    #[command(flatten)]
    pub common: CommonArgs,
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Verbs, in the order of `--help`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    #[command(flatten)]
    Everyday(Everyday),
    #[command(about = EXPERIMENT, after_help = STATUS)]
    Experiment(ExperimentArgs),
    #[command(about = GOVERNORS, after_help = STATUS)]
    Governors(GovernorsArgs),
    #[command(about = TEST, after_help = STATUS)]
    Test(TestArgs),
    #[command(about = DEV, after_help = STATUS)]
    Dev {
        /// The verb.
        #[command(subcommand)]
        verb: Dev,
    },
}

/// Verbs of maintainers.
#[derive(Debug, Subcommand)]
pub enum Dev {
    /// Boot over and over with everything at random, until an invariant is broken
    #[command(after_help = format!("{SOAK}\n\n{STATUS}"))]
    Soak(Box<SoakArgs>),
    /// Measure boards, Linux, a neighbour and the hypervisors, and write results/ and every document that has their figures
    #[command(after_help = STATUS)]
    Publish(PublishArgs),
    /// Make a folder to publish: files for other machines, with sums, licences and a page on how to use it
    #[command(after_help = STATUS)]
    Dist(DistArgs),
    /// Build and pack the image and print its path
    #[command(after_help = STATUS)]
    Build(BuildArgs),
    /// Make a site of the documents, to read and to search: target/book
    #[command(after_help = STATUS)]
    Book,
    /// Look at pages in a headless browser: widths, contrast, keyboard, print
    #[command(after_help = STATUS)]
    Pages(PagesArgs),
    /// Check licences, versions and advisories of the dependencies, without network
    #[command(after_help = STATUS)]
    Audit(AuditArgs),
    /// Write the code by which a shell completes the words of `xtask`, a function or an alias, to standard output
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual page of a verb, or of all of them together, to standard output: `cargo xtask dev man run | man -l -`
    Man {
        /// The verb
        verb: Option<String>,
    },
}

/// Options of `dev build`.
#[derive(Args, Debug)]
pub struct BuildArgs {
    /// Machine: a name of boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Another kernel.
    #[command(flatten)]
    pub given: GivenArgs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use xtask::cli::Cli;

    #[test]
    fn the_options_do_not_contradict_each_other() {
        DevCli::command().debug_assert();
    }

    #[test]
    fn the_everyday_program_lists_the_same_verbs() {
        let verbs = |command: clap::Command| -> Vec<(String, String)> {
            let of = |verb: &clap::Command| {
                let about = verb.get_about().unwrap().to_string();
                (verb.get_name().to_owned(), about)
            };
            command.get_subcommands().map(of).collect()
        };
        assert_eq!(verbs(DevCli::command()), verbs(Cli::command()));
        assert_eq!(verbs(Cli::command()).len(), 10);
    }
}
