// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPU interface while accesses to it trap: emulates the hardware's use of the list registers
//! (chapter 6; 12.2, the ICV registers), and handles active interrupts that are in no list register.

use trap::interface::Register;

use crate::bits::ones;
use crate::delivery::{Delivery, Interface, Shared};
use crate::lr::ListRegister;
use crate::lr_cache::mask;

/// The INTID read if there is nothing to acknowledge (2.2.1). INTIDs from `SPECIAL` up to the LPIs are not interrupts.
const NONE: u32 = 1023;
const SPECIAL: u32 = 1020;
/// Running priority of a CPU that handles no interrupt.
const IDLE: u32 = 0xff;

/// The registers of a virtual CPU interface except the list registers.
pub trait Registers {
    /// Returns the features of the interface (ICH_VTR_EL2).
    fn kind(&self) -> u64;
    /// Returns RSS and ExtRange, in their bit positions in ICC_CTLR_EL1.
    fn ranges(&self) -> u64;
    /// Returns the guest's settings of the interface (ICH_VMCR_EL2).
    fn settings(&self) -> u64;
    /// Sets the guest's settings.
    fn set_settings(&mut self, settings: u64);
    /// Returns the running priorities, one bit each (ICH_AP1R\<n\>_EL2).
    fn active_priorities(&self, n: usize) -> u32;
    /// Sets the running priorities.
    fn set_active_priorities(&mut self, n: usize, bits: u32);
}

/// Action that is due after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// No action.
    Nothing,
    /// [`Delivery::evaluate`] on this vCPU.
    Here,
    /// [`Delivery::evaluate`] on every vCPU.
    Everywhere,
}

/// A field of ICH_VMCR_EL2 (12.4.8): its lowest bit, and its largest value.
#[derive(Clone, Copy)]
struct Field(u32, u64);

impl Field {
    const ENABLE: Self = Self(1, 1);
    const COMMON: Self = Self(4, 1);
    const SPLIT: Self = Self(9, 1);
    const BINARY_POINT: Self = Self(18, 7);
    const COMMON_BINARY_POINT: Self = Self(21, 7);
    const MASK: Self = Self(24, 0xff);
}

