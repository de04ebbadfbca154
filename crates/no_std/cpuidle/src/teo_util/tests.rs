// SPDX-License-Identifier: MIT OR Apache-2.0
//! By hand. Exit latency and residency of the states, us: 0/0, 2/10, 40/200,
//! 400/2000; the tick is 4 ms.

use super::*;
use crate::table::tests::{TICK, table};
use crate::{State, StateKind};

const MS: u64 = 1_000_000;

fn ticking(utilisation: u32) -> Moment {
    Moment {
        tick_stopped: false,
        next_tick_ns: TICK,
        utilisation,
        ..Moment::at(0)
    }
}

/// Selects with the timer in 10 ms and is woken after `residency_us`.
fn idle(governor: &mut TeoUtil, residency_us: u64, wake: Wake) -> usize {
    let choice = governor.select(&table(), &ticking(0), || 10 * MS);
    let outcome = Outcome {
        state: 3,
        residency_ns: residency_us * 1000,
        wake,
    };
    governor.reflect(&table(), &outcome);
    choice.state
}

/// Timer in 10 ms (bin 3). A stay of 500 us in state 3 is 500 - 400/2 = 300 us:
/// intercept of bin 2.
///
/// | wake-up | hits 3 | intercepts 2 | total | recent | next: 2 I > total - H, N > 4 |
/// |---|---|---|---|---|---|
/// | timer | 1024 | 0 | 1024 | 0 | no |
/// | timer | 896 + 1024 = 1920 | 0 | 1920 | 0 | no |
/// | 500 us | 1920 - 240 = 1680 | 1024 | 2704 | 1 | 2048 > 2704: no |
/// | 500 us | 1680 - 210 = 1470 | 896 + 1024 = 1920 | 3390 | 2 | 3840 > 3390: state 2 |
#[test]
fn intercepts_lead_to_a_shallower_state() {
    let mut governor = TeoUtil::new(Util::Ignored);
    let stays = [
        (10_400, Wake::Timer),
        (10_400, Wake::Timer),
        (500, Wake::Interrupt),
        (500, Wake::Interrupt),
        (10_400, Wake::Timer),
    ];
    let mut chosen = [0; 5];
    let mut totals = [0; 5];
    for (index, (residency_us, wake)) in stays.into_iter().enumerate() {
        chosen[index] = idle(&mut governor, residency_us, wake);
        totals[index] = governor.total;
    }
    assert_eq!(chosen, [3, 3, 3, 3, 2]);
    assert_eq!(totals[..4], [1024, 1920, 2704, 3390]);
}

/// 40 timers: hits of bin 3 approach 8 * 1024. Five intercepts of bin 2 then:
/// after the fourth, hits have lost 41 % and intercepts have 1024 + 896 + 784 + 686
/// = 3390, so the sums speak as well; the recent ones do with the fifth, and not
/// before.
#[test]
fn five_of_the_last_nine_are_enough() {
    let mut governor = TeoUtil::new(Util::Ignored);
    for _ in 0..40 {
        idle(&mut governor, 10_400, Wake::Timer);
    }
    for (count, speaks) in [(4, false), (5, true)] {
        while governor.bins[2].recent < count {
            idle(&mut governor, 500, Wake::Interrupt);
        }
        let early = governor.early(3);
        assert_eq!(early.is_some_and(|early| early.recent.is_some()), speaks);
    }
    // Nine timers later they are forgotten.
    for _ in 0..9 {
        idle(&mut governor, 10_400, Wake::Timer);
    }
    assert_eq!(governor.bins.map(|bin| bin.recent), [0; MAX_STATES]);
}

