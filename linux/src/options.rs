// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the measurement, on the command line or as boot arguments: `--workload linux-pipe` is equivalent to
//! `rouse.workload=linux-pipe`.

use plan::{Arguments, PREFIX, Plan, Word, Workload};

/// Text of `--help`.
pub const HELP: &str = "\
Measures what wake-ups cost on arm64 Linux, and writes records to its standard output:
rouse-linux > serial.log, then `cargo xtask report serial.log` where Rouse's source is.

Usage: rouse-linux [OPTIONS]

      --workload WORDS      linux-pipe, linux-futex, linux-eventfd, linux-membarrier, linux-seccomp-notify,
                            linux-messaging, linux-timer, linux-idle, linux-call, with commas between
                            them (default all)
      --gap-us NUMBERS      period of linux-timer (default 1000) and linux-idle (10000), microseconds
      --trap WORDS          which waits trap: none, wfi, wfe, both; under Rouse
      --deliver WORDS       how interrupts are delivered: inject, direct; under Rouse
      --host-poll-us NUMBERS  how long Rouse polls on a trapped WFI, microseconds
      --neighbour WORDS     a second guest on each CPU: none, work, cache; under Rouse, if it was booted with neighbours
      --slice-us NUMBERS    time of a neighbour's turn while Linux does not wait (default 4000; 0: none), microseconds
      --under WORD, --given-trap WORD  the hypervisor (kvm, kvm-nvhe, kvm-protected, xen), and the waits that it traps, if
                             Linux can't find out
      --linux-cpuidle WORDS  how the kernel has to idle: default, nohlt, idle-poll, off, haltpoll, governor:NAME; cells are
                             skipped if it idles otherwise
      --max-iterations N    maximum number of samples of each cell (default 2000)
      --iterations N        exact number of samples of each cell
      --cell-ms N           maximum time of each cell, in milliseconds, without its periods
      --help, --version

Threads are pinned to the first two CPUs. Only root can map /dev/mem, through which the program reads Rouse's counters.
";

/// The request in a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    /// The user asks for help.
    Help,
    /// The user asks for the version.
    Version,
    /// The user asks for a measurement with these boot arguments.
    Run(String),
}

/// Parses the options.
///
/// # Errors
/// The message names the wrong option.
pub fn parse(words: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut words = words.peekable();
    let mut arguments = Vec::new();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else {
            return Err(format!("`{word}` is not an option; see --help"));
        };
        match option {
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            _ => {}
        }
        let argument = match (option.split_once('='), words.peek()) {
            (Some((key, value)), _) => format!("{PREFIX}{key}={value}"),
            (None, Some(value)) if !value.starts_with("--") => {
                let argument = format!("{PREFIX}{option}={value}");
                words.next();
                argument
            }
            (None, _) => format!("{PREFIX}{option}"),
        };
        arguments.push(argument);
    }
    let text = arguments.join(" ");
    plan(&text).map(|_| Command::Run(text))
}

/// Parses the plan in boot arguments. The plan has every Linux workload, unless the arguments name workloads.
///
/// # Errors
/// The message names the wrong argument.
pub fn plan(arguments: &str) -> Result<Plan, String> {
    // A workload that runs a program is not a default, because the user has to name the program.
    let is_default = |workload: &&Workload| workload.is_linux() && !workload.is_a_run();
    let all = Workload::ALL.iter().filter(is_default);
    let all: Vec<&str> = all.map(|workload| workload.name()).collect();
    let text = format!("{PREFIX}workload={} {arguments}", all.join(","));
    let parsed = Arguments::parse(&text).map_err(|error| error.to_string())?;
    match parsed.measures() {
        true => Ok(parsed.plan),
        false => Err("a trial of Rouse's own guest is asked for, and this is Linux".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Command, String> {
        parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn options_are_boot_arguments() {
        let run = |text: &str| Ok(Command::Run(text.into()));
        assert_eq!(parsed(&[]), run(""));
        assert_eq!(
            parsed(&["--workload", "linux-pipe", "--gap-us=5", "--raw"]),
            run("rouse.workload=linux-pipe rouse.gap-us=5 rouse.raw")
        );
        assert_eq!(parsed(&["--help"]), Ok(Command::Help));
        assert_eq!(parsed(&["--version", "--x"]), Ok(Command::Version));
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parsed(&["pipe"]).unwrap_err().contains("`pipe`"));
        assert!(
            parsed(&["--workloa", "linux-pipe"])
                .unwrap_err()
                .contains("workload")
        );
        assert!(parsed(&["--soak", "5"]).unwrap_err().contains("trial"));
    }

    #[test]
    fn every_workload_of_linux_is_measured_unless_some_are_named() {
        let workloads = |text: &str| plan(text).unwrap().lists.workload.values;
        assert!(workloads("").iter().all(|workload| workload.is_linux()));
        assert!(workloads("quiet x=1").len() > 2);
        assert_eq!(
            workloads("rouse.workload=linux-pipe")[..],
            [Workload::LinuxPipe]
        );
    }
}
