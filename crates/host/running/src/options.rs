// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that verbs share: images to boot and the plan to measure.

mod screen;

pub use screen::arranged;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use plan::{Under, Word};
use request::PlanArgs;
use serde::Deserialize;

use guests::commands::ExecArgs;
use guests::kernel::GivenArgs;
use reporting::format::FormatArgs;

/// Parses a number whose upper bound is checked later. A number that does not fit becomes the largest one, and the
/// later check refuses it.
fn parse_count(word: &str) -> Result<u32, String> {
    word.parse().or_else(|_| match plan::magnitude(word) {
        Some(value) if value > u32::MAX.into() => Ok(u32::MAX),
        _ => Err("it is not a whole number".into()),
    })
}

/// The default board of `image`: one with firmware that boots disks.
pub const DISK_BOARD: &str = "virt-uefi";

/// Parses a number of at least one.
pub fn at_least_one(word: &str) -> Result<NonZeroUsize, String> {
    let number = word.parse().ok().and_then(NonZeroUsize::new);
    number.ok_or_else(|| "use a whole number from 1".into())
}

/// Images to boot and their boot arguments.
#[derive(Args, Clone, Debug)]
pub struct LoadArgs {
    /// Machine: the NAME in boards/NAME.toml, or a file of that kind
    #[arg(long, value_name = "NAME|FILE.toml", default_value = "virt")]
    pub board: String,
    /// The plan to measure.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// The options that select another kernel as the guest.
    #[command(flatten)]
    pub given: GivenArgs,
    /// The commands to run in the guest.
    #[command(flatten)]
    pub exec: ExecArgs,
    /// Further boot arguments, passed on as they are
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Describe the machine, for the first boot on a new one: ID registers, tables, GIC, counters, PMU
    #[arg(long)]
    pub survey: bool,
    /// How long the machine may take.
    #[command(flatten)]
    pub deadlines: DeadlineArgs,
}

/// How long the machine may take, by its own counter. The hypervisor enforces these limits.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DeadlineArgs {
    /// Machine time that a boot may take from the hypervisor's start. After that, the hypervisor shows what every CPU
    /// is doing and turns the machine off; 0 means no limit [default: none; with `image`, four times the plan's
    /// expected time, plus 300]
    #[arg(long, value_name = "SECONDS")]
    pub deadline: Option<u64>,
    /// Machine time that each pass of a cell may take, including its report [default: none; with `image`, four times
    /// the longest cell's expected time, at least 60]
    #[arg(long, value_name = "SECONDS")]
    pub cell_deadline: Option<u64>,
    /// Whether the hypervisor keeps the last of three or more CPUs for itself, so that a deadline also ends a guest
    /// that owns the interrupts of all its CPUs and takes none of them [default: off; with `image`, on if interrupts
    /// are delivered directly]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub keep_cpu: Option<bool>,
}

fn on_or_off(word: &str) -> Result<bool, String> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("use on or off".into()),
    }
}

