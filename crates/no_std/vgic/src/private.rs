// SPDX-License-Identifier: MIT OR Apache-2.0
//! The SGIs and PPIs of one vCPU.
//!
//! Any CPU may write a vCPU's redistributor, and the vCPU's own CPU reads it on
//! every interrupt, so the registers are atomics and the owner takes no lock.
//! A change that affects list registers becomes a request ([`Requests`]), which the owner serves in
//! [`List::sync`].

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU8, AtomicU32};

use crate::PRIVATE;
use crate::bits::ones;
use crate::list::List;
use crate::lr::Bank;
use crate::requests::Requests;
use crate::version2::PrivateState;

/// Registers of the SGIs and PPIs of a vCPU; one bit per INTID unless noted
/// otherwise.
#[derive(Debug)]
pub struct Private {
    /// Enabled.
    pub(crate) enabled: AtomicU32,
    /// Pending and not in a list register.
    pub(crate) pending: Requests,
    /// Active, and not yet seen by the owner.
    pub(crate) active: Requests,
    /// Edge-triggered PPIs, one bit each; SGIs are always edge-triggered.
    pub(crate) edge: AtomicU32,
    pub(crate) priority: [AtomicU8; PRIVATE as usize],
    /// GICR_WAKER.ProcessorSleep.
    pub(crate) sleeping: AtomicU32,
    /// Whether the interrupt was enabled, and forwarded by the distributor, at the last [`Self::refresh`].
    ready: AtomicU32,
    /// State that the owner last saw in its list registers; the pending state excludes interrupts
    /// that are pending because of their lines.
    pub(crate) listed_pending: AtomicU32,
    pub(crate) listed_active: AtomicU32,
    pub(crate) version2: PrivateState,
}

impl Default for Private {
    fn default() -> Self {
        Self::new()
    }
}

impl Private {
    /// Returns the state after reset: disabled, not pending.
    #[must_use]
    pub fn new() -> Self {
        Self {
            enabled: AtomicU32::new(0),
            pending: Requests::new(),
            active: Requests::new(),
            edge: AtomicU32::new(0),
            priority: [const { AtomicU8::new(0) }; PRIVATE as usize],
            sleeping: AtomicU32::new(1),
            ready: AtomicU32::new(0),
            listed_pending: AtomicU32::new(0),
            listed_active: AtomicU32::new(0),
            version2: PrivateState::default(),
        }
    }

    /// Returns the priority of `intid` if it can be delivered: enabled, and forwarded by the
    /// distributor.
    #[must_use]
    #[inline(always)]
    pub fn ready(&self, intid: u32) -> Option<u8> {
        let ready = self.ready.load(Relaxed);
        (ready >> intid & 1 != 0).then(|| self.priority[intid as usize].load(Relaxed))
    }

    /// Reads the registers again; returns the INTIDs that can be delivered. `forward` is
    /// GICD_CTLR.EnableGrp1. Only the owner may call this or, while the owner does not deliver, another
    /// CPU.
    pub fn refresh(&self, forward: bool) -> u32 {
        let ready = if forward {
            self.enabled.load(Acquire)
        } else {
            0
        };
        self.ready.store(ready, Release);
        ready
    }

    /// Returns the INTIDs that can be delivered, as of the last [`Self::refresh`].
    #[must_use]
    pub fn ready_intids(&self) -> u32 {
        self.ready.load(Relaxed)
    }

    /// Returns the INTIDs that are enabled.
    #[must_use]
    pub fn enabled(&self) -> u32 {
        self.enabled.load(Acquire)
    }

    /// Returns the priority of `intid`, deliverable or not.
    #[must_use]
    pub fn priority(&self, intid: u32) -> u8 {
        self.priority[intid as usize].load(Relaxed)
    }

    /// Publishes the pending and active state to other vCPUs when hardware delivers.
    pub fn publish(&self, pending: u32, active: u32) {
        self.listed_pending.store(pending, Release);
        self.listed_active.store(active, Release);
    }

