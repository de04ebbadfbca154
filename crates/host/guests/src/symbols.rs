// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds functions and lines for the addresses of a dump.
//!
//! Functions come from the symbol table, which includes assembly; lines come
//! from debug information, which does not.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol, SymbolKind};

use crate::debug_info::{Frame, Lines};

/// Name of the hypervisor on the console.
pub const HYPERVISOR: &str = "hypervisor";
/// Name of the guest on the console.
pub const GUEST: &str = "guest";

/// Returns the address of image `name` from the console's output.
pub fn base(console: &str, name: &str) -> Option<u64> {
    let start = format!("rouse: base {name} 0x");
    let line = console.lines().find_map(|line| line.strip_prefix(&start))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// An image. The file is read only when one of the image's addresses is needed, because most boots end without a dump.
#[derive(Debug)]
struct Image {
    name: &'static str,
    base: Option<u64>,
    bytes: Vec<u8>,
    read: OnceLock<Functions>,
}

#[derive(Debug, Default)]
struct Functions {
    /// Link addresses and names, sorted.
    names: Vec<(u64, String)>,
    end: u64,
    /// `None` for a file without debug information.
    lines: Option<Lines>,
}

/// Functions of the running images.
#[derive(Debug, Default)]
pub struct Symbols {
    images: Vec<Image>,
}

impl Symbols {
    /// Adds an image that the console calls `name`. A file without symbols is not an error:
    /// dumps then have addresses without names.
    pub fn add_image(&mut self, name: &'static str, elf: &Path, base: Option<u64>) {
        let Ok(bytes) = fs::read(elf) else { return };
        let read = OnceLock::new();
        self.images.push(Image {
            name,
            base,
            bytes,
            read,
        });
    }

    /// Sets the address of an image.
    pub fn set_base(&mut self, name: &str, base: u64) {
        for image in self.images.iter_mut().filter(|image| image.name == name) {
            image.base = Some(base);
        }
    }

    /// Returns `line` with the functions' names after their addresses. Both images use the same numbers as addresses,
    /// one of them as intermediate addresses, so without a `level`, an address may belong to either image.
    pub fn annotate(&self, line: &str, level: Option<Level>) -> String {
        let mut annotated = String::new();
        let mut rest = line;
        while let Some((before, token, after)) = next_number(rest) {
            annotated.push_str(before);
            annotated.push_str(token);
            let digits = token.strip_prefix("0x").unwrap_or(token);
            let address = u64::from_str_radix(digits, 16).ok();
            let names = address.map_or(Vec::new(), |address| self.names_of_address(address, level));
            if !names.is_empty() {
                annotated.push_str(&format!(" <{}>", names.join(" or ")));
            }
            rest = after;
        }
        annotated + rest
    }

    /// Returns every CPU's registers as QEMU prints them, with the functions' names.
    pub fn annotate_registers(&self, lines: &[String]) -> Vec<String> {
        let cpus = lines.chunk_by(|_, next| !next.starts_with("CPU#"));
        let annotated = cpus.flat_map(|cpu| {
            let level = cpu.iter().find_map(|line| Level::of(line));
            cpu.iter().map(move |line| self.annotate(line, level))
        });
        annotated.collect()
    }

    /// Returns the symbol and the functions of the instruction at `address`, at exception level `level`. `None` if no
    /// image has the address, or if the image's own address is unknown.
    pub fn find_site(&self, level: Level, address: u64) -> Option<Site> {
        let mut images = self.images.iter().filter(|image| image.level() == level);
        images.find_map(|image| image.find_site(address))
    }

    fn names_of_address(&self, address: u64, level: Option<Level>) -> Vec<String> {
        let images = self.images.iter();
        let images = images.filter(|image| level.is_none_or(|level| image.level() == level));
        images.filter_map(|image| image.describe(address)).collect()
    }
}

/// The location of an instruction in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Name of the image on the console.
    pub image: &'static str,
    /// The symbol before the instruction.
    pub symbol: String,
    /// The functions of the instruction, the innermost one first: see [`Lines::frames`].
    pub frames: Vec<Frame>,
}

/// An exception level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The guest's.
    El1,
    /// The hypervisor's.
    El2,
}

impl Level {
    /// Returns the level in QEMU's line about PSTATE.
    fn of(line: &str) -> Option<Self> {
        let flags = line.strip_prefix("PSTATE=")?;
        let levels = [(" EL1", Self::El1), (" EL2", Self::El2)];
        levels
            .into_iter()
            .find(|(text, _)| flags.contains(text))
            .map(|(_, level)| level)
    }
}

/// Returns the link addresses and names of the code in an ELF file.
pub fn named(file: &ElfFile64<'_, object::Endianness>) -> Vec<(u64, String)> {
    // Absolute symbols are not addresses.
    let texts = file.symbols().filter(|symbol| {
        symbol.section_index().is_some()
            && matches!(
                symbol.kind(),
                SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown
            )
    });
    let named = |symbol: object::read::elf::ElfSymbol64<'_, '_>| {
        let name = symbol.name().ok();
        let name = name.filter(|name| !name.is_empty() && !name.starts_with('$'))?;
        let name = format!("{:#}", rustc_demangle::demangle(name));
        Some((symbol.address(), name))
    };
    texts.filter_map(named).collect()
}

