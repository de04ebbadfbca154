// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether the hypervisor or hardware delivers a vCPU's interrupts, and switches between
//! the two while other CPUs write the vCPU's registers and send to it.
//!
//! One lock covers both a read of the physical redistributor and the decision that depends on it:
//! - the vCPU's own CPU holds the lock from its check for active interrupts until the new owner is
//!   known and has all state that the old owner held;
//! - any CPU holds the lock while it writes the physical redistributor for the guest, and writes
//!   only if hardware delivers.
//!
//! State that the owner holds moves from owner to owner, and never becomes a request
//! ([`crate::Private`]), because a request is newer than the state that it changes. A switch to
//! hardware first announces that hardware delivers, then serves the earlier requests on the lists. A
//! CPU that has not seen the announcement has already finished, and may have sent an interrupt that is
//! pending in the machine; CPUs that have seen the announcement wait for the lock, and have sent none.

use crate::bits::ones;
use crate::delivery::{Delivery, Interface, Shared};
use crate::private::Private;
use crate::sync::Ordering::{Relaxed, SeqCst};
use crate::sync::{AtomicBool, AtomicU32, Mutex};

/// Bits of the pending word: virtual SGIs 0 to 15.
pub const SGIS: u32 = 0xffff;
/// Bit of the pending word: the vCPU's registers have changed.
pub const EVALUATE: u32 = 1 << 16;

/// The physical redistributor of a vCPU's CPU (IHI 0069H, 12.11). A set of INTIDs has one bit per INTID.
pub trait Physical {
    /// PPIs whose lines belong to the guest.
    fn timers(&self) -> u32;
    /// Available SGIs. The remaining SGIs belong to the secure world.
    fn sgis(&self) -> u32;
    /// Returns GICR_ISPENDR0.
    fn pending(&self) -> u32;
    /// Returns GICR_ISACTIVER0, once deactivations through the CPU interface have reached this register.
    fn active(&self) -> u32;
    /// Writes GICR_ISPENDR0.
    fn set_pending(&self, intids: u32);
    /// Writes GICR_ICPENDR0.
    fn clear_pending(&self, intids: u32);
    /// Writes GICR_ISACTIVER0.
    fn set_active(&self, intids: u32);
    /// Writes GICR_ICACTIVER0.
    fn clear_active(&self, intids: u32);
    /// Writes GICR_ISENABLER0.
    fn enable(&self, intids: u32);
    /// Writes GICR_ICENABLER0 and waits until it takes effect.
    fn disable(&self, intids: u32);
    /// Writes a byte of GICR_IPRIORITYR. Called under the lock only.
    fn set_priority(&self, intid: u32, priority: u8);
}

/// Outcome of a request to a vCPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The request is done.
    Done,
    /// The request is in the pending word. If `ring`, the sender has to interrupt the vCPU's CPU,
    /// at a higher priority than SGIs.
    Left {
        /// Whether no other sender is about to interrupt that CPU, or another's interrupt might arrive too late.
        ring: bool,
    },
}

/// The owner of a vCPU's CPU interface and physical redistributor, and the requests to the vCPU's
/// CPU.
#[derive(Debug)]
pub struct Switch {
    word: AtomicU32,
    /// Written by the vCPU's CPU only, under the lock.
    direct: AtomicBool,
    /// PPIs that are pending in the machine because software made them pending.
    lines_set: Mutex<u32>,
}

impl Default for Switch {
    fn default() -> Self {
        Self::new()
    }
}

