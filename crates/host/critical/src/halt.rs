// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the instruction, in a trace with times, at which a halted core continued.

/// Number of instructions, from the WFI on, that are searched for a halt. A core that commits out of order may halt
/// some instructions after its WFI. Such a core may also halt before it has committed the WFI itself, but after it has
/// committed everything before the WFI.
const LATE: usize = 8;

/// Returns the index of the instruction before which a core halted because of the WFI or WFE at index `halt`. The halt
/// is at the longest pause near the WFI. `many` is the number of instructions, and `tick` returns the time at which an
/// instruction was committed. Returns `None` if there is no instruction near the WFI.
pub fn resume_index(halt: usize, many: usize, tick: impl Fn(usize) -> u64) -> Option<usize> {
    let near = halt.max(1)..many.min(halt + LATE);
    let pause = |n: &usize| tick(*n) - tick(*n - 1);
    // In reverse order, `max_by_key` selects the first of equally long pauses.
    near.rev().max_by_key(pause)
}

/// Returns the lowest index that the WFI or WFE can have if its core continues with the instruction at index `at`.
pub const fn first_halt(at: usize) -> usize {
    at.saturating_sub(LATE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_goes_on_after_the_longest_pause_near_its_wfi() {
        let resumes = |halt, ticks: &[u64]| resume_index(halt, ticks.len(), |n| ticks[n]);
        assert_eq!(resumes(1, &[0, 1, 90, 91]), Some(2));
        // The core may halt before it commits the WFI, or some instructions after the WFI.
        assert_eq!(resumes(1, &[0, 80, 81, 82]), Some(1));
        assert_eq!(resumes(1, &[0, 1, 2, 3, 90]), Some(4));
        // Either the longest pause is too far away, or there is no pause.
        assert_eq!(resumes(0, &[0, 1, 2, 3, 4, 5, 6, 7, 90]), Some(1));
        assert_eq!((resumes(0, &[7]), resumes(3, &[0, 1])), (None, None));
        let ticks = [0, 1, 2, 3, 4, 5, 6, 7, 8, 90];
        let halts = (0..ticks.len()).filter(|halt| resumes(*halt, &ticks) == Some(9));
        assert_eq!(halts.min(), Some(first_halt(9)));
    }
}
