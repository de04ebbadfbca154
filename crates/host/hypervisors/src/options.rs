// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether the arguments of `run` ask for the table, and takes the table's options from them.

use std::path::PathBuf;

use plan::Under;
use request::PlanArgs;

use reporting::format::FormatArgs;
use running::options::{LimitArgs, RunArgs, Unders};

/// The part of the table to measure, and the destination of the results.
#[derive(Debug, Default)]
pub struct Table {
    /// The columns to measure; all columns if empty.
    pub unders: Vec<Under>,
    /// The kernel of KVM's host, if not Debian's.
    pub host_kernel: Option<PathBuf>,
    /// A checkout of Bao, if the environment variable does not name one.
    pub bao: Option<PathBuf>,
    /// Xen's program, if not Debian's.
    pub xen: Option<PathBuf>,
    /// Whether to write the figures into the documents.
    pub save: bool,
    /// Folder of the results.
    pub out: Option<PathBuf>,
    pub limits: LimitArgs,
    /// The form of the list, if the cells are to be listed and not measured.
    pub list: Option<FormatArgs>,
}

/// Returns the table that `run --under all` stands for. With options for a plan, a machine or a guest, the arguments
/// ask for an ordinary run.
pub fn of_run(args: &RunArgs) -> Option<Table> {
    let RunArgs {
        job, limits, out, ..
    } = args;
    let plain = matches!(job.under, Some(Unders::All))
        && job.load.plan == PlanArgs::default()
        && job.load.board == super::boots::BOARD
        && job.load.given.guest.is_none();
    plain.then(|| Table {
        host_kernel: job.host_kernel.clone(),
        bao: job.bao.clone(),
        xen: job.xen.clone(),
        out: out.clone(),
        limits: *limits,
        list: args.list.then_some(args.format),
        ..Table::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::args::parse;

    #[test]
    fn a_plan_of_ones_own_is_a_run() {
        for (line, table) in [
            ("run --under all", true),
            ("run --under all --time-limit 9", true),
            ("run --under none,rouse", false),
            ("run --under all --quick", false),
            ("run --under all --workload pingpong", false),
            ("run --under all --board virt-uefi", false),
            ("run", false),
        ] {
            let args = parse(line.split(' ')).unwrap();
            assert_eq!(of_run(&args).is_some(), table, "{line}");
        }
    }
}
