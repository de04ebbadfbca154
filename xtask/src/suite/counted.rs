// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cells print against what QEMU's own log says was executed: a second method, which
//! shares nothing with the first but the machine.
//!
//! The first is the guest: it reads a clock that counts instructions before and after a
//! sample, and asks the hypervisor for its counters. Here every instruction and every
//! exception is a line of the emulator's log.

mod boot;
mod log;
mod marks;
mod stub;
mod table;

use anyhow::{Result, bail, ensure};
use plan::{Deliver, Trap};
use results::{Cell, Results};

use self::boot::{Passes, Traced};
use self::log::Sample;
use crate::failure;
use crate::terminal::print_lines;

/// Samples that are counted of each cell.
const COUNT: u32 = 100;
/// Those of them in a pass.
const IN_PASS: usize = (COUNT / plan::PASSES) as usize;

/// The runs: together every kind of wait, both deliveries, trapped and not.
const RUNS: [&[&str]; 3] = [
    &[
        "--workload=pingpong,ipi",
        "--shape=one",
        "--wait=wfi",
        "--trap=none,wfi",
        "--deliver=inject,direct",
        "--wake=ipi",
        "--host-poll-us=0,50",
    ],
    &[
        "--workload=pingpong",
        "--wait=wfe,wfet,poll-wfi",
        "--trap=none,wfe",
        "--deliver=inject,direct",
        "--wake=ipi,elide",
    ],
    &[
        "--workload=ipi",
        "--shape=one",
        "--wait=wfe,wfet,poll-wfi",
        "--trap=none",
        "--deliver=inject,direct",
        "--wake=elide",
    ],
];

/// Causes, as results name them. What ends in an interrupt's exception may be one for
/// the hypervisor itself, which results count apart.
const CAUSES: [(&str, &[&str]); 9] = [
    ("wfi", &["wfi"]),
    ("wfe", &["wfe"]),
    ("sgi", &["sgi"]),
    ("irq", &["irq", "maintenance"]),
    ("hvc", &["hvc"]),
    ("smc", &["smc"]),
    ("sysreg", &["sysreg"]),
    ("mmio", &["mmio"]),
    ("other", &["other"]),
];

/// How many exits of a cause more or fewer a cell may have than its samples: in each pass
/// one of each CPU, since its first wait begins before the samples, and its last one ends
/// after them.
const AT_THE_ENDS: u32 = 2 * plan::PASSES;

/// Boots, compares, and shows both columns.
pub fn run() -> Result<()> {
    let mut differences = Vec::new();
    for options in RUNS {
        let Traced { results, counted } = boot::run(options, COUNT)?;
        let cells = compared(&results, counted)?;
        print_lines(table::of(&cells).lines());
        differences.extend(cells.iter().flat_map(|cell| cell.differences()));
    }
    if !differences.is_empty() {
        return Err(failure::listed(
            "the log of the emulator says something else",
            &differences.join("\n"),
        ));
    }
    Ok(())
}

/// A cell with what was printed and what was counted.
#[derive(Debug)]
struct Compared<'r> {
    printed: &'r Cell,
    /// The same where nothing traps and interrupts are delivered directly, so that EL2
    /// has no part in it.
    bare: &'r Cell,
    /// Samples.
    counted: Vec<Sample>,
    /// Wake-ups at the ends of blocks that are no samples: counters have them, too.
    beyond: Vec<Sample>,
}

/// Puts what was counted to the cells it is of.
fn compared(results: &Results, counted: Vec<Passes>) -> Result<Vec<Compared<'_>>> {
    let measured = || results.cells.iter().filter(|cell| cell.skipped.is_none());
    ensure!(
        measured().count() == counted.len(),
        "{} cells were measured, and {} were counted",
        measured().count(),
        counted.len()
    );
    let mut cells: Vec<_> = measured().collect();
    cells.sort_by_key(|cell| cell.id);
    let compared = cells.into_iter().zip(counted).map(|(printed, passes)| {
        let bare = plan::Cell {
            trap: Trap::None,
            deliver: Deliver::Direct,
            host_poll_us: 0,
            ..printed.what
        };
        let found = measured().find(|cell| cell.what == bare);
        let Some(bare) = found else {
            bail!("{}: not measured without EL2's part", printed.title());
        };
        let (mut counted, mut beyond) = (Vec::new(), Vec::new());
        for mut pass in passes {
            beyond.extend(pass.split_off(pass.len().min(IN_PASS)));
            counted.extend(pass);
        }
        Ok(Compared {
            printed,
            bare,
            counted,
            beyond,
        })
    });
    compared.collect()
}

