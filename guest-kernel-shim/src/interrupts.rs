// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts of this kernel: two SGIs. Checks enable others, which are
//! noted in the CPU's [`Journal`].

use aarch64_cpu::registers::{CNTP_CTL_EL0, CNTV_CTL_EL0, Writeable};
use arch::{gic_cpu, insn};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};
use gic::Redistributor;
use platform::Platform;

use crate::alarm;
use crate::kernel;
use crate::percpu::PerCpu;
use crate::soak;
use crate::tally::Event;
use crate::workload::call;

/// "Look at your request word": a task is to run.
pub const RESCHED: u32 = 0;
/// A function is to be called.
pub const CALL: u32 = 1;
/// Functions are to be called by [`crate::kernel`].
pub const FUNCTION: u32 = 2;

/// Sets up the interrupt controller of this CPU.
///
/// # Safety
/// The description must be true, and its devices mapped.
pub unsafe fn enable(cpu: &PerCpu, platform: &Platform<'_>) {
    // SAFETY: as the caller promises; this CPU is the only one that uses its
    // redistributor.
    let redistributor = unsafe {
        let found = Redistributor::find(&platform.gic, cpu.mpidr);
        let redistributor = found.unwrap_or_else(|error| panic!("{error}"));
        redistributor.set_up();
        redistributor
    };
    cpu.redistributor.call_once(|| redistributor);
    redistributor.enable_all(1 << RESCHED | 1 << CALL);
    gic_cpu::enable(false);
}

/// The interrupt handler.
#[inline(always)]
fn handle(intid: u32) {
    let cpu = PerCpu::this();
    cpu.tally.add(Event::Taken);
    match intid {
        // What is requested is in the request word; a busy CPU that does not
        // look there looks here.
        RESCHED => cpu.interrupted.store(true, Relaxed),
        CALL => call::serve(cpu),
        _ => unexpected(cpu, intid),
    }
}

/// Interrupts that a CPU took and that nobody but a check expects, in order.
pub struct Journal {
    count: AtomicU32,
    intids: [AtomicU32; 64],
}

impl Journal {
    /// None.
    pub const fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            intids: [const { AtomicU32::new(0) }; 64],
        }
    }

    /// Forgets them.
    pub fn clear(&self) {
        self.count.store(0, Release);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count.load(Acquire) as usize
    }

    /// The latest.
    pub fn last(&self) -> Option<u32> {
        self.iter().last()
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let known = self.intids.iter().take(self.len());
        known.map(|intid| intid.load(Relaxed))
    }

    /// INTIDs below 32 that are among them, a bit each.
    pub fn set(&self) -> u32 {
        self.iter().fold(0, |bits, intid| bits | 1 << (intid & 31))
    }

    fn note(&self, intid: u32) {
        let count = self.count.load(Relaxed);
        if let Some(place) = self.intids.get(count as usize) {
            place.store(intid, Relaxed);
            self.count.store(count + 1, Release);
        }
    }
}

/// The journal of `cpu`.
pub fn journal(cpu: &PerCpu) -> &Journal {
    &cpu.journal
}

/// The redistributor of `cpu`.
pub fn redistributor(cpu: &PerCpu) -> &Redistributor {
    cpu.redistributor
        .get()
        .expect("a CPU sets up its redistributor before it is online")
}

/// What is told of interrupts that nobody else expects, besides the journal.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub enum Listener {
    /// Nothing.
    Nobody,
    /// The books of a soak.
    Soak,
    /// The alarm.
    Alarm,
}

static LISTENER: AtomicUsize = AtomicUsize::new(Listener::Nobody as usize);

/// From now on `listener` is told, by every CPU.
pub fn listen(listener: Listener) {
    LISTENER.store(listener as usize, Release);
}

/// Tells it. Apart, so that where nothing listens it costs one look.
#[cold]
#[inline(never)]
fn tell(listener: usize, cpu: &PerCpu, intid: u32) {
    if listener == Listener::Soak as usize {
        soak::books::taken(cpu, intid);
    } else {
        alarm::rang(cpu, intid);
    }
}

#[cold]
fn unexpected(cpu: &PerCpu, intid: u32) {
    /// CNTV_CTL_EL0, CNTP_CTL_EL0: ENABLE and IMASK. It stays expired, and the
    /// level would come again for ever.
    const MASKED: u64 = 3;
    if kernel::interrupt(cpu, intid) {
        return;
    }
    let timer = &crate::start::platform().timer;
    if intid == timer.virt {
        CNTV_CTL_EL0.set(MASKED);
    } else if intid == timer.phys {
        CNTP_CTL_EL0.set(MASKED);
    }
    // The level has to be low before the interrupt is ended.
    insn::isb();
    cpu.journal.note(intid);
    let listener = LISTENER.load(Acquire);
    if listener != Listener::Nobody as usize {
        tell(listener, cpu, intid);
    }
}

/// The vector's handler.
pub extern "C" fn irq() {
    acknowledged(gic_cpu::acknowledge());
}

/// The rest of it, after an acknowledge that gave `intid`.
pub extern "C" fn acknowledged(intid: u32) {
    if intid == gic_cpu::SPURIOUS {
        return;
    }
    handle(intid);
    gic_cpu::end(intid);
    // The handler may have come between a look at the request word and the WFE
    // that follows. The return from here makes an event (DDI 0487K.a, D1.7.2),
    // so that WFE does not wait; an emulator that leaves that out would sleep
    // on the request, so the event is made here.
    insn::sevl();
}
