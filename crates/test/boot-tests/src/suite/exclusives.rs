// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the atomic instructions in the guest's two images, found by their encodings: neither image has atomic
//! instructions of the other image's kind, and in both images, the monitor is armed before a wait for events.
//!
//! Only a load exclusive arms the monitor (DDI 0487K.a, B2.12.2); no atomic instruction does. So the image with LSE has
//! load exclusives only in order to wait: a WFE or WFET follows each of them within a few instructions, and there are
//! about as many such waits as in the other image.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, SectionKind};
use plan::{Atomics, Program};
use rules::decode::{Operation, Wait, decode};

use running::images::{self, Guest};
use shell::interrupt;

/// The largest number of instructions from a load exclusive to its wait; these instructions examine the loaded value.
const WAY: usize = 16;

/// Counts of an image's instructions for atomic access.
#[derive(Debug, Default, PartialEq, Eq)]
struct AtomicCounts {
    /// Atomic instructions of FEAT_LSE.
    atomics: usize,
    /// Store exclusives.
    stores: usize,
    /// Load exclusives that no wait follows.
    idle_loads: usize,
    /// Waits for events that follow a load exclusive.
    armed: usize,
}

/// Checks the measuring program's two images, with and without LSE.
pub fn run() -> Result<()> {
    let measuring = Guest::Ours(Program::Measuring);
    let built = interrupt::or(images::build("virt", measuring))?;
    let of = |atomics| {
        let elf = built.guest_elf(atomics);
        counts_in_elf(elf.context("the guest was not built")?)
    };
    check(&of(Atomics::Llsc)?, &of(Atomics::Lse)?)
}

fn check(llsc: &AtomicCounts, lse: &AtomicCounts) -> Result<()> {
    ensure!(
        llsc.atomics == 0 && llsc.stores > 0,
        "the image for llsc has {} instructions of FEAT_LSE, and {} stores exclusive",
        llsc.atomics,
        llsc.stores
    );
    ensure!(
        lse.atomics > 0 && lse.stores == 0 && lse.idle_loads == 0,
        "the image for lse has {} instructions of FEAT_LSE, {} stores exclusive, and {} loads \
         exclusive that no wait follows",
        lse.atomics,
        lse.stores,
        lse.idle_loads
    );
    // The numbers may differ a little: the compiler may copy a loop in one of the images.
    ensure!(
        llsc.armed > 0 && lse.armed.abs_diff(llsc.armed) * 10 <= llsc.armed,
        "the monitor is armed for {} waits in the image for lse, and for {} in the other",
        lse.armed,
        llsc.armed
    );
    Ok(())
}

fn counts_in_elf(elf: &Path) -> Result<AtomicCounts> {
    let bytes = fs::read(elf)?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes)?;
    let mut texts = file.sections();
    let text = texts.find(|section| section.kind() == SectionKind::Text);
    let text = text.with_context(|| format!("{}: it has no code", elf.display()))?;
    let (words, _) = text.data()?.as_chunks();
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    Ok(counts_in(&words))
}

fn counts_in(words: &[u32]) -> AtomicCounts {
    let mut found = AtomicCounts::default();
    let mut armed = BTreeSet::new();
    for (at, &word) in words.iter().enumerate() {
        match decode(word) {
            Some(Operation::Atomic) => found.atomics += 1,
            Some(Operation::StoreExclusive) => found.stores += 1,
            Some(Operation::LoadExclusive) => {
                let waits = waits_after(words, at);
                found.idle_loads += usize::from(waits.is_empty());
                armed.extend(waits);
            }
            _ => {}
        }
    }
    found.armed = armed.len();
    found
}

/// Returns the indexes of the waits for events that can be reached from the instruction at `from`, over any branch,
/// without passing a store exclusive.
fn waits_after(words: &[u32], from: usize) -> Vec<usize> {
    let mut waits = Vec::new();
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    for _ in 0..WAY {
        let mut after = Vec::new();
        for at in next.iter().flat_map(|&at| next_places(words[at], at)) {
            let Some(&word) = words.get(at).filter(|_| seen.insert(at)) else {
                continue;
            };
            match decode(word) {
                Some(Operation::Wait(Wait::Event)) => waits.push(at),
                Some(Operation::Wait(Wait::Bounded)) if is_wfet(word) => waits.push(at),
                Some(Operation::StoreExclusive) => {}
                _ => after.push(at),
            }
        }
        next = after;
    }
    waits
}

