// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options, as they are typed.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

use crate::cost::card::Mode;
use crate::governors::GovernorsArgs;

const STATUS: &str = "\
Exit status:
  0  what was asked for happened
  1  it failed while running: a hang, a crash, damaged records, a failed test
  2  it could not be tried: an unknown word, board or option, a file that is no
     guest image, a missing tool, a folder that can't be written";

const SOAK: &str = "\
Each boot is a round with a seed of its own: wake-ups in every way of waiting, and
between them SGIs of all shapes, timers, SPIs, masks, priorities, knobs, CPUs turned
off and on, switches of delivery. It ends at the first lost wake-up, stuck list
register, interrupt that comes twice, mask that stays, counter that goes back or leak,
with the state and the last operations of every CPU and the command that shows it
again. The folder has soak.json (rates by kind, seeds), serial.log, command.txt and,
if something was wrong, dump.txt. Ctrl-C ends it with the summary so far.";

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
    /// What is to be done.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What can be done.
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
    /// Boot over and over with everything at random, and stop at the first thing that must not happen
    #[command(after_help = format!("{SOAK}\n\n{STATUS}"))]
    Soak(SoakArgs),
    /// Build and pack the image and print its path
    #[command(after_help = STATUS)]
    Build(BuildArgs),
    /// Write a disk that boots on a machine with UEFI: an instance's root disk, for example
    #[command(after_help = format!("{LISTS}\n\n{STATUS}"))]
    Image(Box<ImageArgs>),
    /// Make a report from runs or from serial logs, whole or damaged, of one machine or of several
    #[command(after_help = STATUS)]
    Report(ReportArgs),
    /// Say of every cell whether B is better or worse than A
    #[command(after_help = STATUS)]
    Compare(CompareArgs),
    /// Do what the authors of idle systems did, and lay their figures beside ours
    #[command(after_help = STATUS)]
    Experiment(ExperimentArgs),
    /// Replay a trace of idle intervals to every governor and to an oracle, on this machine
    #[command(after_help = STATUS)]
    Governors(GovernorsArgs),
    /// Boot with the CPUs stopped and a debugger's port open, and print gdb's command
    #[command(after_help = format!("{LISTS}\n\n{STATUS}"))]
    Debug(Box<DebugArgs>),
    /// List the boards: what each has of the machine that it stands for, and what not
    Boards,
    /// Say which tools are there, which are missing and how to get them
    #[command(after_help = STATUS)]
    Doctor,
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct RunArgs {
    /// What is measured.
    #[command(flatten)]
    pub job: JobArgs,
    /// Folder for the results; new or empty [default: target/runs/TIME-BOARD, the time in UTC]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a copy of results.json to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What is booted: the images, and what they are told.
#[derive(Args, Debug)]
pub struct LoadArgs {
    /// Machine: a name of boards/NAME.toml, or a file of this kind
    #[arg(long, value_name = "NAME|FILE.toml", default_value = "virt")]
    pub board: String,
    /// What is measured.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Guest to run instead of the built one: an arm64 Image
    #[arg(long, value_name = "IMAGE")]
    pub guest: Option<PathBuf>,
    /// Further boot arguments, passed on as they are
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Print what the machine is, for the first boot on a new one: ID registers, tables, GIC, counters, PMU
    #[arg(long)]
    pub survey: bool,
}

/// What is booted, on which machine, and what is counted.
#[derive(Args, Debug)]
pub struct JobArgs {
    /// What is booted.
    #[command(flatten)]
    pub load: LoadArgs,
    /// How the image reaches the machine: kernel (QEMU loads it or hands it to the firmware), virtio, nvme (as the
    /// disk that `image` writes, which the firmware boots); the bare machine's is always loaded
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Boot::Kernel)]
    pub boot: Boot,
    /// What the guest runs under: rouse (the hypervisor), none (the bare machine) [default: rouse]
    #[arg(long, value_name = "LIST")]
    pub under: Option<String>,
    /// Number of CPUs [default: the board's]
    #[arg(long, value_name = "N")]
    pub cpus: Option<u32>,
    /// CPU model, of those that `boards` lists [default: the board's]
    #[arg(long, value_name = "MODEL")]
    pub cpu: Option<String>,
    /// What to count: insns is exact and repeats, time shows CPUs that really run at once
    #[arg(long, value_enum, default_value_t = Metric::Insns)]
    pub metric: Metric,
    /// RAM of the machine, as the emulator takes it: 64M, 2G [default: the board's]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Device tree to boot with instead of the machine's own: a flattened one
    #[arg(long, value_name = "FILE")]
    pub dtb: Option<PathBuf>,
    /// How long each boot may take
    #[arg(long, value_name = "SECONDS", default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

