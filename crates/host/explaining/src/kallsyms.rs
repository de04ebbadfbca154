// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the functions of a kernel in the symbol table that the kernel carries for its own messages. No separate symbol
//! file is needed, so this also works for a kernel whose distribution has no such file.
//!
//! The table (Linux: scripts/kallsyms.c; Xen: xen/tools/symbols.c) consists of parts in the image: the number of
//! symbols, their names, a marker for each 256th name, 256 tokens, and the offsets of the tokens. The symbols'
//! addresses are before the number or after the tokens' offsets. A name is stored as its length in tokens, followed by
//! these tokens. The first letter of a name is the type of the symbol. Most digits are tokens of their own, and the
//! table is found by searching for these tokens.

use memchr::memmem;

/// Number of tokens.
const TOKENS: usize = 256;
/// Number of names from one marker to the next.
const MARKED: usize = 256;
/// Largest number of symbols that a kernel may have.
const MOST: usize = 4_000_000;
/// Linux's link address is a multiple of this number of bytes.
const LINKED: u64 = 2 << 20;
/// Possible alignments of the parts, the smallest first.
const ALIGNMENTS: [usize; 4] = [4, 8, 64, 256];
/// Symbols that kernels align to pages. These symbols show whether an array of addresses is off by a few symbols.
const ANCHORS: [&str; 3] = ["_text", "_start", "_stext"];
const PAGE: u64 = 0x1000;

/// Returns a kernel's functions, sorted by address. Each has a name and a distance from `first`, the symbol at the
/// beginning of the image. `None` if the image has no table.
#[must_use]
pub fn functions(image: &[u8], first: &str) -> Option<Vec<(u64, String)>> {
    let table = Table::find(image)?;
    let names = table.names()?;
    let Addresses { all, before } = table.addresses(&names)?;
    // A kernel without CONFIG_KALLSYMS_ALL lacks the symbol `first`.
    let origin = match names.iter().position(|name| name.text == first) {
        Some(begin) => all[begin],
        None => 0_u64.wrapping_sub(before?),
    };
    let mut functions: Vec<(u64, String)> = names
        .into_iter()
        .zip(&all)
        .filter(|(name, _)| matches!(name.kind, b't' | b'T' | b'w' | b'W'))
        .map(|(name, address)| (address.wrapping_sub(origin), name.text))
        .collect();
    // If several names have the same address, the first name in the table is kept.
    functions.sort_by_key(|(distance, _)| *distance);
    functions.dedup_by_key(|(distance, _)| *distance);
    Some(functions)
}

/// The name of a symbol, and its type.
struct Name {
    kind: u8,
    text: String,
}

/// The addresses of all symbols.
struct Addresses {
    all: Vec<u64>,
    /// Distance of address 0 from the beginning of the image, if it is known.
    before: Option<u64>,
}

/// How an address is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// 32 bits, relative to a base, which follows the array (Linux 6.1, 6.12).
    Base,
    /// 32 bits, relative to the address of this entry itself (Linux 7.3).
    Place,
    /// 64 bits (Xen 4.20).
    Whole,
}

impl Form {
    const ALL: [Self; 3] = [Self::Base, Self::Place, Self::Whole];

    const fn size(self) -> usize {
        match self {
            Self::Base | Self::Place => 4,
            Self::Whole => 8,
        }
    }
}

/// The parts of the table that have been found.
struct Table<'i> {
    image: &'i [u8],
    tokens: Vec<&'i [u8]>,
    /// Where the tokens begin, and where their offsets end.
    at: (usize, usize),
    /// Where the number of symbols is.
    number: usize,
    /// Where the names begin.
    names: usize,
    count: usize,
}

impl<'i> Table<'i> {
    fn find(image: &'i [u8]) -> Option<Self> {
        // The search ends with 6, since not all digits have a token: no name in Xen contains a 9, so another token is
        // in its place.
        let digits: Vec<u8> = (b'1'..=b'6').flat_map(|digit| [digit, 0]).collect();
        memmem::find_iter(image, &digits).find_map(|at| Self::find_by_digits(image, at))
    }

    /// Finds the parts of the table, if the token of the digit 1 is at `at`.
    fn find_by_digits(image: &'i [u8], at: usize) -> Option<Self> {
        // The end of the tokens is found by counting the tokens from the digit 1 on.
        let mut end = at;
        for _ in usize::from(b'1')..TOKENS {
            end += memchr::memchr(0, image.get(end..end + MARKED)?)? + 1;
        }
        let index = |alignment: &usize| end.next_multiple_of(*alignment);
        let (tokens, begin, index) = ALIGNMENTS.iter().map(index).find_map(|index| {
            let offset = image.get(index + 2 * usize::from(b'1')..)?.first_chunk()?;
            let begin = at.checked_sub(u16::from_le_bytes(*offset).into())?;
            Some((find_tokens(image, begin, index)?, begin, index))
        })?;
        let mut table = Self {
            image,
            tokens,
            at: (begin, index + 2 * TOKENS),
            number: 0,
            names: 0,
            count: 0,
        };
        table.find_names()?;
        Some(table)
    }

    /// Finds the number of symbols, which is followed by exactly that many names and then by the markers.
    fn find_names(&mut self) -> Option<()> {
        let step = ALIGNMENTS[0];
        let mut number = self.at.0 / step * step;
        while number >= step {
            number -= step;
            let count = self.read_u32(number)? as usize;
            // Each name takes at least two bytes.
            if !(MARKED..MOST).contains(&count) || 2 * count > self.at.0 - number {
                continue;
            }
            let aligned = ALIGNMENTS.iter().filter(|one| number.is_multiple_of(**one));
            let places = aligned.map(|alignment| number + alignment);
            if let Some(names) = places
                .into_iter()
                .find(|&names| self.has_names_at(names, count))
            {
                (self.number, self.names, self.count) = (number, names, count);
                return Some(());
            }
        }
        None
    }

