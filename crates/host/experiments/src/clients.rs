// SPDX-License-Identifier: MIT OR Apache-2.0
//! `clients`: the cost of an interrupt for every wake-up, for different numbers of client-server pairs.
//!
//! The source's machine has 512 hardware threads. With 256 clients, it also has 512 tasks, because each client has a
//! server. So each of our rows is next to a row of the source that has equally many tasks per CPU.

use anyhow::Result;
use plan::Under;

use super::outcome::{ByBoot, Chart, Claim, Outcome, Series, Table, Test, Way, without_decimals};
use super::runs::{MeasuredCell, Run, Runs};
use super::{Boot, Experiment, Repeat};

/// Number of the source's clients that one pair on 8 CPUs represents: the 512 threads of the source's machine divided
/// by 8.
const CLIENTS_PER_PAIR: usize = 64;

/// Repetitions with 7 to 9 CPUs, in which there are about as many tasks per CPU as with 8 CPUs.
const AROUND_8: &[Repeat] = &[
    Repeat::cpus("8-cpus", 8),
    Repeat::cpus("7-cpus", 7),
    Repeat::cpus("9-cpus", 9),
];

/// A boot in which client and server each work for `$us` on a request. This time determines the size of the effect, so
/// each claim is tested with two times.
macro_rules! pairs {
    ($label:literal, $us:literal, $iterations:literal) => {
        Boot {
            label: $label,
            under: Under::Rouse,
            cpus: None,
            lists: &[
                ("workload", "notify"),
                ("wait", "poll-wfi"),
                ("trap", "none"),
                ("deliver", "direct,inject"),
                ("wake", "ipi,elide"),
                ("groups", "1,2,4,8,16"),
                ("gap-us", $us),
                ("service-us", $us),
            ],
            iterations: $iterations,
            repeats: AROUND_8,
        }
    };
}

/// Labels of the boots, and the time that each side works on a request.
const WORK: [(&str, &str); 2] = [("light", "1 us"), ("heavy", "9 us")];

pub const EXPERIMENT: Experiment = Experiment {
    name: "clients",
    question: "what does it cost clients and servers to interrupt CPUs that poll, and up to how many clients?",
    source: "K. P. Nayak, \"[PATCH] sched/fair: Skip newidle_balance() when an idle CPU is woken up to \
             process an IPI\", January 2024: tbench and netperf, throughput of the kernel that always \
             interrupts against the one that does not, 512 hardware threads",
    boots: &[
        pairs!("light", "1", 60),
        pairs!("light-short", "1", 12),
        pairs!("heavy", "9", 60),
        pairs!("heavy-short", "9", 12),
    ],
    metric: None,
    conclude,
    comparable: "the sign of the effect, if it is a third of the published one at least, and that it shrinks where \
                 CPUs have enough tasks not to idle. Not \
                 its size: that is decided by how much work a request is, and here CPUs run one after another. \
                 `direct` is nearer to the source, which ran on metal.",
};

/// Rows: the number of pairs, and the change of throughput with the source's patched kernel and as many tasks per CPU,
/// in per cent. tbench and netperf give the changes; netperf was not run with 1024 clients.
const ROWS: [(&str, f64, Option<f64>); 5] = [
    ("1", -9.72, Some(-10.11)),
    ("2", -8.36, Some(-10.94)),
    ("4", -3.30, Some(-0.16)),
    ("8", -1.73, Some(2.10)),
    ("16", -1.39, None),
];

/// Returns the requests per second.
fn throughput_of(found: &MeasuredCell<'_>) -> f64 {
    found.operations() / found.seconds().max(1e-9)
}

/// The cells of a boot that share one kind of delivery.
struct Cells<'c> {
    runs: &'c Runs,
    boot: &'c str,
    deliver: &'c str,
}

