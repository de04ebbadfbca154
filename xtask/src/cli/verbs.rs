// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that belong to one verb.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{JobArgs, LimitArgs, LoadArgs, Unders};
use crate::cost::costs::Mode;
use crate::format::FormatArgs;
use crate::given::GivenArgs;

/// Probability that `compare` calls anything better or worse if nothing is.
const LEVEL: &str = "5%";

/// Options of `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The plan.
    #[command(flatten)]
    pub job: JobArgs,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Where KVM runs, with --under kvm, kvm-nvhe or kvm-protected: here (on this machine, arm64 Linux with /dev/kvm, in time or cycles),
    /// emulator (on a host in the emulator) [default: here where that can be and no option wants an emulator, else emulator]
    #[arg(long, value_enum, value_name = "WHERE")]
    pub kvm: Option<Place>,
    /// Measure all of it so often, each time in boots of its own: what is counted in time differs from boot to boot, and
    /// `compare` takes five runs at least; what Linux draws at random is other in each [default: 1; of two kernels 6]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: Option<u32>,
    /// How many emulators run at a time: parts of the cells, and whatever else has a boot of its own. The results are the same [default:
    /// as many as this computer has CPUs and memory for; 1 with --metric time]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Measure --guest as it is and with these words on its command line, by turns, and compare
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        requires = "guest"
    )]
    pub with_args: Option<String>,
    /// Watts of a CPU that runs, polls, waits in wfi and works at el2, with their source, as in the table watts of a board's file:
    /// for a model of the energy per wake-up (docs/results.md), in place of the board's own
    #[arg(long, value_name = "FILE.toml")]
    pub watts: Option<PathBuf>,
    /// Folder for the results; new or empty [default: target/runs/TIME-BOARD, the time in UTC]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Call this run NAME: compare and report know it by that (target/saved/NAME)
    #[arg(long, value_name = "NAME", conflicts_with = "out")]
    pub save: Option<String>,
    /// Write a copy of results.json to FILE; - is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Tell how long each part took
    #[arg(long)]
    pub timings: bool,
    /// In which form it answers.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Options of `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Instead: whether Rouse can run on the machines that these device trees describe; a folder is searched for *.dtb
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    pub dtb: Vec<PathBuf>,
    /// Instead: the same by ACPI tables: what acpidump wrote, as text or with -b, or a folder of tables
    #[arg(long, value_name = "FILE|DIR", num_args = 1..)]
    pub acpi: Vec<PathBuf>,
    /// Write a list of file, ok, why and console to FILE; - is standard output, and the lines then go to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Options of `report`.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Run folders, results.json files, or captures of a console (lines with `@r1 `)
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Where the report goes: FILE.html, - (standard output), or a folder, which also gets results.json and results.csv unless that is
    /// what the report is made from [default: the run folder if there is one INPUT, else target/reports/TIME]
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Watts of a CPU that runs, polls, waits in wfi and works at el2, with their source, as in the table watts of a board's file:
    /// for a model of the energy per wake-up (docs/results.md)
    #[arg(long, value_name = "FILE.toml")]
    pub watts: Option<PathBuf>,
    /// Also write each chart of the page as an SVG file of its own to this folder; no file there is replaced
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// Title of the page
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// In which form it answers.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Options of `compare`.
#[derive(Args, Debug)]
pub struct CompareArgs {
    /// A, the reference, and B: a run folder, the name of a saved run, results.json or serial log of each, which may hold several runs. With
    /// --with, all of these are runs of A
    #[arg(value_name = "RUN", required = true)]
    pub runs: Vec<PathBuf>,
    /// Runs of B
    #[arg(long, value_name = "RUN", num_args = 1..)]
    pub with: Vec<PathBuf>,
    /// Exit with status 1 if anything is worse by more than this much, or lost: medians, tails, exits; with 2 if
    /// that can't be told from these runs [without a number: 0]
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = "0")]
    pub fail_if_worse: Option<String>,
    /// Probability that anything is called better or worse if nothing is, at most
    #[arg(long, value_name = "PERCENT", default_value = LEVEL)]
    pub level: String,
    /// Say how many runs would show a difference of this much
    #[arg(long, value_name = "PERCENT")]
    pub see: Option<String>,
    /// Differences between A and B besides the code that --fail-if-worse accepts: compiler, emulator, ...
    #[arg(long, value_name = "LIST")]
    pub allow: Option<String>,
    /// In which form it answers.
    #[command(flatten)]
    pub format: FormatArgs,
}

