// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assigns purposes to the instructions of an image.

mod lines;

use anyhow::{Result, bail};
use cost::SampleMark;
use critical::{Class, Image, Reasons, WRITE_SGIR};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use lines::Piece;

/// The guest's functions whose names mark samples.
const BEGIN: &str = "sample_begins";
const END: &str = "sample_ends";
const RECORD: &str = "record";
const CELL: &str = "samples_of_cell";
/// The guest's function that adds to a statistics counter.
const TALLY: &str = "add_many";
/// The function of an iterator that starts the next round of a loop, and the function that it calls in a loop over
/// numbers. In any other loop, `next` is part of the measured work.
const NEXT: &str = "next";
const NUMBER: &str = "spec_next";
/// Labels of the two instructions in an interrupt handler that set a flag.
const FLAGS: [&str; 2] = ["el1_irq_flag", "el1_irq_flag_version2"];
/// Label of the instruction that acknowledges an interrupt from a GICv2.
const IAR: &str = "el1_irq_iar_version2";
/// The section with a program's own code.
const TEXT: &str = ".text";
/// The largest distance between a mark and its clock read, in instructions. The compiler may move other instructions
/// between them.
const NEAR: usize = 8;
/// The guest's files with the measured work.
const WORKLOADS: &str = "/workload/";

/// Returns the code of the ELF file `bytes`. The code runs at exception level `level`: a Linux program at 0, our guest
/// at 1, the hypervisor at 2.
///
/// # Errors
///
/// The file is not an ELF file, or lacks an instruction that marks samples.
pub fn of(level: u64, bytes: &[u8]) -> Result<Image> {
    let file = ElfFile64::<object::Endianness>::parse(bytes)?;
    let mut code = Code::of(level, &file)?;
    code.mark_by_word()?;
    if level == 0 {
        code.mark_by_mark()?;
    }
    if level == 1 {
        let wanted = [BEGIN, END, RECORD, TALLY, NEXT, NUMBER];
        let pieces = lines::pieces(&file, |name| wanted.contains(&name))?;
        code.mark_by_source(&pieces);
        code.mark_by_symbol(&file)?;
        for (name, kind) in [(BEGIN, Reasons::BEGIN), (END, Reasons::END)] {
            if !code.0.kinds.iter().any(|one| one.has(kind)) {
                bail!("no instruction comes from {name}, which marks samples");
            }
        }
    }
    if level == 2 {
        code.mark_sends(&lines::pieces(&file, |name| name == WRITE_SGIR)?);
    }
    Ok(code.0)
}

/// An image whose instructions are being assigned their purposes.
struct Code(Image);

impl Code {
    fn of(level: u64, file: &ElfFile64<'_, object::Endianness>) -> Result<Self> {
        // A Linux program also has sections with the start code of its C library.
        let is_ours = |name: &str| level != 0 || name == TEXT;
        let sections = file.sections();
        let mut texts = sections.filter(|section| {
            section.kind() == SectionKind::Text && section.name().is_ok_and(is_ours)
        });
        let (Some(text), None) = (texts.next(), texts.next()) else {
            bail!("it has not one section of code");
        };
        let (words, _) = text.data()?.as_chunks();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        Ok(Self(Image {
            level,
            address: text.address(),
            kinds: vec![Reasons::NONE; words.len()],
            words,
        }))
    }

    /// Marks each instruction by its encoding.
    fn mark_by_word(&mut self) -> Result<()> {
        let Image {
            words,
            kinds,
            level,
            ..
        } = &mut self.0;
        let store = match level {
            1 => Some(Reasons::STORES_SGIR),
            2 => Some(Reasons::FORWARDS_SGIR),
            _ => None,
        };
        if store.is_some_and(|store| !words.contains(&store)) {
            bail!(
                "no instruction at EL{level} is the store to GICD_SGIR that `critical::Reasons` knows"
            );
        }
        for n in 0..words.len() {
            let kind = Reasons::of_word(words[n]);
            kinds[n] = kinds[n].and(kind);
            if kind.has(Reasons::PAUSE) && n + 1 < kinds.len() {
                kinds[n + 1] = kinds[n + 1].and(Reasons::RESUME);
            }
        }
        for n in 0..words.len().saturating_sub(2) {
            if is_count(&words[n..n + 3]) {
                mark(&mut kinds[n..n + 3], Class::Statistics);
            }
        }
        Ok(())
    }

