// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the code of a boot, and the functions in it.

use std::collections::HashMap;
use std::sync::Arc;

use guests::debug_info::Lines;
use guests::symbols;
use memchr::memmem;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, SectionKind};
use running::traces::{CodeFile, Form};

use crate::kallsyms;

/// The function of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The functions into which the compiler inlined it, the outermost one first.
    pub callers: Vec<String>,
    /// The symbol before the instruction, and the distance of the instruction from it.
    pub symbol: (String, u64),
}

/// A file that contains code.
pub struct CodeImage {
    /// Its name.
    pub name: &'static str,
    /// The exception levels at which the file's code runs.
    levels: &'static [u8],
    /// The parts of the file's code, each with its link address.
    parts: Vec<(u64, Arc<[u8]>)>,
    /// The link address and the name of each symbol, sorted.
    symbols: Vec<(u64, String)>,
    lines: Option<Lines>,
}

impl CodeImage {
    /// Reads a file. If it has no symbols, its functions have no names.
    pub fn read_file(file: &CodeFile) -> Self {
        let kernel = |first| Self {
            name: file.name,
            levels: file.levels,
            parts: vec![(0, file.bytes.clone())],
            symbols: kallsyms::functions(&file.bytes, first).unwrap_or_default(),
            lines: None,
        };
        match file.form {
            Form::Elf => Self::of_elf(file).unwrap_or_else(|| kernel("")),
            Form::Image => kernel("_text"),
            Form::Xen => kernel("_start"),
        }
    }

    fn of_elf(file: &CodeFile) -> Option<Self> {
        let elf = ElfFile64::<object::Endianness>::parse(&*file.bytes).ok()?;
        let texts = elf.sections().filter(|one| one.kind() == SectionKind::Text);
        let parts = texts.filter_map(|one| Some((one.address(), one.data().ok()?.into())));
        let mut symbols = symbols::named(&elf);
        symbols.sort();
        symbols.dedup_by_key(|(address, _)| *address);
        Some(Self {
            name: file.name,
            levels: file.levels,
            parts: parts.collect(),
            symbols,
            lines: Lines::of(&elf).ok(),
        })
    }

    /// Whether functions are known by name.
    pub fn has_symbols(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Returns the function of the instruction at link address `address`. If functions were inlined there, returns the
    /// innermost one that belongs to this workspace. If the file has no symbols, a range of 4 KiB counts as a function.
    pub fn function(&self, address: u64) -> Function {
        let after = self.symbols.partition_point(|(start, _)| *start <= address);
        let (start, name) = match after.checked_sub(1).map(|last| &self.symbols[last]) {
            Some((start, name)) => (*start, name.clone()),
            None => (address & !0xfff, format!("{:#x}", address & !0xfff)),
        };
        let frames = self.lines.as_ref();
        let mut frames = frames.map_or(Vec::new(), |lines| lines.frames(address));
        let ours = frames.iter().position(|frame| frame.ours);
        frames.drain(..ours.unwrap_or(0));
        let mut names = frames.into_iter().map(|frame| short_name(&frame.function));
        let innermost = names.next().filter(|name| !name.is_empty());
        let mut callers: Vec<String> = names.collect();
        callers.reverse();
        Function {
            name: innermost.unwrap_or_else(|| short_name(&name)),
            callers,
            symbol: (name, address - start),
        }
    }

    /// Returns the instructions at link address `address`.
    fn instructions_at(&self, address: u64, count: usize) -> Option<&[u8]> {
        self.parts.iter().find_map(|(start, bytes)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(at..at.checked_add(4 * count)?)
        })
    }

    /// Returns the possible distances from the file's link address to its load address, if the file contains the code
    /// of `block`. Each of these distances is a multiple of the page size.
    fn bases(&self, block: &critical::Code) -> impl Iterator<Item = u64> {
        let words = bytes(&block.words);
        self.parts.iter().flat_map(move |(start, bytes)| {
            let all: Vec<usize> = memmem::find_iter(bytes, &words).collect();
            let addresses = all.into_iter().map(move |at| start + at as u64);
            let bases = addresses.map(|at| block.address.wrapping_sub(at));
            bases.filter(|base| base.is_multiple_of(PAGE))
        })
    }

    /// Whether the file's code runs at exception level `level`.
    fn runs_at(&self, level: u8) -> bool {
        self.levels.contains(&level)
    }

    /// Whether two files have the same code and run at a common exception level.
    pub fn is_like(&self, other: &Self) -> bool {
        let meets = self.levels.iter().any(|level| other.runs_at(*level));
        meets && self.parts == other.parts
    }

    /// Returns the size of the file's code, in bytes.
    fn code_size(&self) -> usize {
        self.parts.iter().map(|(_, bytes)| bytes.len()).sum()
    }
}

/// Shortens a name: removes closures, types in angle brackets, and all but the last two parts of the path.
fn short_name(name: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        depth += i32::from(*c == '<');
        let is_outside = depth == 0;
        depth -= i32::from(*c == '>' && depth > 0);
        is_outside
    };
    let plain: String = name.chars().filter(outside).collect();
    let parts = plain.split("::");
    let parts: Vec<&str> = parts
        .filter(|part| !part.is_empty() && !part.starts_with('{'))
        .collect();
    match &parts[parts.len().saturating_sub(2)..] {
        [] => name.to_owned(),
        last => last.join("::"),
    }
}

/// Finds the addresses at which files were loaded, from the code that ran.
pub struct Places<'i> {
    images: &'i [CodeImage],
    /// For each file and each distance from its link address to its load address, the number of blocks that agree on
    /// the distance (in a small file that no long blocks identify: the number of their instructions).
    bases: HashMap<(usize, u64), usize>,
}

