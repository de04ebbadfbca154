// SPDX-License-Identifier: MIT OR Apache-2.0
//! `posted-arm-poll-idle-cycles`: runs `perf bench sched` without and with the patch itself, on simulated cores.
//!
//! A count of instructions includes neither the latency of an interrupt nor the latency of leaving WFI, which are the
//! costs that the patch saves on metal. gem5 models the pipeline's part of both latencies, but not the time that an
//! interrupt takes to cross a server. Therefore, the table also shows the delay of each interrupt at which our gain
//! would equal the published one.

use anyhow::Result;
use plan::Under;
use running::options::Metric;

use super::arm_poll_idle::{
    PAIRS, SOURCE, change_in_percent, claim_published_change, ipis_fall, published_size,
};
use super::{KERNEL, UNTRAPPED, ipis_per_operation, two_cpu_boot};
use crate::Experiment;
use crate::outcome::{Outcome, Series, Table, percent_change, two_decimals, without_decimals};
use crate::runs::{Run, Runs};
use crate::sched::{PLACES_OF_SOURCE, TESTS};

pub const EXPERIMENT: Experiment = Experiment {
    name: "posted-arm-poll-idle-cycles",
    question: "what does the driver arm_poll_idle itself bring in time, in Linux 6.12?",
    source: SOURCE,
    boots: &[
        two_cpu_boot("before", Under::None, 60, &BEFORE),
        two_cpu_boot("after", Under::None, 60, &AFTER),
    ],
    metric: Some(Metric::Cycles),
    conclude,
    comparable: "the changes on metal, in cycles of the simulated cores. Not the seconds. What a server's interrupt takes on its \
                 way between two cores is not modelled; the table has the delay that would make up for it, where ours gains less.",
};

const BEFORE: [(&str, &str); 3] = [(KERNEL, "6.12"), WORKLOADS, UNTRAPPED];
const AFTER: [(&str, &str); 3] = [(KERNEL, "6.12+000"), WORKLOADS, UNTRAPPED];
const WORKLOADS: (&str, &str) = ("workload", "linux-pipe,linux-seccomp-notify");

/// Figures of an operation.
#[derive(Clone, Copy)]
struct Figures {
    cycles: f64,
    us: f64,
    ipis: f64,
}

fn figures(run: Run<'_>, label: &str, workload: &str) -> Result<Figures> {
    let cell = run.cell(label, &[("workload", workload)])?;
    Ok(Figures {
        cycles: cell.median(),
        us: cell.value_in_us(cell.median()),
        ipis: ipis_per_operation(&cell),
    })
}

fn before_and_after(run: Run<'_>, workload: &str) -> Result<[Figures; 2]> {
    Ok([
        figures(run, "before", workload)?,
        figures(run, "after", workload)?,
    ])
}

/// Returns the delay per interrupt, in microseconds, at which an operation would change by `published` per cent. Every
/// interrupt of an operation is on its path, because one CPU waits for the other.
fn delay_per_interrupt([before, after]: [Figures; 2], published: f64) -> Option<f64> {
    let ratio = 1.0 + published / 100.0;
    let delay = (after.us - ratio * before.us) / (ratio * before.ipis - after.ipis);
    Some(delay).filter(|delay| delay.is_finite() && *delay >= 0.0)
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut table = Table::new(
        "Cycles per operation before -> after, interrupts between CPUs, published changes on metal, and the delay of each interrupt \
         that would make ours equal to them",
        &[
            "cycles",
            "",
            "interrupts",
            "metal G2",
            "metal G3",
            "delay G2, us",
            "delay G3, us",
        ],
    );
    let (_, _, columns) = PLACES_OF_SOURCE[1];
    let mut claims = Vec::new();
    for (name, _, published) in TESTS.into_iter().filter(|(name, ..)| PAIRS.contains(name)) {
        let workload = &*format!("linux-{name}");
        let there = columns.map(|n| published[n]);
        let both = runs.by_boot(|run| before_and_after(run, workload))?;
        let of = |n: usize, figure: fn(&Figures) -> f64| both.map(|pair| figure(&pair[n]));
        let [before, after] = [0, 1].map(|n| of(n, |it| it.cycles));
        let [sent, left] = [0, 1].map(|n| of(n, |it| it.ipis));
        let first = before_and_after(runs.first(), workload)?;
        let needed = there.map(|pair| delay_per_interrupt(first, change_in_percent(pair)));
        let mut texts = vec![
            format!(
                "{} -> {}",
                without_decimals(before.median()),
                without_decimals(after.median())
            ),
            percent_change(before.median(), after.median()),
            format!(
                "{} -> {}",
                two_decimals(sent.median()),
                two_decimals(left.median())
            ),
        ];
        texts.extend(there.map(|(before, after)| percent_change(before, after)));
        texts.extend(needed.map(|delay| delay.map_or("-".into(), two_decimals)));
        table.add_row(name, texts);
        let shown = format!("{name}, metal");
        let claim = claim_published_change(&shown, there, published_size(there), before, after);
        claims.push(claim.with_reason(
            "the way of an interrupt between two cores of a server takes time that is not modelled",
        ));
        claims.push(ipis_fall(name, sent, left));
    }
    Ok(Outcome::of_table(
        table,
        (
            "Change of an operation by the patch, in cycles",
            "change, %",
        ),
        &[
            Series::Here(1, "here"),
            Series::Published(3, "metal, Graviton2"),
            Series::Published(4, "metal, Graviton3"),
        ],
        claims,
        &[
            "kernels are Debian's source of 6.12 with the configuration of `cargo xtask kernel`, governor menu, with nothing below them",
        ],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_makes_a_change_the_published_one() {
        let figures = |us, ipis| Figures {
            cycles: 0.0,
            us,
            ipis,
        };
        let [before, after] = [figures(8.0, 2.0), figures(7.6, 0.0)];
        let delay = delay_per_interrupt([before, after], -14.0).unwrap();
        let changed = 7.6 / (8.0 + 2.0 * delay);
        assert!((changed - 0.86).abs() < 1e-9, "{delay}");
        // A delay can only make a gain larger.
        assert_eq!(
            super::delay_per_interrupt([before, figures(4.0, 0.0)], -14.0),
            None
        );
    }
}
