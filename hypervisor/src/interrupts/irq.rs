// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handles physical interrupts that cause an exit, and ones that EL2 takes while it waits.
//!
//! Only an interrupt taken as an exception is an exit. An interrupt that ended a wait at EL2 is
//! acknowledged there, with interrupts masked, as part of the WFI's exit.

use core::ops::Range;

use abi::Counter;
use arch::{gic_cpu, insn};
use gic::gich::Sgi;

use crate::cpu::percpu::PerCpu;
use crate::cpu::trace::{Trace, Traced};
use crate::dumps::own_timer;
use crate::interrupts::{kick, version2, vgic_cpu};
use crate::machine::machine;

/// First INTID that is not an SGI.
const PPI: u32 = 16;
/// SPIs, and extended SPIs. Numbers between and after these ranges are reserved, up to the first
/// LPI (IHI 0069H, 2.2.1).
const SPIS: Range<u32> = 32..1020;
const EXTENDED_SPIS: Range<u32> = 4096..5120;
/// Special INTIDs: there is no interrupt to acknowledge (IHI 0069H, 2.2.1). Greater INTIDs are
/// real interrupts again: extended PPIs and SPIs, LPIs.
const SPECIAL: Range<u32> = 1020..1024;
const EXTENDED_PPIS: Range<u32> = 1056..1120;

/// The guest's state when an interrupt came. Each state has its own type, so that no code has to
/// test for the state.
trait Came {
    /// Whether the guest ran, so that the interrupt caused an exit.
    const AN_EXIT: bool;
}

/// The guest waited at EL2.
struct Waiting;
/// The guest ran.
struct Running;

impl Came for Waiting {
    const AN_EXIT: bool = false;
}

impl Came for Running {
    const AN_EXIT: bool = true;
}

/// Handles the exit of a CPU that has no fast paths.
#[inline(always)]
pub fn handle_exit<T: Trace>(cpu: &PerCpu) {
    T::note_event(cpu, Traced::Interrupt, 0);
    handle_interrupt::<Running>(cpu, gic_cpu::acknowledge());
}

/// Handles the rest of an exit for which `exits::fast_paths` acknowledged `intid`.
pub extern "C" fn acknowledged(intid: u32) {
    let cpu = PerCpu::this();
    if intid == machine().platform.gic.maintenance {
        take_maintenance::<Running>(cpu, intid);
    } else {
        handle_interrupt::<Running>(cpu, intid);
    }
}

/// Counts an exit, even if its interrupt was withdrawn before it was acknowledged.
#[inline(always)]
fn count_exit<C: Came>(cpu: &PerCpu, cause: Counter) {
    if C::AN_EXIT {
        cpu.vcpu.counters.add(cause);
    }
}

/// Handles an interrupt that ended a wait.
pub extern "C" fn waited(intid: u32) {
    handle_interrupt::<Waiting>(PerCpu::this(), intid);
}

/// Takes the most urgent pending physical interrupt, and returns whether there was one.
#[inline(always)]
pub fn take_most_urgent(cpu: &PerCpu) -> bool {
    handle_interrupt::<Waiting>(cpu, gic_cpu::acknowledge())
}

/// Takes all pending physical interrupts.
pub fn take_all(cpu: &PerCpu) {
    while take_most_urgent(cpu) {
        // Handling the next interrupt involves a search for an empty list register, which has to see the writes so far.
        insn::isb();
    }
}

/// Handles the active interrupt `intid`; returns whether it was an interrupt at all.
///
/// No barrier follows the acknowledgement: the handling reads only this CPU's memory, except for the pending
/// word, which is emptied by an atomic exchange. The exchange does not store before the acknowledgement has
/// returned, and the sender set its bits before it rang the doorbell ([`kick::send_requests`]), so the
/// exchange finds them.
#[inline(always)]
fn handle_interrupt<C: Came>(cpu: &PerCpu, intid: u32) -> bool {
    if intid < PPI {
        // With EOImode 1, priority drop and deactivation are two writes.
        gic_cpu::end(intid);
        gic_cpu::deactivate(intid);
        vgic_cpu::inject_interrupt(cpu, intid, None);
        count_exit::<C>(cpu, Counter::Irq);
        return true;
    }
    take_other::<C>(cpu, intid)
}

#[cold]
fn take_other<C: Came>(cpu: &PerCpu, intid: u32) -> bool {
    let platform = &machine().platform;
    if SPECIAL.contains(&intid) {
        count_exit::<C>(cpu, Counter::Irq);
        return false;
    }
    if intid == platform.gic.maintenance {
        take_maintenance::<C>(cpu, intid);
        return true;
    }
    gic_cpu::end(intid);
    count_exit::<C>(cpu, Counter::Irq);
    if intid == platform.timer.virt || intid == platform.timer.phys {
        // The interrupt stays active until the guest ends it through the list register: a level
        // that is still high must not interrupt again meanwhile.
        vgic_cpu::inject_interrupt(cpu, intid, Some(intid));
        if C::AN_EXIT {
            vgic_cpu::trap_next_access();
        }
    } else if Some(intid) == platform.timer.hyp {
        own_timer::handle_expiry(cpu);
        gic_cpu::deactivate(intid);
    } else {
        take_rare(cpu, intid);
    }
    true
}

/// Takes the maintenance interrupt, `intid`, which is also the doorbell of a GICv3.
#[inline(always)]
fn take_maintenance<C: Came>(cpu: &PerCpu, intid: u32) {
    gic_cpu::end(intid);
    let cause = if vgic_cpu::serve_maintenance(cpu) {
        // The maintenance interrupt's level falls because of writes to ICH_HCR_EL2 and the list
        // registers, which take effect at a context synchronization event (DDI 0487K.a, D24.1.2.2).
        insn::isb();
        Counter::Maintenance
    } else {
        Counter::Irq
    };
    // The deactivation has to follow the fall of the level, or the interrupt would be taken again. The deactivation
    // also has to precede the emptying of the pending word: bits that are set later are followed by a new doorbell.
    gic_cpu::deactivate(intid);
    count_exit::<C>(cpu, cause);
    kick::serve_requests(cpu);
}

/// Takes an SGI of a GICv2 that `exits::fast_paths_version2` left, or an interrupt that EL2 did not enable.
#[cold]
#[inline(never)]
fn take_rare(cpu: &PerCpu, intid: u32) {
    let sgi = Sgi::acknowledged(intid);
    // On later versions of the GIC, these INTIDs are LPIs.
    if let Some(sgi) = sgi.filter(|_| machine().platform.gic.version2.is_some()) {
        gic_cpu::deactivate(intid);
        version2::take_sgi(cpu, sgi);
    } else {
        // If nothing lowers its level, the interrupt would come again at once.
        disable_unserved(cpu, intid);
        gic_cpu::deactivate(intid);
    }
}

/// Disables an interrupt that no code here serves, if it can be disabled, which is true of SPIs and PPIs.
/// An LPI is edge-triggered and does not come again by itself, and a reserved number has no register.
fn disable_unserved(cpu: &PerCpu, intid: u32) {
    if intid < SPIS.start || EXTENDED_PPIS.contains(&intid) {
        cpu.redistributor().disable(intid);
    } else if SPIS.contains(&intid) || EXTENDED_SPIS.contains(&intid) {
        // SAFETY: the distributor is mapped, and EL2 uses no SPI; disabling one takes a single write.
        unsafe { gic::Spi::new(&machine().platform.gic, intid) }.disable();
    }
}