/// Images, machine and unit of a job.
#[derive(Args, Clone, Debug)]
pub struct JobArgs {
    /// Images to boot.
    #[command(flatten)]
    pub load: LoadArgs,
    /// How the image reaches the machine: kernel (QEMU loads the image or hands it to the firmware), virtio or nvme
    /// (the firmware boots a disk such as `image` writes). With --under none, the emulator always loads the image
    /// [default: kernel, or virtio where the board boots only disks]
    #[arg(long, value_enum, value_name = "HOW")]
    pub boot: Option<Boot>,
    /// Hypervisor below the guest: rouse (this project's), none (the bare machine), xen (the guest is its first
    /// domain), bao, kvm, kvm-nvhe, kvm-protected (Linux's, with the host in the emulator), or all that the board has
    /// [default: rouse]
    #[arg(long, value_name = "LIST")]
    pub under: Option<Unders>,
    /// The kernel of KVM's host, an arm64 Image [default: Debian's, which is fetched once]
    #[arg(long, value_name = "IMAGE")]
    pub host_kernel: Option<PathBuf>,
    /// A checkout of Bao, which is built for --under bao [default: the variable BAO]
    #[arg(long, value_name = "DIR")]
    pub bao: Option<PathBuf>,
    /// Xen, an arm64 Image [default: Debian's, which is fetched once]
    #[arg(long, value_name = "FILE")]
    pub xen: Option<PathBuf>,
    /// Further words for Xen's command line, as one argument
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub xen_args: Option<String>,
    /// Number of CPUs [default: the board's]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub cpus: Option<u32>,
    /// CPU model, one of those that `doctor --boards` lists [default: the board's]
    #[arg(long, value_name = "MODEL", visible_alias = "cpu-model")]
    pub cpu: Option<String>,
    /// Unit: insns are exact and repeatable; with time, CPUs really run at once; cycles are those of a core that the
    /// emulator models [default: insns where the board has it, else the first one that `doctor --boards` lists]
    #[arg(long, value_enum)]
    pub metric: Option<Metric>,
    /// RAM of the machine, with a unit: 64M, 2G [default: the board's]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Flattened device tree to boot with instead of the machine's own
    #[arg(long, value_name = "FILE")]
    pub dtb: Option<PathBuf>,
    /// The gem5 program, for boards of gem5 [default: $GEM5, or the one on the PATH]
    #[arg(long, value_name = "PATH")]
    pub gem5: Option<PathBuf>,
    /// Parameters of a board of gem5: plain, graviton-like (boards/gem5/parameters.toml) [default: plain]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Change individual values of the preset: core-mhz=3000,l2-kib=512
    #[arg(long, value_name = "NAME=VALUE,...")]
    pub set: Option<String>,
    /// Load kernels unmodified. By default, where instructions are counted, each WFE and WFET of Linux, as guest and as
    /// KVM's host, is replaced by a YIELD: in the emulator's WFE, a CPU that waits for another one would keep its turn
    /// (docs/linux.md)
    #[arg(long)]
    pub as_loaded: bool,
    /// With --guest: the guest must end with a reset (PSCI SYSTEM_RESET); if it turns the machine off, the run fails
    #[arg(long)]
    pub expect_reset: bool,
    /// Disturb QEMU at random moments, drawn from this seed: hold single threads, stop the process, pause the machine.
    /// Values in units of time are then meaningless
    #[arg(long, value_name = "SEED")]
    pub disturb: Option<u64>,
}

impl JobArgs {
    /// Returns the options that select `board`, with defaults for everything else.
    pub fn on(board: &str) -> Self {
        Self {
            load: LoadArgs {
                board: board.into(),
                plan: PlanArgs::default(),
                given: GivenArgs::default(),
                exec: ExecArgs::default(),
                append: None,
                survey: false,
                deadlines: DeadlineArgs::default(),
            },
            boot: None,
            under: None,
            host_kernel: None,
            bao: None,
            xen: None,
            xen_args: None,
            cpus: None,
            cpu: None,
            metric: None,
            memory: None,
            dtb: None,
            gem5: None,
            preset: None,
            set: None,
            as_loaded: false,
            expect_reset: false,
            disturb: None,
        }
    }
}

/// How long boots may take.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct LimitArgs {
    /// How long a boot may go without progress: without a new record, stage or line. The time is the emulator's own, so
    /// a busy host does not matter [default: 240, 3600 on gem5; longer for more wake-ups and pauses]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Wall-clock time that the whole command may take, with or without progress; results up to then are kept [default:
    /// no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
}

/// Unit of a run. The variants are in the order in which a board prefers them.
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

/// Hypervisors under which the guest runs, one after another.
#[derive(Clone, Debug)]
pub enum Unders {
    /// All that the board supports.
    All,
    /// The named hypervisors.
    Named(Vec<Under>),
}

impl Unders {
    /// Returns the named hypervisors. The list is empty if all are requested.
    pub fn hypervisors(&self) -> &[Under] {
        match self {
            Self::All => &[],
            Self::Named(unders) => unders,
        }
    }
}