/// Threshold 1024 / 64 = 16. Timer in 10 ms: state 3 without load, the next
/// shallower one that does not poll with load; its bin's middle is (200 + 2000) / 2
/// = 1.1 ms, within the tick, which stays.
#[test]
fn load_takes_one_state_off() {
    let states = table();
    let select = |util, utilisation, timer_us: u64| {
        let mut governor = TeoUtil::new(util);
        governor.select(&states, &ticking(utilisation), || timer_us * 1000)
    };
    let chosen = |choice: Choice| (choice.state, choice.stop_tick);
    assert_eq!(chosen(select(Util::Corrected, 16, 10_000)), (3, true));
    assert_eq!(chosen(select(Util::Corrected, 17, 10_000)), (2, false));
    assert_eq!(chosen(select(Util::Ignored, 1024, 10_000)), (3, true));
    // From WFI there is nothing shallower that does not poll.
    assert_eq!(chosen(select(Util::Corrected, 17, 50)), (1, false));
    // Without a tick 1.1 ms of expected stay are too shallow.
    let stopped = Moment {
        utilisation: 17,
        ..Moment::at(0)
    };
    let mut governor = TeoUtil::new(Util::Corrected);
    assert_eq!(governor.select(&states, &stopped, || 10 * MS).state, 3);
    // `Posted` still expects the 10 ms: no tick. Nor is anything too shallow.
    assert_eq!(chosen(select(Util::Posted, 17, 10_000)), (2, true));
    let mut governor = TeoUtil::new(Util::Posted);
    assert_eq!(governor.select(&states, &stopped, || 10 * MS).state, 2);
}

/// WFI, and a state that pays from 2 ms on: the patch's own case. The posted version expects
/// the timer in 20 ms, so it chooses WFI once and stops the tick. The corrected one expects
/// 1 ms, the middle between 0 and 2 ms, and keeps the tick; without a tick WFI is too shallow.
/// A timer in 1 ms is before the second state pays: WFI, and the tick goes on.
#[test]
fn with_two_states_that_halt_load_means_the_first() {
    let wfi = State::new("wfi", StateKind::Wfi, 0, 0);
    let deep = State::new("deep", StateKind::Standby, 400_000, 2 * MS);
    let states = Table::new(&[wfi, deep], TICK).unwrap();
    let select = |util, moment: Moment, timer_ns| {
        let choice = TeoUtil::new(util).select(&states, &moment, || timer_ns);
        (choice.state, choice.stop_tick)
    };
    let busy = ticking(500);
    let stopped = Moment {
        utilisation: 500,
        ..Moment::at(0)
    };
    assert_eq!(select(Util::Ignored, busy, 20 * MS), (1, true));
    assert_eq!(select(Util::Posted, busy, 20 * MS), (0, true));
    assert_eq!(select(Util::Corrected, busy, 20 * MS), (0, false));
    assert_eq!(select(Util::Posted, stopped, 20 * MS), (0, true));
    assert_eq!(select(Util::Corrected, stopped, 20 * MS), (1, true));
    for util in [Util::Ignored, Util::Posted, Util::Corrected] {
        assert_eq!(select(util, busy, MS), (0, false));
    }
}

/// With poll and WFI alone, load means WFI, whatever the metrics are.
#[test]
fn with_two_states_load_never_polls() {
    let states = Table::arm_poll_idle(100_000, TICK).unwrap();
    let mut governor = TeoUtil::new(Util::Corrected);
    for _ in 0..20 {
        let choice = governor.select(&states, &ticking(500), || 10 * MS);
        assert_eq!((choice.state, choice.stop_tick), (1, false));
        let outcome = Outcome {
            state: 1,
            residency_ns: 60_000,
            wake: Wake::Request,
        };
        governor.reflect(&states, &outcome);
    }
    // The metrics would: 60 us in WFI is 60 / 2 = 30 us < 100 us, always.
    assert_eq!(governor.select(&states, &ticking(0), || 10 * MS).state, 0);
}

/// A tick before a timer beyond it, and a poll that timed out, count as the timer.
#[test]
fn safety_nets_are_no_intercepts() {
    for wake in [Wake::Tick, Wake::PollTimeout] {
        let mut governor = TeoUtil::new(Util::Ignored);
        idle(&mut governor, 300, wake);
        assert_eq!(governor.bins[3].hits, 1024);
    }
    // With the timer within the tick, the tick is a wake-up like others: 300 us in
    // state 3 is 150 us, bin 1.
    let mut governor = TeoUtil::new(Util::Ignored);
    governor.select(&table(), &ticking(0), || 3 * MS);
    let outcome = Outcome {
        state: 3,
        residency_ns: 300_000,
        wake: Wake::Tick,
    };
    governor.reflect(&table(), &outcome);
    assert_eq!(governor.bins[1].intercepts, 1024);
}