impl Functions {
    /// Reads the functions of an ELF file. The result is empty if the bytes are not an ELF file.
    fn of(elf: &[u8]) -> Self {
        let Ok(file) = ElfFile64::<object::Endianness>::parse(elf) else {
            return Self::default();
        };
        let names = named(&file);
        let end = file
            .symbol_by_name("__text_end")
            .map_or(0, |end| end.address());
        Self {
            lines: Lines::of(&file).ok(),
            ..Self::new(names, end)
        }
    }

    fn new(mut names: Vec<(u64, String)>, end: u64) -> Self {
        names.retain(|&(address, _)| address < end);
        names.sort();
        Self {
            names,
            end,
            lines: None,
        }
    }
}

impl Image {
    fn read_functions(&self) -> &Functions {
        self.read.get_or_init(|| Functions::of(&self.bytes))
    }

    fn level(&self) -> Level {
        if self.name == HYPERVISOR {
            Level::El2
        } else {
            Level::El1
        }
    }

    /// Returns the link address of `address`, and the symbol that precedes it.
    fn find_symbol(&self, address: u64) -> Option<(u64, &(u64, String))> {
        let at = address.checked_sub(self.base?)?;
        // A file is at least as long as its code, so a larger offset is not in the code. The comparison with the
        // file's length avoids reading the file for most numbers.
        if self.read.get().is_none() && at >= self.bytes.len() as u64 {
            return None;
        }
        let Functions { names, end, .. } = self.read_functions();
        if at >= *end {
            return None;
        }
        let after = names.partition_point(|&(start, _)| start <= at);
        Some((at, names.get(after.checked_sub(1)?)?))
    }

    fn find_site(&self, address: u64) -> Option<Site> {
        let (at, (_, symbol)) = self.find_symbol(address)?;
        let lines = self.read_functions().lines.as_ref();
        Some(Site {
            image: self.name,
            symbol: symbol.clone(),
            frames: lines.map_or(Vec::new(), |lines| lines.frames(at)),
        })
    }

    fn describe(&self, address: u64) -> Option<String> {
        let (at, (start, name)) = self.find_symbol(address)?;
        let lines = self.read_functions().lines.as_ref();
        let line = lines.and_then(|lines| lines.line_of_address(at));
        let line = line.map_or(String::new(), |line| format!(", {line}"));
        Some(format!("{}: {name}+{:#x}{line}", self.name, at - start))
    }
}

/// Splits `text` at the first hexadecimal number that has 16 digits or begins with `0x`.
fn next_number(text: &str) -> Option<(&str, &str, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut from = 0;
    loop {
        let start = from + text[from..].find(is_word)?;
        let length = text[start..].find(|c| !is_word(c));
        let end = length.map_or(text.len(), |length| start + length);
        let word = &text[start..end];
        let digits = word.strip_prefix("0x");
        let long = digits.is_some() || word.len() == 16;
        if long
            && digits
                .unwrap_or(word)
                .chars()
                .all(|c| c.is_ascii_hexdigit())
        {
            return Some((&text[..start], word, &text[end..]));
        }
        from = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols() -> Symbols {
        let functions = vec![(0x100, "second".into()), (0, "first".into())];
        let other = vec![(0, "vector".into())];
        let image = |name, base, functions| Image {
            name,
            base: Some(base),
            bytes: Vec::new(),
            read: OnceLock::from(functions),
        };
        Symbols {
            images: vec![
                image(GUEST, 0x4000_0000, Functions::new(functions, 0x200)),
                image(HYPERVISOR, 0x4000_0100, Functions::new(other, 0x100)),
            ],
        }
    }

    fn annotate(line: &str) -> String {
        symbols().annotate(line, None)
    }

    #[test]
    fn addresses_get_names() {
        assert_eq!(
            annotate("PC=0000000040000004 X00=0000000000000004"),
            "PC=0000000040000004 <guest: first+0x4> X00=0000000000000004"
        );
        assert_eq!(
            annotate("ELR 0x40000100"),
            "ELR 0x40000100 <guest: second+0x0 or hypervisor: vector+0x0>"
        );
    }

    #[test]
    fn registers_are_those_of_their_level() {
        let lines = [
            "CPU#0",
            " PC=0000000040000100",
            "PSTATE=3c9 -- EL2h",
            "CPU#1",
            " PC=0000000040000100",
            "PSTATE=3c5 -- EL1h",
        ];
        let lines = symbols().annotate_registers(&lines.map(str::to_owned));
        assert!(
            lines[1].ends_with("<hypervisor: vector+0x0>"),
            "{}",
            lines[1]
        );
        assert!(lines[4].ends_with("<guest: second+0x0>"), "{}", lines[4]);
    }

    #[test]
    fn what_is_outside_or_no_address_stays() {
        for line in [
            "0x40000200",
            "0x3fffffff",
            "40000000",
            "",
            "grün 0x",
            "0xffffffffffffffffff",
        ] {
            assert_eq!(annotate(line), line);
        }
    }

    #[test]
    fn the_last_base_counts() {
        let mut symbols = symbols();
        symbols.set_base(GUEST, 0x5000_0000);
        assert_eq!(symbols.annotate("0x40000000", None), "0x40000000");
        assert!(symbols.annotate("0x50000000", None).contains("first"));
    }
}