impl FromStr for Unders {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::All);
        }
        let mut values = Vec::new();
        for word in text.split(',') {
            let Some(value) = Under::parse(word) else {
                let known = Under::NAMES.join(", ");
                return Err(format!("there is no `{word}`; use all, {known}"));
            };
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Ok(Self::Named(values))
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

/// Options that have no effect if a debugger controls the machine.
const OF_RESULTS: [&str; 12] = [
    "timeout",
    "time_limit",
    "repeat",
    "jobs",
    "with_args",
    "bisect",
    "watts",
    "out",
    "save",
    "json",
    "timings",
    "list",
];

/// Options of `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The plan.
    #[command(flatten)]
    pub job: JobArgs,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Boot with the CPUs stopped and a debugger's port open, and print the command that starts the debugger installed
    /// here; PORT is 1234 by default
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "1234", conflicts_with_all = OF_RESULTS)]
    pub debug: Option<u16>,
    /// Where KVM runs, with --under kvm, kvm-nvhe or kvm-protected: here (on this machine, arm64 Linux with /dev/kvm,
    /// in time or cycles), emulator (on a host in the emulator) [default: here if that is possible and no option needs
    /// an emulator, else emulator]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub kvm: Option<Place>,
    /// Measure everything R times, each time with new boots: times differ from boot to boot, and `compare` needs at
    /// least five runs; Linux draws different random numbers in each [default: 1; with two kernels, enough for the test
    /// of five figures per cell]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// How many emulators run at a time, for parts of the cells and for whatever else boots separately. The results do
    /// not depend on it [default: as many as this computer has CPUs and memory for; 1 with --metric time]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub jobs: Option<NonZeroUsize>,
    /// Measure --guest without and with these words on its command line, alternately, and compare
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        requires = "guest"
    )]
    pub with_args: Option<String>,
    /// With two kernels, exit as `git bisect run` expects: 0 if the second is not worse than the first by more than this much, 1 if it
    /// is, 125 if it can't be built or measured, 128 if the request is wrong [without a number: 0]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "0", requires = "guest")]
    pub bisect: Option<String>,
    /// With two kernels, repeat even boots whose results are kept (target/boots): where instructions are counted, an
    /// identical boot of an unchanged kernel has identical results, and is not repeated for 14 days
    #[arg(long, requires = "guest")]
    pub again: bool,
    /// Watts of a CPU that runs, polls, waits in wfi or works at el2, with their source, in the form of the table
    /// `watts` in a board's file. They replace the board's own in the model of the energy per wake-up (docs/results.md)
    #[arg(long, value_name = "FILE.toml")]
    pub watts: Option<PathBuf>,
    /// Folder for the results; new or empty [default: target/runs/TIME-BOARD, the time in UTC]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Name this run: `compare` and `report` then accept NAME for it (target/saved/NAME)
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    pub save: Option<String>,
    /// Write a copy of results.json to FILE; - is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// List the cells of each boot with their expected time, and boot nothing
    #[arg(long)]
    pub list: bool,
    /// Print how long each part took
    #[arg(long)]
    pub timings: bool,
    /// The format of the output.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Options of `image`.
#[derive(Args, Debug)]
pub struct ImageArgs {
    /// Software that starts the image: uefi (firmware: a disk), kvm (arm64 Linux with /dev/kvm: one static program that
    /// contains the monitor and the guest and takes the options of `run` itself), card (a Raspberry Pi's firmware:
    /// files for a card) [default: card with --board raspi4b, else uefi]
    #[arg(long = "for", value_enum, value_name = "WHAT")]
    pub what: Option<For>,
    /// Contents of the disk.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Report cycles of the core, where its PMU counts them, in place of ticks of the counter
    #[arg(long)]
    pub cycles: bool,
    /// The disk or the program: a new file, or an existing one, which is replaced; - is standard output; a disk may be
    /// a block device, with --force; for a card, a folder [default: target/image/rouse-BOARD.disk,
    /// target/image/rouse-kvm, target/image/rouse-BOARD]
    #[arg(long, value_name = "FILE", visible_alias = "output")]
    pub out: Option<PathBuf>,
    /// Write to a block device, whose contents are lost
    #[arg(long)]
    pub force: bool,
}

/// Where KVM runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// On this machine.
    Here,
    /// On a host in the emulator.
    Emulator,
}

/// Purpose of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// Firmware.
    Uefi,
    /// Linux with KVM.
    Kvm,
    /// The firmware of a Raspberry Pi.
    Card,
}
