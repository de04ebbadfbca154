// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes the loads and stores of general registers that a data abort's syndrome does not describe (ISV =
//! 0): the ones with base register write-back, and those of register pairs. Rejects other instructions that the
//! syndrome does not describe: accesses to SIMD and FP registers, exclusive and atomic accesses, and accesses to tags.

use crate::abort::Access;

/// A load or store, decoded from its instruction (C4.1.94, "Loads and Stores").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The access of the first register.
    pub access: Access,
    /// The register of the second access, at the next address.
    pub second: Option<u32>,
    /// The base register; 31 is the stack pointer.
    pub base: u32,
    /// Offset from the base to the address.
    pub offset: i64,
    /// Offset that is added to the base after the access.
    pub write_back: i64,
}

impl Transfer {
    /// Decodes a load or store; returns `None` for any other instruction, or if the result would be
    /// CONSTRAINED UNPREDICTABLE.
    #[must_use]
    pub const fn decode(instruction: u32) -> Option<Self> {
        match instruction >> 24 & 0x3f {
            0b11_1000 => Self::decode_single(instruction),
            0b10_1000 | 0b10_1001 => Self::decode_pair(instruction),
            _ => None,
        }
    }

    /// Decodes a load or store of one register with an immediate, pre- or post-indexed.
    const fn decode_single(instruction: u32) -> Option<Self> {
        let before = match (instruction >> 21 & 1, instruction >> 10 & 3) {
            (0, 0b01) => false,
            (0, 0b11) => true,
            _ => return None,
        };
        let (size, opc) = (instruction >> 30, instruction >> 22 & 3);
        let (register, base) = (instruction & 31, instruction >> 5 & 31);
        let is_any = match opc {
            0 | 1 => true,
            2 => size < 3,
            _ => size < 2,
        };
        if !is_any || register == base && base != 31 {
            return None;
        }
        let immediate = to_signed(instruction >> 12, 9);
        Some(Self {
            access: Access {
                size: 1 << size,
                write: opc == 0,
                register,
                sign_extend: opc >= 2,
                sixty_four: size == 3 || opc == 2,
            },
            second: None,
            base,
            offset: if before { immediate } else { 0 },
            write_back: immediate,
        })
    }

    /// Decodes a load or store of a pair, in each of its four addressing modes.
    const fn decode_pair(instruction: u32) -> Option<Self> {
        let form = instruction >> 23 & 3;
        let write = instruction >> 22 & 1 == 0;
        let (size, sign_extend) = match (instruction >> 30, write, form) {
            (0, ..) => (4, false),
            // LDPSW has no non-temporal form, and STGP has the encoding that a store form of LDPSW would have.
            (1, false, 1..) => (4, true),
            (2, ..) => (8, false),
            _ => return None,
        };
        let (register, second) = (instruction & 31, instruction >> 10 & 31);
        let base = instruction >> 5 & 31;
        let writes_back = matches!(form, 1 | 3);
        let is_base = (register == base || second == base) && base != 31;
        if writes_back && is_base || !write && register == second {
            return None;
        }
        let immediate = to_signed(instruction >> 15, 7) * size as i64;
        Some(Self {
            access: Access {
                size,
                write,
                register,
                sign_extend,
                sixty_four: size == 8 || sign_extend,
            },
            second: Some(second),
            base,
            offset: if form == 1 { 0 } else { immediate },
            write_back: if writes_back { immediate } else { 0 },
        })
    }

    /// Returns the access of each register, with its distance from the first access.
    pub fn accesses(&self) -> impl Iterator<Item = (u64, Access)> + use<> {
        let first = self.access;
        let second = self.second.map(|register| Access { register, ..first });
        let size = u64::from(first.size);
        [Some(first), second]
            .into_iter()
            .flatten()
            .zip(0..)
            .map(move |(access, at)| (at * size, access))
    }

    /// Whether this instruction, with `base` in its base register, explains an abort at `far` with
    /// WnR = `write`. If not, another CPU has replaced the instruction since. The whole
    /// transfer must be in one page, and aligned like accesses to devices.
    #[must_use]
    pub const fn fits(&self, far: u64, write: bool, base: u64) -> bool {
        /// Masks: the bits of an address without its tag, and the bits within the smallest page.
        const ADDRESS: u64 = (1 << 56) - 1;
        const PAGE: u64 = 0xfff;
        let start = base.wrapping_add_signed(self.offset);
        let size = self.access.size as u64;
        let last = (start & PAGE) + size * (1 + self.second.is_some() as u64) - 1;
        self.access.write == write
            && (start ^ far) & ADDRESS == 0
            && start & (size - 1) == 0
            && last <= PAGE
    }
}

/// Returns the lowest `bits` of `field` as a signed number.
const fn to_signed(field: u32, bits: u32) -> i64 {
    let unused = 32 - bits;
    ((field << unused) as i32 >> unused) as i64
}

#[cfg(test)]
mod tests;