impl CompareArgs {
    /// Comparison of these runs by default.
    pub fn of(runs: Vec<PathBuf>) -> Self {
        Self {
            runs,
            with: Vec::new(),
            fail_if_worse: None,
            level: LEVEL.into(),
            see: None,
            allow: None,
            format: FormatArgs::default(),
        }
    }
}

/// Options of `experiment`.
#[derive(Args, Debug)]
pub struct ExperimentArgs {
    #[arg(value_name = "NAME", required = true, help = format!("all, or some of: {}", crate::experiment::names()))]
    pub names: Vec<String>,
    /// Machine: a name of boards/NAME.toml
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Draw the times that are drawn at random from other seeds: a number for each other choice. Verdicts should not depend on it
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,
    /// How many emulators run at a time: boots of an experiment. The results are the same; where values are times, it is 1 [default: as
    /// many as this computer has CPUs and memory for]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Folder for the report and the runs behind it; new or empty [default: target/runs/TIME-experiment]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write a copy of experiments.json to FILE; - is standard output, and the tables then go to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// In which form it answers.
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Options of `hypervisors`.
#[derive(Args, Debug, Default)]
pub struct HypervisorsArgs {
    /// Some of them only: none, rouse, xen, kvm, kvm-nvhe, kvm-protected [default: all]
    #[arg(long, value_name = "LIST")]
    pub under: Option<Unders>,
    /// The kernel of KVM's host, an arm64 Image [default: Debian's, which is fetched once]
    #[arg(long, value_name = "IMAGE")]
    pub host_kernel: Option<PathBuf>,
    /// Xen, an arm64 Image [default: Debian's, which is fetched once]
    #[arg(long, value_name = "FILE")]
    pub xen: Option<PathBuf>,
    /// Keep the numbers in docs/hypervisors.json, and write docs/hypervisors.md and the README's first table anew; with --under, those columns alone
    #[arg(long)]
    pub save: bool,
    /// Instead: write both anew from docs/hypervisors.json
    #[arg(long, conflicts_with_all = ["under", "host_kernel", "xen", "save", "out"])]
    pub page: bool,
    /// Folder for the results; new or empty [default: target/runs/TIME-hypervisors]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
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
    /// Also run what can only end as it did before: model checks and pages that have passed, and boots in instruction mode, of which
    /// nothing has changed
    #[arg(long, conflicts_with = "instead")]
    pub again: bool,
    /// How many tests run at a time [default: as many as this computer has CPUs]
    #[arg(long, value_name = "N", conflicts_with_all = ["coverage", "miri", "audit", "host_only"])]
    pub jobs: Option<NonZeroUsize>,
    /// At the end show how long each took, the longest first, or the N longest: time, processor time of its processes; and the
    /// programs of tests of the host
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1000000", conflicts_with_all = ["instead", "host_only"])]
    pub timings: Option<usize>,
    /// Instead: line coverage of the pure crates, at least 90 % of each
    #[arg(long, group = "instead", conflicts_with_all = ["target_only", "host_only", "filter"])]
    pub coverage: bool,
    /// Instead: the tests of the host under Miri, for undefined behaviour
    #[arg(long, group = "instead", conflicts_with_all = ["target_only", "host_only"])]
    pub miri: bool,
    /// Instead: the tests that boot, with the rules of the architecture watched that an emulator does not enforce
    #[arg(long, group = "instead", conflicts_with_all = ["target_only", "host_only"])]
    pub strict: bool,
    /// Instead: licences, versions and advisories of the dependencies, without network
    #[arg(long, group = "instead", conflicts_with_all = ["target_only", "host_only", "filter"])]
    pub audit: bool,
    /// Folder of advisories in RustSec's format, for --audit
    #[arg(long, value_name = "DIR", requires = "audit")]
    pub advisory_db: Option<PathBuf>,
}

/// Options of `cost`.
#[derive(Args, Debug)]
pub struct CostArgs {
    /// Machine: a name of boards/NAME.toml. On gem5's, paths are told in cycles, warm and cold, beside the least that they could take
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Model of the cores, on gem5's boards [default: minor, hpi and o3, one after another]
    #[arg(long, value_name = "MODEL", visible_alias = "cpu-model")]
    pub cpu: Option<String>,
    /// The gem5 program [default: $GEM5, or what is on the PATH]
    #[arg(long, value_name = "PATH")]
    pub gem5: Option<PathBuf>,
    /// Write the costs to FILE; - is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Exit with status 1 if anything costs 2 % more than in the baseline FILE [default: the newest of docs/cost], and
    /// with 2 if that baseline was counted with another compiler
    #[arg(long, value_name = "FILE")]
    pub compare: Option<Option<PathBuf>>,
    /// Keep the costs as a baseline of this name in docs/cost, and write docs/cost.md anew
    #[arg(long, value_name = "LABEL")]
    pub save: Option<String>,
    /// Also with 2 to 64 vCPUs, and every workload of the guest; charts in target/cost-scale.html. Exit with
    /// status 1 if an SGI's cost depends on how many there are
    #[arg(long)]
    pub scale: bool,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Only write docs/cost.md anew from the baselines in docs/cost
    #[arg(long, conflicts_with_all = ["json", "compare", "save"])]
    pub page: bool,
    /// In which form it is shown.
    #[command(flatten)]
    pub format: FormatArgs,
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
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
}

/// Options of `soak`.
#[derive(Args, Debug)]
pub struct SoakArgs {
    /// How long; the round in which the time ends is the last, and there is at least one. With --guest of the guest's clock, and
    /// there is a round for each number of CPUs, metric and delivery
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=100_000))]
    pub minutes: u64,
    /// Another kernel: Linux, whose CPUs go off and on while threads on each wait for timers and wake each other (docs/linux.md).
    #[command(flatten)]
    pub given: GivenArgs,
    /// How interrupts reach that guest, in turn: inject, direct [default: both]
    #[arg(long, value_name = "LIST", requires = "guest")]
    pub deliver: Option<String>,
    /// Machine: a name of boards/NAME.toml, or a file of this kind
    #[arg(long, value_name = "NAME|FILE.toml", default_value = "virt")]
    pub board: String,
    /// Numbers of CPUs, 2 to 8, in turn [default: 4,8; with --guest 4]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// CPU model, of those that `boards` lists [default: the board's]
    #[arg(long, value_name = "MODEL")]
    pub cpu: Option<String>,
    /// How the emulator runs: insns repeats exactly, time has CPUs that really run at once [default: both; with --guest insns,
    /// where time in which every CPU is idle takes none]
    #[arg(long, value_enum)]
    pub metric: Option<SoakMetric>,
    /// Seed of the first round; each one has the next [default: another one each time]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    /// Wake-ups per round [default: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "guest")]
    pub wake_ups: Option<u64>,
    /// Each CPU has a neighbour now and then, the hostile one among them, with slices or without (docs/neighbour.md)
    #[arg(long, conflicts_with = "guest")]
    pub neighbour: bool,
    /// How many rounds run at a time, each in an emulator of its own [default: as many as this computer has CPUs and memory for]
    #[arg(long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Further boot arguments, passed on as they are
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Disturb the emulator at random, with the round's seed: its threads held one by one, all of them stopped, the
    /// machine paused
    #[arg(long)]
    pub disturb: bool,
    /// How long it may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Folder for the summary; new or empty [default: target/runs/TIME-BOARD-soak, the time in UTC]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Unit of `soak`.
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
    /// Another kernel.
    #[command(flatten)]
    pub given: GivenArgs,
}

/// Options of `image`.
#[derive(Args, Debug)]
pub struct ImageArgs {
    /// Starts it: uefi (firmware: a disk), kvm (arm64 Linux with /dev/kvm: one static program with the monitor and the
    /// guest in it, which takes the words of `run` itself)
    #[arg(long = "for", value_enum, value_name = "WHAT", default_value_t = For::Uefi)]
    pub what: For,
    /// Content of the disk.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Report cycles of the core, where its PMU counts them, in place of ticks of the counter
    #[arg(long)]
    pub cycles: bool,
    /// The disk or the program: a new file, or an old one that is replaced; - is standard output; a disk may be a block device, with
    /// --force [default: target/image/rouse-BOARD.disk, target/image/rouse-kvm]
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
    /// On one of the emulator's.
    Emulator,
}

/// Purpose of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// Firmware.
    Uefi,
    /// Linux with KVM.
    Kvm,
}

/// Options of `debug`.
#[derive(Args, Debug)]
pub struct DebugArgs {
    /// The plan.
    #[command(flatten)]
    pub job: JobArgs,
    /// TCP port for the debugger
    #[arg(long, value_name = "PORT", default_value_t = 1234)]
    pub port: u16,
}
