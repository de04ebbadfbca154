// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions of a kernel, from the table of symbols that the kernel carries for its own messages. No file of symbols
//! is needed, so this serves a kernel whose distribution has none.
//!
//! The table (Linux: scripts/kallsyms.c; Xen: tools/symbols.c) consists of parts in the image: the number of symbols,
//! their names, a marker for each 256th name, 256 tokens, the offsets of the tokens, and the symbols' addresses. A name is
//! its length and as many tokens. The tokens of digits are the digits themselves, by which the table is found.

use memchr::memmem;

/// Number of tokens.
const TOKENS: usize = 256;
/// Number of names from one marker to the next.
const MARKED: usize = 256;
/// Most symbols that a kernel has.
const MOST: usize = 4_000_000;
/// Alignment of a kernel.
const LINKED: u64 = 2 << 20;
/// Alignment of the anchors.
const PAGE: u64 = 0x1000;
/// The parts begin at multiples of this.
const ALIGNED: usize = 8;

/// Returns the functions of a kernel: the distance of each from the symbol at the beginning, and its name, sorted.
/// `types` tells whether names begin with the type of their symbol. `None` if the kernel has no table.
#[must_use]
pub fn functions(image: &[u8], first: &str, types: bool) -> Option<Vec<(u64, String)>> {
    let table = Table::find(image)?;
    let names = table.names(types)?;
    let (addresses, base) = table.addresses(&names)?;
    // A kernel without CONFIG_KALLSYMS_ALL lacks its first symbol. It is linked to a multiple of 2 MiB, and the base of
    // the addresses is near.
    let begin = names.iter().position(|name| name.text == first);
    let origin = match begin {
        Some(begin) => addresses[begin].cast_signed(),
        None if base != 0 && first == "_text" => -(base % LINKED).cast_signed(),
        None => return None,
    };
    let mut functions: Vec<(u64, String)> = names
        .into_iter()
        .zip(&addresses)
        .filter(|(name, _)| matches!(name.kind, b't' | b'T' | b'w' | b'W'))
        .filter_map(|(name, address)| Some((address.checked_sub_signed(origin)?, name.text)))
        .collect();
    // Of several names of one place, the first one in the table's order stays.
    functions.sort_by_key(|(distance, _)| *distance);
    functions.dedup_by_key(|(distance, _)| *distance);
    Some(functions)
}

/// A name.
struct Name {
    kind: u8,
    text: String,
}

/// The parts that have been found.
struct Table<'i> {
    image: &'i [u8],
    tokens: Vec<&'i [u8]>,
    /// Where the tokens begin.
    at: usize,
    /// Where the offsets of the tokens end.
    end: usize,
    names: usize,
    count: usize,
}

impl<'i> Table<'i> {
    fn find(image: &'i [u8]) -> Option<Self> {
        let digits: Vec<u8> = (b'0'..=b'9').flat_map(|digit| [digit, 0]).collect();
        memmem::find_iter(image, &digits).find_map(|at| Self::with_digits(image, at))
    }

    /// Finds the parts, if the tokens of the digits are at `at`.
    fn with_digits(image: &'i [u8], at: usize) -> Option<Self> {
        // The end of the tokens follows from those after the digits.
        let mut end = at;
        for _ in usize::from(b'0')..TOKENS {
            end += memchr::memchr(0, image.get(end..end + 64)?)? + 1;
        }
        for index in (end.next_multiple_of(2)..end + 4 * ALIGNED).step_by(2) {
            let offset = |n: usize| {
                let bytes = image.get(index + 2 * n..index + 2 * n + 2)?;
                Some(usize::from(u16::from_le_bytes(bytes.try_into().ok()?)))
            };
            let Some(begin) = at.checked_sub(offset(usize::from(b'0'))?) else {
                continue;
            };
            if offset(0)? != 0 || begin + offset(TOKENS - 1)? >= end {
                continue;
            }
            let token = |n| {
                let from = begin + offset(n)?;
                let length = memchr::memchr(0, image.get(from..end)?)?;
                Some(&image[from..from + length])
            };
            let Some(tokens) = (0..TOKENS).map(token).collect::<Option<Vec<_>>>() else {
                continue;
            };
            // Each token begins after the end of the one before.
            let mut next = 0;
            let follows = |(n, token): (usize, &&[u8])| {
                let is_next = offset(n) == Some(next);
                next += token.len() + 1;
                is_next
            };
            if !tokens.iter().enumerate().all(follows) {
                continue;
            }
            let mut table = Self {
                image,
                tokens,
                at: begin,
                end: index + 2 * TOKENS,
                names: 0,
                count: 0,
            };
            table.find_names()?;
            return Some(table);
        }
        None
    }

