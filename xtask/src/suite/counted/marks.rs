// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where samples begin and end in the guest's image: the reads of the clock that the
//! compiler's debug information gives to the loops that measure.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use addr2line::Context as Lines;
use addr2line::gimli::{self, EndianSlice, LittleEndian};
use anyhow::{Context, Result, ensure};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use crate::places;

/// Files of the loops that measure: in each, one line reads the clock before a sample and
/// a later one after it.
const LOOPS: [&str; 2] = ["src/workload/pingpong.rs", "src/workload/ipi.rs"];
/// The file of the function that reads the clock.
const CLOCK: &str = "src/clock.rs";
/// The function that runs a block of a cell's samples.
const BLOCK: &str = "guest_kernel_shim::bench::block";

type Slice<'e> = EndianSlice<'e, LittleEndian>;

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
        let lines = lines(&file)?;
        let mut marks = Self {
            block: base + block.address(),
            begins: BTreeSet::new(),
            ends: BTreeSet::new(),
        };
        let mut reads: BTreeMap<(&str, u32), Vec<u64>> = BTreeMap::new();
        for address in clock_reads(&file)? {
            if let Some(place) = place_of(&lines, address)? {
                reads.entry(place).or_default().push(base + address);
            }
        }
        for name in LOOPS {
            let of_loop: Vec<_> = reads
                .iter()
                .filter(|((file, _), _)| *file == name)
                .collect();
            let [(_, begins), (_, ends)] = of_loop[..] else {
                let lines: Vec<u32> = of_loop.iter().map(|((_, line), _)| *line).collect();
                anyhow::bail!("{name}: the clock is read in lines {lines:?}, not in two");
            };
            marks.begins.extend(begins);
            marks.ends.extend(ends);
        }
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

/// The debug information.
fn lines<'e>(file: &ElfFile64<'e, object::Endianness>) -> Result<Lines<Slice<'e>>> {
    let section = |id: gimli::SectionId| -> Result<Slice<'e>> {
        let section = file.section_by_name(id.name());
        let data = section.map_or(Ok(&[][..]), |section| section.data())?;
        Ok(EndianSlice::new(data, LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section)?;
    Ok(Lines::from_dwarf(dwarf)?)
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

/// The loop that reads the clock at `address` by itself, and the line.
fn place_of(lines: &Lines<Slice<'_>>, address: u64) -> Result<Option<(&'static str, u32)>> {
    let mut frames = lines.find_frames(address).skip_all_loads()?;
    let mut in_clock = 0;
    while let Some(frame) = frames.next()? {
        let place = frame.location;
        let Some((file, line)) = place.and_then(|place| Some((place.file?, place.line?))) else {
            continue;
        };
        if file.ends_with(CLOCK) {
            // One function of it is the read; a second one is a pause, for instance.
            in_clock += 1;
        } else if in_clock > 0 {
            let name = LOOPS.into_iter().find(|name| file.ends_with(name));
            return Ok(name.filter(|_| in_clock == 1).map(|name| (name, line)));
        }
    }
    Ok(None)
}
