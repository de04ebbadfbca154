// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the source function of each instruction from debug information.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use anyhow::Result;
use gimli::{AttributeValue, DebugInfoOffset, EndianSlice, LittleEndian, SectionId, UnitOffset};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

/// A section of an image's file.
type Slice<'d> = EndianSlice<'d, LittleEndian>;
type Dwarf<'d> = gimli::Dwarf<Slice<'d>>;
type Unit<'d> = gimli::Unit<Slice<'d>>;
type Entry<'d> = gimli::DebuggingInformationEntry<Slice<'d>>;

/// A contiguous piece of a function's code, inlined or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The function's own name, without type parameters.
    pub function: String,
    /// The file of the caller if the function was inlined, or else empty.
    pub caller: String,
    /// Link addresses of the first instruction and of the first byte after the piece.
    pub range: (u64, u64),
}

impl Piece {
    /// Whether all of `other` lies in this piece.
    pub const fn contains(&self, other: &Self) -> bool {
        self.range.0 <= other.range.0 && other.range.1 <= self.range.1
    }
}

/// Returns the pieces of the functions whose names are `wanted`.
pub fn pieces(
    file: &ElfFile64<'_, object::Endianness>,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Piece>> {
    let all = Source::of(read_dwarf(file)?)?;
    let dwarf = &all.dwarf;
    let mut pieces = Vec::new();
    for unit in &all.units {
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
            if !inlined && entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let Some(function) = all.name(unit, entry)? else {
                continue;
            };
            if !wanted(&function) {
                continue;
            }
            let caller = match inlined {
                true => calling_file(dwarf, unit, entry)?,
                false => String::new(),
            };
            let mut ranges = dwarf.die_ranges(unit, entry)?;
            while let Some(range) = ranges.next()? {
                pieces.push(Piece {
                    function: function.to_string(),
                    caller: caller.clone(),
                    range: (range.begin, range.end),
                });
            }
        }
    }
    Ok(pieces)
}

/// Reads the debug information of an image. The result is empty if the file has no debug information.
fn read_dwarf<'d>(file: &ElfFile64<'d, object::Endianness>) -> gimli::Result<Dwarf<'d>> {
    let section = |id: SectionId| {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.data().ok());
        data.unwrap_or_default()
    };
    gimli::Dwarf::load(|id| Ok(Slice::new(section(id), LittleEndian)))
}

/// The debug information. Each unit is read only once. With link-time optimisation, most functions are copies of a
/// function in another unit, and reading a unit means parsing the abbreviations of all its entries.
struct Source<'d> {
    dwarf: Dwarf<'d>,
    /// The units, sorted by offset.
    units: Vec<Unit<'d>>,
    /// The names of functions of which copies were found. Few functions have most of the copies.
    originals: RefCell<HashMap<DebugInfoOffset, Name>>,
}

type Name = Option<Rc<str>>;

impl<'d> Source<'d> {
    fn of(dwarf: Dwarf<'d>) -> Result<Self> {
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            units.push(dwarf.unit(header)?);
        }
        Ok(Self {
            dwarf,
            units,
            originals: RefCell::default(),
        })
    }

    /// Returns the name of a function. For a copy of a function, returns the original's name.
    fn name(&self, unit: &Unit<'d>, entry: &Entry<'d>) -> Result<Name> {
        if let Some(value) = entry.attr_value(gimli::DW_AT_name) {
            let text = self.dwarf.attr_string(unit, value)?;
            let text = text.to_string_lossy();
            return Ok(text.split('<').next().map(Rc::from));
        }
        let (unit, offset) = match entry.attr_value(gimli::DW_AT_abstract_origin) {
            Some(AttributeValue::UnitRef(offset)) => (unit, offset),
            Some(AttributeValue::DebugInfoRef(offset)) => match self.locate(unit, offset) {
                Some(found) => found,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let Some(place) = offset.to_debug_info_offset(unit) else {
            return Ok(None);
        };
        if let Some(name) = self.originals.borrow().get(&place) {
            return Ok(name.clone());
        }
        let name = self.name(unit, &unit.entry(offset)?)?;
        self.originals.borrow_mut().insert(place, name.clone());
        Ok(name)
    }

    /// Returns the unit that contains `offset`, which is often the unit `here`, and the offset in that unit.
    fn locate<'s>(
        &'s self,
        here: &'s Unit<'d>,
        offset: DebugInfoOffset,
    ) -> Option<(&'s Unit<'d>, UnitOffset)> {
        if let Some(offset) = offset.to_unit_offset(here) {
            return Some((here, offset));
        }
        let begins = |unit: &Unit<'d>| unit.header.debug_info_offset();
        let after = self
            .units
            .partition_point(|unit| begins(unit).is_some_and(|begin| begin <= offset));
        let unit = &self.units[after.checked_sub(1)?];
        Some((unit, offset.to_unit_offset(unit)?))
    }
}

/// Returns the file that calls an inlined function.
fn calling_file(dwarf: &Dwarf<'_>, unit: &Unit<'_>, entry: &Entry<'_>) -> Result<String> {
    let number = match entry.attr_value(gimli::DW_AT_call_file) {
        Some(AttributeValue::FileIndex(number)) => number,
        Some(other) => other.udata_value().unwrap_or(0),
        None => return Ok(String::new()),
    };
    let Some(program) = &unit.line_program else {
        return Ok(String::new());
    };
    let header = program.header();
    let Some(file) = header.file(number) else {
        return Ok(String::new());
    };
    let mut path = String::new();
    if let Some(directory) = file.directory(header) {
        path += &dwarf.attr_string(unit, directory)?.to_string_lossy();
        path.push('/');
    }
    path += &dwarf.attr_string(unit, file.path_name())?.to_string_lossy();
    Ok(path)
}