impl Cells<'_> {
    fn find_cell<'r>(&self, run: Run<'r>, pairs: &str, wake: &str) -> Result<MeasuredCell<'r>> {
        let words = [("groups", pairs), ("wake", wake), ("deliver", self.deliver)];
        run.cell(self.boot, &words)
    }

    /// Returns the requests per second if polling CPUs are interrupted (`ipi`) or not (`elide`).
    fn throughput(&self, pairs: &str, wake: &str) -> Result<ByBoot<f64>> {
        self.runs
            .by_boot(|run| Ok(throughput_of(&self.find_cell(run, pairs, wake)?)))
    }

    /// Returns the loss of throughput due to interrupts, in per cent, for each boot.
    fn loss(&self, pairs: &str) -> Result<ByBoot<f64>> {
        self.runs.by_boot(|run| self.loss_in_run(run, pairs))
    }

    fn loss_in_run(&self, run: Run<'_>, pairs: &str) -> Result<f64> {
        let of = |wake| Ok::<_, anyhow::Error>(throughput_of(&self.find_cell(run, pairs, wake)?));
        Ok(100.0 * (1.0 - of("ipi")? / of("elide")?))
    }

    /// Formats the changes of throughput in all boots.
    fn throughput_changes(&self, pairs: &str) -> Result<String> {
        let losses = self.loss(pairs)?;
        let texts: Vec<String> = losses
            .values()
            .map(|loss| format!("{:+.1}", -loss))
            .collect();
        Ok(format!("{} %", texts.join(", ")))
    }
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let mut tables = Vec::new();
    let mut claims = Vec::new();
    for (boot, us) in WORK {
        tables.push(table(runs, boot, us)?);
        for deliver in ["direct", "inject"] {
            claims.extend(cell_claims(&Cells {
                runs,
                boot,
                deliver,
            })?);
        }
    }
    let series = [
        Series::Here(1, "direct"),
        Series::Here(4, "inject"),
        Series::Published(7, "tbench"),
        Series::Published(8, "netperf"),
    ];
    let charts = tables.iter().zip(WORK).map(|(table, (boot, _))| {
        let title = format!("Requests per second where wake-ups are not elided, {boot} work");
        Chart::bars(table, &title, "change, %", &series, |_| true)
    });
    let charts = charts.collect();
    Ok(Outcome {
        tables,
        charts,
        claims,
        notes: vec![
            "a pair is that of workload notify: a request, an answer, and some work on either side; client and server \
             are on neighbouring CPUs"
                .into(),
            "the patches are about function calls; where a CPU is woken for a task they change nothing, and the \
             source's throughput with them is that without"
                .into(),
        ],
    })
}

fn table(runs: &Runs, boot: &str, us: &str) -> Result<Table> {
    let title = format!(
        "Requests/s of all pairs where wake-ups are elided, 8 CPUs, client and server work {us} each; \
         change where they are not, with 8, 7, 9 CPUs"
    );
    let columns = [
        "direct",
        "change",
        "us",
        "inject",
        "change",
        "IPIs",
        "clients there",
        "tbench",
        "netperf",
    ];
    let mut table = Table::new(&title, &columns);
    let [direct, inject] = ["direct", "inject"].map(|deliver| Cells {
        runs,
        boot,
        deliver,
    });
    for (number, (pairs, tbench, netperf)) in ROWS.into_iter().enumerate() {
        let elided = direct.find_cell(runs.first(), pairs, "elide")?;
        let injected = inject.find_cell(runs.first(), pairs, "elide")?;
        let interrupted = direct.find_cell(runs.first(), pairs, "ipi")?;
        let sent = interrupted.count_per_operation("ipi", "sent");
        table.add_row(
            &format!("{pairs} pairs"),
            vec![
                without_decimals(throughput_of(&elided)),
                direct.throughput_changes(pairs)?,
                format!("{:.2}", elided.value_in_us(elided.median())),
                without_decimals(throughput_of(&injected)),
                inject.throughput_changes(pairs)?,
                format!("{sent:.2}"),
                (CLIENTS_PER_PAIR << number).to_string(),
                format!("{tbench:+.2} %"),
                netperf.map_or("-".into(), |change| format!("{change:+.2} %")),
            ],
        );
    }
    Ok(table)
}

