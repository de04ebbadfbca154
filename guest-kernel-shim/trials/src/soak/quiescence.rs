// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the quiescent points between two epochs.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use arch::insn;

use guest_kernel_shim::knobs;
use guest_kernel_shim::percpu::{self, PerCpu};
use plan::SoakFault;

use super::progress::{REPORTS, report_progress};
use super::state::{EPOCH, EPOCHS, NUMBER, is_requested, next};
use super::violation::log_operation;
use super::{books, check, neighbour, power, tokens};

/// Runs a quiescent point: all CPUs meet, each checks its own state, and one checks the common state.
pub fn run_point(me: &'static PerCpu) {
    let (step, _) = next(me);
    log_operation(me, "quiet", step, 0);
    knobs::set_tracing(false);
    neighbour::end_neighbour();
    neighbour::check_undamaged(me);
    knobs::reset_knobs();
    wait_for_all(me);
    if is_requested(SoakFault::Leak) && me.index == 1 {
        me.request.wake(1 << 3, true);
    }
    check::check_quiet(me);
    check::reset_priorities(me);
    wait_for_all(me);
    if me.index == 0 {
        check::check_all_quiet();
        books::reset_books();
        let number = NUMBER.fetch_add(1, AcqRel) + 1;
        let all = EPOCHS.load(Acquire);
        if number.is_multiple_of(all.div_ceil(REPORTS)) && number != all {
            report_progress();
        }
        tokens::start_epoch(EPOCH);
    }
    wait_for_all(me);
}

/// Waits until all CPUs have reached this point. A CPU that is off has to be turned on for this.
fn wait_for_all(me: &PerCpu) {
    static ARRIVED: AtomicU32 = AtomicU32::new(0);
    static MEETING: AtomicU32 = AtomicU32::new(0);
    let meeting = MEETING.load(Acquire);
    if ARRIVED.fetch_add(1, AcqRel) + 1 == percpu::all().len() as u32 {
        ARRIVED.store(0, Release);
        MEETING.fetch_add(1, AcqRel);
    }
    while MEETING.load(Acquire) == meeting {
        power::serve_turn_on(me);
        insn::yield_now();
    }
}
