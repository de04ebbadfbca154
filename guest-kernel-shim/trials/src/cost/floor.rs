// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the floor of an exit, which is the smallest possible cost: other paths, but with vectors of EL2 that do
//! only what the architecture requires ([`abi::Call::Floor`]).
//!
//! While a CPU uses these vectors, it can make no call and no access that traps. A timer interrupt ends the use of
//! the vectors `empty`, `send` and `wait`, and a call ends the use of the vector `receive`.

use core::arch::asm;

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use abi::Floor;
use arch::{gic_cpu, insn};
use cost::Path;
use wait::request::RESCHED;
use wait::target::Target;

use super::pair::{self, READY, RECEIVED};
use super::{mark_begin, mark_end, pass_count};
use core::sync::atomic::Ordering::AcqRel;
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::wake::Waker;
use guest_kernel_shim::{clock, hypervisor, machine, workers};

/// Returns the reason not to measure the path.
pub fn obstacle(injects: bool, cold: bool) -> Option<&'static str> {
    if !injects {
        Some("no exit is held against it")
    } else if cold {
        Some("it is taken warm: emptying caches takes a call, which would end it")
    } else if !hypervisor::has_floors() {
        Some("the hypervisor has no such vectors; add rouse.floor")
    } else {
        None
    }
}

/// Measures the path of HVC.
pub fn cost_call() {
    run_to_timer(Floor::Empty, || {
        for _ in 0..pass_count() {
            pass_call();
        }
    });
}

/// Makes one pass; not inlined, so that the same instructions make all passes.
#[inline(never)]
fn pass_call() {
    mark_begin::<{ Path::FloorCall as u8 }>();
    // SAFETY: the vector returns and changes nothing.
    unsafe { asm!("hvc #0", options(nostack, preserves_flags)) };
    mark_end::<{ Path::FloorCall as u8 }>();
}

/// Sends SGIs from this CPU to the second CPU, while both use these vectors.
pub fn cost_sgi() {
    fn receive() {
        let me = PerCpu::this();
        assert!(hypervisor::use_floor(Floor::Receive), "floor: refused");
        for _ in 0..pass_count() {
            me.take_interrupted();
            mark_begin::<{ Path::FloorReceive as u8 }>();
            READY.fetch_add(1, AcqRel);
            while !me.take_interrupted() {
                insn::yield_now();
            }
            mark_end::<{ Path::FloorReceive as u8 }>();
            me.request.take(RESCHED);
            RECEIVED.fetch_add(1, AcqRel);
        }
        // Any call ends the use of these vectors.
        hypervisor::info(abi::Info::Version);
    }
    pair::reset_counts();
    let target = pair::second_cpu().mpidr;
    workers::run_on_2nd(receive);
    run_to_timer(Floor::Send, || {
        for round in 1..=pass_count() {
            pair::wait_for_count(&READY, round);
            pair::pause_for_wait();
            mark_begin::<{ Path::FloorSend as u8 }>();
            gic_cpu::send_sgi(interrupts::RESCHED, target);
            mark_end::<{ Path::FloorSend as u8 }>();
            pair::wait_for_count(&RECEIVED, round);
        }
    });
    workers::wait_for_second();
}

/// Sends an SGI to the second CPU, which waits and uses these vectors.
pub fn cost_wait() {
    pair::reset_counts();
    workers::run_on_2nd(|| run_to_timer(Floor::Wait, pair::park::<{ Path::FloorWait as u8 }>));
    pair::send_each_round(Waker::wake);
}

/// Runs `work` with the vectors of `floor`, and then ends their use through a timer interrupt, because the guest can
/// set its timer without a trap.
fn run_to_timer(floor: Floor, work: impl FnOnce()) {
    let me = PerCpu::this();
    interrupts::redistributor(me).enable_all(1 << machine::platform().timer.virt);
    journal(me).clear();
    assert!(hypervisor::use_floor(floor), "floor: refused");
    work();
    CNTV_CVAL_EL0.set(clock::now());
    CNTV_CTL_EL0.set(1);
    insn::isb();
    while journal(me).count() == 0 {
        insn::yield_now();
    }
    CNTV_CTL_EL0.set(0);
    insn::isb();
}