    /// Whether `count` names begin at `names`, with markers after them.
    fn has_names_at(&self, names: usize, count: usize) -> bool {
        let mut at = names;
        let mut second = 0;
        for n in 0..count {
            if n == MARKED {
                second = at - names;
            }
            match self.name_length(at) {
                Some((length, size)) if length != 0 && at + size + length <= self.at.0 => {
                    at += size + length;
                }
                _ => return false,
            }
        }
        ALIGNMENTS.iter().any(|alignment| {
            let markers = at.next_multiple_of(*alignment);
            let marker = |n: usize| self.read_u32(markers + 4 * n);
            marker(0) == Some(0) && (count <= MARKED || marker(1) == Some(second as u32))
        })
    }

    /// Returns the length of the name at `at`, in tokens, and the number of bytes that the length itself takes.
    fn name_length(&self, at: usize) -> Option<(usize, usize)> {
        let low = usize::from(*self.image.get(at)?);
        match low & 0x80 {
            0 => Some((low, 1)),
            _ => Some((low & 0x7f | usize::from(*self.image.get(at + 1)?) << 7, 2)),
        }
    }

    fn names(&self) -> Option<Vec<Name>> {
        let mut at = self.names;
        let mut names = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let (length, size) = self.name_length(at)?;
            let codes = self.image.get(at + size..at + size + length)?;
            let tokens = codes.iter().map(|code| self.tokens[usize::from(*code)]);
            let text: Vec<u8> = tokens.flatten().copied().collect();
            let (kind, text) = text.split_first()?;
            let text = String::from_utf8_lossy(text);
            names.push(Name {
                kind: *kind,
                // Xen puts the file's name and a # before the symbol's name.
                text: text.rsplit('#').next().unwrap_or_default().to_owned(),
            });
            at += size + length;
        }
        Some(names)
    }

    /// Finds the symbols' addresses.
    fn addresses(&self, names: &[Name]) -> Option<Addresses> {
        let anchors = names.iter().enumerate();
        let anchors = anchors.filter(|(_, name)| ANCHORS.contains(&&*name.text));
        let anchors: Vec<usize> = anchors.map(|(n, _)| n).collect();
        let forms = Form::ALL.iter().flat_map(|form| {
            let size = form.size() * self.count;
            let places = ALIGNMENTS.iter().flat_map(move |&alignment| {
                // A base address may be stored between the addresses and the number.
                let ends = [Some(self.number), self.number.checked_sub(alignment)];
                let before = ends
                    .into_iter()
                    .flatten()
                    .filter_map(move |end| end.checked_sub(size));
                let before = before.map(move |place| place / alignment * alignment);
                before.chain([self.at.1.next_multiple_of(alignment)])
            });
            places.map(|place| (*form, place))
        });
        forms.into_iter().find_map(|(form, place)| {
            let before = self.base_distance(form, place);
            let aligned = |n: &usize| {
                let address = self.address(form, place, *n)?;
                let distance = address.wrapping_add(before.unwrap_or(0));
                distance.is_multiple_of(PAGE).then_some(())
            };
            anchors.iter().try_for_each(aligned)?;
            let all = (0..self.count).map(|n| self.address(form, place, n));
            let all: Vec<u64> = all.collect::<Option<_>>()?;
            let grows = all.is_sorted() && all.last() > all.first();
            grows.then_some(Addresses { all, before })
        })
    }

    /// Returns the distance of address 0 from the beginning of the image, if it is known. A base that follows the array
    /// is an address near the beginning of the image.
    fn base_distance(&self, form: Form, place: usize) -> Option<u64> {
        match form {
            Form::Base => {
                let end = place + form.size() * self.count;
                let base = self.read_u64(end.next_multiple_of(size_of::<u64>()))?;
                (base != 0).then_some(base % LINKED)
            }
            Form::Place => Some(0),
            Form::Whole => None,
        }
    }

    /// Returns the address of symbol `n` of the array at `place`.
    fn address(&self, form: Form, place: usize, n: usize) -> Option<u64> {
        let at = place + form.size() * n;
        match form {
            Form::Base => self.read_u32(at).map(u64::from),
            Form::Place => {
                let distance = i64::from(self.read_u32(at)?.cast_signed());
                (at as u64).checked_add_signed(distance)
            }
            Form::Whole => self.read_u64(at),
        }
    }

    fn read_u32(&self, at: usize) -> Option<u32> {
        let bytes = self.image.get(at..)?.first_chunk()?;
        Some(u32::from_le_bytes(*bytes))
    }

    fn read_u64(&self, at: usize) -> Option<u64> {
        let bytes = self.image.get(at..)?.first_chunk()?;
        Some(u64::from_le_bytes(*bytes))
    }
}

/// Returns the tokens that begin at `begin`, if their offsets are at `index`: each token has to begin directly after
/// the end of the previous token.
fn find_tokens(image: &[u8], begin: usize, index: usize) -> Option<Vec<&[u8]>> {
    let offsets = image.get(index..index + 2 * TOKENS)?.as_chunks().0;
    let mut next = 0;
    let token = |offset: &[u8; 2]| {
        let offset = usize::from(u16::from_le_bytes(*offset));
        let from = image.get(begin + offset..index)?;
        let token = &from[..memchr::memchr(0, from)?];
        let is_next = offset == next;
        next += token.len() + 1;
        is_next.then_some(token)
    };
    offsets.iter().map(token).collect()
}

#[cfg(test)]
mod tests;
