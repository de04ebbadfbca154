// SPDX-License-Identifier: MIT OR Apache-2.0
//! `shim-vs-linux`: checks whether Rouse's own guest idles like the kernel that it imitates.
//!
//! Compares pipes of the guest's executor with Linux's pipes, and the guest's timers with Linux's timers. The work of a
//! wake-up differs by a factor of ten, because our guest has neither files nor processes. The decisions of an idle loop
//! do not depend on this work. The interrupts, the exits, and the effects of a trap or a poll show these decisions.

use anyhow::Result;
use plan::Under;

use super::outcome::{ByBoot, Claim, Outcome, Series, Table, Test, two_decimals, without_decimals};
use super::runs::{MeasuredCell, Run, Runs};
use super::{Boot, Experiment, ONCE, SEEDS};
use running::options::Metric;

pub const EXPERIMENT: Experiment = Experiment {
    name: "shim-vs-linux",
    question: "does Rouse's own guest idle as Linux does, and where not, why?",
    source: "Debian's newest kernel for arm64 as the guest, measured by a program of its user space (docs/linux.md)",
    boots: &[
        Boot {
            label: "linux",
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "linux-pipe,linux-timer"),
                ("trap", "none,wfi"),
                ("deliver", "inject"),
                ("host-poll-us", "0"),
            ],
            iterations: 200,
            repeats: SEEDS,
        },
        Boot {
            label: "linux-ways",
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "linux-pipe"),
                ("linux-cpuidle", "nohlt,governor:menu"),
                ("trap", "none"),
                ("deliver", "inject"),
            ],
            iterations: 200,
            repeats: SEEDS,
        },
        Boot {
            label: "shim",
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "pipe"),
                ("wait", "wfi,yield,governor:menu"),
                // Linux reads these states from the device tree, except for WFI, which it adds.
                ("states", "wfi+standby:110:200"),
                ("wfi-barrier", "dsb"),
                ("wake", "ipi"),
                ("trap", "none,wfi"),
                ("deliver", "inject"),
                ("host-poll-us", "0"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
        Boot {
            label: "shim-timer",
            under: Under::Rouse,
            cpus: Some(2),
            lists: &[
                ("workload", "timer"),
                ("cpulist", "1"),
                ("wait", "wfi"),
                ("wfi-barrier", "dsb"),
                ("wake", "ipi"),
                ("trap", "none,wfi"),
                ("deliver", "inject"),
                ("host-poll-us", "0"),
            ],
            iterations: 200,
            repeats: ONCE,
        },
    ],
    metric: Some(Metric::Insns),
    conclude,
    comparable: "interrupts and exits of each wake-up, and what a trap or another way of waiting changes. Not the length of \
                 a wake-up: Linux has system calls, files and a scheduler of many classes in it.",
};

/// Largest accepted difference between two counts, in per cent. This difference covers the activity outside the
/// samples.
const COUNTS: f64 = 5.0;
/// Largest accepted difference between two differences of medians, in instructions. This difference is the width of two
/// of Linux's buckets.
const BUCKETS: f64 = 32.0;
/// Largest accepted difference between two changes in per cent, in points.
const POINTS: f64 = 1.0;
/// Largest accepted difference in exits, if one side may have no exits.
const EXITS: f64 = 0.1;

/// One of the two cells of a comparison.
#[derive(Clone, Copy)]
struct Side {
    boot: &'static str,
    words: &'static [(&'static str, &'static str)],
}

impl Side {
    fn find_cell<'r>(&self, run: Run<'r>, trap: &str) -> Result<MeasuredCell<'r>> {
        let words = [self.words, &[("trap", trap)]].concat();
        run.cell(self.boot, &words)
    }
}

/// Two cells to compare: the pair's name, our guest's cell, and Linux's cell.
#[derive(Clone, Copy)]
struct Pair {
    name: &'static str,
    shim: Side,
    linux: Side,
}

const PIPE: Pair = Pair {
    name: "pipe, WFI",
    shim: Side {
        boot: "shim",
        words: &[("wait", "wfi")],
    },
    linux: Side {
        boot: "linux",
        words: &[("workload", "linux-pipe")],
    },
};

