// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where samples begin and end in the guest's image: the reads of the clock that the
//! compiler's debug information gives to the loops that measure.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use addr2line::Context as Lines;
use anyhow::{Context, Result, ensure};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use crate::debug_info::{self, Slice};
use crate::places;

/// The functions by which loops that measure read the clock, before a sample and after it.
const BEGINS: &str = "sample_begins";
const ENDS: &str = "sample_ends";
/// The function that runs a block of a cell's samples.
const BLOCK: &str = "guest_kernel_shim::bench::block";

/// Addresses in the guest's memory.
#[derive(Debug)]
pub struct Marks {
    /// The function that runs a block.
    pub block: u64,
    begins: BTreeSet<u64>,
    ends: BTreeSet<u64>,
}

impl Marks {
    /// Finds them in the guest's ELF file, which runs at `base`.
    pub fn find(elf: &Path, base: u64) -> Result<Self> {
        let bytes = fs::read(elf).with_context(|| places::shown(elf))?;
        Self::find_in(&bytes, base).with_context(|| places::shown(elf))
    }

    fn find_in(bytes: &[u8], base: u64) -> Result<Self> {
        let file = ElfFile64::<object::Endianness>::parse(bytes)?;
        let block = file.symbols().find(|symbol| {
            let name = symbol.name().unwrap_or_default();
            format!("{:#}", rustc_demangle::demangle(name)) == BLOCK
        });
        let block = block.with_context(|| format!("there is no function {BLOCK}"))?;
        let lines = Lines::from_dwarf(debug_info::dwarf(&file)?)?;
        let mut marks = Self {
            block: base + block.address(),
            begins: BTreeSet::new(),
            ends: BTreeSet::new(),
        };
        for address in clock_reads(&file)? {
            let functions = functions(&lines, address)?;
            let is_of = |name| functions.iter().any(|function| function == name);
            if is_of(BEGINS) {
                marks.begins.insert(base + address);
            } else if is_of(ENDS) {
                marks.ends.insert(base + address);
            }
        }
        ensure!(
            !marks.begins.is_empty(),
            "no read of the clock is of {BEGINS}"
        );
        ensure!(!marks.ends.is_empty(), "no read of the clock is of {ENDS}");
        Ok(marks)
    }

    /// Whether the instruction there begins a sample.
    pub fn begins(&self, address: u64) -> bool {
        self.begins.contains(&address)
    }

    /// Whether the instruction there ends a sample.
    pub fn ends(&self, address: u64) -> bool {
        self.ends.contains(&address)
    }

    #[cfg(test)]
    pub fn of_addresses(begins: &[u64], ends: &[u64]) -> Self {
        Self {
            block: 0,
            begins: begins.iter().copied().collect(),
            ends: ends.iter().copied().collect(),
        }
    }
}

/// Addresses of the instructions `mrs xN, CNTVCT_EL0`.
fn clock_reads(file: &ElfFile64<'_, object::Endianness>) -> Result<Vec<u64>> {
    const READ: u32 = 0xd53b_e040;
    const REGISTER: u32 = 0x1f;
    let mut reads = Vec::new();
    for section in file
        .sections()
        .filter(|one| one.kind() == SectionKind::Text)
    {
        let words = section.data()?.as_chunks::<4>().0.iter();
        let places = (section.address()..).step_by(4).zip(words);
        let found = places.filter(|(_, word)| u32::from_le_bytes(**word) & !REGISTER == READ);
        reads.extend(found.map(|(address, _)| address));
    }
    ensure!(!reads.is_empty(), "nothing in it reads the clock");
    Ok(reads)
}

/// The functions that the instruction at `address` is of: the innermost, and those that it
/// was inlined into.
fn functions(lines: &Lines<Slice<'_>>, address: u64) -> Result<Vec<String>> {
    let mut frames = lines.find_frames(address).skip_all_loads()?;
    let mut names = Vec::new();
    while let Some(frame) = frames.next()? {
        let name = frame.function.as_ref().map(|function| function.raw_name());
        let Some(name) = name.transpose()? else {
            continue;
        };
        let name = format!("{:#}", rustc_demangle::demangle(&name));
        let last = name.rsplit("::").next().unwrap_or_default();
        names.push(last.to_owned());
    }
    Ok(names)
}
