// SPDX-License-Identifier: MIT OR Apache-2.0
//! How one CPU at EL2 gets another one's attention: a bit in the target's
//! mailbox, and the maintenance interrupt made pending in the target's
//! redistributor. No SGI will do: a guest that owns its CPU interface sends all
//! of them physically, and one that was on its way when a CPU changed hands
//! would be taken for the other kind.
//!
//! A guest's SGIs 0 to 7 travel as themselves (see `exits::sgi`). The others
//! go through the mailbox: they may belong to the secure world, as they do by
//! convention where there is one.

use core::sync::atomic::Ordering::SeqCst;

use abi::Counter;
use arch::insn;

use crate::cpu::pending_word::{DUMP, EVALUATE, SGIS};
use crate::cpu::percpu::PerCpu;
use crate::dumps::dump;
use crate::interrupts::vgic_cpu;
use crate::machine::machine;

/// Leaves `bits` in the mailbox of `target` and tells it.
pub fn send(target: &PerCpu, mut bits: u32) {
    let me = PerCpu::this();
    let mailbox = &target.vcpu.pending_word;
    loop {
        // Whoever finds the mailbox empty sends; the target empties it after the
        // interrupt, so a letter is never left without one.
        let first = mailbox.fetch_or(bits, SeqCst) == 0;
        if !target.vcpu.direct.load(SeqCst) {
            return announce(me, target, first);
        }
        // EL2 sees no interrupt there. A target that is just switching empties
        // its mailbox after it set the flag: one of the two finds the letter.
        bits = mailbox.swap(0, SeqCst);
        if vgic_cpu::deliver(target, bits) {
            return;
        }
    }
}

/// Tells `target`, which injects, that there is a letter; `first`: it is the
/// first one.
fn announce(me: &PerCpu, target: &PerCpu, first: bool) {
    if core::ptr::eq(me, target) {
        open(target);
    } else if first {
        // The letter has to be there before the interrupt.
        insn::dsb_ishst();
        target.redistributor().set_pending(machine().doorbell());
        me.vcpu.counters.add(Counter::Kick);
    } else {
        me.vcpu.counters.add(Counter::KickSaved);
    }
}

/// Does what the mailbox of this CPU asks for.
pub fn open(cpu: &PerCpu) {
    let mut bits = cpu.vcpu.pending_word.swap(0, SeqCst);
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
