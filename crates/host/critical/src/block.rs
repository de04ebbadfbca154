// SPDX-License-Identifier: MIT OR Apache-2.0
//! A translated block of instructions. An emulator may leave a block before its end.

use std::collections::BTreeMap;

use crate::{Code, Counts, Reasons};

/// A block. The exception level is part of the translation, so the block runs at the same level each time.
#[derive(Clone, Debug)]
pub struct Block {
    /// Address of the first instruction.
    at: u64,
    level: u8,
    words: Vec<u32>,
    kinds: Vec<Reasons>,
}

impl Block {
    /// Creates the block of `words` at address `at`. `kinds` has the kind of each word.
    #[must_use]
    pub const fn new(at: u64, level: u8, words: Vec<u32>, kinds: Vec<Reasons>) -> Self {
        Self {
            at,
            level,
            words,
            kinds,
        }
    }

    /// Returns the block's code: its level, address and instructions.
    #[must_use]
    pub fn code(&self) -> Code {
        Code {
            level: self.level,
            address: self.at,
            words: self.words.clone(),
        }
    }

    /// Returns the index of the instruction at address `pc`. If `pc` is outside the block, the index is past the end.
    #[must_use]
    pub fn index_of(&self, pc: u64) -> usize {
        usize::try_from(pc.wrapping_sub(self.at) / 4).unwrap_or(usize::MAX)
    }

    /// Counts the block's instructions from index `first` on.
    #[must_use]
    pub fn counts_from(&self, first: usize) -> Counts {
        let mut counts = Counts::default();
        for kind in self.kinds.iter().skip(first) {
            counts.levels[usize::from(self.level)] += 1;
            if let Some(class) = kind.class() {
                counts.classes[class as usize] += 1;
            }
        }
        counts
    }

    /// Returns the index of the instruction before which the block was left, given that the next block begins at
    /// `next`. If the emulator counts instructions, an access to a device has to be the last instruction of its block.
    /// If another instruction follows, the emulator leaves the block, executes the access `alone`, and begins a new
    /// block after it. The function can't tell this from a complete block that ends with an indirect branch to the
    /// instruction after one of the block's own accesses to a device. The sum of a sample would reveal such a mistake.
    #[must_use]
    pub fn index_where_left(&self, next: u64, alone: &LoneAccesses) -> Option<usize> {
        if !self.has_inside(next) {
            return None;
        }
        let index = self.index_of(next);
        let last = self.words.len() - 1;
        let end = self.at + 4 * last as u64;
        let jumped = branch_target(self.words[last], end) == Some(next);
        (alone.has(self.level, next - 4) && !jumped).then_some(index)
    }

    /// Whether `pc` is in the block, but is not its first instruction.
    #[must_use]
    pub fn has_inside(&self, pc: u64) -> bool {
        (1..self.words.len()).contains(&self.index_of(pc))
    }

    /// Whether the block consists of one load or store.
    #[must_use]
    pub fn is_lone_access(&self) -> bool {
        matches!(self.words[..], [word] if is_access(word))
    }
}

/// The accesses to devices that the emulator has executed alone.
///
/// The emulator translates such an access as a separate block, which it executes without a callback. Where a CPU's turn
/// ends after few instructions, the emulator also translates blocks of one instruction, but announces their execution
/// at once. Without this distinction, a CPU that continues within the block that another CPU entered last, as in a loop
/// that both execute, would look as if it had left that block after an access.
#[derive(Clone, Debug, Default)]
pub struct LoneAccesses(BTreeMap<(u8, u64), usize>);

impl LoneAccesses {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Notes that `block`, which is a lone access, has been translated.
    pub fn record_translation(&mut self, block: &Block) {
        *self.0.entry((block.level, block.at)).or_default() += 1;
    }

    /// Notes that the execution of this block was announced, for the first time.
    pub fn record_entry(&mut self, block: &Block) {
        if let Some(unannounced) = self.0.get_mut(&(block.level, block.at)) {
            *unannounced = unannounced.saturating_sub(1);
        }
    }

    /// Whether the access at address `pc` was executed alone.
    fn has(&self, level: u8, pc: u64) -> bool {
        self.0.get(&(level, pc)).is_some_and(|many| *many != 0)
    }
}

/// Returns the target of a direct branch at `pc`.
#[must_use]
pub fn branch_target(word: u32, pc: u64) -> Option<u64> {
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

/// Whether an instruction is a load or a store (DDI 0487K.a, C4.1.95).
#[must_use]
pub const fn is_access(word: u32) -> bool {
    word >> 25 & 0b0101 == 0b0100
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Class;

    /// Returns a block that has a store to a device in the middle. `last` is the block's last instruction.
    fn block(last: u32) -> Block {
        let words = vec![0xd503_201f, 0xf900_0020, 0x9100_0694, last];
        let mut kinds = vec![Reasons::NONE; words.len()];
        kinds[3] = Reasons::NONE.of_class(Class::Loop);
        Block::new(0x1000, 1, words, kinds)
    }

    /// Returns the store of [`block`] as a separate block, and the lone accesses after the block's translation.
    fn lone_store() -> (Block, LoneAccesses) {
        let store = Block::new(0x1004, 1, vec![0xf900_0020], vec![Reasons::NONE]);
        assert!(store.is_lone_access() && !block(0xd65f_03c0).is_lone_access());
        let mut alone = LoneAccesses::new();
        alone.record_translation(&store);
        (store, alone)
    }

    #[test]
    fn an_access_to_a_device_ends_a_block_where_the_next_one_begins() {
        let (_, alone) = lone_store();
        let ends = block(0xd65f_03c0);
        assert_eq!(ends.index_where_left(0x1008, &alone), Some(2));
        // These are the addresses of an instruction that does not follow an access, of the block itself, and of two
        // instructions outside the block.
        for next in [0x100c, 0x1000, 0x1010, 0xff8] {
            assert_eq!(ends.index_where_left(next, &alone), None, "{next:#x}");
        }
        // `b .-4` branches to 0x1008 itself, and `b .-8` does not.
        let left = |last| block(last).index_where_left(0x1008, &alone);
        assert_eq!(left(0x17ff_ffff), None);
        assert_eq!(left(0x17ff_fffe), Some(2));
    }

    #[test]
    fn a_cpu_that_continues_in_the_block_of_another_one_has_not_left_it() {
        let (store, mut alone) = lone_store();
        let ends = block(0xd65f_03c0);
        // The store was translated alone because a turn ended after it: its execution is announced.
        alone.record_entry(&store);
        assert_eq!(ends.index_where_left(0x1008, &alone), None);
        // Later, the store accesses a device.
        alone.record_translation(&store);
        assert_eq!(ends.index_where_left(0x1008, &alone), Some(2));
        // Code of another level at this address is different code.
        let other = Block::new(0x1000, 2, ends.words.clone(), ends.kinds.clone());
        assert_eq!(other.index_where_left(0x1008, &alone), None);
    }

    #[test]
    fn the_rest_of_a_block_is_counted_by_level_and_class() {
        let block = block(0xd65f_03c0);
        let counts = |first| {
            let Counts { levels, classes } = block.counts_from(first);
            (levels, classes)
        };
        assert_eq!(counts(0), ([0, 4, 0, 0], [0, 0, 0, 1]));
        assert_eq!(counts(2), ([0, 2, 0, 0], [0, 0, 0, 1]));
        assert_eq!(counts(9), ([0; 4], [0; 4]));
    }

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
            assert_eq!(branch_target(word, 0x1000), expected, "{word:08x}");
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