    /// Finds the instructions that read the clock, and the instructions that count samples, by the marks next to them.
    fn mark_by_mark(&mut self) -> Result<()> {
        let Image { words, kinds, .. } = &mut self.0;
        let marks = words.iter().enumerate();
        let marks: Vec<(usize, SampleMark)> = marks
            .filter_map(|(n, &word)| Some((n, SampleMark::decode(word)?)))
            .collect();
        for mark in SampleMark::ALL {
            if marks.iter().all(|(_, known)| *known != mark) {
                bail!("no instruction is the mark {mark:?} of samples");
            }
        }
        let cells = marks.iter().filter(|(_, mark)| *mark == SampleMark::Cell);
        if cells.count() != 1 {
            bail!(
                "more than one instruction is the mark of a cell, which tells where the program is"
            );
        }
        for (n, mark) in marks {
            let reads = |&n: &usize| {
                let word = words.get(n).copied().unwrap_or_default();
                Reasons::clock_register(word).is_some() && n + 1 < kinds.len()
            };
            let (kind, place) = match mark {
                SampleMark::Begin => (Reasons::BEGIN, (n + 1..=n + NEAR).find(reads)),
                SampleMark::End => (Reasons::END, (n.saturating_sub(NEAR)..n).rfind(reads)),
                SampleMark::Record => (Reasons::RECORD, Some(n)),
                SampleMark::Cell => (Reasons::CELL, Some(n)),
            };
            let Some(place) = place else {
                bail!("no clock is read at the mark {mark:?} of a sample");
            };
            kinds[place] = kinds[place].and(kind);
            if place != n {
                kinds[place + 1] = kinds[place + 1].and(Reasons::VALUE);
            }
        }
        Ok(())
    }

    /// Marks the stores to GICD_SGIR in `pieces`. They take its address from a general-purpose register.
    fn mark_sends(&mut self, pieces: &[Piece]) {
        let Image {
            words,
            kinds,
            address,
            ..
        } = &mut self.0;
        for (n, (word, kind)) in words.iter().zip(kinds).enumerate() {
            let place = *address + 4 * n as u64;
            let sends = |piece: &Piece| piece.range.0 <= place && place < piece.range.1;
            if Reasons::sends_by_store(*word) && pieces.iter().any(sends) {
                *kind = kind.and(Reasons::SEND);
            }
        }
    }

    /// Returns the kinds of the instructions at link addresses from `begin` up to `end`.
    fn kinds_at(&mut self, (begin, end): (u64, u64)) -> &mut [Reasons] {
        let index = |address: u64| (address.wrapping_sub(self.0.address) / 4) as usize;
        let (begin, end) = (index(begin), index(end));
        self.0.kinds.get_mut(begin..end).unwrap_or_default()
    }

    /// Marks instructions by the source functions that contain them.
    fn mark_by_source(&mut self, pieces: &[Piece]) {
        let rounds = pieces.iter().filter(|one| one.function == NEXT);
        let rounds: Vec<&Piece> = rounds
            .filter(|one| one.caller.contains(WORKLOADS))
            .collect();
        for piece in pieces {
            let works = piece.caller.contains(WORKLOADS);
            match piece.function.as_str() {
                TALLY => mark(self.kinds_at(piece.range), Class::Statistics),
                NUMBER if rounds.iter().any(|round| round.contains(piece)) => {
                    mark(self.kinds_at(piece.range), Class::Loop);
                }
                RECORD if works => self.mark_record(piece.range),
                BEGIN => self.mark_clock(piece.range, Reasons::BEGIN),
                END => {
                    mark(self.kinds_at(piece.range), Class::Clock);
                    self.mark_clock(piece.range, Reasons::END);
                }
                _ => {}
            }
        }
    }

    /// Marks the instructions from `begin` to `end` as counting a sample. Marks only instructions with lasting effects,
    /// because the compiler may move a load or an addition before the branch that skips a sample.
    fn mark_record(&mut self, (begin, end): (u64, u64)) {
        let first = (begin.wrapping_sub(self.0.address) / 4) as usize;
        let last = (end.wrapping_sub(self.0.address) / 4) as usize;
        let Image { words, kinds, .. } = &mut self.0;
        for n in first..last.min(words.len()) {
            if has_effect(words[n]) {
                kinds[n] = kinds[n].and(Reasons::RECORD);
            }
        }
    }

