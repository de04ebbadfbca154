// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of the verb.

use std::path::PathBuf;

use clap::Args;

use super::costs::Mode;
use reporting::format::FormatArgs;
use running::options::LimitArgs;

/// Options of `cost`.
#[derive(Args, Debug)]
pub struct CostArgs {
    /// Machine: the NAME in boards/NAME.toml. gem5's boards report paths in cycles, warm and cold, next to the minimum
    /// that they need
    #[arg(long, value_name = "NAME", default_value = "virt")]
    pub board: String,
    /// Model of the cores, on gem5's boards [default: minor, hpi and o3, one after another]
    #[arg(long, value_name = "MODEL", visible_alias = "cpu-model")]
    pub cpu: Option<String>,
    /// The gem5 program [default: $GEM5, or the one on the PATH]
    #[arg(long, value_name = "PATH")]
    pub gem5: Option<PathBuf>,
    /// Instead, list the instructions of one path, named as in the table, each with how often a pass executes it
    #[arg(long, value_name = "PATH", conflicts_with_all = ["cpu", "gem5", "json", "compare", "save", "scale", "page", "format"])]
    pub asm: Option<String>,
    /// How interrupts reach the guest in that listing; none is the bare machine
    #[arg(long, value_enum, default_value_t = Mode::Inject, requires = "asm")]
    pub deliver: Mode,
    /// Write the costs to FILE; - is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Exit with status 1 if anything costs 2 % more than in the baseline FILE [default: the newest of docs/cost], and
    /// with 2 if that baseline was counted with another compiler
    #[arg(long, value_name = "FILE")]
    pub compare: Option<Option<PathBuf>>,
    /// Keep the costs as a baseline of this name in docs/cost, and rewrite docs/cost.md
    #[arg(long, value_name = "LABEL")]
    pub save: Option<String>,
    /// Also count with 2 to 512 vCPUs, and the guest's workloads without idle time; charts in
    /// target/cost-scale.html. Exit with status 1 if an SGI's cost depends on the number of vCPUs
    #[arg(long)]
    pub scale: bool,
    /// How long the boots may take.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Only rewrite docs/cost.md from the baselines in docs/cost
    #[arg(long, conflicts_with_all = ["json", "compare", "save"])]
    pub page: bool,
    /// The format of the output.
    #[command(flatten)]
    pub format: FormatArgs,
}
