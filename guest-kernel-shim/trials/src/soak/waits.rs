// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a CPU without a token wait, in every way of waiting.

use plan::{Cell, Deliver, Hint, HostPoll, Trap, Wait, Wake, Word, Workload};

use super::state::next;
use super::step::serve_requests;
use super::violation::log_operation;
use super::{check, neighbour, tokens};
use guest_kernel_shim::features::features;
use guest_kernel_shim::idle;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::setting::{Body, Idle};
use guest_kernel_shim::{hypervisor, knobs};
use sched::random::Random;

/// Maximum number of waits before a CPU draws another way of waiting.
const BLOCK: u64 = 32;
/// Draws a way of waiting, and waits several times in that way.
pub fn wait_some(me: &'static PerCpu) {
    let (step, mut random) = next(me);
    let cell = draw_wait(me, &mut random);
    log_operation(
        me,
        cell.wait.name(),
        step,
        cell.trap as u64 | (cell.deliver as u64) << 8,
    );
    neighbour::end_neighbour();
    knobs::set_knobs(&cell);
    if neighbour::is_possible() {
        neighbour::draw_neighbour(me, &mut random);
    }
    let waits = 1 + random.below(BLOCK);
    idle::run_body(&knobs::wait_mode(&cell), &mut Waits { me, waits });
}

/// Draws a way of waiting, and all properties that belong to it.
fn draw_wait(me: &PerCpu, random: &mut Random) -> Cell {
    let features = features();
    let wait = loop {
        let wait = random.of(Wait::ALL);
        if !wait.needs_wfxt() || features.wfxt {
            break wait;
        }
    };
    let deliver = random.of(Deliver::ALL);
    Cell {
        workload: Workload::Pingpong,
        wait,
        trap: random.of(Trap::ALL),
        deliver: match (hypervisor::exists(), me.index) {
            (false, _) => Deliver::Direct,
            (true, 0) => Deliver::Inject,
            (true, _) if platform().gic.version2.is_some() => Deliver::Inject,
            (true, _) => deliver,
        },
        // Every CPU checks both request bits, so any sender may elide.
        wake: Wake::Elide,
        poll_limit_us: random.below(20) as u32 + 1,
        host_poll_us: random.below(2) as u32 * 5,
        // A WFE without a bound would wait for ever after a lost event, and multi-threaded emulators lose some events.
        event_stream_us: if wait.needs_stream() {
            100
        } else {
            random.below(2) as u32 * 100
        },
        host_poll: random.of(HostPoll::ALL),
        hint: random.of(Hint::ALL),
        standby_us: random.below(2) as u32 * 5,
        ..Cell::default()
    }
}

/// Several waits of one kind.
struct Waits {
    me: &'static PerCpu,
    waits: u64,
}

impl Body for Waits {
    fn run(&mut self, mut idle: impl Idle) {
        for _ in 0..self.waits {
            // A token may have arrived before the first wait, after an earlier wait took its request.
            serve_requests(self.me);
            if tokens::is_epoch_over() {
                return;
            }
            idle.wait(self.me);
            check::check_masks("a wait");
        }
        serve_requests(self.me);
    }
}
