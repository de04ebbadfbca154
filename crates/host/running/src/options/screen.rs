// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run -h` and `run --help`: the options of everyday use on one screen, and all of them under headings.

use clap::Arg;
use plan::{DIMENSIONS, Place};

/// Options of `run -h`, each with a text that leaves its line within 80 columns.
const EVERYDAY: [(&str, &str); 14] = [
    ("board", "Machine: a name of boards/NAME.toml"),
    ("under", "none, rouse, xen, kvm, ..., all (their table)"),
    ("guest", "Another arm64 kernel, or Debian's"),
    ("workload", "ipi, pingpong, timer, messaging, ..., all"),
    ("wait", "spin, wfe, wfet, wfi, poll-wfi, ..., all"),
    ("trap", "Waits that trap: none, wfi, wfe, both, all"),
    ("deliver", "Interrupts: inject, direct, all"),
    ("cpus", "Number of CPUs"),
    ("metric", "insns, time or cycles"),
    ("quick", "Few wake-ups per cell"),
    ("repeat", "Measure so often, for `compare`"),
    ("save", "Name of this run for `compare` and `report`"),
    ("json", "Copy of results.json; - is standard output"),
    ("wide", "All columns"),
];

const CELLS: &str = "Cells: a LIST is values with commas between them, or all";
const MACHINE: &str = "Machine and guest";
const AMOUNT: &str = "Amount and limits";
const ANSWER: &str = "Answer";
const TESTS: &str = "Debugger and tests";

/// Headings of options that are not dimensions, each with its options.
const HEADINGS: [(&str, &[&str]); 4] = [
    (
        MACHINE,
        &[
            "board",
            "under",
            "guest",
            "initrd",
            "guest_args",
            "with_args",
            "append",
            "cpus",
            "cpu",
            "metric",
            "memory",
            "boot",
            "dtb",
            "gem5",
            "preset",
            "set",
            "kvm",
            "host_kernel",
            "xen",
            "xen_args",
            "survey",
        ],
    ),
    (
        AMOUNT,
        &[
            "quick",
            "iterations",
            "max_iterations",
            "cell_ms",
            "repeat",
            "shard",
            "jobs",
            "timeout",
            "time_limit",
            "deadline",
            "cell_deadline",
            "keep_cpu",
        ],
    ),
    (
        ANSWER,
        &[
            "out", "save", "json", "format", "wide", "raw", "compact", "stages", "watts", "timings",
        ],
    ),
    (TESTS, &["debug", "expect_reset", "disturb"]),
];

/// Gives each option of `run` its heading, and those of everyday use their short text.
pub fn arranged(arg: Arg) -> Arg {
    let id = arg.get_id().to_string();
    let arg = match heading(&id) {
        Some(heading) => arg.help_heading(heading),
        None => arg,
    };
    match EVERYDAY.iter().find(|(name, _)| *name == id) {
        Some((_, short)) => {
            let long = arg.get_long_help().or(arg.get_help()).cloned();
            arg.help(*short).long_help(long.unwrap_or_default())
        }
        None => arg.hide_short_help(true),
    }
}

fn heading(id: &str) -> Option<&'static str> {
    if let Some(info) = DIMENSIONS.iter().find(|info| info.key == id) {
        return match info.place {
            Place::Always | Place::Unusual => Some(CELLS),
            // They have one, of workloads on the executor.
            Place::System => None,
        };
    }
    let of = HEADINGS.iter().find(|(_, ids)| ids.contains(&id));
    of.map(|(heading, _)| *heading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};
    use std::collections::BTreeSet;

    fn command() -> Command {
        super::super::RunArgs::augment_args(Command::new("run")).mut_args(arranged)
    }

    #[test]
    fn every_option_has_one_of_six_headings() {
        let command = command();
        let headings: BTreeSet<_> = command
            .get_arguments()
            .map(|arg| {
                arg.get_help_heading()
                    .unwrap_or_else(|| panic!("{arg}: options/screen.rs lacks it"))
            })
            .collect();
        assert_eq!(headings.len(), 6, "{headings:?}");
        for id in HEADINGS.iter().flat_map(|(_, ids)| *ids) {
            assert!(
                command.get_arguments().any(|arg| arg.get_id() == id),
                "{id} is gone"
            );
        }
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let help = command().render_help().to_string();
        let widest = help.lines().map(str::len).max();
        assert!(
            help.lines().count() <= 24 && widest <= Some(80),
            "{widest:?}\n{help}"
        );
        for (id, _) in EVERYDAY {
            assert!(help.contains(&format!("--{id}")), "{id}\n{help}");
        }
    }
}
