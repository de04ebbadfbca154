// SPDX-License-Identifier: MIT OR Apache-2.0
//! The floor of an exit: the same as other paths do, with vectors of EL2 that do what the architecture requires and
//! nothing else ([`abi::CALL_FLOOR`]).
//!
//! In these vectors a CPU can make no call and no access that traps. An interrupt (of the timer) ends those of `empty` and
//! `send`, a call those of `receive`.

use core::arch::asm;

use aarch64_cpu::registers::{CNTV_CTL_EL0, CNTV_CVAL_EL0, Writeable};
use abi::Floor;
use arch::{gic_cpu, insn};
use cost::Path;
use wait::request::RESCHED;
use wait::target::Target;

use super::pair::{self, READY, RECEIVED};
use super::{begin, cool, end, passes};
use core::sync::atomic::Ordering::AcqRel;
use guest_kernel_shim::interrupts::{self, journal};
use guest_kernel_shim::percpu::PerCpu;
use guest_kernel_shim::{clock, hypervisor, machine, workers};

/// Time that all passes have, microseconds: the timer ends the vectors.
const ENOUGH_US: u32 = 3000;

/// Whether the hypervisor has such vectors for us.
pub fn allowed() -> bool {
    // Those that the next call ends.
    hypervisor::floor(Floor::Receive)
}

/// HVC.
pub fn call() {
    until_timer(Floor::Empty, || {
        for _ in 0..passes() {
            one_call();
        }
    });
}

/// Not inlined, so that all passes are made by the same instructions.
#[inline(never)]
fn one_call() {
    begin::<{ Path::FloorCall as u8 }>();
    // SAFETY: the vector returns and changes nothing.
    unsafe { asm!("hvc #0", options(nostack, preserves_flags)) };
    end::<{ Path::FloorCall as u8 }>();
}

/// SGIs from this CPU to the second, both in these vectors.
pub fn sgi() {
    fn receive() {
        let me = PerCpu::this();
        assert!(hypervisor::floor(Floor::Receive), "floor: refused");
        for _ in 0..passes() {
            me.take_interrupted();
            begin::<{ Path::FloorReceive as u8 }>();
            READY.fetch_add(1, AcqRel);
            while !me.take_interrupted() {
                insn::yield_now();
            }
            end::<{ Path::FloorReceive as u8 }>();
            me.request.take(RESCHED);
            RECEIVED.fetch_add(1, AcqRel);
        }
        // Any call ends it.
        hypervisor::info(abi::Info::Version);
    }
    pair::reset();
    let target = pair::second().mpidr;
    workers::on_second(receive);
    until_timer(Floor::Send, || {
        for round in 1..=passes() {
            pair::until(&READY, round);
            pair::settle();
            begin::<{ Path::FloorSend as u8 }>();
            gic_cpu::send_sgi(interrupts::RESCHED, target);
            end::<{ Path::FloorSend as u8 }>();
            pair::until(&RECEIVED, round);
        }
    });
    workers::wait_for_second();
}

/// Does `work` in the vectors of `floor`, and waits until the timer has ended them.
fn until_timer(floor: Floor, work: impl FnOnce()) {
    let me = PerCpu::this();
    interrupts::redistributor(me).enable_all(1 << machine::platform().timer.virt);
    journal(me).clear();
    cool();
    assert!(hypervisor::floor(floor), "floor: refused");
    CNTV_CVAL_EL0.set(clock::now() + clock::ticks(ENOUGH_US));
    CNTV_CTL_EL0.set(1);
    insn::isb();
    work();
    while journal(me).count() == 0 {
        insn::yield_now();
    }
    CNTV_CTL_EL0.set(0);
    insn::isb();
}
