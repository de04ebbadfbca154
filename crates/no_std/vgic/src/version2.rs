// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's view of a GICv2 (IHI 0048B) over the state of this crate.
//!
//! - The distributor has the registers of SGIs and PPIs too, one bank for each vCPU: [`Distributor`]
//!   and [`Redistributor`] have them at the same offsets.
//! - Each interrupt has a group: bit 0 of its priority, of which a GICH has five bits (5.3.8). So the group
//!   travels with the priority. `enabled` has the INTIDs whose group is forwarded, too.
//! - An SGI is pending once for each sender. A list register holds one sender; the others wait in
//!   [`Private`], and one of them is listed at the end of that SGI.

mod interface;

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32};

use crate::bits::{is_aligned_part, ones};
use crate::delivery::{Delivery, Interface, Shared};
use crate::distributor::{self, Distributor, SPIS};
use crate::list::List;
use crate::lr::{Bank, ListRegister};
use crate::private::Private;
use crate::redistributor::Redistributor;
use crate::{Access, PRIVATE};

/// The bit of a priority that is the group: set for Group 1.
const GROUP: u8 = 1;
/// The implemented bits of a priority, as in a GICH.
const PRIORITY: u8 = 0xf8;
/// Number of SGIs.
const SGIS: u32 = 16;
/// Bits of the registers of INTIDs 0 to 31 that are SGIs.
const SGI_BITS: u64 = 0xffff;
/// Second frame of a redistributor.
const SGI_FRAME: u64 = 0x1_0000;
/// GICD_SGIR.
pub const GICD_SGIR: u64 = 0xf00;
/// GICD_CPENDSGIR and GICD_SPENDSGIR: a byte for each SGI, with a bit for each sender.
pub const SENDERS: core::ops::Range<u64> = 0xf10..0xf30;
const SPENDSGIR: u64 = 0xf20;

/// The state of a vCPU's SGIs and PPIs that only a GICv2 has.
#[derive(Debug, Default)]
pub struct PrivateState {
    /// Whether the guest has a GICv2.
    is_on: AtomicBool,
    /// Enables as the guest wrote them, forwarded or not.
    wanted: AtomicU32,
    /// Senders of each SGI that is pending and not listed.
    senders: [AtomicU8; SGIS as usize],
}

/// The state of a distributor that only a GICv2 has.
#[derive(Clone, Debug)]
pub struct SharedState {
    /// GICD_CTLR: EnableGrp0 (0), EnableGrp1 (1).
    control: u8,
    /// Enables as the guest wrote them, forwarded or not.
    wanted: u64,
    /// GICD_ITARGETSR.
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
    /// Decodes a write of GICD_SGIR (4.3.15) by CPU interface `me` of a machine that has `interfaces`.
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

/// vCPUs that have to evaluate the registers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// None.
    Nothing,
    /// The one that made the access.
    Here,
    /// All of them.
    Everywhere,
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

    /// The owner gives back a pending interrupt that was listed.
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
    /// Lists SGI `intid`, which `senders` sent: one sender now, the others at its end.
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

/// An access to the distributor, except to the registers that send SGIs ([`Sgi`]) and to [`SENDERS`].
#[derive(Debug)]
pub struct Frame<'a> {
    /// The distributor.
    pub distributor: &'a mut Distributor,
    /// The SGIs and PPIs of the vCPU that makes the access.
    pub private: &'a Private,
    /// The CPU interface of this vCPU.
    pub me: u32,
    /// The INTIDs of this vCPU whose lines are high.
    pub lines: u32,
    /// All vCPUs.
    pub cpus: &'a [Target],
}