/// The dimensions of what is measured.
#[derive(Args, Debug, Default)]
pub struct PlanArgs {
    /// What is run: ipi, pingpong, ipistorm, messaging, notify, io, timer, idle
    #[arg(long, value_name = "LIST")]
    pub workload: Option<String>,
    /// Whom workload ipi interrupts: dry (nobody), self, one, broadcast
    #[arg(long, value_name = "LIST")]
    pub shape: Option<String>,
    /// How the receiver waits: busy, spin, yield, wfe, wfe-sev, wfet, wfi, poll-wfi, haltpoll, or the idle states
    /// by governor:NAME, with NAME menu, teo, teo-6.2, teo-util, ladder, haltpoll, fixed
    #[arg(long, value_name = "LIST")]
    pub wait: Option<String>,
    /// Which waits of the guest trap: none, wfi, wfe, both
    #[arg(long, value_name = "LIST")]
    pub trap: Option<String>,
    /// How interrupts reach the receiver: inject (by the hypervisor), direct (the guest owns the interface)
    #[arg(long, value_name = "LIST")]
    pub deliver: Option<String>,
    /// Whether a polling receiver is interrupted: ipi (always), elide (no)
    #[arg(long, value_name = "LIST")]
    pub wake: Option<String>,
    /// Wake-ups per cell; 2000 if not given, 200 with --gap-us, which makes each one long
    #[arg(long, value_name = "N", visible_aliases = ["loops", "numipi"])]
    pub iterations: Option<String>,
    /// How long the guest polls before WFI, microseconds
    #[arg(long, value_name = "LIST")]
    pub poll_limit_us: Option<String>,
    /// How long the hypervisor polls on a trapped WFI, microseconds; 0 is off
    #[arg(long, value_name = "LIST")]
    pub host_poll_us: Option<String>,
    /// How the hypervisor chooses that limit: fixed, adaptive (by KVM's rules)
    #[arg(long, value_name = "LIST")]
    pub host_poll: Option<String>,
    /// Whether a guest that polls tells the hypervisor, which then does not: silent, tell
    #[arg(long, value_name = "LIST")]
    pub hint: Option<String>,
    /// Whether to run pingpong once more with time stamps, to show where the time goes: on, off
    #[arg(long, value_name = "on|off")]
    pub stages: Option<String>,
    /// Period of the event stream, microseconds; 0 is off
    #[arg(long, value_name = "LIST")]
    pub event_stream_us: Option<String>,
    /// Pause between two wake-ups, microseconds; the period of timer (default 1000) and idle (10000)
    #[arg(long, value_name = "LIST", visible_alias = "delay-us")]
    pub gap_us: Option<String>,
    /// What belongs to the workloads on the guest's executor.
    #[command(flatten)]
    pub system: SystemArgs,
    /// Only part I of N of the cells, I from 1; `report` puts the parts together again
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Report every sample, not only their histogram
    #[arg(long, conflicts_with = "compact")]
    pub raw: bool,
    /// Report only what the table needs, for a console ring of 64 KiB: no histograms, no stages
    #[arg(long)]
    pub compact: bool,
}

