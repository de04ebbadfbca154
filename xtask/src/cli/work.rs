// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is booted, and what it measures: the options that verbs share.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;

/// A number, which a check that knows the bounds holds against them: what is far too
/// large for it is still too large.
fn count(word: &str) -> Result<u32, String> {
    word.parse().or_else(|_| match plan::magnitude(word) {
        Some(value) if value > u32::MAX.into() => Ok(u32::MAX),
        _ => Err("it is no whole number".into()),
    })
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
    /// Guest to run instead of the built one: an arm64 Image; its command line is --append and nothing else
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
    #[arg(long, value_name = "N", value_parser = count)]
    pub cpus: Option<u32>,
    /// CPU model, of those that `boards` lists [default: the board's]
    #[arg(long, value_name = "MODEL", visible_alias = "cpu-model")]
    pub cpu: Option<String>,
    /// What to count: insns is exact and repeats, time shows CPUs that really run at once, cycles are of a core that
    /// the emulator models [default: insns where the board has it, else the first of those that `boards` lists]
    #[arg(long, value_enum)]
    pub metric: Option<Metric>,
    /// RAM of the machine, as the emulator takes it: 64M, 2G [default: the board's]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Device tree to boot with instead of the machine's own: a flattened one
    #[arg(long, value_name = "FILE")]
    pub dtb: Option<PathBuf>,
    /// The gem5 program of boards that it emulates [default: $GEM5, or what is on the PATH]
    #[arg(long, value_name = "PATH")]
    pub gem5: Option<PathBuf>,
    /// What a board of gem5 is made of: plain, graviton-like (boards/gem5/parameters.toml) [default: plain]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Changes of single values of the preset: core-mhz=3000,l2-kib=512
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub set: Option<String>,
    /// With --guest: it is to end by a reset (PSCI SYSTEM_RESET); to turn the machine off is a failure then
    #[arg(long)]
    pub expect_reset: bool,
    /// Disturb QEMU at random, with this seed: its threads held one by one, all of them stopped, the machine paused.
    /// Whatever is counted in time is then worth nothing
    #[arg(long, value_name = "SEED")]
    pub disturb: Option<u64>,
}

/// How long boots may take.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct LimitArgs {
    /// How long a boot may go without progress: a record, stage or line that was not there before. Of the emulator's
    /// own time, so that a busy host does not matter [default: 240, 3600 on gem5; longer for more wake-ups and pauses]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// How long the whole command may take by the clock, progress or not; what there is then is kept [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
}

/// The dimensions of what is measured.
#[derive(Args, Debug, Default)]
pub struct PlanArgs {
    /// What is run: ipi, pingpong, ipistorm, messaging, notify, io, timer, idle, stream (the period of the event
    /// stream), overshoot (polls that nobody ends)
    #[arg(long, value_name = "LIST")]
    pub workload: Option<String>,
    /// Whom workload ipi interrupts: dry (nobody), self, one, broadcast
    #[arg(long, value_name = "LIST")]
    pub shape: Option<String>,
    /// How the receiver waits: busy, spin, yield, wfe, wfe-sev, wfet, wfi, poll-wfi, haltpoll (these are all), or the
    /// idle states by governor:NAME, with NAME menu, teo, teo-6.2, teo-util, ladder, haltpoll, fixed, or all
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
    /// Wake-ups per cell, exactly, unless its time is up before (--cell-ms)
    #[arg(long, value_name = "N", visible_aliases = ["loops", "numipi"])]
    pub iterations: Option<String>,
    /// Wake-ups per cell at most: one ends before if its passes give the same percentiles (docs/records.md); 2000 if not
    /// given, 200 with --gap-us, which makes each one long
    #[arg(long, value_name = "N", conflicts_with = "iterations")]
    pub max_iterations: Option<String>,
    /// Time of the guest that a cell may take beside the pauses asked for, milliseconds; 0 is without bound. With
    /// --metric insns one is a million instructions [default: 10 with insns, else 500]
    #[arg(long, value_name = "MS")]
    pub cell_ms: Option<String>,
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
    /// Few wake-ups per cell and no stages, unless they are named: for machines on which each one takes long
    #[arg(long)]
    pub quick: bool,
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

/// What is counted. The order is that in which a board's are preferred.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Instructions, exactly, one CPU at a time
    Insns,
    /// Cycles of the core, where the emulator models them
    Cycles,
    /// Time, with the CPUs in parallel
    Time,
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Insns => "insns",
            Self::Cycles => "cycles",
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
