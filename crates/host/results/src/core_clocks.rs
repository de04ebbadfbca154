// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the measuring cores' clocks with each other, and each core's clock at the end of a run with its clock at
//! the beginning.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::records::{CellRecords, ClockRecords, Records};

/// Readings of a clock agree if they differ by at most this many millionths. A reading is accurate to 1 in 4000, so two
/// readings of a steady clock differ by up to 500 millionths. The limit is twice that.
pub const AGREES_PPM: i64 = 1000;

/// The clock of a core that measured samples.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct CoreClock {
    /// The core's index among the CPUs that run, as in `pair`.
    pub cpu: u64,
    /// The core's MPIDR_EL1.
    pub affinity: String,
    /// Frequency of the clock at the beginning of the boot, Hz; left out if the clock stood still
    /// or was not steady.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_hz: Option<u64>,
    /// Likewise at the end of the boot; also left out if the boot was cut short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_hz: Option<u64>,
    /// By how much the clock was faster at the end than at the beginning, in millionths, negative
    /// if it was slower; left out if one of the two frequencies is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<i64>,
}

impl CoreClock {
    /// Whether the clock drifted by more than the error of its readings.
    pub fn has_drifted(&self) -> bool {
        self.drift_ppm.is_some_and(|ppm| ppm.abs() > AGREES_PPM)
    }

    fn drift_size(&self) -> Option<u64> {
        self.drift_ppm.map(i64::unsigned_abs)
    }
}

/// Returns by how much the frequency `hertz` exceeds `than`, in millionths of `than`.
pub fn excess_ppm(hertz: u64, than: u64) -> i64 {
    let more = i128::from(hertz) - i128::from(than);
    let ppm = more * 1_000_000 / i128::from(than.max(1));
    i64::try_from(ppm).unwrap_or(i64::MAX)
}

/// Returns the median frequency of `clocks` at the beginning of the boot, and the clocks that differ from it.
pub fn differing_clocks(clocks: &[CoreClock]) -> Option<(u64, Vec<&CoreClock>)> {
    let mut begins: Vec<u64> = clocks.iter().filter_map(|clock| clock.begin_hz).collect();
    begins.sort_unstable();
    let middle = *begins.get(begins.len().checked_sub(1)? / 2)?;
    let differs = |clock: &&CoreClock| {
        let begin = clock.begin_hz;
        begin.is_some_and(|hertz| excess_ppm(hertz, middle).abs() > AGREES_PPM)
    };
    Some((middle, clocks.iter().filter(differs).collect()))
}

/// Returns the clocks of a boot, from its records.
pub(crate) fn clocks_of_boot(records: &BTreeMap<u64, ClockRecords>) -> Vec<CoreClock> {
    let known = |hertz: Option<u64>| hertz.filter(|&hertz| hertz != 0);
    let clocks = records.iter().map(|(&cpu, clock)| {
        let (begin_hz, end_hz) = (known(clock.begin_hz), known(clock.end_hz));
        CoreClock {
            cpu,
            affinity: clock.affinity.clone(),
            begin_hz,
            end_hz,
            drift_ppm: begin_hz
                .zip(end_hz)
                .map(|(begin, end)| excess_ppm(end, begin)),
        }
    });
    clocks.collect()
}

/// Adds the clocks of another boot to `all`. For each core, keeps the clock from the boot in which it drifted most.
pub(crate) fn add_boot(all: &mut Vec<CoreClock>, more: Vec<CoreClock>) {
    for clock in more {
        let known = all.iter_mut();
        match known
            .into_iter()
            .find(|known| known.affinity == clock.affinity)
        {
            Some(known) if clock.drift_size() > known.drift_size() => *known = clock,
            Some(_) => {}
            None => all.push(clock),
        }
    }
    all.sort_by_key(|clock| clock.cpu);
}

impl Records {
    /// Returns the clock of the core that measured `cell`, if that clock converted the cell's values to cycles. In logs
    /// that do not report the clock of each core, only the first core has a clock.
    pub(crate) fn cycles_hz(&self, cell: &CellRecords) -> Option<u64> {
        let (unit, _) = self.unit.as_ref()?;
        let place: u64 = cell.measuring_cpu().parse().ok()?;
        let own = self.core_clocks.get(&place);
        let first = || (place == 0).then(|| self.machine.get("core_hz")?.parse().ok());
        let hertz = own.and_then(|clock| clock.cycles_hz);
        hertz.or_else(|| first()?).filter(|_| unit == "cycles")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(cpu: u64, begin: u64, end: u64) -> CoreClock {
        let records = ClockRecords {
            affinity: format!("{cpu:#x}"),
            begin_hz: Some(begin),
            end_hz: Some(end),
            cycles_hz: None,
        };
        clocks_of_boot(&[(cpu, records)].into()).remove(0)
    }

    const GHZ: u64 = 1_000_000_000;

    #[test]
    fn drift_is_from_the_begin_to_the_end_and_an_unsteady_clock_has_none() {
        let slower = clock(1, 2 * GHZ, 2 * GHZ - 3_000_000);
        assert_eq!(slower.drift_ppm, Some(-1500));
        assert!(slower.has_drifted());
        let steady = clock(1, 2 * GHZ, 2 * GHZ + 2_000_000);
        assert_eq!(
            (steady.drift_ppm, steady.has_drifted()),
            (Some(1000), false)
        );
        let lost = clock(1, 2 * GHZ, 0);
        assert_eq!(
            (lost.end_hz, lost.drift_ppm, lost.has_drifted()),
            (None, None, false)
        );
        assert_eq!(clock(1, 0, GHZ).begin_hz, None);
    }

    #[test]
    fn those_that_differ_are_not_those_that_most_are_like() {
        assert_eq!(differing_clocks(&[]), None);
        assert_eq!(differing_clocks(&[clock(0, 0, 0)]), None);
        let mut alike: Vec<CoreClock> = (0..8)
            .map(|cpu| clock(cpu, GHZ + cpu * 100_000, GHZ))
            .collect();
        assert_eq!(differing_clocks(&alike), Some((GHZ + 300_000, vec![])));
        alike[0].begin_hz = Some(GHZ / 2);
        let (middle, others) = differing_clocks(&alike).unwrap();
        assert_eq!((middle, others.len(), others[0].cpu), (GHZ + 300_000, 1, 0));
        // With only two clocks, the median is the slower clock.
        let two = [clock(0, 2 * GHZ, 2 * GHZ), clock(1, GHZ, GHZ)];
        let (middle, others) = differing_clocks(&two).unwrap();
        assert_eq!((middle, others[0].cpu), (GHZ, 0));
    }

    #[test]
    fn of_several_boots_the_one_that_drifted_most_counts_in_any_order() {
        let boots = [
            vec![clock(0, GHZ, GHZ)],
            vec![clock(0, GHZ, GHZ - 2_000_000), clock(2, GHZ, GHZ)],
            vec![clock(0, GHZ, 0), clock(1, GHZ, GHZ)],
        ];
        let expected = vec![
            clock(0, GHZ, GHZ - 2_000_000),
            clock(1, GHZ, GHZ),
            clock(2, GHZ, GHZ),
        ];
        for order in [[0_usize, 1, 2], [2, 1, 0], [1, 0, 2]] {
            let mut all = Vec::new();
            for boot in order {
                add_boot(&mut all, boots[boot].clone());
            }
            assert_eq!(all, expected);
        }
    }
}