/// The dimensions of the workloads that run on the guest's executor. CPUS is
/// like 0-3+6 or 0x4f, `all` or `none`.
#[derive(Args, Debug, Default)]
#[command(
    next_help_heading = "Options of the workloads on the executor (CPUS: like 0-3+6 or 0x4f, all, none)"
)]
pub struct SystemArgs {
    /// Groups of messaging, pairs of notify, 1 to 16 (default 1)
    #[arg(long, value_name = "LIST")]
    pub groups: Option<String>,
    /// Whom ipistorm calls: single (the CPU at --offset), mask (those of --mask), all
    #[arg(long, value_name = "LIST")]
    pub calls: Option<String>,
    /// A call of one CPU goes to the caller's number plus this (default 1)
    #[arg(long, value_name = "LIST")]
    pub offset: Option<String>,
    /// CPUs that a call to many goes to (default all)
    #[arg(long, value_name = "CPUS,...")]
    pub mask: Option<String>,
    /// CPUs that call (ipistorm; default 0), or wake up by time (timer, idle; default all)
    #[arg(long, value_name = "CPUS,...")]
    pub cpulist: Option<String>,
    /// Whether the caller waits until the function has run: on, off
    #[arg(long, value_name = "LIST")]
    pub call_wait: Option<String>,
    /// How a call reaches a CPU that polls: notify, resched, ipi, skip-newidle, sm-idle
    #[arg(long, value_name = "LIST")]
    pub call_by: Option<String>,
    /// How long the device of io takes, microseconds (default 20)
    #[arg(long, value_name = "LIST")]
    pub device_us: Option<String>,
    /// How its times are distributed: fixed, uniform, exponential
    #[arg(long, value_name = "LIST")]
    pub spread: Option<String>,
    /// Which CPU it interrupts: same (that submitted), other
    #[arg(long, value_name = "LIST")]
    pub completion: Option<String>,
    /// How long a governed CPU stays shallow after it asked a device, milliseconds; 0 is off
    #[arg(long, value_name = "LIST")]
    pub psd_ms: Option<String>,
    /// Exit latency of the governors' standby state, microseconds; 0 is without it (default 100)
    #[arg(long, value_name = "LIST")]
    pub standby_us: Option<String>,
    /// Governed CPUs that poll whatever the governor says (default none)
    #[arg(long, value_name = "CPUS,...")]
    pub idle_poll: Option<String>,
}

impl SystemArgs {
    /// What was given, by the names of the dimensions.
    pub fn list(&self) -> [(&'static str, &Option<String>); 13] {
        [
            ("groups", &self.groups),
            ("calls", &self.calls),
            ("offset", &self.offset),
            ("mask", &self.mask),
            ("cpulist", &self.cpulist),
            ("call-wait", &self.call_wait),
            ("call-by", &self.call_by),
            ("device-us", &self.device_us),
            ("spread", &self.spread),
            ("completion", &self.completion),
            ("psd-ms", &self.psd_ms),
            ("standby-us", &self.standby_us),
            ("idle-poll", &self.idle_poll),
        ]
    }
}

/// Options of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Run folders, results.json files, or captures of a console (lines with `@r1 `)
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Where the report goes: FILE.html, or a folder, which also gets results.json and results.csv unless that is
    /// what the report is made from [default: the run folder if there is one INPUT, else target/reports/TIME]
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Title of the page
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// Options of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// The reference: a run folder, results.json or serial log
    pub a: PathBuf,
    /// What is judged against it
    pub b: PathBuf,
    /// Exit with status 1 if any cell is worse by more than this much
    #[arg(long, value_name = "PERCENT")]
    pub fail_if_worse: Option<String>,
}

/// Options of `experiment`.
#[derive(Args, Debug)]
pub struct ExperimentArgs {
    /// all, or some of: poll-limit, sched, resched-ipis, ipistorm, psd, idle-poll, governors, who-polls
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Machine: a name of boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Folder for the report and the runs behind it; new or empty [default: target/runs/TIME-experiment]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a copy of experiments.json to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How long each boot may take
    #[arg(long, value_name = "SECONDS", default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
}

/// Options of `test`.
#[derive(Args, Debug)]
pub struct TestArgs {
    /// Only tests whose name contains this
    pub filter: Option<String>,
    /// Only the tests that boot
    #[arg(long, conflicts_with = "host_only")]
    pub target_only: bool,
    /// Only the tests of the host
    #[arg(long)]
    pub host_only: bool,
}

/// Options of `cost`.
#[derive(Args, Debug)]
pub struct CostArgs {
    /// Machine: a name of boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Write the card to FILE
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Exit with status 1 if anything costs 2 % more than in the card FILE [default: the newest of docs/cost]
    #[arg(long, value_name = "FILE")]
    pub compare: Option<Option<PathBuf>>,
    /// Keep the card in docs/cost under this name, and write docs/cost.md anew
    #[arg(long, value_name = "LABEL")]
    pub save: Option<String>,
    /// Also with 2 to 64 vCPUs, and every workload of the guest; charts in target/cost-scale.html. Exit with
    /// status 1 if an SGI's cost depends on how many there are
    #[arg(long)]
    pub scale: bool,
    /// Only write docs/cost.md anew from the cards in docs/cost
    #[arg(long, conflicts_with_all = ["json", "compare", "save"])]
    pub page: bool,
}

