// SPDX-License-Identifier: MIT OR Apache-2.0
//! The value of a list register (ICH_LR\<n\>_EL2, 12.4.6).

/// A list register's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRegister(pub u64);

const PENDING: u64 = 1 << 62;
const ACTIVE: u64 = 1 << 63;
const HW: u64 = 1 << ListRegister::HW_BIT;
const GROUP1: u64 = 1 << 60;
/// Where HW is 0: maintenance interrupt when it is deactivated.
const EOI: u64 = 1 << 41;

impl ListRegister {
    /// Nothing.
    pub const EMPTY: Self = Self(0);

    /// Number of the HW bit: the interrupt is mapped to a physical one.
    pub const HW_BIT: u32 = 61;

    /// A pending Group 1 interrupt; with `hw` its deactivation deactivates that
    /// physical INTID.
    #[must_use]
    #[inline(always)]
    pub const fn pending(intid: u32, priority: u8, hw: Option<u32>) -> Self {
        let physical = match hw {
            Some(physical) => HW | (physical as u64) << 32,
            None => 0,
        };
        Self(PENDING | GROUP1 | physical | (priority as u64) << 48 | intid as u64)
    }

    /// vINTID.
    #[must_use]
    #[inline(always)]
    pub const fn intid(self) -> u32 {
        self.0 as u32
    }

    /// Priority; lower is more urgent.
    #[must_use]
    pub const fn priority(self) -> u8 {
        (self.0 >> 48) as u8
    }

    /// The physical INTID that it is mapped to.
    #[must_use]
    pub const fn hw(self) -> Option<u32> {
        if self.0 & HW == 0 {
            None
        } else {
            Some((self.0 >> 32 & 0x3ff) as u32)
        }
    }

    /// Whether it is pending, or active and pending.
    #[must_use]
    #[inline(always)]
    pub const fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// Whether it is active, or active and pending.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.0 & ACTIVE != 0
    }

    /// With the pending state. Not for hardware interrupts that are active:
    /// those must not be in both states (12.4.6, State).
    #[must_use]
    #[inline(always)]
    pub const fn with_pending(self) -> Self {
        Self(self.0 | PENDING)
    }

    /// With another priority.
    #[must_use]
    pub const fn with_priority(self, priority: u8) -> Self {
        Self(self.0 & !(0xff << 48) | (priority as u64) << 48)
    }

    /// Without the pending state; without any state it is empty.
    #[must_use]
    pub const fn without_pending(self) -> Self {
        Self(self.0 & !PENDING).normal()
    }

    /// With the active state. A hardware interrupt must not keep the pending
    /// one: the physical GIC has that, and shows it again (12.4.6, State).
    #[must_use]
    pub const fn with_active(self) -> Self {
        let dropped = if self.0 & HW == 0 { 0 } else { PENDING };
        Self(self.0 & !dropped | ACTIVE)
    }

    /// Without the active state; without any state it is empty.
    #[must_use]
    pub const fn without_active(self) -> Self {
        Self(self.0 & !ACTIVE).normal()
    }

    /// With the request for a maintenance interrupt when it is deactivated.
    /// Nothing for hardware interrupts, which have no such request.
    #[must_use]
    pub const fn with_notice(self) -> Self {
        Self(self.0 | if self.0 & HW == 0 { EOI } else { 0 })
    }

    /// Whether it has to signal its deactivation, and is not active.
    #[must_use]
    pub const fn says_so(self) -> bool {
        self.without_active().0 == 0 && self.0 & EOI != 0
    }

    /// Whether it can be acknowledged: pending and not active.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        self.is_pending() && !self.is_active()
    }

    /// Returns it as an acknowledge leaves it.
    #[must_use]
    pub const fn acknowledged(self) -> Self {
        Self(self.0 & !PENDING | ACTIVE)
    }

    /// Whether it has been deactivated and signals that (ICH_EISR_EL2).
    #[must_use]
    pub const fn has_ended(self) -> bool {
        self.0 & (PENDING | ACTIVE | HW | EOI) == EOI
    }

    /// Merges this interrupt, which is pending or active, with `new`, which arrives for
    /// the same INTID.
    ///
    /// A hardware interrupt stands for the level of a line. Where software has set
    /// the state of such an INTID, the register holds a software interrupt, which
    /// the level neither begins nor ends, and the physical interrupt stays active: the
    /// CPU that took it deactivates it when the register shows that this one has ended.
    /// Two pending states become one: one acknowledge takes both.
    #[must_use]
    pub const fn joined(self, new: Self) -> Self {
        match (self.0 & HW != 0, new.0 & HW != 0) {
            (true, true) => self,
            (false, true) => self.with_notice(),
            (true, false) => Self(self.0 & (PENDING | ACTIVE) | new.0).with_notice(),
            (false, false) => Self(self.0 & (PENDING | ACTIVE | EOI) | new.0),
        }
    }

    const fn normal(self) -> Self {
        if self.0 & (PENDING | ACTIVE) == 0 {
            Self::EMPTY
        } else {
            self
        }
    }
}

/// Requests of a list to its CPU (ICH_HCR_EL2, 12.4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The maintenance interrupt while no list register is in the pending state (NPIE).
    pub refill: bool,
    /// A trap of each access to the CPU interface (TALL1 and TC): it is to go to
    /// [`crate::Delivery::access`].
    pub traps: bool,
}

/// The list registers of a CPU.
pub trait Bank {
    /// How many there are, 1 to 16.
    fn count(&self) -> usize;
    /// Bit n: register n is empty and does not signal the end of its interrupt
    /// (ICH_ELRSR_EL2).
    fn empty(&self) -> u32;
    /// Register `n`.
    fn read(&self, n: usize) -> ListRegister;
    /// Sets register `n`, as everything that follows sees it. [`Self::empty`] reads
    /// another register, so that takes a context synchronization event (DDI 0487K.a,
    /// D24.1.2.2).
    fn write(&mut self, n: usize, value: ListRegister);
    /// Sets register `n` where such an event comes before any of them is looked at again: the
    /// return to the guest, for instance.
    fn write_last(&mut self, n: usize, value: ListRegister) {
        self.write(n, value);
    }
    /// Makes the CPU do exactly what `asked` contains.
    fn ask(&mut self, asked: Asked);
}
