// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names for the addresses of a dump.

use std::fs;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol, SymbolKind};

/// Functions of one image.
#[derive(Debug)]
struct Image {
    name: &'static str,
    base: Option<u64>,
    /// Link addresses and names, sorted.
    functions: Vec<(u64, String)>,
    end: u64,
}

/// Functions of the images that run.
#[derive(Debug, Default)]
pub struct Symbols {
    images: Vec<Image>,
}

impl Symbols {
    /// Adds an image that is known on the console as `name`. A file without
    /// symbols has no names, which is no failure: a dump is still a dump.
    pub fn add(&mut self, name: &'static str, elf: &Path, base: Option<u64>) {
        let Ok(bytes) = fs::read(elf) else { return };
        let Ok(file) = ElfFile64::<object::Endianness>::parse(&*bytes) else {
            return;
        };
        let texts = file.symbols().filter(|symbol| {
            matches!(
                symbol.kind(),
                SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown
            )
        });
        let named = |symbol: object::read::elf::ElfSymbol64<'_, '_>| {
            let name = symbol
                .name()
                .ok()
                .filter(|name| !name.is_empty() && !name.starts_with('$'))?;
            Some((
                symbol.address(),
                format!("{:#}", rustc_demangle::demangle(name)),
            ))
        };
        let functions: Vec<_> = texts.filter_map(named).collect();
        let end = file
            .symbol_by_name("__text_end")
            .map_or(0, |end| end.address());
        self.images.push(Image::new(name, base, functions, end));
    }

    /// Notes where an image was found to be.
    pub fn set_base(&mut self, name: &str, base: u64) {
        for image in self.images.iter_mut().filter(|image| image.name == name) {
            image.base = Some(base);
        }
    }

    /// `name+0x..` of the function at `address`.
    fn name(&self, address: u64) -> Option<String> {
        self.images.iter().find_map(|image| image.name(address))
    }

    /// The line with the functions' names behind their addresses.
    pub fn annotate(&self, line: &str) -> String {
        let mut annotated = String::new();
        let mut rest = line;
        while let Some((before, token, after)) = next_number(rest) {
            annotated.push_str(before);
            annotated.push_str(token);
            let digits = token.strip_prefix("0x").unwrap_or(token);
            let address = u64::from_str_radix(digits, 16).ok();
            if let Some(name) = address.and_then(|address| self.name(address)) {
                annotated.push_str(&format!(" <{name}>"));
            }
            rest = after;
        }
        annotated + rest
    }
}

impl Image {
    fn new(
        name: &'static str,
        base: Option<u64>,
        mut functions: Vec<(u64, String)>,
        end: u64,
    ) -> Self {
        functions.retain(|&(address, _)| address < end);
        functions.sort();
        Self {
            name,
            base,
            functions,
            end,
        }
    }

    fn name(&self, address: u64) -> Option<String> {
        let at = address
            .checked_sub(self.base?)
            .filter(|&at| at < self.end)?;
        let after = self.functions.partition_point(|&(start, _)| start <= at);
        let (start, name) = self.functions.get(after.checked_sub(1)?)?;
        Some(format!("{}: {name}+{:#x}", self.name, at - start))
    }
}

/// Splits at the first hexadecimal number of 16 digits, or with `0x` before it.
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
        Symbols {
            images: vec![Image::new("guest", Some(0x4000_0000), functions, 0x200)],
        }
    }

    #[test]
    fn addresses_get_names() {
        assert_eq!(
            symbols().annotate("PC=0000000040000104 X00=0000000000000004"),
            "PC=0000000040000104 <guest: second+0x4> X00=0000000000000004"
        );
        assert_eq!(
            symbols().annotate("ELR 0x40000000"),
            "ELR 0x40000000 <guest: first+0x0>"
        );
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
            assert_eq!(symbols().annotate(line), line);
        }
    }

    #[test]
    fn the_last_base_counts() {
        let mut symbols = symbols();
        symbols.set_base("guest", 0x5000_0000);
        assert_eq!(symbols.annotate("0x40000000"), "0x40000000");
        assert!(symbols.annotate("0x50000000").contains("first"));
    }
}
