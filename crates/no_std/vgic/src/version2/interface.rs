// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's CPU interface (GICV as its GICC) while it is not mapped for the guest: emulates what
//! hardware does with the list registers. Unlike [`crate::trapped`], it has both groups.

use super::{GROUP, PRIORITY, SGIS};
use crate::Access;
use crate::bits::ones;
use crate::delivery::{Delivery, Interface, Shared};
use crate::lr::ListRegister;
use crate::lr_cache::mask;
use crate::trapped::{Due, Registers};

/// Nothing to acknowledge (1023), or only an interrupt of the other group (1022).
const NONE: u32 = 1023;
const OTHER_GROUP: u32 = 1022;
/// Running priority of a CPU that handles no interrupt.
const IDLE: u8 = 0xff;

/// GICV_CTLR, as GICC_CTLR (4.4.1), and GICH_VMCR: EnableGrp0 (0), EnableGrp1 (1), AckCtl (2), FIQEn (3), CBPR (4), EOImode (9).
const CONTROL: u64 = 0x21f;
const ACK_CTL: u64 = 1 << 2;
const COMMON: u64 = 1 << 4;
const SPLIT: u64 = 1 << 9;
/// GICH_VMCR (5.3.3): VMABP (20:18), VMBP (23:21), VMPriMask (31:27).
const ALIASED_POINT: u32 = 18;
const POINT: u32 = 21;
const MASK: u32 = 24;

/// The registers that acknowledge and end interrupts: for Group 0 or, if aliased, for Group 1 alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// GICC_IAR, GICC_EOIR, GICC_HPPIR.
    Plain,
    /// GICC_AIAR, GICC_AEOIR, GICC_AHPPIR.
    Aliased,
}

impl<I: Interface + Registers, S: Shared> Delivery<'_, I, S> {
    /// Emulates an access to the guest's CPU interface; returns the value read (0 for a write) and the
    /// work that is due.
    pub fn access_interface(&mut self, access: Access) -> (u64, Due) {
        let settings = self.interface.settings();
        if access.size != 4 {
            return (0, Due::Nothing);
        }
        let Some(value) = access.write else {
            let value = match access.offset {
                0x00 => settings & CONTROL,
                0x04 => settings >> MASK & 0xff,
                0x08 => settings >> POINT & 7,
                0x0c => self.acknowledge_by(By::Plain).into(),
                0x14 => self.running().into(),
                0x18 => self.highest_by(By::Plain).1.into(),
                0x1c => settings >> ALIASED_POINT & 7,
                0x20 => self.acknowledge_by(By::Aliased).into(),
                0x28 => self.highest_by(By::Aliased).1.into(),
                0xd0 => self.interface.active_priorities(0).into(),
                // GICV_IIDR: version 2 of the architecture (19:16), like GICC_IIDR.
                0xfc => 0x2_0000,
                _ => 0,
            };
            return (value, Due::Nothing);
        };
        let set = |all: u64, shift: u32| settings & !(all << shift) | (value & all) << shift;
        let settings = match access.offset {
            0x00 => set(CONTROL, 0),
            0x04 => set(PRIORITY.into(), MASK),
            0x08 => set(7, POINT),
            0x1c => set(7, ALIASED_POINT),
            0x10 | 0x24 => return (0, self.end_by(value as u32)),
            0x1000 => return (0, self.deactivate(value as u32 & 0x3ff)),
            0xd0 => {
                self.interface.set_active_priorities(0, value as u32);
                settings
            }
            _ => settings,
        };
        self.interface.set_settings(settings);
        (0, Due::Nothing)
    }

    /// The most urgent pending interrupt whose group is enabled, with its register, and the INTID that
    /// that a read through `by` shows.
    fn highest_by(&self, by: By) -> (Option<(usize, ListRegister)>, u32) {
        let interface = &self.interface;
        let settings = interface.settings();
        let used = !interface.empty() & mask(interface.count());
        let used = ones(used.into()).map(|slot| (slot as usize, interface.read(slot as usize)));
        let waiting = used.filter(|(_, one)| one.is_waiting());
        let enabled =
            waiting.filter(|(_, one)| settings >> u32::from(one.priority() & GROUP) & 1 != 0);
        let Some((slot, one)) = enabled.min_by_key(|(_, one)| one.priority()) else {
            return (None, NONE);
        };
        let group1 = one.priority() & GROUP != 0;
        match (group1, by) {
            (true, By::Plain) if settings & ACK_CTL == 0 => (None, OTHER_GROUP),
            (false, By::Aliased) => (None, NONE),
            _ => {
                // Only an SGI has a sender (4.4.4); in its place, a timer's interrupt has the physical INTID.
                let sender = match one.intid() {
                    0..SGIS => one.sender(),
                    _ => 0,
                };
                (Some((slot, one)), one.intid() | sender << 10)
            }
        }
    }

    fn acknowledge_by(&mut self, by: By) -> u32 {
        let (Some((slot, one)), value) = self.highest_by(by) else {
            return self.highest_by(by).1;
        };
        let settings = self.interface.settings();
        let priority = one.priority() & PRIORITY;
        let group = priority & self.preemption_mask(one.priority() & GROUP != 0);
        if u64::from(priority) >= settings >> MASK & 0xff || group >= self.running() {
            return NONE;
        }
        let active = self.interface.active_priorities(0);
        let level = group >> 3;
        self.interface.set_active_priorities(0, active | 1 << level);
        self.interface.write(slot, one.after_acknowledge());
        self.list.refill(&mut self.interface);
        value
    }

    /// Drops the running priority and, unless EOImode is set, deactivates the interrupt.
    fn end_by(&mut self, value: u32) -> Due {
        let active = self.interface.active_priorities(0);
        if active == 0 || value & 0x3ff >= OTHER_GROUP - 2 {
            return Due::Nothing;
        }
        self.interface
            .set_active_priorities(0, active & (active - 1));
        match self.interface.settings() & SPLIT {
            0 => self.deactivate(value & 0x3ff),
            _ => Due::Nothing,
        }
    }

    fn running(&self) -> u8 {
        match self.interface.active_priorities(0) {
            0 => IDLE,
            active => (active.trailing_zeros() as u8) << 3,
        }
    }

    /// The bits of a priority that decide whether it preempts (GICC_BPR, 4.4.3).
    fn preemption_mask(&self, group1: bool) -> u8 {
        let settings = self.interface.settings();
        let point = match group1 && settings & COMMON == 0 {
            true => (settings >> ALIASED_POINT & 7).saturating_sub(1),
            false => settings >> POINT & 7,
        };
        PRIORITY & (0xffu32 << (point + 1)) as u8
    }
}
