// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paces quick cells, slow cells, and cells whose cost changes.

use proptest::prelude::*;

use super::*;

fn limits(iterations: u32, budget: u64) -> Limits {
    Limits {
        iterations,
        settle: true,
        budget,
        pause: 0,
        unrecorded: 0,
        first: FIRST,
    }
}

/// Runs a cell whose wake-up n costs `cost(n)`. Returns its pace, and the wake-ups of each pass.
fn run(limits: &Limits, repeats: bool, cost: impl Fn(u32) -> u64) -> (Pace, Vec<u32>) {
    let (mut pace, mut passes) = (Pace::default(), Vec::new());
    while pace.ended.is_none() {
        let before = pace.done;
        while let Some(count) = pace.next(limits) {
            assert!(count > 0);
            let ticks = (pace.done..pace.done + count).map(&cost).sum();
            pace.add(limits, count, ticks);
        }
        pace.end_pass(limits, repeats);
        passes.push(pace.done - before);
    }
    (pace, passes)
}

#[test]
fn the_pauses_that_were_asked_for_are_no_part_of_the_budget() {
    let paused = Limits {
        pause: 1_000_000,
        ..limits(200, 1_000_000)
    };
    let (pace, _) = run(&paused, false, |_| 1_001_000);
    assert_eq!((pace.ended, pace.done), (Some(End::Samples), 200));
    // Each block pauses once more, before the wake-up that is not a sample.
    let further = Limits {
        unrecorded: 1,
        ..paused
    };
    let mut pace = Pace::default();
    pace.add(&further, FIRST, u64::from(FIRST + 1) * 1_001_000);
    assert_eq!(pace.used, u64::from(FIRST + 1) * 1000);
}

#[test]
fn what_repeats_ends_after_one_pass_in_each_direction() {
    let (pace, passes) = run(&limits(2000, 0), true, |_| 1);
    assert_eq!((pace.ended, passes), (Some(End::Settled), vec![500, 500]));
    let exact = Limits {
        settle: false,
        ..limits(2000, 0)
    };
    let (pace, _) = run(&exact, true, |_| 1);
    assert_eq!((pace.ended, pace.done), (Some(End::Samples), 2000));
}

proptest! {
    #[test]
    fn every_cell_ends_balanced_and_near_its_budget(iterations in 4u32..5000, budget in 1000u64..1_000_000,
        cost in 1u64..100_000) {
        let (pace, passes) = run(&limits(iterations, budget), false, |_| cost);
        prop_assert_eq!(passes.len(), PASSES as usize);
        prop_assert!(pace.done <= iterations);
        // The first block, which measures the cost, and one wake-up of each pass are always made.
        let least = cost * u64::from(FIRST + PASSES);
        prop_assert!(u64::from(pace.done) * cost <= budget + least);
        // The shares of a number that is not a multiple of `PASSES` differ by one.
        let (fewest, most) = (passes.iter().min(), passes.iter().max());
        let (fewest, most) = (*fewest.unwrap(), *most.unwrap());
        prop_assert!(most <= (fewest + 1).max(FIRST), "{passes:?}");
    }

    #[test]
    fn a_cell_that_gets_dearer_still_keeps_to_its_budget(factor in 1u64..50) {
        let cost = |n: u32| if n < 200 { 1000 } else { 1000 * factor };
        let (pace, _) = run(&limits(2000, 1_000_000), false, cost);
        let used: u64 = (0..pace.done).map(cost).sum();
        // The pass in which the cost changes began at the old cost.
        prop_assert!(used <= 1_000_000 + 250 * 1000 * factor);
    }
}
