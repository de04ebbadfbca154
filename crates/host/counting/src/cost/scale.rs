// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of operations by number of vCPUs.
//!
//! A line has one cost for each number of vCPUs. There are two kinds of lines. One kind counts the hypervisor's own
//! instructions, which are recorded like the costs of paths. The cost of an SGI to one vCPU must be the same for any
//! number of vCPUs, and the cost of a broadcast must be linear in the number of receivers. Any other result is an
//! error. The other kind shows the guest's workloads, on a board where each instruction is a tick.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use cost::Path;
use maud::html;
use plan::{Word, Workload};

use super::costs::{self, Lines, Mode};
use super::recorder::{Bench, Recorded};
use page::{Column, chart, document};
use running::job::Job;
use running::options::JobArgs;
use running::session;
use shell::terminal::say;

/// The numbers of vCPUs to measure. Numbers that the board does not support are left out.
const CPUS: [u32; 8] = [2, 4, 8, 16, 32, 64, 192, 512];

/// Names of the lines whose values must not rise.
const SGI: &str = "EL2: SGI to one, both sides";
const DOORBELL: &str = "EL2: SGI by doorbell to one, both sides";
/// Name of the line whose values must be linear.
const BROADCAST: &str = "EL2: SGI to all others, all CPUs";

/// Measures every line with up to `most` vCPUs. Even after an error, `lines` has everything measured so far.
pub fn measure(bench: &Bench, board: &str, most: u32, lines: &mut Lines) -> Result<()> {
    for cpus in CPUS.into_iter().filter(|&cpus| cpus <= most) {
        for (name, value) in el2_instructions(bench, cpus)? {
            lines.entry(name.into()).or_default().insert(cpus, value);
        }
        for (name, value) in workload_medians(bench, board, cpus)? {
            lines.entry(name).or_default().insert(cpus, value);
        }
        say!("{cpus} vCPUs: done");
    }
    Ok(())
}

