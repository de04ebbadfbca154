// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unit in which a run's values are shown, and the meaning of the values.

use std::cmp::Ordering;

use plan::Workload;
use results::{Bounds, Cell, Results};

use crate::column::thousands;

/// A value from samples. If the samples were sorted into buckets, also the bounds of the samples.
pub type Figure = (u64, Option<Bounds>);

/// How to show a run's values.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The counter's frequency, in Hz; 0 if unknown.
    frequency: u64,
    /// Nanoseconds per tick, if values are ticks.
    nanoseconds: Option<f64>,
    /// Shown units per tick of the counter, for times that are not samples and are always in ticks. `None` if unknown.
    per_tick: Option<f64>,
    /// Units of values per tick of the counter. The buckets into which samples are sorted are in ticks.
    per_bucket: f64,
    /// Whether values are times of the emulator's threads on the host.
    pub of_host: bool,
}

impl Scale {
    /// Returns the scale of a run's values. Cycles are the cycles of the run's first core.
    pub fn for_results(results: &Results) -> Self {
        let frequency = results.machine.cntfrq_hz;
        let ticks = results.unit == "ticks" && frequency > 0;
        let nanoseconds = ticks.then(|| 1e9 / frequency as f64);
        let mode = results
            .machine
            .emulator
            .as_ref()
            .map(|emulator| emulator.mode.as_str());
        let cycles = results.unit == "cycles";
        let scale = Self {
            frequency,
            nanoseconds,
            per_tick: match cycles {
                true => None,
                false => nanoseconds.or(Some(1.0)),
            },
            per_bucket: 1.0,
            // Only with this mode are values times of the host. An emulator that models time reports times of its
            // model.
            of_host: mode == Some("mttcg"),
        };
        match results.machine.core_hz {
            hertz @ 1.. if cycles => scale.with_frequency(hertz),
            _ => scale,
        }
    }

    /// Returns the scale for the values of `cell`, which belongs to this run. Cycles are the cycles of the core that
    /// measured the cell.
    pub fn for_cell(self, cell: &Cell) -> Self {
        cell.cycles_hz
            .map_or(self, |hertz| self.with_frequency(hertz))
    }

    /// Adapts the scale to values in cycles of a core that runs at `hertz`.
    fn with_frequency(self, hertz: u64) -> Self {
        if self.frequency == 0 {
            return self;
        }
        let per_tick = hertz as f64 / self.frequency as f64;
        Self {
            per_tick: Some(per_tick),
            per_bucket: per_tick,
            ..self
        }
    }

    /// The counter's frequency, in Hz; 0 if unknown.
    pub const fn frequency(self) -> u64 {
        self.frequency
    }

    /// Returns the shown unit.
    pub fn unit_of_results<'r>(&self, results: &'r Results) -> &'r str {
        self.unit_name(&results.unit)
    }

    /// Returns the shown unit of `cells`, which all have the same workload.
    pub fn unit_of_cells<'r>(&self, results: &'r Results, cells: &[&'r Cell]) -> &'r str {
        let unit = cells.first().map(|cell| cell.unit.as_str());
        match unit.unwrap_or_default() {
            "" => self.unit_of_results(results),
            unit => self.unit_name(unit),
        }
    }

    /// Returns a unit's name, for people.
    fn unit_name<'r>(&self, unit: &'r str) -> &'r str {
        match (self.nanoseconds, unit) {
            (Some(_), _) => "ns",
            (None, "insns") => "instructions",
            (None, results::VIRTUAL) => "counter ticks",
            (None, unit) => unit,
        }
    }

    /// Converts a value to the shown unit, as a number.
    pub fn convert_value(&self, value: u64) -> f64 {
        value as f64 * self.nanoseconds.unwrap_or(1.0)
    }

    /// Converts ticks of the counter to the shown unit, if possible.
    pub fn convert_ticks(&self, ticks: u64) -> Option<f64> {
        Some(ticks as f64 * self.per_tick?)
    }

    /// Formats a value in the shown unit.
    pub fn show_value(&self, value: u64) -> String {
        thousands(self.convert_value(value))
    }

    /// Formats a percentile in the shown unit. `of` has the bounds of the samples. Adds the largest possible distance
    /// between the shown percentile and the exact one ([`Bounds::round_percentile`]).
    pub fn show_percentile(&self, value: u64, of: Bounds) -> String {
        let rounded = of.round_percentile(value, self.per_bucket);
        format!(
            "{}{}",
            self.show_value(rounded.value),
            self.show_error(rounded.within)
        )
    }

    /// Formats a figure of samples, which is either exact or a percentile from buckets.
    pub fn show_figure(&self, (value, bounds): Figure) -> String {
        match bounds {
            Some(bounds) => self.show_percentile(value, bounds),
            None => self.show_value(value),
        }
    }

    /// Formats by how much one figure exceeds another. The rounding errors of the two figures add up.
    pub fn show_difference(&self, one: Figure, other: Figure) -> String {
        let within =
            |(value, bounds): Figure| bounds.map_or(0, |of| self.rounding_error(value, of));
        let within = self.show_error(within(one) + within(other));
        let size = self.show_value(one.0.abs_diff(other.0));
        match (one.0.cmp(&other.0), within.as_str()) {
            (Ordering::Equal, "") => "0".into(),
            (Ordering::Equal, _) => within,
            (Ordering::Greater, _) => format!("+{size}{within}"),
            (Ordering::Less, _) => format!("-{size}{within}"),
        }
    }

    /// Converts a percentile to the shown unit, without showing its rounding error.
    pub fn convert_percentile(&self, value: u64, of: Bounds) -> f64 {
        self.convert_value(of.round_percentile(value, self.per_bucket).value)
    }

    /// Returns the largest possible distance between a shown percentile and the exact one, given the samples' bounds.
    fn rounding_error(&self, value: u64, of: Bounds) -> u64 {
        of.round_percentile(value, self.per_bucket).within
    }

    /// Formats the largest distance between a value and its shown form, as `±16`. Empty if the distance is 0.
    fn show_error(&self, within: u64) -> String {
        match self.convert_value(within) {
            ..0.5 => String::new(),
            within => format!("±{}", thousands(within)),
        }
    }
}