/// Returns whether the instruction is WFET, and not WFIT (DDI 0487K.a, C6.2.438).
const fn is_wfet(word: u32) -> bool {
    word & !0x1f == 0xd503_1000
}

/// Returns the indexes of the instructions that may execute after the instruction `word` at index `at` (C4.1.94).
/// Returns none if `word` leaves the function.
fn next_places(word: u32, at: usize) -> Vec<usize> {
    let to = |bits: u32, from: u32| {
        let offset = (word << (32 - bits - from)) as i32 >> (32 - bits);
        at.wrapping_add_signed(offset as isize)
    };
    match word >> 24 {
        // B
        0x14..=0x17 => vec![to(26, 0)],
        // B.cond; CBZ and CBNZ
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => vec![at + 1, to(19, 5)],
        // TBZ and TBNZ
        0x36 | 0x37 | 0xb6 | 0xb7 => vec![at + 1, to(14, 5)],
        // BR, RET, ERET; BLR is excluded, because the callee returns
        0xd6 if word >> 21 & 7 != 1 => Vec::new(),
        _ => vec![at + 1],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LDAXR: u32 = 0x885f_fda1;
    const STXR: u32 = 0x8804_7c23;
    const LDSETAL: u32 = 0xb8e0_3041;
    const WFE: u32 = 0xd503_205f;
    const WFET: u32 = 0xd503_100c;
    const WFI: u32 = 0xd503_207f;
    const NOP: u32 = 0xd503_201f;
    const RET: u32 = 0xd65f_03c0;
    /// A branch to the instruction after the next.
    const B: u32 = 0x1400_0002;
    const B_NE: u32 = 0x5400_0041;
    /// A branch three instructions back.
    const TBZ_BACK: u32 = 0x3607_ffa0;

    #[test]
    fn a_load_exclusive_leads_to_a_wait_or_to_none() {
        for (words, armed) in [
            (&[LDAXR, B_NE, WFE, NOP][..], 1),
            (&[LDAXR, B_NE, NOP, WFET], 1),
            (&[LDAXR, B, NOP, WFE], 1),
            (&[LDAXR, B, WFE, RET], 0),
            (&[WFE, NOP, LDAXR, TBZ_BACK], 1),
            (&[LDAXR, NOP, STXR, WFE], 0),
            (&[LDAXR, RET, WFE], 0),
            (&[LDAXR, WFI], 0),
            (&[LDSETAL, WFE], 0),
        ] {
            let found = counts_in(words);
            assert_eq!(found.armed, armed, "{words:x?}");
        }
        let far: Vec<u32> = [&[LDAXR][..], &[NOP; WAY], &[WFE]].concat();
        assert_eq!(counts_in(&far).idle_loads, 1);
    }

    #[test]
    fn images_that_are_not_what_they_are_called_are_told() {
        let found = |atomics, stores, idle_loads, armed| AtomicCounts {
            atomics,
            stores,
            idle_loads,
            armed,
        };
        let (llsc, lse) = (found(0, 100, 80, 50), found(90, 0, 0, 51));
        check(&llsc, &lse).unwrap();
        for (llsc, lse) in [
            (found(1, 100, 80, 50), found(90, 0, 0, 51)),
            (found(0, 100, 80, 50), found(90, 1, 0, 51)),
            (found(0, 100, 80, 50), found(90, 0, 1, 51)),
            // In the second image, an atomic instruction has replaced the load exclusive before some waits.
            (found(0, 100, 80, 50), found(90, 0, 0, 40)),
            (found(0, 100, 80, 50), found(0, 100, 80, 50)),
        ] {
            check(&llsc, &lse).unwrap_err();
        }
    }
}
