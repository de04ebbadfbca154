// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch with one rule broken at a time.

use loom::sync::Mutex;
use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicBool, AtomicU32};
use vgic::Private;
use vgic::switch::{EVALUATE, Physical, SGIS, Sent};

use crate::machine::{Gicr, OnCpu, Protocol};

/// The vCPU checks for active interrupts before it takes the lock.
pub const LOOKS_UNLOCKED: u32 = 0;
/// A vCPU that turns itself off turns the active state into a request, and checks for active interrupts again.
pub const KEEPS_AS_REQUEST: u32 = 5;
/// Only the first sender rings.
pub const RINGS_ONCE: u32 = 6;
/// The vCPU empties the pending word before the flag says that hardware delivers.
pub const WORD_FIRST: u32 = 1;
/// A sender that comes too late drops its request.
pub const DROPS: u32 = 2;
/// The vCPU serves requests before the flag says that hardware delivers.
pub const SERVES_EARLY: u32 = 3;
/// A sender whose request another sender has taken over relies on that sender.
pub const FORGETS_ITS_OWN: u32 = 4;

pub struct Mutant<const HOW: u32> {
    word: AtomicU32,
    direct: AtomicBool,
    lock: Mutex<()>,
}

impl<const HOW: u32> Protocol for Mutant<HOW> {
    fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            direct: AtomicBool::new(false),
            lock: Mutex::new(()),
        }
    }

    fn is_direct(&self) -> bool {
        self.direct.load(SeqCst)
    }

    fn take(&self) -> u32 {
        self.word.swap(0, SeqCst)
    }

    fn send(&self, mut bits: u32, private: &Private, gicr: &Gicr) -> Sent {
        loop {
            let first = self.word.fetch_or(bits, SeqCst) == 0;
            let ring = first || HOW != RINGS_ONCE && bits & EVALUATE != 0;
            if !self.direct.load(SeqCst) {
                return Sent::Left { ring };
            }
            let own = bits & EVALUATE;
            bits = self.word.swap(0, SeqCst);
            if HOW != FORGETS_ITS_OWN {
                bits |= own;
            }
            let _alone = self.lock.lock();
            if self.direct.load(SeqCst) {
                if bits & EVALUATE != 0 {
                    write_registers(private, gicr);
                }
                gicr.set_pending(bits & SGIS);
                return Sent::Done;
            }
            if HOW == DROPS {
                return Sent::Done;
            }
        }
    }

    fn to_hardware(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) -> Option<u32> {
        let _alone = self.lock.lock();
        let early = if HOW == WORD_FIRST { self.take() } else { 0 };
        if HOW == SERVES_EARLY {
            let _ = delivery.evaluate();
        }
        self.direct.store(true, SeqCst);
        let bits = if HOW == WORD_FIRST {
            early
        } else {
            self.take()
        };
        if HOW != SERVES_EARLY {
            let _ = delivery.evaluate();
        }
        if delivery.has_active() {
            self.direct.store(false, SeqCst);
            self.word.fetch_or(bits | EVALUATE, SeqCst);
            return None;
        }
        delivery.unlist();
        write_registers(delivery.private, gicr);
        gicr.set_pending(bits & SGIS);
        Some(bits & !(SGIS | EVALUATE))
    }

    fn to_hypervisor(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) -> Option<()> {
        if HOW == LOOKS_UNLOCKED && gicr.active() & SGIS != 0 {
            return None;
        }
        let _alone = self.lock.lock();
        if HOW != LOOKS_UNLOCKED && gicr.active() & SGIS != 0 {
            return None;
        }
        let pending = gicr.pending() & SGIS;
        gicr.clear_pending(pending);
        self.direct.store(false, SeqCst);
        delivery.private.give_back(pending);
        Some(())
    }

    fn reclaim(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) {
        assert_eq!(HOW, KEEPS_AS_REQUEST, "no test of another turns it off");
        let active = gicr.active() & SGIS;
        gicr.clear_active(active);
        delivery.private.activate(active);
        let done = self.to_hypervisor(delivery, gicr);
        assert!(done.is_some(), "the interface is still held");
    }

    fn write(&self, private: &Private, gicr: &Gicr) -> bool {
        let _alone = self.lock.lock();
        let direct = self.direct.load(SeqCst);
        if direct {
            write_registers(private, gicr);
        }
        direct
    }
}

fn write_registers(private: &Private, gicr: &Gicr) {
    let ready = private.refresh(true) & SGIS;
    gicr.disable(SGIS & !ready);
    let [withdraw, deactivate, activate] = private.take_requests();
    gicr.clear_pending(withdraw);
    gicr.clear_active(deactivate);
    gicr.set_active(activate);
    gicr.set_pending(private.take_pending(SGIS));
    gicr.enable(ready);
}
