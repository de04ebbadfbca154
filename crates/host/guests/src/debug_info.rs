// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debug information of an image: the source lines of its instructions.

use std::fmt;
use std::path::Path;

use addr2line::Context;
use anyhow::Result;
use gimli::{EndianArcSlice, LittleEndian, SectionId};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use shell::places;

fn section<'d>(file: &ElfFile64<'d, object::Endianness>, id: SectionId) -> &'d [u8] {
    let section = file.section_by_name(id.name());
    let data = section.and_then(|section| section.data().ok());
    data.unwrap_or_default()
}

/// The file with the functions that access device registers. Lines of this file are treated like a library's, because
/// they do not show which register is accessed.
const ACCESSES: &str = "crates/no_std/gic/src/mmio.rs";

/// The lines of an image's code.
pub struct Lines(Context<EndianArcSlice<LittleEndian>>);

impl Lines {
    /// Reads the lines of `file`.
    pub fn of(file: &ElfFile64<'_, object::Endianness>) -> Result<Self> {
        let load =
            |id| Ok::<_, gimli::Error>(EndianArcSlice::new(section(file, id).into(), LittleEndian));
        Ok(Self(Context::from_dwarf(gimli::Dwarf::load(load)?)?))
    }

    /// Returns the functions of the instruction at link address `address`, the innermost one
    /// first. There are several if the compiler inlined some, and none for assembly and other
    /// code without lines.
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        let mut found = Vec::new();
        let Ok(mut frames) = self.0.find_frames(address).skip_all_loads() else {
            return found;
        };
        while let Ok(Some(frame)) = frames.next() {
            let Some((file, line)) = frame.location.and_then(|at| Some((at.file?, at.line?)))
            else {
                continue;
            };
            let ours = Path::new(file).strip_prefix(places::root());
            let name = frame
                .function
                .as_ref()
                .and_then(|name| name.raw_name().ok());
            found.push(Frame {
                function: name.map_or(String::new(), |name| {
                    format!("{:#}", rustc_demangle::demangle(&name))
                }),
                ours: ours.as_ref().is_ok_and(|file| !file.ends_with(ACCESSES)),
                file: ours.map_or(file.into(), |ours| ours.display().to_string()),
                line,
            });
        }
        found
    }

    /// Returns the line of the instruction at link address `address`, as `path:line`. Among inlined functions, this
    /// is the line in the innermost function of this workspace, which explains more than a library's line. `None` for
    /// assembly and other code without lines.
    pub fn line_of_address(&self, address: u64) -> Option<String> {
        let frames = self.frames(address);
        let innermost = frames.iter().find(|frame| frame.ours).or(frames.first())?;
        Some(format!("{}:{}", innermost.file, innermost.line))
    }
}

/// A function of an instruction, and the line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function's name, without its path if the function was inlined.
    pub function: String,
    /// Whether the function is in this workspace.
    pub ours: bool,
    /// The file's path, which is relative to the workspace's root if the file is ours.
    pub file: String,
    pub line: u32,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lines")
    }
}

// The test program itself serves as an image with debug information, on hosts where programs are ELF files.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use object::ObjectSymbol;

    use super::*;

    // The function is on one line, because the first instruction may belong to the heading or to the body.
    #[inline(never)]
    #[rustfmt::skip]
    fn here() -> u32 { std::hint::black_box(line!()) }

    #[test]
    fn an_address_has_the_line_that_it_is_of() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = ElfFile64::parse(&*bytes).unwrap();
        let mut symbols = file.symbols();
        let name = |name: &str| name.contains("debug_info5tests4here");
        let function = symbols
            .find(|symbol| symbol.name().is_ok_and(name))
            .unwrap();
        let lines = Lines::of(&file).unwrap();
        let expected = format!("crates/host/guests/src/debug_info.rs:{}", here());
        assert_eq!(lines.line_of_address(function.address()), Some(expected));
        assert_eq!(lines.line_of_address(u64::MAX - 3), None);
    }
}
