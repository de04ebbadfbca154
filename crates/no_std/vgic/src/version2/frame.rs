// SPDX-License-Identifier: MIT OR Apache-2.0
//! The distributor's registers (IHI 0048B, 4.3), except those that send SGIs or show their senders.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{GROUP, PRIORITY, SGI_BITS, Target};
use crate::bits::is_aligned_part;
use crate::distributor::{self, Distributor, SPIS};
use crate::private::Private;
use crate::redistributor::Redistributor;
use crate::{Access, PRIVATE};

/// Offset of a redistributor's second frame.
const SGI_FRAME: u64 = 0x1_0000;
/// A route to no vCPU.
const NOBODY: u64 = 1 << 63;

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

impl Changed {
    const fn if_so(changed: bool, who: Self) -> Self {
        if changed { who } else { Self::Nothing }
    }
}

/// An access to the distributor, except to the registers that send SGIs ([`super::Sgi`]) and to [`super::SENDERS`].
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
    /// Does the access; returns the value read (0 for a write), and which vCPUs have to evaluate.
    /// If all of them have to, [`Distributor::forward`] is due for each of them first.
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
            // GICD_TYPER (4.3.2): ITLinesNumber (4:0) and CPUNumber (7:5), the number of interfaces less 1.
            0x004 => word((SPIS as u64 / 32) | u64::from(self.last_interface()) << 5),
            0x008 => word(crate::IIDR),
            // GICD_PIDR2, which IHI 0048B calls ICPIDR2 (4.3.18): version 2 of the architecture.
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

    /// Accesses the registers that a GICv3 has, too: in the redistributor for INTIDs 0 to 31, and
    /// in the distributor for others.
    fn common(&mut self, access: Access) -> (u64, Changed) {
        let is_private = matches!(access.offset, 0x200 | 0x280 | 0x300 | 0x380 | 0xc00 | 0xc04);
        if !is_private {
            let (value, changed) = self.distributor.access(access);
            return (value, Changed::if_so(changed, Changed::Everywhere));
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
        // An SGI whose senders were all cleared may still have a pending request.
        let value = match (access.offset, access.write) {
            (0x200 | 0x280, None) if access.size == 4 => {
                value & !SGI_BITS | u64::from(self.private.pending_sgis())
            }
            _ => value,
        };
        (value, Changed::if_so(changed, Changed::Here))
    }

    fn last_interface(&self) -> u32 {
        let all = self.cpus.iter().map(|cpu| cpu.interface);
        all.max().unwrap_or(0)
    }

    /// Returns the priority of `intid`; its bit 0 is the group.
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

    /// GICD_IGROUPR (4.3.4) at `offset`.
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

    /// GICD_ISENABLER (4.3.5) or GICD_ICENABLER (4.3.6) at `offset`.
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

    /// GICD_ITARGETSR of `intid`: for SGIs and PPIs, this vCPU's interface, or 0 if that is the
    /// only interface (4.3.12).
    fn targets_of(&self, intid: u64) -> u8 {
        match intid.checked_sub(PRIVATE.into()) {
            Some(n) => self.distributor.version2.targets[n as usize],
            // A guest that reads 0 here takes its interface for the first.
            None if self.cpus.len() == 1 && self.me == 0 => 0,
            None => 1 << self.me,
        }
    }

    /// Routes an SPI to the first of its targets. The others need not get it (the 1-N model; 4.3.12).
    fn set_targets(&mut self, intid: u64, targets: u8) {
        let Some(n) = intid.checked_sub(PRIVATE.into()) else {
            return;
        };
        if self.cpus.len() == 1 {
            return;
        }
        let existing = self.cpus.iter();
        let existing = existing.filter(|cpu| targets >> cpu.interface & 1 != 0);
        let first = existing.clone().min_by_key(|cpu| cpu.interface);
        let all = existing.fold(0, |bits, cpu| bits | 1 << cpu.interface);
        self.distributor.version2.targets[n as usize] = all;
        let route = first.map_or(NOBODY, |cpu| cpu.affinity);
        self.distributor.route_spi(n as usize, route);
    }
}

impl Distributor {
    /// Makes this the state after reset of a GICv2. Until software names targets, an SPI has none; if there is only
    /// one CPU, it gets all SPIs, and GICD_ITARGETSR is read-only (IHI 0048B, 4.3.12).
    pub fn become_version2(&mut self) {
        let route = match self.cpus() {
            1 => distributor::ANY,
            _ => NOBODY,
        };
        (0..SPIS).for_each(|n| self.route_spi(n, route));
    }

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
