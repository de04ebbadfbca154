// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether the counter is too coarse to measure a cell's median.
//!
//! A sample is the difference of two readings, so it is a multiple of the counter's step. The median is such a multiple
//! too, and can't distinguish two paths that differ by less than a step. The mean of many samples can, if the samples
//! begin at random points within a step: a path of 2.3 steps takes two steps in 70 % of the samples, and three steps in
//! the others.

use crate::records::Records;

/// The largest step that does not count as coarse, as a share of the median.
pub const COARSE: f64 = 0.05;

/// Returns the counter's step as a share of the median `p50`, at most 1. `None` if the share is at most [`COARSE`] or
/// unknown, or if values are not times. `records` are the records of the boot. `cycles_hz` is the clock that converted
/// the cell's values to cycles.
pub fn coarse_step_share(records: &Records, cycles_hz: Option<u64>, p50: u64) -> Option<f64> {
    let of = |key| records.machine.get(key)?.parse::<f64>().ok();
    let step = of("counter_step")?;
    let (unit, _) = records.unit.as_ref()?;
    let step = match unit.as_str() {
        "ticks" => step,
        "cycles" => step * cycles_hz? as f64 / of("cntfrq_hz").filter(|hz| *hz > 0.0)?,
        _ => return None,
    };
    let share = (step / p50 as f64).min(1.0);
    // The share is rounded, because more digits would be useless.
    (share > COARSE).then(|| (share * 1000.0).round() / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(unit: &str, machine: &[(&str, &str)]) -> Records {
        let machine = machine.iter();
        Records {
            machine: machine
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
            unit: Some((unit.into(), String::new())),
            ..Records::default()
        }
    }

    #[test]
    fn a_step_is_coarse_against_a_short_path_and_not_against_a_long_one() {
        let boot = boot(
            "ticks",
            &[("counter_step", "16"), ("cntfrq_hz", "1000000000")],
        );
        assert_eq!(coarse_step_share(&boot, None, 320), None);
        assert_eq!(coarse_step_share(&boot, None, 319), Some(0.05));
        assert_eq!(coarse_step_share(&boot, None, 160), Some(0.1));
        assert_eq!(coarse_step_share(&boot, None, 10), Some(1.0));
        assert_eq!(coarse_step_share(&boot, None, 0), Some(1.0));
    }

    #[test]
    fn a_step_is_converted_as_samples_are() {
        let fields = [("counter_step", "1"), ("cntfrq_hz", "25000000")];
        let core = Some(1_000_000_000);
        assert_eq!(
            coarse_step_share(&boot("cycles", &fields), core, 400),
            Some(0.1)
        );
        assert_eq!(coarse_step_share(&boot("cycles", &fields), core, 800), None);
        assert_eq!(coarse_step_share(&boot("cycles", &fields), None, 400), None);
    }

    #[test]
    fn instructions_and_old_logs_have_no_coarse_counter() {
        let fields = [("counter_step", "16"), ("cntfrq_hz", "1000000000")];
        assert_eq!(coarse_step_share(&boot("insns", &fields), None, 10), None);
        assert_eq!(
            coarse_step_share(&boot("ticks", &fields[1..]), None, 10),
            None
        );
    }
}