/// Options of `asm`.
#[derive(Args, Debug)]
pub struct AsmArgs {
    /// The path, by its name in the table of `cost`
    pub path: String,
    /// Machine: a name of boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// How interrupts reach the guest; none is the bare machine
    #[arg(long, value_enum, default_value_t = Mode::Inject)]
    pub deliver: Mode,
}

/// Options of `soak`.
#[derive(Args, Debug)]
pub struct SoakArgs {
    /// How long; the round in which the time ends is the last, and there is at least one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=100_000))]
    pub minutes: u64,
    /// Machine: a name of boards/NAME.toml, or a file of this kind
    #[arg(long, value_name = "NAME|FILE.toml", default_value = "virt")]
    pub board: String,
    /// Numbers of CPUs, 2 to 8, in turn
    #[arg(long, value_name = "LIST", default_value = "4,8")]
    pub cpus: String,
    /// CPU model, of those that `boards` lists [default: the board's]
    #[arg(long, value_name = "MODEL")]
    pub cpu: Option<String>,
    /// How the emulator runs: insns repeats exactly, time has CPUs that really run at once
    #[arg(long, value_enum, default_value_t = SoakMetric::Both)]
    pub metric: SoakMetric,
    /// Seed of the first round; each one has the next [default: another one each time]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Wake-ups per round
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub wake_ups: u64,
    /// Further boot arguments, passed on as they are
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// How long each round may take
    #[arg(long, value_name = "SECONDS", default_value_t = 1200, value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: u64,
    /// Folder for the summary; new or empty [default: target/runs/TIME-BOARD-soak, the time in UTC]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// What `soak` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SoakMetric {
    /// Instructions.
    Insns,
    /// Time.
    Time,
    /// One after the other.
    Both,
}

/// Options of `build`.
#[derive(Args, Debug)]
pub struct BuildArgs {
    /// Machine: a name of boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Guest to pack instead of the built one: an arm64 Image
    #[arg(long, value_name = "IMAGE")]
    pub guest: Option<PathBuf>,
}

/// Options of `image`.
#[derive(Args, Debug)]
pub struct ImageArgs {
    /// What the disk holds.
    #[command(flatten)]
    pub load: LoadArgs,
    /// The disk: a new file, or an old one that is replaced [default: target/image/rouse-BOARD.disk]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `debug`.
#[derive(Args, Debug)]
pub struct DebugArgs {
    /// What is measured.
    #[command(flatten)]
    pub job: JobArgs,
    /// TCP port for the debugger
    #[arg(long, value_name = "PORT", default_value_t = 1234)]
    pub port: u16,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Instructions, exactly, one CPU at a time
    Insns,
    /// Time, with the CPUs in parallel
    Time,
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Insns => "insns",
            Self::Time => "time",
        })
    }
}

/// How the image reaches the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Boot {
    /// QEMU loads it, or hands it to the firmware
    Kernel,
    /// The firmware reads it from a virtio disk
    Virtio,
    /// The firmware reads it from an NVMe disk
    Nvme,
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kernel => "kernel",
            Self::Virtio => "virtio",
            Self::Nvme => "nvme",
        })
    }
}

/// What is wrong with a command line, in one line.
pub fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let told =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let told: Vec<&str> = told
        .map(|line| line.trim_start_matches("error: "))
        .collect();
    let told = told.join("; ").replace(":; ", ": ");
    format!("{told}; --help lists what there is")
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
            (["run", "--metric", "x"], "insns, time"),
            (["run", "--timeout", "0"], "--timeout"),
            (["report", "--title", "x"], "provided: <INPUT>..."),
        ] {
            let error = Cli::try_parse_from(["xtask"].into_iter().chain(line)).unwrap_err();
            let text = one_line(&error);
            assert!(text.contains(told) && !text.contains('\n'), "{text}");
        }
    }
}
