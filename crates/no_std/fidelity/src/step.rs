// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the number of ticks by which a counter advances at a time.
//!
//! CNTFRQ_EL0 holds the frequency of a counter, not its step: a 1 GHz counter may run at 25 MHz and
//! add 40 at a time, and a counter that saves power adds more at a time, at a lower rate (DDI
//! 0487K.a, D12.1.2, the system counter). No register holds the step, so this module evaluates some
//! thousand reads of the counter.

/// Number of readings.
const READINGS: u64 = 4096;
/// The number of rounds before a reading is always less than 8.
const SPACINGS: u64 = 8;

/// Returns the step of the counter that `read` reads, in ticks, or `None` if the counter does not
/// advance. The argument of `read` is the number of short rounds to wait before the reading.
///
/// If two readings found the same count, a reading is shorter than a step. The step is then the
/// smallest increment, even if steps differ, such as the 41 or 42 ticks of a counter that makes 1
/// GHz from 24 MHz. If no two readings were equal, each increment is a multiple of the step. Which multiple it is
/// depends on the time between readings, and the step is the greatest common divisor of the increments. If all
/// readings took equally long, all increments would be the same multiple, hence the rounds. Preemption changes
/// neither result.
pub fn counter_step(mut read: impl FnMut(u64) -> u64) -> Option<u64> {
    let mut before = read(0);
    let (mut smallest, mut divisor, mut same) = (u64::MAX, 0, false);
    for reading in 0..READINGS {
        let now = read(reading % SPACINGS);
        match now.wrapping_sub(before) {
            0 => same = true,
            increment => {
                smallest = smallest.min(increment);
                divisor = common_divisor(divisor, increment);
            }
        }
        before = now;
    }
    let step = if same { smallest } else { divisor };
    (divisor != 0).then_some(step)
}

/// Returns the greatest common divisor or, if one number is 0, the other number.
fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the step that is found for a counter that shows `shown(time)`. A reading takes the time
    /// `reading`, and a round takes the time `round`.
    fn judge(reading: u64, round: u64, shown: impl Fn(u64) -> u64) -> Option<u64> {
        let mut time = 1_000_003;
        counter_step(|rounds| {
            time += reading + rounds * round;
            shown(time)
        })
    }

    #[test]
    fn a_counter_of_every_tick_has_a_step_of_one_however_it_is_read() {
        for reading in 1..50 {
            // The readings have one length, or two lengths without a common divisor.
            assert_eq!(judge(reading, 1, |time| time), Some(1), "{reading}");
        }
        // The counter is slower than its readings.
        assert_eq!(judge(10, 3, |time| time / 40), Some(1));
    }

    #[test]
    fn a_counter_that_adds_more_at_a_time_is_found_by_short_and_by_long_readings() {
        for step in [2, 16, 40, 1000, 4096] {
            for (reading, round) in [(3, 1), (10, 3), (57, 5), (5000, 7)] {
                let found = judge(reading, round, |time| time / step * step);
                assert_eq!(found, Some(step), "read in {reading}, rounds of {round}");
            }
        }
    }

    #[test]
    fn where_it_starts_and_that_it_wraps_is_no_matter() {
        let late = u64::MAX - 20_000;
        assert_eq!(judge(10, 3, |time| time / 16 * 16 + 5), Some(16));
        assert_eq!(
            judge(10, 3, |time| (time / 16 * 16).wrapping_add(late)),
            Some(16)
        );
    }

    /// The counter makes 1 GHz from 24 MHz.
    #[test]
    fn steps_that_are_not_alike_count_by_the_smallest() {
        assert_eq!(judge(7, 2, |time| (time * 24 / 1000) * 1000 / 24), Some(41));
    }

    #[test]
    fn a_cpu_that_is_taken_away_changes_nothing() {
        let (mut time, mut readings) = (0, 0);
        let found = counter_step(|rounds| {
            readings += 1;
            time += 9 + rounds * 2 + if readings % 100 == 0 { 1_234_567 } else { 0 };
            time / 16 * 16
        });
        assert_eq!(found, Some(16));
    }

    #[test]
    fn a_counter_that_stands_has_none() {
        assert_eq!(judge(10, 3, |_| 7), None);
    }
}
