// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a counter counts instructions.
//!
//! Two loops differ by a known number of instructions. A counter of instructions differs
//! by just that, one of time hardly ever does. One trial shows little here too: an
//! emulator that runs all CPUs in one thread, and counts the instructions of all, may
//! leave this CPU between the loops' two readings whenever its host wants something of it,
//! and another CPU that has not come to rest adds its own. So most trials decide.

/// Trials.
const TRIALS: usize = 8;

/// Whether the difference that `trial` finds is `expected`, the instructions of the one loop
/// less those of the other, in more than half of the trials.
pub fn counts_instructions(expected: u64, mut trial: impl FnMut() -> u64) -> bool {
    let exact = (0..TRIALS).filter(|_| trial() == expected).count();
    exact > TRIALS / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(differences: [u64; TRIALS]) -> bool {
        let mut differences = differences.into_iter();
        counts_instructions(8000, || differences.next().unwrap())
    }

    #[test]
    fn trials_in_which_another_cpu_ran_do_not_decide() {
        assert!(of([8000; TRIALS]));
        assert!(of([8000, 8000, 8123, 8000, 8000, 8000, 8000, 8000]));
        // Between the readings of the shorter loop: the difference is smaller.
        assert!(of([7877, 8000, 8000, 8123, 8000, 8000, 8000, 61]));
    }

    #[test]
    fn time_that_matches_now_and_then_is_no_count() {
        assert!(!of([8000, 7999, 8001, 8000, 8000, 7990, 8012, 8000]));
        assert!(!of([1538; TRIALS]));
        assert!(!of([0; TRIALS]));
    }
}
