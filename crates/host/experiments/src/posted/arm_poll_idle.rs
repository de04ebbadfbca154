// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posted-arm-poll-idle`: runs `perf bench sched` without and with the patch itself.

use anyhow::Result;
use plan::Under;
use running::options::Metric;

use super::{KERNEL, UNTRAPPED, ipis_per_operation, two_cpu_boot};
use crate::Experiment;
use crate::outcome::{
    ByBoot, Chart, Claim, Outcome, Series, Table, Test, Way, percent_change, two_decimals,
    without_decimals,
};
use crate::runs::{Run, Runs};
use crate::sched::{PLACES_OF_SOURCE, Pair, TESTS};

pub const EXPERIMENT: Experiment = Experiment {
    name: "posted-arm-poll-idle",
    question: "what does the driver arm_poll_idle itself bring, in Linux 6.12?",
    source: SOURCE,
    boots: &[
        two_cpu_boot("vm-before", Under::Kvm, 400, &BEFORE),
        two_cpu_boot("vm-after", Under::Kvm, 400, &AFTER),
        two_cpu_boot("metal-before", Under::None, 400, &BEFORE),
        two_cpu_boot("metal-after", Under::None, 400, &AFTER),
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "the changes of pipe and seccomp-notify: in a VM those of the work, because an interrupt of a VM is code; \
                 on metal those of the path, because CPUs overlap there and do not here. Not the seconds, and not what metal \
                 gains by the latency of an interrupt and of leaving WFI, which are no instructions.",
};

pub const SOURCE: &str = "H. Okanovic, \"[PATCH 3/3] arm64: cpuidle: Add arm_poll_idle\", April 2024: perf bench \
                          sched on c6g (Graviton2) and c7g (Graviton3), VM and metal, seconds";

/// The tests in which two tasks wake each other.
pub const PAIRS: [&str; 2] = ["pipe", "seccomp-notify"];

const BEFORE: [(&str, &str); 3] = [(KERNEL, "6.12"), WORKLOADS, UNTRAPPED];
const AFTER: [(&str, &str); 3] = [(KERNEL, "6.12+000"), WORKLOADS, UNTRAPPED];
const WORKLOADS: (&str, &str) = (
    "workload",
    "linux-pipe,linux-seccomp-notify,linux-messaging",
);

/// Accepted distance from the range between the published changes on the two cores, in points.
const BAND: f64 = 5.0;
/// The noise that the source states, in per cent.
const NOISE: f64 = 3.0;

pub fn change_in_percent((before, after): Pair) -> f64 {
    100.0 * (after / before - 1.0)
}

/// Returns the cost of an operation without and with the patch. In a VM, the cost is the work of all CPUs; on metal, it
/// is the path.
fn costs(run: Run<'_>, place: &str, workload: &str) -> Result<Pair> {
    let of = |when: &str| -> Result<f64> {
        let cell = run.cell(&format!("{place}-{when}"), &[("workload", workload)])?;
        match place == "vm" || workload == "linux-messaging" {
            true => Ok(cell.median()),
            false => Ok(cell.critical()?.path.p50 as f64),
        }
    };
    Ok((of("before")?, of("after")?))
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "Instructions per operation before -> after: in a VM the work of all CPUs, on metal the path; published changes",
        &[
            "VM", "", "metal", "", "VM G2", "VM G3", "metal G2", "metal G3",
        ],
    );
    let mut claims = Vec::new();
    for (name, _, published) in TESTS {
        let workload = &*format!("linux-{name}");
        let mut texts = Vec::new();
        for (place, shown, columns) in PLACES_OF_SOURCE {
            let (before, after) = costs(runs.first(), place, workload)?;
            texts.push(format!(
                "{} -> {}",
                without_decimals(before),
                without_decimals(after)
            ));
            texts.push(percent_change(before, after));
            claims.push(claim(
                runs,
                (name, workload),
                (place, shown),
                columns.map(|n| published[n]),
            )?);
        }
        texts.extend(published.map(|(before, after)| percent_change(before, after)));
        table.add_row(name, texts);
    }
    let mut sent = Table::new(
        "Interrupts between CPUs per operation, in a VM",
        &["before", "after"],
    );
    for name in PAIRS {
        let workload = &*format!("linux-{name}");
        let of = |when: &str| {
            let label = format!("vm-{when}");
            runs.by_boot(|run| {
                Ok(ipis_per_operation(
                    &run.cell(&label, &[("workload", workload)])?,
                ))
            })
        };
        let (before, after) = (of("before")?, of("after")?);
        sent.add_row(
            name,
            vec![two_decimals(before.median()), two_decimals(after.median())],
        );
        claims.push(ipis_fall(name, before, after));
    }
    let series = [
        Series::Here(1, "VM"),
        Series::Here(3, "metal"),
        Series::Published(4, "VM, Graviton2"),
        Series::Published(5, "VM, Graviton3"),
        Series::Published(6, "metal, Graviton2"),
        Series::Published(7, "metal, Graviton3"),
    ];
    let chart = Chart::bars(
        &table,
        "Change of an operation by the patch",
        "change, %",
        &series,
        |_| true,
    );
    Ok(Outcome {
        tables: vec![table, sent],
        charts: vec![chart],
        claims,
        notes: vec![
            "the VM is a guest of KVM with VHE that does not trap WFI; metal is the bare machine".into(),
            "kernels are Debian's source of 6.12 with the configuration of `cargo xtask kernel`, governor menu".into(),
        ],
    })
}

/// Claims that a change has the published size, or that there is no change if none was published.
fn claim(
    runs: &Runs,
    (name, workload): (&str, &str),
    (place, shown): (&str, &str),
    there: [Pair; 2],
) -> Result<Claim> {
    let ours = runs.by_boot(|run| costs(run, place, workload))?;
    let test = match workload {
        "linux-messaging" => Test::Equality { band: NOISE },
        _ => published_size(there),
    };
    let before = ours.map(|(before, _)| *before);
    let after = ours.map(|(_, after)| *after);
    let claim = claim_published_change(&format!("{name}, {shown}"), there, test, before, after);
    Ok(claim.with_reason(match place {
        "vm" => {
            "an exit of this KVM has another share in an operation than on the cores of the source"
        }
        _ => "instructions have neither the latency of an interrupt nor that of leaving WFI",
    }))
}

/// Returns a test that checks whether a change is between the two published ones, or near them.
pub fn published_size(there: [Pair; 2]) -> Test {
    let [g2, g3] = there.map(change_in_percent);
    Test::Size {
        expected: f64::midpoint(g2, g3),
        band: (g2 - g3).abs() / 2.0 + BAND,
    }
}

/// Claims that an operation changes as published.
pub fn claim_published_change(
    shown: &str,
    there: [Pair; 2],
    test: Test,
    before: ByBoot<f64>,
    after: ByBoot<f64>,
) -> Claim {
    let [g2, g3] = there.map(change_in_percent);
    let source = format!("{shown}: {g2:+.0} % (Graviton2), {g3:+.0} % (Graviton3)");
    Claim::new(source, test, ("after", after), ("before", before))
}

/// Claims that there are fewer interrupts between CPUs, as for the source's applications.
pub fn ipis_fall(name: &str, before: ByBoot<f64>, after: ByBoot<f64>) -> Claim {
    let source = format!(
        "{name}: reschedule IPIs fall (Tensorflow: 250,000 to 120,000 a second; Reactors: 370,000 to 80,000)"
    );
    let falls = Test::Sign { way: Way::Falls };
    Claim::new(source, falls, ("after", after), ("before", before)).at_least_share_of(120.0, 250.0)
}