impl Frame<'_> {
    /// Does the access; returns the value read (0 for a write), and who has to evaluate. If these are
    /// all vCPUs, [`Distributor::forward`] is due for each before that.
    #[must_use]
    pub fn access(&mut self, access: Access) -> (u64, Changed) {
        let Some(value) = access.write else {
            return (self.read(access), Changed::Nothing);
        };
        (0, self.write(access, value))
    }

    fn read(&mut self, access: Access) -> u64 {
        let word = |value: u64| if access.size == 4 { value } else { 0 };
        match access.offset {
            0x000 => word(self.distributor.version2.control.into()),
            // GICD_TYPER: ITLinesNumber (4:0) and CPUNumber (7:5), one less than the interfaces.
            0x004 => word((SPIS as u64 / 32) | u64::from(self.last_interface()) << 5),
            0x008 => word(crate::IIDR),
            // GICD_PIDR2, which IHI 0048B calls ICPIDR2 : version 2 of the architecture.
            0xfe8 => word(0x2b),
            0x080..0x08c => word(self.groups(access.offset)),
            0x100..0x200 => word(self.enables(access.offset)),
            0x400..0x460 | 0x800..0x860 if is_aligned_part(access, 4) => {
                let first = access.offset % 0x400;
                let bytes = (0..u64::from(access.size)).map(|n| (n, first + n));
                bytes.fold(0, |value, (n, intid)| {
                    let byte = match access.offset {
                        0x400..0x460 => self.priority(intid) & PRIORITY,
                        _ => self.targets_of(intid),
                    };
                    value | u64::from(byte) << (8 * n)
                })
            }
            0x200..0xd00 => self.common(access).0,
            _ => 0,
        }
    }

    fn write(&mut self, access: Access, value: u64) -> Changed {
        match access.offset {
            0x000 => {
                let enables = (value & 3) as u8;
                self.distributor.version2.control = enables;
                self.distributor.set_forwarding(enables != 0);
                return Changed::Everywhere;
            }
            0x080..0x08c if access.size == 4 => self.set_groups(access.offset, value),
            0x100..0x200 if access.size == 4 => self.set_enables(access.offset, value),
            0x400..0x460 | 0x800..0x860 if is_aligned_part(access, 4) => {
                let first = access.offset % 0x400;
                for n in 0..u64::from(access.size) {
                    let byte = (value >> (8 * n)) as u8;
                    match access.offset {
                        0x400..0x460 => {
                            let kept = self.priority(first + n) & GROUP;
                            self.set_priority(first + n, byte & PRIORITY | kept);
                        }
                        _ => self.set_targets(first + n, byte),
                    }
                }
            }
            // The pending states of SGIs are read-only here (4.3.7, 4.3.8).
            0x200 | 0x280 => {
                let write = Some(value & !SGI_BITS);
                return self.common(Access { write, ..access }).1;
            }
            0x204..0xd00 => return self.common(access).1,
            _ => return Changed::Nothing,
        }
        self.distributor.forward(self.private);
        match access.offset {
            // The registers of INTIDs 0 to 31 are this vCPU's own.
            0x080 | 0x100 | 0x180 | 0x400..0x420 => Changed::Here,
            _ => Changed::Everywhere,
        }
    }

    /// The registers that a GICv3 has alike: in the redistributor for INTIDs 0 to 31, and in the
    /// distributor for others.
    fn common(&mut self, access: Access) -> (u64, Changed) {
        let is_private = matches!(access.offset, 0x200 | 0x280 | 0x300 | 0x380 | 0xc00 | 0xc04);
        if !is_private {
            let (value, changed) = self.distributor.access(access);
            return (
                value,
                if changed {
                    Changed::Everywhere
                } else {
                    Changed::Nothing
                },
            );
        }
        let frames = Redistributor {
            private: self.private,
            affinity: 0,
            number: 0,
            last: true,
            lines: self.lines,
        };
        let offset = access.offset + SGI_FRAME;
        let (value, changed) = frames.access(Access { offset, ..access });
        (
            value,
            if changed {
                Changed::Here
            } else {
                Changed::Nothing
            },
        )
    }

    fn last_interface(&self) -> u32 {
        let all = self.cpus.iter().map(|cpu| cpu.interface);
        all.max().unwrap_or(0)
    }

    /// The priority of `intid`, whose bit 0 is the group.
    fn priority(&self, intid: u64) -> u8 {
        let private = self.private.priority.get(intid as usize);
        private.map_or_else(
            || self.distributor.priority_of(intid as u32).unwrap_or(0),
            |priority| priority.load(Relaxed),
        )
    }

    fn set_priority(&mut self, intid: u64, priority: u8) {
        match self.private.priority.get(intid as usize) {
            Some(private) => private.store(priority, Relaxed),
            None => self.distributor.set_priority(intid as u32, priority),
        }
    }

    /// GICD_IGROUPR at `offset`.
    fn groups(&self, offset: u64) -> u64 {
        let first = 8 * (offset % 0x80);
        (0..32).fold(0, |bits, n| {
            bits | u64::from(self.priority(first + n) & GROUP) << n
        })
    }

    fn set_groups(&mut self, offset: u64, value: u64) {
        let first = 8 * (offset % 0x80);
        for n in 0..32 {
            let group = (value >> n) as u8 & GROUP;
            self.set_priority(first + n, self.priority(first + n) & PRIORITY | group);
        }
    }

    /// GICD_ISENABLER or GICD_ICENABLER at `offset`.
    fn enables(&self, offset: u64) -> u64 {
        match offset % 0x80 / 4 {
            0 => self.private.version2.wanted.load(Acquire).into(),
            n @ 1..=2 => self.distributor.version2.wanted >> (32 * (n - 1)) & 0xffff_ffff,
            _ => 0,
        }
    }

    fn set_enables(&mut self, offset: u64, bits: u64) {
        let wanted = match offset {
            0x100..0x180 => self.enables(offset) | bits,
            _ => self.enables(offset) & !bits,
        };
        match offset % 0x80 / 4 {
            0 => self.private.version2.wanted.store(wanted as u32, Release),
            n @ 1..=2 => {
                let shift = 32 * (n - 1);
                let all = &mut self.distributor.version2.wanted;
                *all = *all & !(0xffff_ffff << shift) | wanted << shift;
            }
            _ => {}
        }
    }

    /// GICD_ITARGETSR of `intid`: for SGIs and PPIs, this vCPU's interface, and 0 if it has the only one
    /// (4.3.12).
    fn targets_of(&self, intid: u64) -> u8 {
        match intid.checked_sub(PRIVATE.into()) {
            Some(n) => self.distributor.version2.targets[n as usize],
            // A guest without this register takes its interface for the first.
            None if self.cpus.len() == 1 && self.me == 0 => 0,
            None => 1 << self.me,
        }
    }

    /// Routes an SPI to the first of its targets. The others need not get it (the 1-N model, GICD_ITARGETSR).
    fn set_targets(&mut self, intid: u64, targets: u8) {
        let Some(n) = intid.checked_sub(PRIVATE.into()) else {
            return;
        };
        let existing = self.cpus.iter();
        let existing = existing.filter(|cpu| targets >> cpu.interface & 1 != 0);
        let first = existing.clone().min_by_key(|cpu| cpu.interface);
        let all = existing.fold(0, |bits, cpu| bits | 1 << cpu.interface);
        self.distributor.version2.targets[n as usize] = all;
        let route = first.map_or(NOBODY, |cpu| cpu.affinity);
        self.distributor.route_spi(n as usize, route);
    }
}

/// A route that no vCPU has.
const NOBODY: u64 = 1 << 63;

impl Distributor {
    /// Brings the enables of a vCPU's SGIs and PPIs, and of the SPIs, in line with the groups that are
    /// forwarded.
    pub fn forward(&mut self, private: &Private) {
        private.forward(&self.version2);
        let forwarded = (0..SPIS).filter(|&n| self.version2.forwards(self.priority[n]));
        let forwarded = forwarded.fold(0, |bits, n| bits | 1 << n);
        self.enabled = self.version2.wanted & forwarded;
    }

    fn set_priority(&mut self, intid: u32, priority: u8) {
        if let Some(one) = self.priority.get_mut((intid - PRIVATE) as usize) {
            *one = priority;
        }
    }

    fn set_forwarding(&mut self, on: bool) {
        self.enables = if on { distributor::FORWARD } else { 0 };
    }

    const fn route_spi(&mut self, n: usize, route: u64) {
        self.route[n] = route;
    }
}