/// Returns the numbers of EL2 instructions for three operations, on all CPUs together.
fn el2_instructions(bench: &Bench, cpus: u32) -> Result<[(&'static str, u64); 3]> {
    let pairs = bench.record(Mode::Inject, cpus, "rouse.cost=sgi-send,doorbell-send")?;
    let all = bench.record(Mode::Inject, cpus, "rouse.cost=broadcast")?;
    let one = |recorded: &Recorded, path| -> Result<u64> {
        let row = costs::count_row(&recorded.trace, path, Mode::Inject)?;
        Ok(row.el2.map_or(0, |tally| tally.insns))
    };
    let sgi = one(&pairs, Path::SgiSend)? + one(&pairs, Path::SgiReceive)?;
    let doorbell = one(&pairs, Path::DoorbellSend)? + one(&pairs, Path::DoorbellReceive)?;
    let receivers = u64::from(cpus - 1);
    let broadcast = one(&all, Path::Broadcast)? + receivers * one(&all, Path::SgiReceive)?;
    Ok([(SGI, sgi), (DOORBELL, doorbell), (BROADCAST, broadcast)])
}

/// Returns the median samples of those guest workloads that have no idle time, with one plain way of waiting.
fn workload_medians(bench: &Bench, board: &str, cpus: u32) -> Result<Vec<(String, u64)>> {
    let job = Job::new(&workload_args(board, cpus))?.within(&bench.limits);
    let results = session::measure(&job).with_context(|| format!("{cpus} vCPUs"))?;
    let mut values: Vec<(String, u64)> = Vec::new();
    for cell in &results.cells {
        let name = format!(
            "{} {} {}",
            cell.what.workload, cell.what.shape, cell.what.deliver
        );
        let known = values.iter().any(|(other, _)| *other == name);
        if let (false, Some(stats)) = (known, cell.stats) {
            values.push((name, stats.p50));
        }
    }
    Ok(values)
}

/// Returns the request for the workloads.
fn workload_args(board: &str, cpus: u32) -> JobArgs {
    let mut args = JobArgs::on(board);
    args.cpus = Some(cpus);
    let counted = Workload::ALL
        .iter()
        .filter(|it| !it.is_linux() && !it.has_idle_time());
    let workloads: Vec<&str> = counted.map(|workload| workload.name()).collect();
    args.load.plan = request::PlanArgs::exactly(
        200,
        &[
            ("workload", &workloads.join(",")),
            ("wait", "wfi"),
            ("trap", "none"),
            ("deliver", "inject,direct"),
            ("wake", "ipi"),
        ],
    );
    args
}

/// Fails if a cost depends on the number of vCPUs although it must not, or if a cost that must be linear is not.
pub fn fail_on_growth(lines: &Lines) -> Result<()> {
    for name in [SGI, DOORBELL] {
        let values = lines.get(name).into_iter().flat_map(BTreeMap::values);
        let (least, most) = (values.clone().min(), values.max());
        if least != most {
            bail!(
                "{name}: from {least:?} to {most:?} instructions, which should not depend on the number of vCPUs"
            );
        }
    }
    let Some(points) = lines.get(BROADCAST) else {
        return Ok(());
    };
    let points: Vec<(u64, u64)> = points
        .iter()
        .map(|(&cpus, &value)| (cpus.into(), value))
        .collect();
    let slopes = points
        .windows(2)
        .map(|pair| (pair[1].1 - pair[0].1) / (pair[1].0 - pair[0].0));
    let slopes: Vec<u64> = slopes.collect();
    if slopes.windows(2).any(|pair| pair[0] != pair[1]) {
        bail!(
            "{BROADCAST}: {slopes:?} instructions for each further vCPU, which should be the same for all"
        );
    }
    Ok(())
}

/// Returns the lines as a table.
pub fn table(lines: &Lines) -> Vec<Column> {
    let by_cpus = vcpu_counts(lines).into_iter().map(|cpus| {
        let cell =
            |values: &BTreeMap<u32, u64>| values.get(&cpus).map_or("-".into(), u64::to_string);
        let texts = lines.values().map(cell).collect();
        Column::numbers("instructions, by vCPUs", &cpus.to_string(), texts)
    });
    let operations = Column::words("operation", lines.keys().cloned().collect());
    [operations].into_iter().chain(by_cpus).collect()
}

/// Returns the numbers of vCPUs that occur in any line.
pub fn vcpu_counts(lines: &Lines) -> Vec<u32> {
    let mut counts: Vec<u32> = lines.values().flat_map(BTreeMap::keys).copied().collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Returns a page with a chart for each line.
pub fn page(lines: &Lines) -> String {
    let points = |values: &BTreeMap<u32, u64>| -> Vec<(f64, f64)> {
        let points = values.iter();
        points
            .map(|(&cpus, &value)| (f64::from(cpus), value as f64))
            .collect()
    };
    let throughput = |values: &BTreeMap<u32, u64>| -> Vec<(f64, f64)> {
        let points = values.iter().filter(|(_, value)| **value != 0);
        points
            .map(|(&cpus, &value)| (f64::from(cpus), 1e6 / value as f64))
            .collect()
    };
    let body = html! {
        h1 { "Cost over vCPUs" }
        p.about { "Lines that begin with EL2 are the hypervisor's own instructions, counted on every CPU that takes \
            part; the others are medians of the guest's workloads, waiting in WFI, in instructions of all CPUs." }
        section id="cost" {
            h2 { "Cost" }
            div.charts {
            @for (name, values) in lines {
                (chart(name, &points(values), "vCPUs", "instructions per operation"))
            }
            }
        }
        section id="throughput" {
            h2 { "Throughput" }
            div.charts {
            @for (name, values) in lines.iter().filter(|(name, _)| !name.starts_with("EL2")) {
                (chart(name, &throughput(values), "vCPUs", "operations per million instructions"))
            }
            }
        }
    };
    document("Cost over vCPUs", body)
}

/// Returns a page of invented lines, for checking how it looks.
pub fn sample() -> String {
    let names = [
        SGI,
        DOORBELL,
        BROADCAST,
        "ipi one inject",
        "pingpong one direct",
    ];
    let line = |(number, name): (u64, &str)| {
        let values = CPUS.map(|cpus| (cpus, number * 200 + u64::from(cpus) * number * number));
        (name.to_owned(), values.into())
    };
    page(&(1..).zip(names).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, values: &[u64]) -> Lines {
        let values = CPUS.into_iter().zip(values.iter().copied()).collect();
        [(name.to_owned(), values)].into()
    }

    #[test]
    fn what_depends_on_the_number_of_vcpus_fails() {
        assert!(fail_on_growth(&lines(SGI, &[51, 51, 51])).is_ok());
        let error = fail_on_growth(&lines(SGI, &[51, 51, 52]))
            .unwrap_err()
            .to_string();
        assert!(error.contains(SGI), "{error}");
    }

    #[test]
    fn the_workloads_can_be_requested() {
        for cpus in CPUS {
            Job::new(&workload_args("virt", cpus)).unwrap();
        }
    }

    #[test]
    fn a_broadcast_is_linear() {
        let values = CPUS.map(|cpus| 25 + 26 * u64::from(cpus - 1));
        assert!(fail_on_growth(&lines(BROADCAST, &values)).is_ok());
        assert!(fail_on_growth(&lines(BROADCAST, &[51, 103, 300])).is_err());
    }

    #[test]
    fn a_page_has_every_line() {
        let page = page(&lines("ipi one inject", &[100, 100]));
        assert!(
            page.contains("ipi one inject") && page.contains("<svg"),
            "{page}"
        );
    }
}