    /// Marks the clock read between `begin` and `end` with `kind`, and the instruction after it as the one that gets
    /// the value.
    fn mark_clock(&mut self, (begin, end): (u64, u64), kind: Reasons) {
        let first = (begin.wrapping_sub(self.0.address) / 4) as usize;
        let last = (end.wrapping_sub(self.0.address) / 4) as usize;
        let Image { words, kinds, .. } = &mut self.0;
        for n in first..last.min(words.len().saturating_sub(1)) {
            if Reasons::clock_register(words[n]).is_some() {
                kinds[n] = kinds[n].and(kind);
                kinds[n + 1] = kinds[n + 1].and(Reasons::VALUE);
            }
        }
    }

    fn mark_by_symbol(&mut self, file: &ElfFile64<'_, object::Endianness>) -> Result<()> {
        let address = |name: &str| {
            let mut symbols = file.symbols();
            let found = symbols.find(|symbol| symbol.name() == Ok(name));
            found.map(|symbol| symbol.address())
        };
        let Some(cell) = address(CELL) else {
            bail!("it has no {CELL}, which marks cells");
        };
        for kind in self.kinds_at((cell, cell + 4)) {
            *kind = kind.and(Reasons::CELL);
        }
        for flag in FLAGS.into_iter().filter_map(address) {
            mark(self.kinds_at((flag, flag + 8)), Class::Flags);
        }
        if let Some(iar) = address(IAR) {
            for kind in self.kinds_at((iar, iar + 4)) {
                *kind = kind.and(Reasons::ACKNOWLEDGE);
            }
        }
        Ok(())
    }
}

fn mark(kinds: &mut [Reasons], class: Class) {
    kinds
        .iter_mut()
        .for_each(|kind| *kind = kind.of_class(class));
}

/// Whether an instruction stores a register or a pair, or calls a function (DDI 0487K.a,
/// C4.1.92 and C4.1.94).
const fn has_effect(word: u32) -> bool {
    let pair = word & 0x3a40_0000 == 0x2800_0000;
    let one = word & 0x3ac0_0000 == 0x3800_0000;
    let call = word & 0xfc00_0000 == 0x9400_0000;
    pair || one || call
}

/// Whether three instructions add one to a number in memory: an eight-byte load, an addition, and a store to the same
/// address (DDI 0487K.a, C4.1.93 and C4.1.95). Statistics counters have this form in assembly.
fn is_count(words: &[u32]) -> bool {
    const LDR: u32 = 0xf940_0000;
    const STR: u32 = 0xf900_0000;
    /// ADD (immediate) of 1, 64 bits.
    const ADD_1: u32 = 0x9100_0400;
    let &[load, add, store] = words else {
        return false;
    };
    let register = load & 0x1f;
    load & 0xffc0_0000 == LDR
        && store == load - LDR + STR
        && add == ADD_1 | register << 5 | register
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_undone_is_known() {
        for (word, done) in [
            (0xf900_1d54, true),  // str x20, [x10, #0x38]
            (0xf829_690a, true),  // str x10, [x8, x9]
            (0xb900_1d54, true),  // str w20, [x10, #0x1c]
            (0xa901_2d4a, true),  // stp x10, x11, [x10, #0x10]
            (0x9400_0010, true),  // bl
            (0xf940_1d54, false), // ldr x20, [x10, #0x38]
            (0xb980_1d54, false), // ldrsw x20, [x10, #0x1c]
            (0xa941_2d4a, false), // ldp x10, x11, [x10, #0x10]
            (0x9100_0694, false), // add x20, x20, #1
            (0x1400_0010, false), // b
        ] {
            assert_eq!(has_effect(word), done, "{word:08x}");
        }
    }

    #[test]
    fn counts_in_memory_are_known() {
        // ldr x20, [x10, #0x38]; add x20, x20, #1; str x20, [x10, #0x38]
        let count = [0xf940_1d54, 0x9100_0694, 0xf900_1d54];
        assert!(is_count(&count));
        for planted in [
            [0xf940_1d54, 0x9100_0a94, 0xf900_1d54], // adds two
            [0xf940_1d54, 0x9100_0694, 0xf900_2154], // stores to another address
            [0xf940_1d54, 0x9100_0694, 0xf900_1d74], // uses another base register
            [0xf940_1d54, 0x9100_0695, 0xf900_1d54], // adds into another register
            [0xb940_1d54, 0x9100_0694, 0xb900_1d54], // has four bytes
        ] {
            assert!(!is_count(&planted), "{planted:08x?}");
        }
    }
}
