// SPDX-License-Identifier: MIT OR Apache-2.0
//! `run -h` shows the everyday options on one screen, and `run --help` shows all options under headings.

use clap::Arg;
use plan::{DIMENSIONS, Place};
use shell::args::OUTPUT;

/// Options of `run -h`, each with the name of its value and a text that keeps its line within 80 columns.
const EVERYDAY: [(&str, &str, &str); 14] = [
    ("board", "NAME", "Machine: the NAME in boards/NAME.toml"),
    (
        "under",
        "LIST",
        "none, rouse, xen, kvm, ..., all (their table)",
    ),
    ("guest", "IMAGE", "Another arm64 kernel, or debian"),
    (
        "workload",
        "LIST",
        "ipi, pingpong, timer, messaging, ..., all",
    ),
    ("wait", "LIST", "spin, wfe, wfet, wfi, poll-wfi, ..., all"),
    ("trap", "LIST", "Waits that trap: none, wfi, wfe, both, all"),
    ("deliver", "LIST", "Interrupts: inject, direct, all"),
    ("cpus", "N", "Number of CPUs"),
    ("metric", "UNIT", "Unit"),
    ("quick", "", "Few wake-ups per cell"),
    ("repeat", "R", "Measure R times, for `compare`"),
    (
        "save",
        "NAME",
        "Name of this run for `compare` and `report`",
    ),
    ("json", "FILE", "Copy of results.json; - is standard output"),
    ("wide", "", "All columns"),
];

const FIRST: &str = "Everyday options";

const CELLS: &str = "Cells: a LIST is values with commas between them, or all";
const MACHINE: &str = "Machine and guest";
const AMOUNT: &str = "Amount and limits";

/// Headings of options that are not dimensions, each with its options.
const HEADINGS: [(&str, &[&str]); 3] = [
    (
        MACHINE,
        &[
            "initrd",
            "guest_args",
            "guest_states",
            "exec",
            "exec_preset",
            "rootfs",
            "packages",
            "exec_cpus",
            "warm_up",
            "exec_seconds",
            "with_args",
            "again",
            "bisect",
            "append",
            "cpu",
            "memory",
            "boot",
            "dtb",
            "gem5",
            "preset",
            "set",
            "kvm",
            "host_kernel",
            "bao",
            "xen",
            "xen_args",
            "survey",
            "as_loaded",
        ],
    ),
    (
        AMOUNT,
        &[
            "iterations",
            "max_iterations",
            "cell_ms",
            "shard",
            "jobs",
            "timeout",
            "time_limit",
            "list",
            "deadline",
            "cell_deadline",
            "keep_cpu",
        ],
    ),
    (
        OUTPUT,
        &[
            "out",
            "format",
            "raw",
            "compact",
            "stages",
            "watts",
            "timings",
            "debug",
            "expect_reset",
            "disturb",
        ],
    ),
];

/// Gives each option of `run` its heading, and each everyday option its short text.
pub fn arranged(arg: Arg) -> Arg {
    let id = arg.get_id().to_string();
    // A negative number is reported as a value out of range, and not as another option.
    let arg = match arg.get_action().takes_values() {
        true => arg.allow_negative_numbers(true),
        false => arg,
    };
    let Some((_, value, short)) = EVERYDAY.iter().find(|(name, ..)| *name == id) else {
        let arg = arg.hide_short_help(true);
        return match heading(&id) {
            Some(heading) => arg.help_heading(heading),
            None => arg,
        };
    };
    let long = arg.get_long_help().or(arg.get_help()).cloned();
    let arg = arg.help(*short).long_help(long.unwrap_or_default());
    let arg = arg.help_heading(FIRST);
    match *value {
        "" => arg,
        value => arg.value_name(value),
    }
}

/// Returns the heading of an option that is not for everyday use. `None` for options of the executor's workloads, which
/// already have one.
fn heading(id: &str) -> Option<&'static str> {
    if let Some(info) = DIMENSIONS.iter().find(|info| info.key == id) {
        return match info.place {
            Place::Always | Place::Unusual => Some(CELLS),
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
    fn a_negative_number_is_a_value_not_an_option() {
        // The plan checks the range, and its error names the option.
        let read = command()
            .try_get_matches_from(["run", "--gap-us", "-1"])
            .unwrap();
        assert_eq!(read.get_one::<String>("gap-us").unwrap(), "-1");
    }

    #[test]
    fn the_short_help_fits_a_screen() {
        let help = command().render_help().to_string();
        let widest = help.lines().map(str::len).max();
        assert!(
            help.lines().count() <= 24 && widest <= Some(80),
            "{widest:?}\n{help}"
        );
        for (id, ..) in EVERYDAY {
            assert!(help.contains(&format!("--{id}")), "{id}\n{help}");
        }
    }
}
