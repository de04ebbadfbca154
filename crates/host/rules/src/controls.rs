// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of control registers.

use crate::register::*;
use crate::tables::root;

/// Values of control registers, as the CPU wrote them. The values start as 0, because the bits that the rules use are 0
/// after reset, or have to be written before use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    /// SCTLR_ELx by exception level. Index 0 is for EL0.
    sctlr: [u64; 4],
    /// HCR_EL2.
    pub hcr: u64,
    /// SCR_EL3.
    pub scr: u64,
    /// CNTHCTL_EL2 and CNTKCTL_EL1.
    pub streams: [u64; 2],
    /// TTBR0_ELx and TCR_ELx by exception level. Index 0 has VTTBR_EL2 and VTCR_EL2.
    tables: [(u64, u64); 3],
    /// MAIR_ELx by level.
    memory: [u64; 3],
}

impl Controls {
    /// Whether the MMU is on for code at `level`: SCTLR_ELx.M.
    #[must_use]
    #[inline]
    pub fn translates(&self, level: u8) -> bool {
        self.sctlr(level) & 1 != 0
    }

    /// Whether code at `level` accesses memory through caches, which it does if SCTLR_ELx.M and C are set. If M is
    /// clear, data accesses are to Device memory, unless HCR_EL2.DC makes them Normal for EL1 (DDI 0487K.a, D8.2.12).
    #[must_use]
    #[inline]
    pub fn uses_caches(&self, level: u8) -> bool {
        const DC: u64 = 1 << 12;
        self.sctlr(level) & 5 == 5 || level < 2 && self.hcr & DC != 0
    }

    /// Returns the SCTLR_ELx that controls code at `level`.
    #[must_use]
    #[inline]
    pub fn sctlr(&self, level: u8) -> u64 {
        self.sctlr[usize::from(level.clamp(1, 3))]
    }

    /// Returns the address of the table at which lookups of EL1 or EL2 begin, and the table's level.
    #[must_use]
    pub fn root(&self, level: u8) -> Option<(u64, u8)> {
        let (base, control) = self.tables[usize::from(level)];
        root(base, control)
    }

    /// Returns what [`Self::root`] would return if TTBR0_ELx were `base`.
    #[must_use]
    pub fn root_from(&self, level: u8, base: u64) -> Option<(u64, u8)> {
        root(base, self.tables[usize::from(level)].1)
    }

    /// Returns the number of address bits that TTBR0_EL1 or TTBR0_EL2 translates.
    #[must_use]
    pub fn address_bits(&self, level: u8) -> u64 {
        64 - (self.tables[usize::from(level)].1 & 0x3f).clamp(16, 39)
    }

    /// Returns MAIR_EL1 or MAIR_EL2.
    #[must_use]
    pub fn mair(&self, level: u8) -> u64 {
        self.memory[usize::from(level)]
    }

    /// Returns the address of the table at which lookups of stage 2 begin, and the table's level.
    #[must_use]
    pub fn guest_root(&self) -> Option<(u64, u8)> {
        self.root(0)
    }

    /// Returns the VMID in VTTBR_EL2, which identifies the guest. A guest may have several tables of stage 2.
    #[must_use]
    pub fn guest(&self) -> u64 {
        self.tables[0].0 >> 48
    }

    pub(crate) fn note_write(&mut self, register: Register, value: u64) {
        match register {
            SCTLR_EL1 => self.sctlr[1] = value,
            SCTLR_EL2 => self.sctlr[2] = value,
            SCTLR_EL3 => self.sctlr[3] = value,
            HCR_EL2 => self.hcr = value,
            SCR_EL3 => self.scr = value,
            TTBR0_EL1 => self.tables[1].0 = value,
            TCR_EL1 => self.tables[1].1 = value,
            TTBR0_EL2 => self.tables[2].0 = value,
            TCR_EL2 => self.tables[2].1 = value,
            MAIR_EL1 => self.memory[1] = value,
            MAIR_EL2 => self.memory[2] = value,
            VTTBR_EL2 => self.tables[0].0 = value,
            VTCR_EL2 => self.tables[0].1 = value,
            CNTHCTL_EL2 => self.streams[0] = value,
            CNTKCTL_EL1 => self.streams[1] = value,
            _ => {}
        }
    }
}