const POLLED: Pair = Pair {
    name: "pipe, polled (yield, nohlt)",
    shim: Side {
        boot: "shim",
        words: &[("wait", "yield")],
    },
    linux: Side {
        boot: "linux-ways",
        words: &[("linux-cpuidle", "nohlt")],
    },
};

const GOVERNED: Pair = Pair {
    name: "pipe, governor:menu",
    shim: Side {
        boot: "shim",
        words: &[("wait", "governor:menu")],
    },
    linux: Side {
        boot: "linux-ways",
        words: &[("linux-cpuidle", "governor:menu")],
    },
};

const TIMER: Pair = Pair {
    name: "timer, WFI",
    shim: Side {
        boot: "shim-timer",
        words: &[],
    },
    linux: Side {
        boot: "linux",
        words: &[("workload", "linux-timer")],
    },
};

/// The rows: the pair of cells, and the trap.
const ROWS: [(Pair, &str); 6] = [
    (PIPE, "none"),
    (PIPE, "wfi"),
    (POLLED, "none"),
    (GOVERNED, "none"),
    (TIMER, "none"),
    (TIMER, "wfi"),
];

/// The boots that contain cells of our guest and cells of Linux.
struct Figures<'r>(&'r Runs);

impl Figures<'_> {
    /// Applies `of` to our guest's and Linux's cells, for each boot.
    fn both_sides(
        &self,
        of: impl Fn(Run<'_>, fn(&Pair) -> Side) -> Result<f64>,
    ) -> Result<[ByBoot<f64>; 2]> {
        let side = |side: fn(&Pair) -> Side| self.0.by_boot(|run| of(run, side));
        Ok([side(|pair| pair.shim)?, side(|pair| pair.linux)?])
    }

    /// Claims that counter `name` in `group` is equal per wake-up in our guest and in Linux.
    fn claim_equal_counts(
        &self,
        source: &str,
        (pair, trap): (Pair, &str),
        (group, name): (&str, &str),
        test: Test,
    ) -> Result<Claim> {
        let of = |run: Run<'_>, side: fn(&Pair) -> Side| {
            Ok(side(&pair)
                .find_cell(run, trap)?
                .count_per_operation(group, name))
        };
        let [shim, linux] = self.both_sides(of)?;
        let claim = Claim::new(source, test, ("the shim's", shim), ("Linux's", linux));
        Ok(claim.with_tested_part(format!("{}, trap {trap}", pair.name)))
    }

    /// Returns, for our guest and for Linux, by how many instructions a median exceeds the median of the cells `over`.
    fn median_excess(
        &self,
        (pair, trap): (Pair, &str),
        over: (Pair, &str),
    ) -> Result<[ByBoot<f64>; 2]> {
        self.both_sides(|run, side| {
            let median = |(pair, trap): (Pair, &str)| {
                Ok::<_, anyhow::Error>(side(&pair).find_cell(run, trap)?.median())
            };
            Ok(median((pair, trap))? - median(over)?)
        })
    }
}

fn conclude(runs: &Runs) -> Result<Outcome> {
    let table = table(runs)?;
    let series = [Series::Here(1, "shim"), Series::Here(2, "Linux")];
    Ok(Outcome::of_table(
        table,
        ("A wake-up of Rouse's guest, and of Linux", "instructions"),
        &series,
        claims(&Figures(runs))?,
        &[
            "both deliver by list registers; Linux has DSB before its WFI, and so has the guest here (--wfi-barrier dsb)",
            "arm64 has no TIF_POLLING_NRFLAG: Linux interrupts a CPU that polls, so the guest does here (--wake ipi). Its \
             `elide` is what a kernel with the haltpoll series does",
        ],
    ))
}