/// Smallest number of instructions with which a block identifies its place in a file.
const ENOUGH: usize = 6;
/// The largest file, in bytes, in which short blocks are searched for.
const SMALL: usize = 4 << 20;
const PAGE: u64 = 0x1000;
/// The smallest number of blocks that must agree on a distance.
const AGREE: usize = 3;

impl<'i> Places<'i> {
    /// Finds the load distances of the files from `blocks`.
    pub fn find(images: &'i [CodeImage], blocks: &[critical::Code]) -> Self {
        let mut places = Self {
            images,
            bases: HashMap::new(),
        };
        places.find_distances_by_long_blocks(blocks);
        for (n, image) in images.iter().enumerate() {
            if image.code_size() <= SMALL && places.bases.keys().all(|(known, _)| *known != n) {
                places.find_distance_by_all_blocks(n, blocks);
            }
        }
        places
    }

    /// Finds load distances from blocks that occur only once in a file.
    fn find_distances_by_long_blocks(&mut self, blocks: &[critical::Code]) {
        let mut votes: HashMap<(usize, u64), usize> = HashMap::new();
        for block in blocks.iter().filter(|block| block.words.len() >= ENOUGH) {
            if self.find_place(block).is_some() {
                continue;
            }
            let images = self.images.iter().enumerate();
            for (n, image) in images.filter(|(_, image)| image.runs_at(block.level)) {
                let mut bases = image.bases(block);
                let (Some(base), None) = (bases.next(), bases.next()) else {
                    continue;
                };
                let agree = votes.entry((n, base)).or_default();
                *agree += 1;
                if *agree >= AGREE {
                    self.bases.insert((n, base), *agree);
                }
            }
        }
    }

    /// Finds the load distance of file `n` from blocks of any length: the distance on which most instructions agree.
    /// This search is needed where each access to a system register ends a block, so that no block is long.
    fn find_distance_by_all_blocks(&mut self, n: usize, blocks: &[critical::Code]) {
        let mut votes: HashMap<u64, usize> = HashMap::new();
        let here = |block: &&critical::Code| self.images[n].runs_at(block.level);
        for block in blocks.iter().filter(here) {
            for base in self.images[n].bases(block) {
                *votes.entry(base).or_default() += block.words.len();
            }
        }
        let best = votes
            .into_iter()
            .max_by_key(|(base, words)| (*words, *base));
        if let Some((base, words)) = best.filter(|(_, words)| *words >= AGREE * ENOUGH) {
            self.bases.insert((n, base), words);
        }
    }

    /// Returns the file of a block and its link address. A kernel changes some of its instructions when it boots, so
    /// the right file is the one in which the most instructions are equal. For a short block, even the right file may
    /// have no equal instructions.
    pub fn find_place(&self, block: &critical::Code) -> Option<(usize, u64)> {
        let words = bytes(&block.words);
        let here = self.bases.iter();
        let here = here.filter(|((n, _), _)| self.images[*n].runs_at(block.level));
        let covers = here.filter_map(|((n, base), agree)| {
            let address = block.address.wrapping_sub(*base);
            let there = self.images[*n].instructions_at(address, block.words.len())?;
            let (there, _) = there.as_chunks::<4>();
            let (words, _) = words.as_chunks::<4>();
            let equal = there.iter().zip(words).filter(|(one, other)| one == other);
            Some((equal.count(), *agree, *n, address))
        });
        let covers: Vec<_> = covers.collect();
        let is_alone = covers.len() == 1 && block.words.len() < ENOUGH;
        let (equal, _, n, address) = covers.into_iter().max()?;
        (is_alone || 2 * equal >= block.words.len()).then_some((n, address))
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_without_types_and_closures() {
        for (name, short) in [
            ("pipe_write", "pipe_write"),
            ("wait::idle::Idle<T>::wait_for::<U>", "Idle::wait_for"),
            ("<wait::pause::Wfet as wait::Pause>::load", "load"),
            ("bench::pass::run::{closure#0}", "pass::run"),
            (
                "<impl core::fmt::Debug for X>",
                "<impl core::fmt::Debug for X>",
            ),
        ] {
            assert_eq!(short_name(name), short, "{name}");
        }
    }

    #[test]
    fn files_are_found_by_the_code_that_ran() {
        let words: Vec<u32> = (0..4096_u32)
            .map(|n| n.wrapping_mul(2_654_435_761))
            .collect();
        let image = CodeImage {
            name: "linux",
            levels: &[1],
            parts: vec![(0x1_0000, bytes(&words).into())],
            symbols: vec![(0x1_0000, "first".into()), (0x1_1000, "second".into())],
            lines: None,
        };
        let block = |n: usize, moved: u64, count: usize| critical::Code {
            level: 1,
            address: 0x1_0000 + moved + 4 * n as u64,
            words: words[n..n + count].to_vec(),
        };
        let base = 0xffff_8000_0000_0000;
        let mut blocks: Vec<_> = [0, 100, 200, 1100].map(|n| block(n, base, 8)).into();
        let images = [image];
        let places = Places::find(&images, &blocks);
        // One block is too short to be identified by itself, and the kernel has changed another one.
        blocks.push(block(1200, base, 1));
        blocks[1].words[3] ^= 1;
        let names: Vec<_> = blocks
            .iter()
            .map(|block| {
                places
                    .find_place(block)
                    .map(|(n, at)| images[n].function(at).name)
            })
            .collect();
        let [first, second] = ["first", "second"].map(|name| Some(name.to_owned()));
        assert_eq!(
            names,
            [first.clone(), first.clone(), first, second.clone(), second]
        );
        let mut other = block(300, base, 8);
        other.words.iter_mut().for_each(|word| *word ^= 1);
        assert_eq!(places.find_place(&other), None);
    }
}
