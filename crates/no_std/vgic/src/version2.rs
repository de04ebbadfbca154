// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's view of a GICv2 (IHI 0048B) on top of this crate's state.
//!
//! - The distributor has the registers of SGIs and PPIs too, one bank for each vCPU: [`Distributor`](crate::Distributor)
//!   and [`Redistributor`](crate::Redistributor) have them at the same offsets.
//! - Each interrupt has a group, kept in bit 0 of its priority, because a GICH has only the upper five bits
//!   of a priority (5.3.8). So the group travels with the priority. `enabled` has only INTIDs whose group is forwarded.
//! - An SGI is pending once for each sender. A list register holds one sender; the others wait in
//!   [`Private`], and one of them is listed when that SGI ends.

mod frame;
mod interface;

pub use frame::{Changed, Frame};

use core::sync::atomic::{AtomicBool, AtomicU32};

use crate::bits::{is_aligned_part, ones};
use crate::delivery::{Delivery, Interface, Shared};
use crate::distributor::SPIS;
use crate::list::List;
use crate::lr::{Bank, ListRegister};
use crate::private::Private;
use crate::sync::AtomicU8;
use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release};
use crate::{Access, PRIVATE};

/// The bit of a priority that is the group: set for Group 1.
const GROUP: u8 = 1;
/// The implemented bits of a priority, as in a GICH.
const PRIORITY: u8 = 0xf8;
/// Number of SGIs.
const SGIS: u32 = 16;
/// The SGIs' bits in the registers of INTIDs 0 to 31.
const SGI_BITS: u64 = 0xffff;
/// GICD_SGIR (4.3.15).
pub const GICD_SGIR: u64 = 0xf00;
/// GICD_CPENDSGIR (4.3.16) and GICD_SPENDSGIR (4.3.17): a byte for each SGI, with a bit for each sender.
pub const SENDERS: core::ops::Range<u64> = 0xf10..0xf30;
const SPENDSGIR: u64 = 0xf20;

/// The state of a vCPU's SGIs and PPIs that only a GICv2 has.
#[derive(Debug, Default)]
pub struct PrivateState {
    /// Whether the guest has a GICv2.
    is_on: AtomicBool,
    /// The enable bits as the guest wrote them, whether or not the groups are forwarded.
    wanted: AtomicU32,
    /// Senders of each SGI that is pending and not listed.
    senders: [AtomicU8; SGIS as usize],
}

/// The state of a distributor that only a GICv2 has.
#[derive(Clone, Debug)]
pub struct SharedState {
    /// GICD_CTLR (4.3.1): EnableGrp0 (0), EnableGrp1 (1).
    control: u8,
    /// The enable bits as the guest wrote them, whether or not the groups are forwarded.
    wanted: u64,
    /// GICD_ITARGETSR (4.3.12).
    targets: [u8; SPIS],
}

impl SharedState {
    /// State after reset.
    pub(crate) const fn new() -> Self {
        Self {
            control: 0,
            wanted: 0,
            targets: [0; SPIS],
        }
    }

    /// Whether interrupts with this priority byte are forwarded.
    const fn forwards(&self, priority: u8) -> bool {
        self.control >> (priority & GROUP) & 1 != 0
    }
}

/// A vCPU as the target of SPIs.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Number of its CPU interface.
    pub interface: u32,
    /// Its affinity, as in MPIDR_EL1.
    pub affinity: u64,
}

/// An SGI that a guest sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sgi {
    /// Its INTID.
    pub intid: u32,
    /// The CPU interfaces that get it, one bit each.
    pub targets: u32,
}

impl Sgi {
    /// Decodes a write of GICD_SGIR (4.3.15) by CPU interface `me` if the machine has `interfaces`.
    /// `None` for the reserved filter.
    #[must_use]
    pub const fn decode(value: u64, me: u32, interfaces: u32) -> Option<Self> {
        let targets = match value >> 24 & 3 {
            0 => (value >> 16 & 0xff) as u32,
            1 => !(1 << me),
            2 => 1 << me,
            _ => return None,
        };
        Some(Self {
            intid: (value & 0xf) as u32,
            targets: targets & interfaces,
        })
    }
}

impl Private {
    /// Makes this the state of a vCPU that has a GICv2.
    pub fn become_version2(&self) {
        self.version2.is_on.store(true, Release);
    }

    /// Makes SGI `intid` pending from CPU interface `sender`, on any CPU.
    pub fn send(&self, intid: u32, sender: u32) {
        self.version2.senders[intid as usize].fetch_or(1 << sender, AcqRel);
        self.pending.set(1 << intid);
    }

