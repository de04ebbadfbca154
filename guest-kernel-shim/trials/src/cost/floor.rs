// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the floor of an exit, which is its smallest possible cost: the paths resemble other
//! paths, but EL2's vectors do only what the architecture requires ([`abi::Call::Floor`]).
//!
//! While a CPU uses these vectors, it can make no call and no access that traps. A timer interrupt ends the use of
//! all vectors but `receive`, and a call ends the use of the vector `receive`.

use core::arch::asm;

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use abi::Floor;
use arch::{gic_cpu, insn};
use cost::Path;
use wait::request::RESCHED;
use wait::target::Target;

use super::one_cpu;
use super::pair::{self, READY, RECEIVED};
use super::{mark_begin, mark_end, pass_count};
use core::sync::atomic::Ordering::AcqRel;
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::wake::Waker;
use guest_kernel_shim::{boot, clock, hypervisor, machine, workers};

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

/// Reads GICD_IIDR, like [`super::one_cpu::cost_mmio`].
pub fn cost_read() {
    run_to_timer(Floor::Read, || {
        for _ in 0..pass_count() {
            pass_read();
        }
    });
}

/// Makes one pass; the vector serves only a load of w1.
#[inline(never)]
fn pass_read() {
    let register = one_cpu::iidr();
    mark_begin::<{ Path::FloorRead as u8 }>();
    // SAFETY: the vector makes this load return 0, and changes nothing else.
    unsafe { asm!("ldr w1, [{0}]", in(reg) register, out("x1") _, options(nostack)) };
    mark_end::<{ Path::FloorRead as u8 }>();
}

/// Turns the second CPU off and on again, like [`pair::cost_cpu_on`]. Each pass enters the vectors
/// once more, since no other call is possible until the vectors are left.
pub fn cost_start() {
    let target = pair::second_cpu();
    let context = core::ptr::from_ref(target) as u64;
    for _ in 0..pass_count() {
        pair::turn_second_off();
        pair::pause_for_wait();
        pair::clean_context(context);
        run_to_timer(Floor::Start, || {
            pass_start(target.mpidr, boot::secondary_entry(), context);
        });
        pair::wait_until_started();
    }
}

/// Makes one pass; not inlined, so that the same instructions make all passes.
#[inline(never)]
fn pass_start(mpidr: u64, entry: u64, context: u64) {
    /// CPU_ON (DEN0022F.b, 5.1).
    const CPU_ON: u64 = 0xc400_0003;
    mark_begin::<{ Path::FloorStart as u8 }>();
    // SAFETY: the vector changes x0 only; the other CPU, which is off, begins at the address that `boot` has for it.
    unsafe {
        asm!("smc #0", inout("x0") CPU_ON => _, in("x1") mpidr, in("x2") entry, in("x3") context, options(nostack));
    }
    mark_end::<{ Path::FloorStart as u8 }>();
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