    /// Takes over the requests to withdraw, to deactivate and to activate, in this order, so that
    /// hardware serves them when it delivers.
    #[must_use]
    pub fn take_requests(&self) -> [u32; 3] {
        [
            self.pending.take_clear(),
            self.active.take_clear(),
            self.active.take_set(u32::MAX),
        ]
    }

    /// Makes the INTIDs of `bits` active when the owner syncs.
    pub fn activate(&self, bits: u32) {
        self.active.set(bits);
    }

    /// Returns the INTIDs that are pending and not listed, though they could be.
    #[must_use]
    pub(crate) fn deliverable(&self) -> u32 {
        self.pending() & self.ready.load(Acquire)
    }

    /// Returns the INTIDs with a request that the owner has not served.
    #[must_use]
    pub(crate) fn unserved_intids(&self) -> u32 {
        self.pending.bits_to_clear() | self.active.bits_to_clear() | self.active.bits_to_set()
    }

    /// Returns the INTIDs that are pending and not in a list register.
    #[must_use]
    pub fn pending(&self) -> u32 {
        self.pending.bits_to_set()
    }

    /// Records `intid` as pending until it can be delivered.
    pub fn set_pending(&self, intid: u32) {
        self.pending.set(1 << intid);
    }

    /// Takes pending INTIDs back from the owner, except INTIDs that were withdrawn meanwhile.
    pub fn give_back(&self, bits: u32) {
        self.pending.give_back(bits);
    }

    /// Takes over the pending INTIDs in `of`, which the caller has to deliver.
    #[must_use]
    pub fn take_pending(&self, of: u32) -> u32 {
        self.pending.take_set(of)
    }
}

/// For dumps: the bitmaps, named like their registers.
impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ISENABLER0 {:#010x}  ISPENDR0 {:#010x}",
            self.enabled.load(Relaxed),
            self.pending()
        )
    }
}

impl List {
    /// Brings the list registers in line with `private`, the registers of their vCPU;
    /// `forward` is GICD_CTLR.EnableGrp1. Returns the INTIDs that are listed or wait for a register.
    /// The physical interrupts of all other INTIDs must be inactive, or they would
    /// not arrive again.
    pub fn sync(&mut self, bank: &mut impl Bank, private: &Private, forward: bool) -> u32 {
        let [withdraw, deactivate, activate] = private.take_requests();
        for intid in ones(withdraw.into()) {
            self.withdraw(bank, intid);
        }
        for intid in ones(deactivate.into()) {
            self.set_active(bank, intid, 0, false);
        }
        for intid in ones(activate.into()) {
            self.set_active(bank, intid, private.priority(intid), true);
        }
        let ready = private.refresh(forward);
        let pending = self.private_states(bank).pending;
        for intid in ones((pending & !ready).into()) {
            let one = self.withdraw(bank, intid);
            // A high line makes its interrupt pending again by itself.
            if let Some(one) = one.filter(|one| one.hw().is_none()) {
                private.give_back_listed(one);
            }
        }
        for intid in ones(private.take_pending(ready).into()) {
            self.inject_pending(bank, private, intid);
        }
        self.reprioritise(bank, |intid| {
            (intid < PRIVATE).then(|| private.priority(intid))
        });
        self.refill(bank);
        self.publish(bank, private)
    }

    /// Lists `intid`, which was pending.
    pub(crate) fn inject_pending(&mut self, bank: &mut impl Bank, private: &Private, intid: u32) {
        match private.take_senders(intid) {
            None => self.inject(bank, intid, private.priority(intid), None),
            Some(senders) => self.inject_sgi(bank, private, intid, senders),
        }
    }

    /// Publishes the listed state to other vCPUs, except interrupts that only a line makes pending:
    /// readers read the line itself. Returns the INTIDs that are listed.
    pub fn publish(&self, bank: &impl Bank, private: &Private) -> u32 {
        let here = self.private_states(bank);
        private.publish(here.pending & !here.lines, here.active);
        here.pending | here.active
    }
}
