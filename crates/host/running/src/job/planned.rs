// SPDX-License-Identifier: MIT OR Apache-2.0
//! Predicts the cells of each boot, and estimates their time from the plan's pauses and wake-ups, and from the speed of
//! the emulator.

use anyhow::Result;
use plan::{BALANCED, Cell, DIMENSIONS, Info, Limits, Machine, PASSES};

use super::{Job, Variant};
use crate::board::EmulatedMachine;
use crate::options::Metric;
use shell::failure::bad_input;
use shell::progress::{self, Planned};

/// Estimated number of instructions that an emulator executes per second. Most of the time is spent in pauses, whose
/// instructions are mainly reads of the counter.
const PER_SECOND: f64 = 6e6;
/// Estimated seconds until a boot begins to measure.
const BOOT: f64 = 1.0;
/// Like [`BOOT`], if Linux boots, as the guest or as the host.
const BOOT_OF_LINUX: f64 = 15.0;
/// Seconds of the longest run that is allowed without a time limit.
const DAY: f64 = 86_400.0;

/// The expected number of seconds, and its upper bound.
pub type Seconds = (f64, f64);

/// A cell of a boot.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    pub name: String,
    /// The reason why the cell is not run, if it is not.
    pub skipped: Option<String>,
    /// `None` if the speed of the machine is unknown.
    pub seconds: Option<Seconds>,
}

impl Job {
    /// Returns the cells of a boot, in their order.
    pub fn cells_of(&self, variant: Variant) -> Result<Vec<PlannedCell>> {
        let varied = self.varied_dimensions()?;
        let machine = Machine {
            given: variant.given,
            ..self.machine(variant.under)?
        };
        let plan = self.load.plan_of(variant);
        let cells = plan.cells(&machine).map(|cell| {
            let skipped = cell.skip_reason(&machine).map(|why| why.to_string());
            let seconds = match skipped {
                Some(_) => Some((0.0, 0.0)),
                None => self.seconds_of_cell(&cell, &machine),
            };
            PlannedCell {
                name: cell_name(&cell, &varied),
                skipped,
                seconds,
            }
        });
        Ok(cells.collect())
    }

    /// Returns the plan that a boot's progress display shows.
    pub fn planned(&self, variant: Variant) -> Result<Planned> {
        let cells = self.cells_of(variant)?;
        let seconds = sum_if_known(cells.iter().map(|cell| cell.seconds));
        Ok(Planned {
            settles: self.may_settle(),
            seconds,
            names: cells.into_iter().map(|cell| cell.name).collect(),
        })
    }

    /// Returns how many seconds a boot takes, from its start to the end of its last cell.
    pub fn seconds_of_boot(&self, variant: Variant) -> Result<Option<Seconds>> {
        let boot = match self.load.guest.is_some() || variant.under.is_other() {
            true => BOOT_OF_LINUX,
            false => BOOT,
        };
        let seconds = self.planned(variant)?.seconds;
        Ok(seconds.map(|(expected, most)| (boot + expected, boot + most)))
    }

    /// Returns how many seconds all boots take, some of them in parallel.
    pub fn all_seconds(&self) -> Result<Option<Seconds>> {
        let variants = self.variants()?;
        let each = variants
            .iter()
            .map(|&variant| self.seconds_of_boot(variant));
        let all = sum_if_known(each.collect::<Result<Vec<_>>>()?.into_iter());
        let at_a_time = self.jobs.get().min(variants.len()).max(1);
        let times = self.repeat as f64 / at_a_time as f64;
        Ok(all.map(|(expected, most)| (expected * times, most * times)))
    }

    /// Refuses a run that is expected to take more than a day, unless the run has a time limit.
    pub(crate) fn ends_in_a_day(&self) -> Result<()> {
        // The hypervisor ends a run at its deadline, no matter how long the plan would take.
        let deadline = self.load.deadlines.run.filter(|&seconds| seconds != 0);
        let ends = deadline.is_some_and(|seconds| seconds as f64 <= DAY);
        if self.limits.altogether.is_some() || ends || !self.measures() {
            return Ok(());
        }
        match self.all_seconds()? {
            Some(seconds) if seconds.0 > DAY => bad_input!(
                "this takes {}; name a --time-limit, after which it keeps what it has measured, or ask for fewer \
                 cells, fewer wake-ups (--iterations) or shorter pauses (--gap-us)",
                progress::expected(seconds)
            ),
            _ => Ok(()),
        }
    }

    /// Whether cells are expected to settle early. If instructions are counted, the values of most cells repeat.
    fn may_settle(&self) -> bool {
        let plan = &self.load.plan;
        self.metric == Metric::Insns && plan.settle && !plan.raw
    }

    fn seconds_of_cell(&self, cell: &Cell, machine: &Machine) -> Option<Seconds> {
        let instructions = self.metric == Metric::Insns;
        let per_us = match (&self.board().machine, self.metric) {
            (EmulatedMachine::Gem5(_), _) | (_, Metric::Cycles) => return None,
            (EmulatedMachine::Qemu(_), Metric::Insns) => 1000.0 / PER_SECOND,
            (EmulatedMachine::Qemu(_), Metric::Time) => 1e-6,
        };
        let limits = Limits::of(&self.load.plan, cell, machine.frequency, instructions);
        let pass = cell.pass_time(&limits, machine.frequency, instructions);
        let passes = if self.may_settle() { BALANCED } else { PASSES };
        let seconds = |passes: u32, us: u64| f64::from(passes) * us as f64 * per_us;
        Some((
            seconds(passes, pass.expected_us),
            seconds(PASSES, pass.most_us),
        ))
    }

    /// Returns the dimensions in which the cells of this request differ, under any hypervisor.
    fn varied_dimensions(&self) -> Result<Vec<&'static Info>> {
        let mut ranks = vec![None; DIMENSIONS.len()];
        let mut differs = vec![false; DIMENSIONS.len()];
        for &under in &self.unders {
            let machine = self.machine(under)?;
            for cell in self.load.plan.cells(&machine) {
                for (place, info) in DIMENSIONS.iter().enumerate() {
                    if info.applies(&cell) {
                        let rank = info.rank(&cell);
                        differs[place] |= *ranks[place].get_or_insert(rank) != rank;
                    }
                }
            }
        }
        let varied = DIMENSIONS.iter().zip(differs);
        Ok(varied
            .filter_map(|(info, differs)| differs.then_some(info))
            .collect())
    }
}

/// Names a cell by the dimensions in which it differs from other cells, or else by its title.
fn cell_name(cell: &Cell, varied: &[&Info]) -> String {
    let (mut words, mut values) = (Vec::new(), Vec::new());
    for info in varied.iter().filter(|info| info.applies(cell)) {
        let text = info.text(cell).to_string();
        match info.names(cell) {
            true => words.push(text),
            // The absence of a pause or a poll is not worth showing.
            false if info.is_neutral(cell) => {}
            false => values.push(results::valued(info, &text)),
        }
    }
    let words = (!words.is_empty()).then(|| words.join(" "));
    let name: Vec<String> = words.into_iter().chain(values).collect();
    match name.is_empty() {
        true => cell.title().to_string(),
        false => name.join(", "),
    }
}

/// Returns the sum of `seconds`, or `None` if any is unknown.
pub fn sum_if_known(mut seconds: impl Iterator<Item = Option<Seconds>>) -> Option<Seconds> {
    seconds.try_fold((0.0, 0.0), |sum, next| {
        next.map(|next| (sum.0 + next.0, sum.1 + next.1))
    })
}