fn table(runs: &Runs) -> Result<Table> {
    let columns = [
        "trap",
        "shim",
        "Linux",
        "IPIs",
        "Linux",
        "WFI exits",
        "Linux",
        "SGI exits",
        "Linux",
        "sysreg exits",
        "Linux",
    ];
    let mut table = Table::new(
        "Medians in instructions, of timers how late; and what each wake-up or round trip has",
        &columns,
    );
    for (pair, trap) in ROWS {
        let [shim, linux] = [pair.shim, pair.linux].map(|side| side.find_cell(runs.first(), trap));
        let sides = [shim?, linux?];
        let mut texts = vec![trap.to_owned()];
        texts.extend(sides.iter().map(|found| without_decimals(found.median())));
        for (group, name) in [
            ("ipi", "sent"),
            ("exit", "wfi"),
            ("exit", "sgi"),
            ("exit", "sysreg"),
        ] {
            texts.extend(
                sides
                    .iter()
                    .map(|found| two_decimals(found.count_per_operation(group, name))),
            );
        }
        table.add_row(pair.name, texts);
    }
    Ok(table)
}

fn claims(figures: &Figures<'_>) -> Result<Vec<Claim>> {
    let alike = Test::Equality { band: COUNTS };
    let nearly = Test::Equality { band: EXITS };
    let (sent, wfi, sgi) = (("ipi", "sent"), ("exit", "wfi"), ("exit", "sgi"));
    let mut claims = Vec::new();
    for trap in ["none", "wfi"] {
        claims.push(figures.claim_equal_counts(
            "as many interrupts between CPUs",
            (PIPE, trap),
            sent,
            alike,
        )?);
        claims.push(figures.claim_equal_counts(
            "as many of them by way of EL2",
            (PIPE, trap),
            sgi,
            alike,
        )?);
    }
    claims.push(figures.claim_equal_counts(
        "a CPU that polls is interrupted as often",
        (POLLED, "none"),
        sent,
        alike,
    )?);
    claims.push(figures.claim_equal_counts("as many trapped WFIs", (PIPE, "wfi"), wfi, alike)?);
    claims.push(
        figures.claim_equal_counts("as many trapped WFIs", (TIMER, "wfi"), wfi, alike)?.with_reason(
            "Linux has its tick besides the timer that was asked for, until it finds that nothing else is to be done; the \
             guest's executor has no tick without a governor",
        ),
    );
    claims.push(
        figures
            .claim_equal_counts(
                "as many further exits by an untrapped timer",
                (TIMER, "none"),
                ("exit", "sysreg"),
                nearly,
            )?
            .difference_in("exits")
            .with_reason(
                "EL2 looks at a timer's line again when its interrupt is acknowledged, as a list register does not follow \
                 it. The guest says by hypercall that it can do without; Linux can't say so",
            ),
    );
    let [shim, linux] = figures.median_excess((PIPE, "wfi"), (PIPE, "none"))?;
    let same = Test::Equality { band: BUCKETS };
    let claim = Claim::new(
        "a trap adds as much to a round trip",
        same,
        ("the shim's", shim),
        ("Linux's", linux),
    );
    claims.push(claim.difference_in("instructions"));
    claims.push(changed_by_polling(figures)?);
    let [shim, linux] = figures.median_excess((GOVERNED, "none"), (PIPE, "none"))?;
    let claim = Claim::new(
        "the governor adds as much",
        same,
        ("the shim's", shim),
        ("Linux's", linux),
    );
    claims.push(claim.difference_in("instructions").with_reason(
        "the guest takes the time that its table gives for leaving standby, 110 us; EL2 is back at once where Linux calls it",
    ));
    Ok(claims)
}

/// Claims that polling instead of WFI changes a round trip by the same percentage in our guest and in Linux.
fn changed_by_polling(figures: &Figures<'_>) -> Result<Claim> {
    let [shim, linux] = figures.both_sides(|run, side| {
        let median =
            |pair: &Pair| Ok::<_, anyhow::Error>(side(pair).find_cell(run, "none")?.median());
        Ok(100.0 * (median(&POLLED)? / median(&PIPE)? - 1.0))
    })?;
    let test = Test::Equality { band: POINTS };
    let claim = Claim::new(
        "polling changes a round trip as much, %",
        test,
        ("the shim's", shim),
        ("Linux's", linux),
    );
    Ok(claim.difference_in("points"))
}
