// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the end of a block and an access of it look like (DDI 0487K.a, C4.1).

/// Returns the target of a direct branch at `pc`.
pub fn target(word: u32, pc: u64) -> Option<u64> {
    let (shift, bits) = match word {
        // B, BL
        _ if word & 0x7c00_0000 == 0x1400_0000 => (0, 26),
        // B.cond, CBZ, CBNZ
        _ if word & 0xfe00_0000 == 0x5400_0000 => (5, 19),
        _ if word & 0x7e00_0000 == 0x3400_0000 => (5, 19),
        // TBZ, TBNZ
        _ if word & 0x7e00_0000 == 0x3600_0000 => (5, 14),
        _ => return None,
    };
    let offset = i64::from(word >> shift) << (64 - bits) >> (64 - bits);
    Some(pc.wrapping_add_signed(4 * offset))
}

/// Whether an instruction is a load or a store.
pub const fn is_access(word: u32) -> bool {
    word >> 25 & 0b0101 == 0b0100
}
