// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the bits of a value that matter to the next instruction that uses the value.

/// All bits of a register.
const ALL: u64 = u64::MAX;

/// Returns the bits of X`register` that matter to the first instruction in `after` that uses the register: the mask of
/// an AND, the source of a bit field, or the bit tested by a branch. Returns all bits if no such instruction is found.
pub fn used_bits(register: u8, after: impl IntoIterator<Item = u32>) -> u64 {
    let register = u32::from(register);
    for word in after {
        let first = word >> 5 & 31 == register;
        match word >> 23 & 0x3f {
            // TBZ and TBNZ.
            _ if word >> 25 & 0x3f == 0x1b => {
                let tests = word & 31 == register;
                return if tests {
                    1 << (word >> 26 & 32 | word >> 19 & 31)
                } else {
                    ALL
                };
            }
            // AND, with or without flags. ORR and EOR depend on all bits.
            0x24 if first && matches!(word >> 29 & 3, 0 | 3) => {
                return immediate(word).unwrap_or(ALL);
            }
            // UBFM: if a field is extracted, it has the bits immr to imms. If a field is inserted, it begins at bit 0.
            0x26 if first && word >> 29 & 3 == 2 => {
                let (from, to) = (word >> 16 & 63, word >> 10 & 63);
                return if from <= to {
                    low_ones(to - from + 1) << from
                } else {
                    low_ones(to + 1)
                };
            }
            _ if uses_register(word, register) => return ALL,
            _ => {}
        }
    }
    ALL
}

/// Whether `word` may use or change X`register`, or may leave the block.
fn uses_register(word: u32, register: u32) -> bool {
    // The possible fields for registers: Rd or Rt, Rn, Ra or Rt2, and Rm, if the class has them (DDI 0487K.a, C4.1).
    let fields: &[u32] = match word >> 25 & 15 {
        // The class of branches includes the system instructions, which have the value 0x354 in bits 31:22.
        0b1010 | 0b1011 if word >> 22 == 0x354 => &[0],
        0b1010 | 0b1011 => return true,
        // EXTR has two source registers.
        0b1000 | 0b1001 if word >> 23 & 7 == 7 => &[0, 5, 16],
        0b1000 | 0b1001 => &[0, 5],
        0b0101 | 0b1101 if word >> 24 & 31 == 0b11011 => &[0, 5, 10, 16],
        0b0101 | 0b1101 => &[0, 5, 16],
        _ => &[0, 5, 10, 16],
    };
    fields.iter().any(|place| word >> place & 31 == register)
}

fn low_ones(count: u32) -> u64 {
    ALL >> (64 - count.clamp(1, 64))
}

/// Decodes the immediate of a logical instruction: consecutive ones in an element, which is rotated to the right and
/// repeated (DDI 0487K.a, DecodeBitMasks).
fn immediate(word: u32) -> Option<u64> {
    let (n, rotation, size) = (word >> 22 & 1, word >> 16 & 63, word >> 10 & 63);
    let width = 1u32 << (n << 6 | !size & 63).checked_ilog2()?;
    let run = low_ones((size & (width - 1)) + 1);
    let rotation = rotation & (width - 1);
    let element = if rotation == 0 {
        run
    } else {
        (run >> rotation | run << (width - rotation)) & low_ones(width)
    };
    let repeated = (0..64)
        .step_by(width as usize)
        .fold(0, |all, at| all | element << at);
    let wide = word >> 31 == 1;
    Some(if wide {
        repeated
    } else {
        repeated & 0xffff_ffff
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The assembler generates these words.
    #[test]
    fn the_next_use_tells_the_bits() {
        let nop = 0xd503_201f;
        for (after, bits) in [
            (vec![0x9240_0000], 1),                 // and x0, x0, #1
            (vec![nop, 0x927c_0c01], 0xf0),         // and x1, x0, #0xf0
            (vec![0xf240_041f], 3),                 // tst x0, #3
            (vec![0x1200_1c01], 0xff),              // and w1, w0, #0xff
            (vec![0xd348_2801], 7 << 8),            // ubfx x1, x0, #8, #3
            (vec![0xd360_fc01], 0xffff_ffff << 32), // lsr x1, x0, #32
            (vec![0x3738_0040], 1 << 7),            // tbnz w0, #7, label
            (vec![0xb718_0040], 1 << 35),           // tbnz x0, #35, label
            (vec![0xaa01_0042, 0x9240_0000], 1),    // orr x2, x2, x1
            (vec![0xb240_0000], ALL),               // orr x0, x0, #1
            (vec![0xf900_0020, 0x9240_0000], ALL),  // str x0, [x1]
            (vec![0xb400_0041, 0x9240_0000], ALL),  // cbz x1, label
            (vec![], ALL),
        ] {
            assert_eq!(super::used_bits(0, after.clone()), bits, "{after:x?}");
        }
    }
}
