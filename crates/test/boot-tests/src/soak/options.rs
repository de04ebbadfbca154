// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb `soak`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use guests::kernel::GivenArgs;
use running::options::LimitArgs;

/// Options of `soak`.
#[derive(Args, Debug)]
pub struct SoakArgs {
    /// Minutes for which new rounds begin; there is at least one round. With --guest, minutes of the guest's clock, in
    /// a round for each number of CPUs, metric and delivery
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=100_000))]
    pub minutes: u64,
    /// Options that name another kernel. This kernel must be Linux, whose CPUs go offline and online while threads on
    /// each CPU wait for timers and wake each other (docs/linux.md).
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
    /// CPU model, of those that `doctor --boards` lists [default: the board's]
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
    /// Give each CPU a neighbour from time to time, sometimes a hostile one, with or without slices (docs/hypervisors.md)
    #[arg(long, conflicts_with = "guest")]
    pub neighbour: bool,
    /// How many rounds run at a time, each in an emulator of its own [default: as many as this computer has CPUs and memory for]
    #[arg(long, value_name = "N", value_parser = running::options::at_least_one)]
    pub jobs: Option<NonZeroUsize>,
    /// Further boot arguments, passed on as they are
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Disturb the emulator at random, with the round's seed: its threads held one by one, all of them stopped, the
    /// machine paused
    #[arg(long)]
    pub disturb: bool,
    /// Time limits of the soak.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Folder for the summary; new or empty [default: target/runs/TIME-BOARD-soak, the time in UTC]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Metrics with which a soak's rounds run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SoakMetric {
    /// Instructions.
    Insns,
    /// Time.
    Time,
    /// One after the other.
    Both,
}