impl Switch {
    /// Returns a switch in its initial state, in which the hypervisor delivers.
    #[must_use]
    pub fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            direct: AtomicBool::new(false),
            lines_set: Mutex::new(0),
        }
    }

    /// Whether hardware delivers. Only the vCPU's CPU may ask; the answer is of no use to other CPUs.
    #[must_use]
    #[inline(always)]
    pub fn is_direct(&self) -> bool {
        self.direct.load(Relaxed)
    }

    /// Returns the pending word, through which other CPUs send requests to the vCPU's CPU.
    #[must_use]
    pub const fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Takes over the requests of other CPUs; runs on the vCPU's CPU.
    #[must_use]
    pub fn take(&self) -> u32 {
        self.word.swap(0, SeqCst)
    }

    /// Requests `bits`, from any CPU. `forward` reads GICD_CTLR.EnableGrp1, as the last step.
    #[must_use]
    pub fn send(
        &self,
        mut bits: u32,
        private: &Private,
        physical: &impl Physical,
        forward: impl Fn() -> bool,
    ) -> Sent {
        loop {
            // strict sgi-after-stores: a sender that rings executes a DSB. The vCPU's own SGIs are
            // not affected unless the guest has put a DSB in between.
            let first = self.word.fetch_or(bits, SeqCst) == 0;
            if !self.direct.load(SeqCst) {
                // Another sender's interrupt may arrive only after an SGI that this sender sends once it
                // has written the registers.
                let ring = first || bits & EVALUATE != 0;
                return Sent::Left { ring };
            }
            // The hypervisor takes no interrupt on that CPU. A vCPU announces its switch and then
            // empties its pending word, so one of the two CPUs finds the bits. Another sender may
            // have found this sender's bits and still be at work on them; but the registers have to be
            // written when `send` returns, since an SGI may come next.
            bits = bits & EVALUATE | self.word.swap(0, SeqCst);
            let mut lines_set = self.lines_set.lock();
            if self.direct.load(SeqCst) {
                if bits & EVALUATE != 0 {
                    write_hardware(&mut lines_set, private, physical, forward());
                }
                set_sgis(bits, private, physical);
                return Sent::Done;
            }
        }
    }

    /// Writes the vCPU's registers to the machine if hardware delivers; returns whether it does.
    pub fn write(
        &self,
        private: &Private,
        physical: &impl Physical,
        forward: impl Fn() -> bool,
    ) -> bool {
        let mut lines_set = self.lines_set.lock();
        let direct = self.direct.load(SeqCst);
        if direct {
            write_hardware(&mut lines_set, private, physical, forward());
        }
        direct
    }

    /// Makes hardware deliver; runs on the vCPU's CPU. Returns the unserved bits of the pending
    /// word; `None` while the guest has an active interrupt: then the caller has to serve the word.
    #[must_use]
    pub fn to_hardware<I: Interface, S: Shared>(
        &self,
        delivery: &mut Delivery<'_, I, S>,
        physical: &impl Physical,
    ) -> Option<u32> {
        let mut lines_set = self.lines_set.lock();
        self.direct.store(true, SeqCst);
        let bits = self.word.swap(0, SeqCst);
        delivery.sync();
        if delivery.has_active() {
            self.direct.store(false, SeqCst);
            self.word.fetch_or(bits | EVALUATE, SeqCst);
            return None;
        }
        delivery.unlist();
        let forward = delivery.shared.with(|distributor| distributor.forwards());
        write_hardware(&mut lines_set, delivery.private, physical, forward);
        set_sgis(bits, delivery.private, physical);
        Some(bits & !(SGIS | EVALUATE))
    }

    /// Makes the hypervisor deliver; runs on the vCPU's CPU. `None` while the guest has an active
    /// interrupt. Afterwards, [`Delivery::evaluate`] is due.
    #[must_use]
    pub fn to_hypervisor<I: Interface, S: Shared>(
        &self,
        delivery: &mut Delivery<'_, I, S>,
        physical: &impl Physical,
    ) -> Option<()> {
        let mut lines_set = self.lines_set.lock();
        if physical.active() & guest_intids(physical) != 0 {
            return None;
        }
        self.take_back_pending(&mut lines_set, delivery, physical);
        Some(())
    }

    /// Makes the hypervisor deliver, even while an interrupt is active; that interrupt stays active.
    pub fn reclaim<I: Interface, S: Shared>(
        &self,
        delivery: &mut Delivery<'_, I, S>,
        physical: &impl Physical,
    ) {
        let mut lines_set = self.lines_set.lock();
        let active = physical.active() & guest_intids(physical);
        physical.clear_active(active);
        ones(active.into()).for_each(|intid| delivery.activate(intid));
        self.take_back_pending(&mut lines_set, delivery, physical);
    }

    /// Takes pending interrupts out of the machine, under the lock.
    fn take_back_pending<I: Interface, S: Shared>(
        &self,
        lines_set: &mut u32,
        delivery: &Delivery<'_, I, S>,
        physical: &impl Physical,
    ) {
        // Timers' interrupts that software set still belong to the guest. If the level is high,
        // they can't be distinguished, and count as caused by the level.
        let set = core::mem::take(lines_set) & !delivery.interface.lines();
        let pending = physical.pending() & (SGIS | set);
        physical.clear_pending(pending);
        // From here on, an interrupt from a sender that sees this store comes after all requests
        // from that sender, and stays in the machine for the hypervisor to take.
        self.direct.store(false, SeqCst);
        delivery.private.give_back(pending);
    }
}

/// Returns the SGIs and PPIs that belong to the guest.
fn guest_intids(physical: &impl Physical) -> u32 {
    physical.sgis() | physical.timers()
}

/// Makes the SGIs of `bits` pending in the machine. An SGI that the machine lacks stays in the
/// vCPU's registers, until the hypervisor delivers.
fn set_sgis(bits: u32, private: &Private, physical: &impl Physical) {
    physical.set_pending(bits & physical.sgis());
    let others = bits & SGIS & !physical.sgis();
    ones(others.into()).for_each(|intid| private.set_pending(intid));
}

/// Writes the registers to the machine, under the lock, so that the last CPU to write them is also
/// the last to have read them.
fn write_hardware(lines_set: &mut u32, private: &Private, physical: &impl Physical, forward: bool) {
    let guests = guest_intids(physical);
    let ready = private.refresh(forward) & guests;
    for intid in ones(guests.into()) {
        physical.set_priority(intid, private.priority(intid));
    }
    physical.disable(guests & !ready);
    let [withdraw, deactivate, activate] = private.take_requests().map(|bits| bits & guests);
    physical.clear_pending(withdraw);
    physical.clear_active(deactivate);
    physical.set_active(activate);
    let pending = private.take_pending(guests);
    // The set interrupts are recorded: the machine can't tell them from interrupts caused by a line.
    *lines_set = *lines_set & !withdraw | pending & physical.timers();
    physical.set_pending(pending);
    physical.enable(ready);
}