    /// Finds the number of symbols, which precedes the names: so many names fit between it and the markers.
    fn find_names(&mut self) -> Option<()> {
        let mut place = self.at / ALIGNED * ALIGNED;
        while place >= ALIGNED {
            place -= ALIGNED;
            let count = self.word(place)? as usize;
            // Each name takes two bytes at least.
            if !(MARKED..MOST).contains(&count) || 2 * count > self.at - place {
                continue;
            }
            if let Some(names) = [place + 4, place + 8]
                .into_iter()
                .find(|&names| self.fits(names, count))
            {
                (self.names, self.count) = (names, count);
                return Some(());
            }
        }
        None
    }

    /// Whether `count` names begin at `names`, with markers after them.
    fn fits(&self, names: usize, count: usize) -> bool {
        let mut at = names;
        let mut second = 0;
        for n in 0..count {
            if n == MARKED {
                second = at - names;
            }
            match self.length(at) {
                Some((length, size)) if length != 0 && at + size + length <= self.at => {
                    at += size + length
                }
                _ => return false,
            }
        }
        (at..at + 2 * ALIGNED).any(|markers| {
            let marker = |n: usize| self.word(markers + 4 * n);
            marker(0) == Some(0) && (count <= MARKED || marker(1) == Some(second as u32))
        })
    }

    /// Returns the length of the name at `at`, and how many bytes the length takes.
    fn length(&self, at: usize) -> Option<(usize, usize)> {
        let low = usize::from(*self.image.get(at)?);
        match low & 0x80 {
            0 => Some((low, 1)),
            _ => Some((low & 0x7f | usize::from(*self.image.get(at + 1)?) << 7, 2)),
        }
    }

    fn names(&self, types: bool) -> Option<Vec<Name>> {
        let mut at = self.names;
        let mut names = Vec::with_capacity(self.count);
        for _ in 0..self.count {
            let (length, size) = self.length(at)?;
            let codes = self.image.get(at + size..at + size + length)?;
            let text: Vec<u8> = codes
                .iter()
                .flat_map(|code| self.tokens[usize::from(*code)])
                .copied()
                .collect();
            let (kind, text) = match types {
                true => text.split_first()?,
                false => (&b'T', &text[..]),
            };
            names.push(Name {
                kind: *kind,
                text: String::from_utf8_lossy(text).into_owned(),
            });
            at += size + length;
        }
        Some(names)
    }

    /// Returns the symbols' addresses, relative to a base, and the base. They precede the number of symbols, with the place
    /// in between, or follow the tokens.
    fn addresses(&self, names: &[Name]) -> Option<(Vec<u64>, u64)> {
        let size = 4 * self.count;
        let before = self.names / ALIGNED * ALIGNED;
        let mut places: Vec<usize> = (1..6)
            .filter_map(|n| before.checked_sub(size.next_multiple_of(ALIGNED) + n * ALIGNED))
            .collect();
        places.extend((0..4).map(|n| self.end.next_multiple_of(ALIGNED) + 4 * n));
        // Places that a kernel aligns to pages, by which an array that is moved by a few symbols is known.
        let aligned = |name: &Name| {
            let anchors = ["_text", "_stext", "_etext", "_start", "_sinittext"];
            anchors.contains(&&*name.text)
        };
        let anchors = names.iter().enumerate().filter(|(_, name)| aligned(name));
        let anchors: Vec<usize> = anchors.map(|(n, _)| n).collect();
        let read = |at: usize| -> Option<(Vec<u64>, u64)> {
            let bytes = self.image.get(at..at + size)?;
            let (words, _) = bytes.as_chunks();
            let words = words
                .iter()
                .map(|word| u64::from(u32::from_le_bytes(*word)));
            let base = (at + size).next_multiple_of(ALIGNED);
            let base = self.image.get(base..base + 8)?.try_into().ok()?;
            Some((words.collect(), u64::from_le_bytes(base)))
        };
        let fits = |(all, _): &(Vec<u64>, u64)| {
            let is_aligned = |&n: &usize| all[n].abs_diff(all[anchors[0]]).is_multiple_of(PAGE);
            let grows = all.last() > all.first() && all.is_sorted();
            grows && anchors.iter().all(is_aligned)
        };
        places.into_iter().filter_map(read).find(fits)
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests;