/// Returns the median to show where only one number fits: the median of the samples, unless there are too few samples.
pub fn shown_median(cell: &Cell) -> Option<u64> {
    let stats = cell.stats_with_median()?;
    Some(stats.p50)
}

/// Names what one sample of a cell measures.
pub fn cell_operation(cell: &Cell) -> &'static str {
    match cell.what.is_open() {
        true => "request, from the time at which it was meant to come to the task that serves it",
        false => operation_name(cell.what.workload),
    }
}

/// Names what one sample of a workload measures.
pub const fn operation_name(workload: Workload) -> &'static str {
    match workload {
        Workload::Pingpong
        | Workload::Pipe
        | Workload::LinuxPipe
        | Workload::LinuxFutex
        | Workload::LinuxEventfd => "round trip",
        Workload::LinuxMembarrier => "barrier",
        Workload::LinuxCall => "function call",
        Workload::LinuxExec => "run of the program",
        Workload::LinuxSeccompNotify => "answered call",
        Workload::LinuxMessaging => "round of all messages",
        Workload::Ipi => "call to one CPU or to all others",
        Workload::Ipistorm => "function call",
        Workload::Messaging => "loop of a sender",
        Workload::Notify | Workload::Io => "request",
        Workload::Timer | Workload::LinuxTimer => "wake-up: how late it comes",
        Workload::Idle => "period: how long it is awake",
        Workload::LinuxIdle => "rest: how late it ends",
        Workload::Frames => "frame, from the time at which it was meant to begin",
        Workload::Stream => "period",
        Workload::Overshoot => "poll, over its limit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_percentile_that_is_exact_is_shown_so() {
        let scale = Scale::for_results(&Results::default());
        let shown = |value, min, max| scale.show_percentile(value, Bounds { min, max });
        assert_eq!(shown(1420, 1420, 1420), "1,420");
        assert_eq!(shown(21_330, 21_330, 30_000), "21,337±7");
        assert_eq!(shown(20_568, 10_000, 20_900), "20,560±16");
    }

    #[test]
    fn a_difference_of_rounded_values_is_as_unsure_as_both() {
        let scale = Scale::for_results(&Results::default());
        let rounded = |value| (value, Some(Bounds::NONE));
        let by = |one, other| scale.show_difference(one, other);
        assert_eq!(by(rounded(19_440), rounded(19_408)), "+32±32");
        assert_eq!(by(rounded(19_408), rounded(19_440)), "-32±32");
        assert_eq!(by(rounded(19_408), rounded(19_408)), "±32");
        assert_eq!(by(rounded(401), rounded(400)), "+1");
        assert_eq!(by(rounded(400), rounded(400)), "0");
        // Paths are exact, and so is the difference between them.
        assert_eq!(by((19_440, None), (19_408, None)), "+32");
    }

    proptest! {
        #[test]
        fn what_is_shown_is_between_the_least_and_the_largest(
            values in proptest::collection::vec(0u64..1 << 39, 3),
            hertz in proptest::option::of(1u64..4_000_000_000),
        ) {
            let mut values = values;
            values.sort_unstable();
            let mut results = Results::default();
            if let Some(hertz) = hertz {
                results.unit = "ticks".into();
                results.machine.cntfrq_hz = hertz;
            }
            let scale = Scale::for_results(&results);
            let bounds = Bounds { min: values[0], max: values[2] };
            let shown = scale.convert_percentile(values[1], bounds);
            prop_assert!(scale.convert_value(values[0]) <= shown && shown <= scale.convert_value(values[2]));
            let any = scale.convert_percentile(values[1], Bounds::NONE);
            prop_assert!((shown - any).abs() <= (any / 512.0).max(1.0));
        }
    }
}
