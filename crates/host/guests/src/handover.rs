// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces a kernel's WFE and WFET instructions by YIELD, for an emulator that runs all CPUs in one thread.
//!
//! In QEMU, a WFE returns at once if the monitor is armed, and the thread continues to run the same CPU until the CPU's
//! turn ends. The CPU that would end the wait does not run meanwhile, so a poll by WFE always lasts until its limit. A
//! YIELD ends the turn. So each WFE and WFET of a kernel is replaced by a YIELD before the kernel is loaded. One
//! instruction replaces one instruction, so counts stay the same.

/// YIELD (DDI 0487K.a, C6.2.500).
const YIELD: u32 = 0xd503_203f;
/// WFE (C6.2.495).
const WFE: u32 = 0xd503_205f;
/// WFET, without the register (C6.2.496).
const WFET: u32 = 0xd503_1000;
/// Number of words to examine on each side of a word.
const AROUND: usize = 8;
/// At most this many of these words may look like something other than code. Functions are aligned with zeros, which do
/// not look like code.
const PADDING: usize = 4;

/// Replaces each WFE and WFET in the code of `image` by a YIELD. Returns the number of replaced instructions.
pub fn replace_waits(image: &mut [u8]) -> u64 {
    let (words, _) = image.as_chunks_mut::<4>();
    let places: Vec<usize> = (0..words.len())
        .filter(|&n| is_wait_instruction(words[n]) && is_among_code(words, n))
        .collect();
    for &n in &places {
        words[n] = YIELD.to_le_bytes();
    }
    places.len() as u64
}

/// Whether a word is a WFE or a WFET.
fn is_wait_instruction(word: [u8; 4]) -> bool {
    let word = u32::from_le_bytes(word);
    word == WFE || word & !0x1f == WFET
}

/// Whether the words around the `n`th word look like code. The two words next to this word have to look like code. Of
/// the other words, at most [`PADDING`] may look like something else.
fn is_among_code(words: &[[u8; 4]], n: usize) -> bool {
    let range = |reach: usize| n.saturating_sub(reach)..words.len().min(n + 1 + reach);
    let others = |reach| {
        let around = words[range(reach)].iter();
        around.filter(|word| !looks_like_code(**word)).count()
    };
    others(1) == 0 && others(AROUND) <= PADDING
}

/// Whether a word is in one of the instruction groups that a kernel uses (C4.1): data processing, branches and system,
/// loads and stores. Zero, small numbers, SVE and SME are outside these groups.
fn looks_like_code(word: [u8; 4]) -> bool {
    u32::from_le_bytes(word) >> 25 & 0xf >= 0b0100
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;

    fn image(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn waits_of_code_become_yields_one_for_one() {
        let mut words = [NOP; 40];
        (words[10], words[20], words[30]) = (WFE, WFET | 7, 0xd503_207f);
        // Padding before the next function.
        (words[12], words[13]) = (0, 0);
        let mut bytes = image(&words);
        // A part of a word follows the last word.
        bytes.push(0);
        assert_eq!(replace_waits(&mut bytes), 2);
        (words[10], words[20]) = (YIELD, YIELD);
        assert_eq!(bytes[..160], image(&words));
        assert_eq!(replace_waits(&mut bytes), 0, "there are no more");
    }

    #[test]
    fn data_stays() {
        // None of these is code: numbers, a table of pointers, text, and a word that is not aligned.
        let mut numbers = [NOP; 40];
        (numbers[10], numbers[11]) = (WFE, 7);
        let mut table = [NOP; 40];
        table[6..14].copy_from_slice(&[1, 0, 2, NOP, WFE, NOP, 3, 0]);
        let mut text = image(&[NOP; 10]);
        text.extend(b"wait for event: \0");
        text.extend([0; 3]);
        text.extend(WFE.to_le_bytes());
        text.extend(image(&[NOP; 10]));
        let mut unaligned = image(&[NOP; 10]);
        unaligned.extend([0x40, 0x03]);
        unaligned.extend(WFE.to_le_bytes());
        unaligned.extend(image(&[NOP; 10]));
        for mut bytes in [image(&numbers), image(&table), text, unaligned] {
            let before = bytes.clone();
            assert_eq!(replace_waits(&mut bytes), 0);
            assert_eq!(bytes, before);
        }
    }
}
