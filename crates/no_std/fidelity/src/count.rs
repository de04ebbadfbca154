// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges whether a counter counts instructions.
//!
//! Two loops differ by a known number of instructions. An instruction counter's values differ by
//! exactly that number; a time counter's hardly ever do. One trial is not enough: an emulator that
//! runs all CPUs in one thread and counts the instructions of all CPUs may switch away from this
//! CPU between the two readings of a loop, and another CPU that is not yet at rest adds its own
//! instructions. So the majority of trials decides.

/// Number of trials.
const TRIALS: usize = 8;

/// Whether `trial` returns the difference `expected`, which is one loop's instructions minus the
/// other's, in more than half of the trials.
pub fn counts_instructions(expected: u64, mut trial: impl FnMut() -> u64) -> bool {
    let exact = (0..TRIALS).filter(|_| trial() == expected).count();
    exact > TRIALS / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(differences: [u64; TRIALS]) -> bool {
        let mut differences = differences.into_iter();
        counts_instructions(8000, || differences.next().unwrap())
    }

    #[test]
    fn trials_in_which_another_cpu_ran_do_not_decide() {
        assert!(counts([8000; TRIALS]));
        assert!(counts([8000, 8000, 8123, 8000, 8000, 8000, 8000, 8000]));
        // Another CPU ran between the readings of the shorter loop, so the difference is smaller.
        assert!(counts([7877, 8000, 8000, 8123, 8000, 8000, 8000, 61]));
    }

    #[test]
    fn time_that_matches_now_and_then_is_no_count() {
        assert!(!counts([8000, 7999, 8001, 8000, 8000, 7990, 8012, 8000]));
        assert!(!counts([1538; TRIALS]));
        assert!(!counts([0; TRIALS]));
    }
}
