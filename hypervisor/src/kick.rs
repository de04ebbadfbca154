// SPDX-License-Identifier: MIT OR Apache-2.0
//! How one CPU at EL2 gets another one's attention: a bit in the target's
//! mailbox and the physical SGI [`INTID`].
//!
//! A guest's SGIs 0 to 6 travel as themselves (see [`crate::sgi`]). The others
//! go through the mailbox: [`INTID`] is taken, and 8 to 15 may belong to the
//! secure world, as they do by convention where there is one.

use core::sync::atomic::Ordering::SeqCst;

use abi::Counter;
use arch::gic_cpu;

use crate::percpu::PerCpu;
use crate::{dump, vgic_cpu};

/// The physical SGI that says "look into your mailbox".
pub const INTID: u32 = 7;

/// Mailbox: virtual SGIs 0 to 15.
pub const SGIS: u32 = 0xffff;
/// Mailbox: the registers of the redistributor changed.
pub const EVALUATE: u32 = 1 << 16;
/// Mailbox: nothing; leave the halt.
pub const WAKE: u32 = 1 << 17;
/// Mailbox: print your state and stop; see [`dump`].
pub const DUMP: u32 = 1 << 18;

/// Leaves `bits` in the mailbox of `target` and tells it.
pub fn send(target: &PerCpu, bits: u32) {
    let me = PerCpu::this();
    let mailbox = &target.vcpu.mailbox;
    // Whoever finds the mailbox empty sends; the target empties it after the
    // interrupt, so a letter is never left without one.
    let first = mailbox.fetch_or(bits, SeqCst) == 0;
    if target.vcpu.direct.load(SeqCst) {
        // EL2 sees no interrupt there. A target that is just switching empties
        // its mailbox after it set the flag: one of the two finds the letter.
        vgic_cpu::deliver(target, mailbox.swap(0, SeqCst));
    } else if core::ptr::eq(me, target) {
        open(target);
    } else if first {
        gic_cpu::send_sgi(INTID, target.mpidr);
        me.vcpu.counters.add(Counter::Kick);
    } else {
        me.vcpu.counters.add(Counter::KickSaved);
    }
}

/// Does what the mailbox of this CPU asks for.
pub fn open(cpu: &PerCpu) {
    let mut bits = cpu.vcpu.mailbox.swap(0, SeqCst);
    if bits & DUMP != 0 {
        dump::answer(cpu);
    }
    if bits & EVALUATE != 0 {
        vgic_cpu::evaluate(cpu);
    }
    bits &= SGIS;
    while bits != 0 {
        vgic_cpu::inject(cpu, bits.trailing_zeros(), None);
        bits &= bits - 1;
    }
}
