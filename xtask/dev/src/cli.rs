// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verbs of this program, and the whole command line.

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use xtask::cli::examples::examples_help;
use xtask::cli::{DEV, EXPERIMENT, EXPLAIN, Everyday, GOVERNORS, STATUS, TEST};

use boot_tests::audit::AuditArgs;
use boot_tests::soak::SoakArgs;
use boot_tests::suite::TestArgs;
use experiments::ExperimentArgs;
use explaining::ExplainArgs;
use governing::GovernorsArgs;
use guests::kernel::GivenArgs;
use publishing::dist::DistArgs;
use publishing::pages::PagesArgs;
use publishing::publish::PublishArgs;
use running::options::arranged;
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
    #[command(about = EXPERIMENT, after_help = format!("{}\n\n{STATUS}", examples_help("experiment")))]
    Experiment(ExperimentArgs),
    #[command(about = EXPLAIN, mut_args(arranged), mut_arg("runs", explaining::conflict_with_measuring), mut_arg("top", explaining::show_in_short_help), mut_arg("function", explaining::show_in_short_help), mut_arg("until", explaining::show_in_short_help), mut_arg("json", explaining::name_copied_file), after_help = format!("{}\n\n{STATUS}", examples_help("explain")))]
    Explain(Box<ExplainArgs>),
    #[command(about = GOVERNORS, after_help = format!("{}\n\n{STATUS}", examples_help("governors")))]
    Governors(GovernorsArgs),
    #[command(about = TEST, after_help = format!("{}\n\n{STATUS}", examples_help("test")))]
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
    #[command(after_help = format!("{}\n\n{SOAK}\n\n{STATUS}", examples_help("dev soak")))]
    Soak(Box<SoakArgs>),
    /// Measure boards, Linux, a neighbour and the hypervisors, and write results/ and every document that has their figures
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("dev publish")))]
    Publish(PublishArgs),
    /// Make a folder to publish: files for other machines, with checksums, licences and a page on how to use them
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("dev dist")))]
    Dist(DistArgs),
    /// Build and pack the image and print its path
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("dev build")))]
    Build(BuildArgs),
    /// Build a searchable site of the documents: target/book
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("dev book")))]
    Book,
    /// Check pages in a headless browser: widths, contrast, keyboard, print
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("dev pages")))]
    Pages(PagesArgs),
    /// Check licences, versions and advisories of the dependencies, offline
    #[command(after_help = format!("{}\n\n{STATUS}", examples_help("dev audit")))]
    Audit(AuditArgs),
    /// Write shell completions for `xtask`, as a function or an alias, to standard output
    #[command(after_help = examples_help("dev completions"))]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Write the manual page of a verb, or of all verbs together, to standard output: `cargo xtask dev man run | man -l
    /// -`
    #[command(after_help = examples_help("dev man"))]
    Man {
        /// The verb
        verb: Option<String>,
    },
}

/// Options of `dev build`.
#[derive(Args, Debug)]
pub struct BuildArgs {
    /// Machine: the NAME in boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// The options that name another kernel.
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

    /// Returns the verbs without subordinate verbs, each with all of its words.
    fn verbs_of(command: &clap::Command, above: &str) -> Vec<String> {
        let own = command.get_subcommands();
        let own = own.flat_map(|verb| {
            let name = format!("{above}{}", verb.get_name());
            match verb.has_subcommands() {
                true => verbs_of(verb, &format!("{name} ")),
                false => vec![name],
            }
        });
        own.collect()
    }

    #[test]
    fn each_verb_has_two_examples_that_parse() {
        let verbs = verbs_of(&DevCli::command(), "");
        assert_eq!(verbs.len(), 20);
        for verb in verbs {
            let examples = xtask::cli::examples::examples_of(&verb);
            assert_eq!(examples.len(), 2, "{verb}");
            for (line, _) in examples {
                assert!(line.starts_with(&verb), "{verb}: {line}");
                let words = std::iter::once("xtask").chain(line.split(' '));
                let parsed = DevCli::try_parse_from(words);
                let is_help = |error: &clap::Error| error.exit_code() == 0;
                let why = parsed.err().filter(|error| !is_help(error));
                assert!(why.is_none(), "{line}: {}", why.unwrap());
            }
            let words = verb.split(' ').chain(["--help"]);
            let help = DevCli::try_parse_from(std::iter::once("xtask").chain(words));
            let help = help.unwrap_err().to_string();
            assert!(
                help.contains(&format!("cargo xtask {}\n", examples[1].0)),
                "{help}"
            );
        }
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
        assert_eq!(verbs(Cli::command()).len(), 12);
    }
}