fn cell_claims(cells: &Cells<'_>) -> Result<Vec<Claim>> {
    let place = format!("{} work, {}", cells.boot, cells.deliver);
    let falls = Test::Sign { way: Way::Falls };
    let interrupted = ("interrupted", cells.throughput("1", "ipi")?);
    let elided = ("elided", cells.throughput("1", "elide")?);
    Ok(vec![
        Claim::new(
            "tbench -9.7 %, netperf -10.1 % with 64 clients",
            falls,
            interrupted,
            elided,
        )
        .at_least_share_of(100.0 + ROWS[0].1, 100.0)
        .with_tested_part(format!("{place}, 1 pair, requests/s"))
        .with_reason("a request is other work here, of which an interrupt is a smaller part"),
        Claim::new_below(
            "the loss falls with clients: -9.7 % to -1.4 %",
            ("lost with 16 pairs", cells.loss("16")?),
            ("with 1", cells.loss("1")?),
        )
        .difference_in("points")
        .at_least_share_of(-ROWS[4].1, -ROWS[0].1)
        .with_tested_part(place)
        .with_reason("less than that is lost with 1 pair here"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::ONCE;
    use crate::verdict::Verdict;
    use results::{Cell, Results, Stats};

    /// Returns the boots of an invented machine. Interrupts cost a single pair the share `lost` of its throughput, and
    /// more pairs correspondingly less. Polls depend on the properties `not_modelled`.
    fn runs(lost: f64, not_modelled: &[&str]) -> Runs {
        let mut runs = Runs::new("clients");
        for (boot, _) in WORK {
            let mut results = Results::default();
            results.machine.cntfrq_hz = 1_000_000_000;
            for deliver in ["direct", "inject"] {
                for (pairs, ..) in ROWS {
                    let kept = 1.0 - lost / pairs.parse::<f64>().unwrap();
                    results
                        .cells
                        .push(cell([deliver, pairs, "elide"], 1.0, not_modelled));
                    results
                        .cells
                        .push(cell([deliver, pairs, "ipi"], kept, not_modelled));
                }
            }
            runs.add(boot, ONCE[0].name, results);
        }
        runs
    }

    fn cell([deliver, pairs, wake]: [&str; 3], throughput: f64, not_modelled: &[&str]) -> Cell {
        let mut cell = Cell {
            made: 100,
            unit: "insns".into(),
            stats: Some(Stats::default()),
            not_modelled: not_modelled.iter().map(|&probe| probe.into()).collect(),
            ..Cell::default()
        };
        for (key, word) in [
            ("workload", "notify"),
            ("deliver", deliver),
            ("groups", pairs),
            ("wake", wake),
        ] {
            cell.what.set(key, word).unwrap();
        }
        let ticks = (1e8 / throughput) as u64;
        cell.counters
            .insert("span".into(), [("ticks".into(), ticks)].into());
        cell
    }

    fn verdicts(runs: &Runs) -> Vec<Verdict> {
        conclude(runs)
            .unwrap()
            .claims
            .iter()
            .map(Claim::verdict)
            .collect()
    }

    #[test]
    fn throughput_depends_on_what_the_waits_do() {
        assert!(
            verdicts(&runs(0.1, &[]))
                .iter()
                .all(|&verdict| verdict == Verdict::Agrees)
        );
        let starred = verdicts(&runs(0.1, &["wfe_halts"]));
        assert!(
            starred
                .iter()
                .all(|&verdict| verdict == Verdict::NotModelled),
            "{starred:?}"
        );
    }

    #[test]
    fn a_loss_that_the_source_could_not_see_is_none() {
        let tiny = verdicts(&runs(0.0026, &[]));
        assert!(
            tiny.iter().all(|&verdict| verdict == Verdict::NoDifference),
            "{tiny:?}"
        );
        let gained = verdicts(&runs(-0.1, &[]));
        assert!(
            gained.iter().all(|&verdict| verdict == Verdict::Differs),
            "{gained:?}"
        );
    }
}