    /// Takes the senders of pending `intid`; `None` if it is not an SGI of a GICv2.
    pub(crate) fn take_senders(&self, intid: u32) -> Option<u8> {
        let senders = self.version2.senders.get(intid as usize)?;
        let is_on = self.version2.is_on.load(Relaxed);
        is_on.then(|| senders.swap(0, AcqRel))
    }

    /// Returns the SGIs that have a sender, or are listed as pending.
    fn pending_sgis(&self) -> u32 {
        let senders = self.version2.senders.iter().enumerate();
        let waiting = senders.filter(|(_, senders)| senders.load(Acquire) != 0);
        let waiting = waiting.fold(0, |bits, (intid, _)| bits | 1 << intid);
        waiting | self.listed_pending.load(Acquire) & SGI_BITS as u32
    }

    /// Takes back a pending interrupt that the owner had listed.
    pub(crate) fn give_back_listed(&self, listed: ListRegister) {
        if let Some(senders) = self.version2.senders.get(listed.intid() as usize) {
            senders.fetch_or(1 << listed.sender(), AcqRel);
        }
        self.give_back(1 << listed.intid());
    }

    /// Brings `enabled` in line with the groups that `shared` forwards.
    fn forward(&self, shared: &SharedState) {
        let wanted = self.version2.wanted.load(Acquire);
        let forwarded = (0..PRIVATE).filter(|&intid| shared.forwards(self.priority(intid)));
        let forwarded = forwarded.fold(0, |bits, intid| bits | 1 << intid);
        self.enabled.store(wanted & forwarded, Release);
    }
}

impl List {
    /// Lists SGI `intid`, which `senders` sent: one sender now, the others when the SGI ends.
    pub(crate) fn inject_sgi(
        &mut self,
        bank: &mut impl Bank,
        private: &Private,
        intid: u32,
        mut senders: u8,
    ) {
        let priority = private.priority(intid);
        let from = |sender| ListRegister::pending(intid, priority, None).with_sender(sender);
        let listed = self.entry(bank, intid);
        if listed.is_pending() || listed.is_active() {
            let bit = 1 << listed.sender();
            if senders & bit != 0 && !listed.is_pending() {
                self.inject_value(bank, from(listed.sender()));
            }
            senders &= !bit;
        } else if senders != 0 {
            self.inject_value(bank, from(senders.trailing_zeros()));
            senders &= senders - 1;
        }
        if senders != 0 {
            private.version2.senders[intid as usize].fetch_or(senders, AcqRel);
            private.give_back(1 << intid);
            self.request_end_notice(bank, intid);
        }
    }
}

impl<I: Interface, S: Shared> Delivery<'_, I, S> {
    /// Lists this vCPU's pending SGIs that can be delivered; returns whether there was one.
    pub fn inject_sgis(&mut self) -> bool {
        let ready = self.private.ready_intids() & SGI_BITS as u32;
        let pending = self.private.take_pending(ready);
        for intid in ones(pending.into()) {
            self.list
                .inject_pending(&mut self.interface, self.private, intid);
        }
        pending != 0
    }

    /// Accesses GICD_CPENDSGIR or GICD_SPENDSGIR at an offset in [`SENDERS`]; returns
    /// the value read. After a write, [`Self::evaluate`] is due.
    pub fn access_senders(&mut self, access: Access) -> u64 {
        if !is_aligned_part(access, 4) {
            return 0;
        }
        let first = (access.offset % 0x10) as u32;
        (0..access.size).fold(0, |value, n| {
            let intid = first + n;
            let Some(written) = access.write.map(|value| (value >> (8 * n)) as u8) else {
                return value | u64::from(self.pending_senders(intid)) << (8 * n);
            };
            if access.offset >= SPENDSGIR {
                ones(written.into()).for_each(|sender| self.private.send(intid, sender));
            } else if written != 0 {
                self.clear_senders(intid, written);
            }
            0
        })
    }

    fn pending_senders(&self, intid: u32) -> u8 {
        let listed = self.list.entry(&self.interface, intid);
        let listed = if listed.is_pending() {
            1 << listed.sender()
        } else {
            0
        };
        self.private.version2.senders[intid as usize].load(Acquire) | listed
    }

    fn clear_senders(&mut self, intid: u32, cleared: u8) {
        let senders = &self.private.version2.senders[intid as usize];
        senders.fetch_and(!cleared, AcqRel);
        let listed = self.list.entry(&self.interface, intid);
        if listed.is_pending() && cleared >> listed.sender() & 1 != 0 {
            self.list.withdraw(&mut self.interface, intid);
        }
    }
}