impl<I: Interface + Registers, S: Shared> Delivery<'_, I, S> {
    /// Emulates a trapped access: a read, or a write of a value. Returns the value read (0 for a
    /// write) and the work that is due; `None` if there is no such register.
    pub fn access(&mut self, register: Register, write: Option<u64>) -> Option<(u64, Due)> {
        if let Some(value) = write {
            return self.write(register, value).map(|due| (0, due));
        }
        let control = || {
            // CBPR (0), EOImode (1), and PRIbits, IDbits, SEIS and A3V as in ICH_VTR_EL2.
            let kind = self.interface.kind();
            let fixed = (kind >> 29 & 7) << 8 | (kind >> 23 & 7) << 11 | (kind >> 21 & 1) << 15;
            let fixed = fixed | (kind >> 22 & 1) << 14 | self.interface.ranges();
            fixed | self.get_vmcr(Field::COMMON) | self.get_vmcr(Field::SPLIT) << 1
        };
        let value = match register {
            Register::Acknowledge => self.acknowledge().into(),
            Register::HighestPending => self.highest().map_or(NONE, |(_, one)| one.intid()).into(),
            Register::ActivePriorities(n) if n < self.word_count() => {
                self.interface.active_priorities(n).into()
            }
            Register::Running => self.running_priority().into(),
            Register::CommonBinaryPoint => self.get_vmcr(Field::COMMON_BINARY_POINT),
            Register::BinaryPoint if self.get_vmcr(Field::COMMON) != 0 => {
                7.min(self.get_vmcr(Field::COMMON_BINARY_POINT) + 1)
            }
            Register::BinaryPoint => self.get_vmcr(Field::BINARY_POINT),
            Register::Enable => self.get_vmcr(Field::ENABLE),
            Register::Mask => self.get_vmcr(Field::MASK),
            Register::Control => control(),
            Register::ActivePriorities(_) | Register::End | Register::Deactivate => return None,
        };
        Some((value, Due::Nothing))
    }

    fn write(&mut self, register: Register, value: u64) -> Option<Due> {
        let least = 7 - u64::from(self.preemption_bits());
        match register {
            Register::End => return Some(self.end_interrupt(value as u32 & 0xff_ffff)),
            Register::Deactivate => return Some(self.deactivate(value as u32 & 0xff_ffff)),
            Register::ActivePriorities(n) if n < self.word_count() => {
                self.interface.set_active_priorities(n, value as u32);
            }
            Register::CommonBinaryPoint => {
                self.set_vmcr(Field::COMMON_BINARY_POINT, (value & 7).max(least));
            }
            Register::BinaryPoint if self.get_vmcr(Field::COMMON) != 0 => {}
            Register::BinaryPoint => self.set_vmcr(Field::BINARY_POINT, (value & 7).max(least + 1)),
            Register::Enable => self.set_vmcr(Field::ENABLE, value & 1),
            Register::Mask => {
                let bits = (self.interface.kind() >> 29 & 7) + 1;
                self.set_vmcr(Field::MASK, value & 0xff & 0xff << (8 - bits));
            }
            Register::Control => {
                self.set_vmcr(Field::COMMON, value & 1);
                self.set_vmcr(Field::SPLIT, value >> 1 & 1);
            }
            Register::ActivePriorities(_)
            | Register::Acknowledge
            | Register::HighestPending
            | Register::Running => return None,
        }
        Some(Due::Nothing)
    }

    /// Makes the interrupt active that a read of ICC_IAR1_EL1 returns, and returns its INTID.
    fn acknowledge(&mut self) -> u32 {
        let Some((slot, one)) = self.highest() else {
            return NONE;
        };
        let priority = u32::from(one.priority());
        let group = priority & self.group_mask();
        if u64::from(priority) >= self.get_vmcr(Field::MASK) || group >= self.running_priority() {
            return NONE;
        }
        let level = group >> (8 - self.preemption_bits());
        let word = self.interface.active_priorities(level as usize / 32);
        self.interface
            .set_active_priorities(level as usize / 32, word | 1 << (level % 32));
        self.interface.write(slot, one.after_acknowledge());
        self.list.refill(&mut self.interface);
        one.intid()
    }

    /// ICC_EOIR1_EL1: priority drop and, with EOImode 0, deactivation. Does nothing if no priority
    /// is active.
    fn end_interrupt(&mut self, intid: u32) -> Due {
        let words = 0..self.word_count();
        let mut words = words.map(|n| (n, self.interface.active_priorities(n)));
        let Some((n, word)) = words.find(|(_, word)| *word != 0) else {
            return Due::Nothing;
        };
        if intid >= SPECIAL {
            return Due::Nothing;
        }
        self.interface.set_active_priorities(n, word & (word - 1));
        match self.get_vmcr(Field::SPLIT) {
            0 => self.deactivate(intid),
            _ => Due::Nothing,
        }
    }

    /// ICC_DIR_EL1, or the second half of [`Self::end_interrupt`]. Any vCPU may end an SPI that
    /// software has set active by a register write.
    pub(crate) fn deactivate(&mut self, intid: u32) -> Due {
        if let Some(old) = self.list.deactivate(&mut self.interface, intid) {
            if let Some(physical) = old.hw() {
                self.interface.deactivate(physical);
            }
            return if old.signals_end() {
                Due::Here
            } else {
                Due::Nothing
            };
        }
        match self
            .shared
            .with(|distributor| distributor.deactivate(intid))
        {
            true => Due::Everywhere,
            false => Due::Nothing,
        }
    }

    /// Returns the most urgent interrupt that can be acknowledged, and its register. `None` if Group 1 is
    /// disabled.
    fn highest(&self) -> Option<(usize, ListRegister)> {
        let interface = &self.interface;
        let used = !interface.empty() & mask(interface.count());
        let used = ones(used.into()).map(|slot| (slot as usize, interface.read(slot as usize)));
        let waiting = used.filter(|(_, one)| one.is_waiting());
        let best = waiting.min_by_key(|(_, one)| one.priority());
        best.filter(|_| self.get_vmcr(Field::ENABLE) != 0)
    }

    /// Returns the running priority; [`IDLE`] if the CPU handles no interrupt.
    fn running_priority(&self) -> u32 {
        let words = (0..self.word_count()).map(|n| (n as u32, self.interface.active_priorities(n)));
        let mut words = words.filter(|(_, word)| *word != 0);
        words.next().map_or(IDLE, |(n, word)| {
            (32 * n + word.trailing_zeros()) << (8 - self.preemption_bits())
        })
    }

    /// Returns the bits of a priority that decide whether it preempts (4.8.2).
    fn group_mask(&self) -> u32 {
        let point = match self.get_vmcr(Field::COMMON) {
            0 => self.get_vmcr(Field::BINARY_POINT).saturating_sub(1),
            _ => self.get_vmcr(Field::COMMON_BINARY_POINT),
        };
        0xff << (point + 1) & 0xff
    }

    fn preemption_bits(&self) -> u32 {
        (self.interface.kind() >> 26 & 7) as u32 + 1
    }

    /// Returns how many active-priority registers there are.
    fn word_count(&self) -> usize {
        1 << self.preemption_bits().saturating_sub(5)
    }

    fn get_vmcr(&self, Field(shift, all): Field) -> u64 {
        self.interface.settings() >> shift & all
    }

    fn set_vmcr(&mut self, Field(shift, all): Field, value: u64) {
        let rest = self.interface.settings() & !(all << shift);
        self.interface.set_settings(rest | value << shift);
    }
}
