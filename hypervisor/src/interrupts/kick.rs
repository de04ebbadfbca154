// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gets another CPU's attention: a CPU at EL2 sets bits in the target's pending word and rings the doorbell. The
//! doorbell is the maintenance interrupt, made pending in the target's redistributor; with a GICv2, whose guests
//! never own the interface, it is an SGI. With a GICv3, an SGI is not suitable: a guest that owns its CPU interface
//! sends all SGIs physically, and an SGI that is on its way while the interface changes hands would be mistaken for
//! the guest's.
//!
//! A guest's SGIs 0 to 7 are sent as physical SGIs (see `exits::sgi`). SGIs 8 to 15 go through the
//! pending word: they may belong to the secure world, and by convention do where there is one.

use abi::Counter;
use arch::insn;
use vgic::switch::Sent;

use crate::cpu::pending_word::{DUMP, EVALUATE, REVIEW, SGIS, WAKE};
use crate::cpu::percpu::PerCpu;
use crate::dumps::{dump, own_timer};
use crate::interrupts::vgic_cpu;

/// Sets `bits` in the pending word of `target` and makes that CPU read the word.
pub fn send_requests(target: &PerCpu, bits: u32) {
    match vgic_cpu::deliver(target, bits) {
        Sent::Done => {}
        Sent::Left { ring: rings } => ring_doorbell(PerCpu::this(), target, rings),
    }
}

/// Makes `target`, whose interrupts go to EL2, read its pending word, and rings the doorbell for
/// that if `rings` is set.
fn ring_doorbell(me: &PerCpu, target: &PerCpu, rings: bool) {
    if core::ptr::eq(me, target) {
        serve_requests(target);
    } else if rings {
        // The bits have to be visible before the doorbell is.
        insn::dsb_ishst();
        target.doorbell.ring();
        me.vcpu.counters.add(Counter::Kick);
    } else {
        me.vcpu.counters.add(Counter::KickSaved);
    }
}

/// Serves the rare requests among `bits`: to print this CPU's state, or to decide about the next check.
#[cold]
#[inline(never)]
pub fn serve_rare_requests(cpu: &PerCpu, bits: u32) {
    if bits & DUMP != 0 {
        dump::show_and_halt(cpu);
    }
    own_timer::review_next_check(cpu);
}

/// Serves the requests in this CPU's pending word.
#[inline(always)]
pub fn serve_requests(cpu: &PerCpu) {
    let bits = cpu.vcpu.switch.take();
    // WAKE only asks the CPU to leave the halt.
    if bits & !WAKE != 0 {
        serve_taken(cpu, bits);
    }
}

/// Serves `bits` of the pending word.
#[inline(never)]
fn serve_taken(cpu: &PerCpu, mut bits: u32) {
    if bits & (DUMP | REVIEW) != 0 {
        serve_rare_requests(cpu, bits);
    }
    if bits & EVALUATE != 0 {
        vgic_cpu::update_cpu(cpu);
    }
    bits &= SGIS;
    while bits != 0 {
        vgic_cpu::inject_interrupt(cpu, bits.trailing_zeros(), None);
        bits &= bits - 1;
        if bits != 0 {
            // Handling the next interrupt involves a search for an empty list register, which has to see this write.
            insn::isb();
        }
    }
}
