// SPDX-License-Identifier: MIT OR Apache-2.0
//! Direct branches, and loads and stores, by their encoding (DDI 0487K.a, C4.1).

/// Returns the target of a direct branch at `pc`.
#[must_use]
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
#[must_use]
pub const fn is_access(word: u32) -> bool {
    word >> 25 & 0b0101 == 0b0100
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_branches_have_their_targets() {
        for (word, offset) in [
            (0x1400_0002, Some(8)),  // b .+8
            (0x97ff_ffff, Some(-4)), // bl .-4
            (0x54ff_ffe0, Some(-4)), // b.eq .-4
            (0xb400_0061, Some(12)), // cbz x1, .+12
            (0x3500_0061, Some(12)), // cbnz w1, .+12
            (0x3637_ffe1, Some(-4)), // tbz w1, #6, .-4
            (0xd65f_03c0, None),     // ret
            (0xd503_201f, None),     // nop
        ] {
            let expected = offset.map(|offset| 0x1000u64.wrapping_add_signed(offset));
            assert_eq!(target(word, 0x1000), expected, "{word:08x}");
        }
    }

    #[test]
    fn accesses_are_loads_and_stores() {
        for (word, access) in [
            (0xf940_1d54, true),  // ldr x20, [x10, #0x38]
            (0xa901_2d4a, true),  // stp x10, x11, [x10, #0x10]
            (0x885f_fe34, true),  // ldaxr w20, [x17]
            (0x3dc0_0000, true),  // ldr q0, [x0]
            (0x9100_0694, false), // add x20, x20, #1
            (0x1400_0010, false), // b
            (0xd503_205f, false), // wfe
            (0x9ac1_0800, false), // udiv x0, x0, x1
        ] {
            assert_eq!(is_access(word), access, "{word:08x}");
        }
    }
}