/// The median; 0 of none.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    hist::of_sorted(&values, 500).copied().unwrap_or(0)
}

impl Compared<'_> {
    /// Its name, for people.
    fn title(&self) -> String {
        let title = self.printed.title();
        match self.printed.what.host_poll_us {
            0 => title,
            us => format!("{title} host {us} us"),
        }
    }

    /// What was printed as p50.
    fn p50(&self) -> u64 {
        self.printed.stats.map_or(0, |stats| stats.p50)
    }

    /// The same of what was counted.
    fn median(&self) -> u64 {
        median(self.counted.iter().map(Sample::total).collect())
    }

    /// How many samples were counted as long as p50.
    fn typical(&self) -> impl Iterator<Item = &Sample> {
        self.counted
            .iter()
            .filter(|sample| sample.total() == self.p50())
    }

    /// EL2's part of the printed figure: what it is more than where EL2 has none.
    /// `None` where polls trap: what they take changes how often the guest polls.
    fn el2_printed(&self) -> Option<u64> {
        let polls_trap = matches!(self.printed.what.trap, Trap::Wfe | Trap::Both);
        let bare = self.bare.stats.map_or(0, |stats| stats.p50);
        (!polls_trap).then(|| self.p50().saturating_sub(bare))
    }

    /// EL2's part of what was counted.
    fn el2(&self) -> u64 {
        median(self.typical().map(|sample| sample.el2).collect())
    }

    /// Exits by `cause` per wake-up: printed, counted.
    fn exits(&self, (cause, names): (&str, &[&str])) -> (f64, f64) {
        let cell = self.printed;
        let printed = names
            .iter()
            .map(|name| cell.per_sample(&cell.exits, name))
            .sum();
        let all = || self.counted.iter().chain(&self.beyond);
        let counted: u64 = all().filter_map(|sample| sample.exits.get(cause)).sum();
        (printed, counted as f64 / all().count().max(1) as f64)
    }

    /// Where both methods differ.
    fn differences(&self) -> Vec<String> {
        let title = self.title();
        let mut differences = Vec::new();
        let mut differ = |what: String| differences.push(format!("  {title}: {what}"));
        let raw = self.printed.raw.get("total").map_or(&[][..], Vec::as_slice);
        if self.counted.len() != COUNT as usize {
            differ(format!(
                "{} samples were counted, not {COUNT}",
                self.counted.len()
            ));
        }
        for (number, (sample, printed)) in self.counted.iter().zip(raw).enumerate() {
            if sample.total() != *printed {
                differ(format!(
                    "sample {number}: {printed} printed, {} counted",
                    sample.total()
                ));
                break;
            }
        }
        if raw.len() < self.counted.len() {
            differ(format!("{} samples were printed", raw.len()));
        }
        if self.p50() != self.median() {
            differ(format!(
                "p50 {} printed, {} counted",
                self.p50(),
                self.median()
            ));
        }
        if let Some(el2) = self.el2_printed().filter(|&el2| el2 != self.el2()) {
            differ(format!("at EL2 {el2} printed, {} counted", self.el2()));
        }
        for cause in CAUSES {
            let (printed, counted) = self.exits(cause);
            let allowed = f64::from(AT_THE_ENDS) / f64::from(COUNT);
            if (printed - counted).abs() > allowed {
                differ(format!(
                    "exits {} per sample {printed:.2} printed, {counted:.2} counted",
                    cause.0
                ));
            }
        }
        differences
    }
}
