// SPDX-License-Identifier: MIT OR Apache-2.0
//! The value of a list register (ICH_LR\<n\>_EL2, 12.4.6).

/// A list register's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListRegister(pub u64);

const PENDING: u64 = 1 << 62;
const ACTIVE: u64 = 1 << 63;
const HW: u64 = 1 << ListRegister::HW_BIT;
const GROUP1: u64 = 1 << 60;
/// If HW is 0: requests a maintenance interrupt when the interrupt is deactivated.
const EOI: u64 = 1 << 41;

impl ListRegister {
    /// No interrupt.
    pub const EMPTY: Self = Self(0);

    /// Position of the HW bit: the interrupt is mapped to a physical one.
    pub const HW_BIT: u32 = 61;

    /// Returns a pending Group 1 interrupt. With `hw`, its deactivation deactivates that physical INTID.
    #[must_use]
    #[inline(always)]
    pub const fn pending(intid: u32, priority: u8, hw: Option<u32>) -> Self {
        let physical = match hw {
            Some(physical) => HW | (physical as u64) << 32,
            None => 0,
        };
        Self(PENDING | GROUP1 | physical | (priority as u64) << 48 | intid as u64)
    }

    /// Returns the vINTID.
    #[must_use]
    #[inline(always)]
    pub const fn intid(self) -> u32 {
        self.0 as u32
    }

    /// Returns the priority; lower is more urgent.
    #[must_use]
    pub const fn priority(self) -> u8 {
        (self.0 >> 48) as u8
    }

    /// Returns the physical INTID to which the interrupt is mapped.
    #[must_use]
    pub const fn hw(self) -> Option<u32> {
        if self.0 & HW == 0 {
            None
        } else {
            Some((self.0 >> 32 & 0x3ff) as u32)
        }
    }

    /// Records which CPU interface sent an SGI of a GICv2: in the field of the physical INTID, where GICH_LR
    /// has the CPUID (IHI 0048B, 5.3.8).
    #[must_use]
    pub const fn with_sender(self, sender: u32) -> Self {
        Self(self.0 | (sender as u64) << 32)
    }

    /// Returns the CPU interface that sent the SGI.
    #[must_use]
    pub const fn sender(self) -> u32 {
        (self.0 >> 32 & 7) as u32
    }

    /// Whether the interrupt is pending, or active and pending.
    #[must_use]
    #[inline(always)]
    pub const fn is_pending(self) -> bool {
        self.0 & PENDING != 0
    }

    /// Whether the interrupt is active, or active and pending.
    #[must_use]
    pub const fn is_active(self) -> bool {
        self.0 & ACTIVE != 0
    }

    /// Adds the pending state. Active hardware interrupts are not allowed: they must not be in both states
    /// (12.4.6, State).
    #[must_use]
    #[inline(always)]
    pub const fn with_pending(self) -> Self {
        Self(self.0 | PENDING)
    }

    /// Replaces the priority.
    #[must_use]
    pub const fn with_priority(self, priority: u8) -> Self {
        Self(self.0 & !(0xff << 48) | (priority as u64) << 48)
    }

    /// Removes the pending state; returns the empty value if no state is left.
    #[must_use]
    pub const fn without_pending(self) -> Self {
        Self(self.0 & !PENDING).empty_if_inactive()
    }

    /// Adds the active state. A hardware interrupt must not keep the pending state: the physical
    /// GIC keeps it, and shows it again (12.4.6, State).
    #[must_use]
    pub const fn with_active(self) -> Self {
        let dropped = if self.0 & HW == 0 { 0 } else { PENDING };
        Self(self.0 & !dropped | ACTIVE)
    }

    /// Removes the active state; returns the empty value if no state is left.
    #[must_use]
    pub const fn without_active(self) -> Self {
        Self(self.0 & !ACTIVE).empty_if_inactive()
    }

    /// Requests a maintenance interrupt when the interrupt is deactivated. Does nothing for hardware
    /// interrupts, which have no such request.
    #[must_use]
    pub const fn with_end_notice(self) -> Self {
        Self(self.0 | if self.0 & HW == 0 { EOI } else { 0 })
    }

    /// Whether the interrupt signals its deactivation, after which it has no state.
    #[must_use]
    pub const fn signals_end(self) -> bool {
        self.without_active().0 == 0 && self.0 & EOI != 0
    }

    /// Whether the interrupt can be acknowledged: pending and not active.
    #[must_use]
    pub const fn is_waiting(self) -> bool {
        self.is_pending() && !self.is_active()
    }

    /// Returns the value after an acknowledge.
    #[must_use]
    pub const fn after_acknowledge(self) -> Self {
        Self(self.0 & !PENDING | ACTIVE)
    }

    /// Whether the interrupt has been deactivated and signals that (ICH_EISR_EL2).
    #[must_use]
    pub const fn has_ended(self) -> bool {
        self.0 & (PENDING | ACTIVE | HW | EOI) == EOI
    }

    /// Merges this interrupt, which is pending or active, with `new`, which arrives for
    /// the same INTID.
    ///
    /// A hardware interrupt represents the level of a line. If software has set the state of such
    /// an INTID, the register holds a software interrupt, which the level neither starts nor ends.
    /// The physical interrupt then stays active until the register shows that the software
    /// interrupt has ended; then the CPU that took the physical interrupt deactivates it. Two
    /// pending interrupts become one, and one acknowledge takes it.
    #[must_use]
    pub const fn merged_with(self, new: Self) -> Self {
        match (self.0 & HW != 0, new.0 & HW != 0) {
            (true, true) => self,
            (false, true) => self.with_end_notice(),
            (true, false) => Self(self.0 & (PENDING | ACTIVE) | new.0).with_end_notice(),
            (false, false) => Self(self.0 & (PENDING | ACTIVE | EOI) | new.0),
        }
    }

    const fn empty_if_inactive(self) -> Self {
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
    /// A maintenance interrupt while no list register is in the pending state (NPIE).
    pub refill: bool,
    /// A trap on each access to the CPU interface (TALL1 and TC), which [`crate::Delivery::access`]
    /// handles.
    pub traps: bool,
}

/// The list registers of a CPU.
pub trait Bank {
    /// Returns the number of list registers, 1 to 16.
    fn count(&self) -> usize;
    /// Bit n: register n is empty and does not signal the end of its interrupt
    /// (ICH_ELRSR_EL2).
    fn empty(&self) -> u32;
    /// Returns register `n`.
    fn read(&self, n: usize) -> ListRegister;
    /// Sets register `n` so that all later operations see it. This takes a context synchronization
    /// event, since [`Self::empty`] reads another register (DDI 0487K.a, D24.1.2.2).
    fn write(&mut self, n: usize, value: ListRegister);
    /// Sets register `n`, for callers that execute a context synchronization event, such as the return to
    /// the guest, before the next read of any register.
    fn write_last(&mut self, n: usize, value: ListRegister) {
        self.write(n, value);
    }
    /// Makes the CPU serve exactly the requests in `asked`.
    fn ask(&mut self, asked: Asked);
}
