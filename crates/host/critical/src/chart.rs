// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code of the images, the kinds of its instructions, and where it is in memory.

use crate::Reasons;

/// The code of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Exception level at which the image runs: 1 or 2.
    pub level: u64,
    /// Link address of the first instruction.
    pub address: u64,
    /// The instructions.
    pub words: Vec<u32>,
    /// The kind of each instruction.
    pub kinds: Vec<Reasons>,
}

/// The images of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chart {
    /// The images.
    pub images: Vec<Image>,
    /// The register whose value identifies a CPU under a hypervisor other than Rouse.
    pub identity: Identity,
}

/// An EL2 register that has a different value on each CPU of a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum Identity {
    /// TPIDR_EL2, which the hypervisor uses for its own purposes.
    #[default]
    Tpidr,
    /// VMPIDR_EL2, for a hypervisor whose TPIDR_EL2 has the same value on all CPUs (because each CPU has its own
    /// address translation), and which keeps each vCPU on one CPU.
    Vmpidr,
}

impl Identity {
    const ALL: [Self; 2] = [Self::Tpidr, Self::Vmpidr];
}

impl Image {
    /// Size of a page. An image is moved only by whole pages.
    const PAGE: u64 = 0x1000;
    /// Number of consecutive instructions that are enough to identify a position in the image.
    const ENOUGH: usize = 4;

    /// Returns the index at which the image contains `words`, which were found at address `at`. Returns `None` if the
    /// image lacks them. `base` is the distance by which the image was moved, if known.
    #[must_use]
    pub fn find_words(&self, base: Option<u64>, at: u64, words: &[u32]) -> Option<usize> {
        let index = at.wrapping_sub(base?).wrapping_sub(self.address) / 4;
        let index = usize::try_from(index).ok()?;
        let here = self.words.get(index..)?.get(..words.len())?;
        let mut pairs = here.iter().zip(words);
        pairs
            .all(|(&word, &executed)| word == executed || Reasons::is_replaced_send(word, executed))
            .then_some(index)
    }

    /// Returns the distance by which the image was moved, if `words`, found at address `at`, occur at exactly one
    /// possible position in it.
    #[must_use]
    pub fn find_base(&self, at: u64, words: &[u32]) -> Option<u64> {
        if words.len() < Self::ENOUGH {
            return None;
        }
        let offset = at.wrapping_sub(self.address) % Self::PAGE / 4;
        let places = (offset as usize..self.words.len()).step_by(Self::PAGE as usize / 4);
        let mut found = places.filter(|&place| self.words[place..].starts_with(words));
        let place = found.next()?;
        let base = at.wrapping_sub(self.address + 4 * place as u64);
        found.next().is_none().then_some(base)
    }
}

impl Image {
    /// Returns the distance by which the image was moved, given that the image's only cell mark was found at address
    /// `at`.
    #[must_use]
    pub fn base_by_cell_mark(&self, at: u64) -> Option<u64> {
        let mut marks = self.kinds.iter().enumerate();
        let mut found = marks.by_ref().filter(|(_, kind)| kind.has(Reasons::CELL));
        let (place, _) = found.next()?;
        let base = at.wrapping_sub(self.address + 4 * place as u64);
        (found.next().is_none() && base.is_multiple_of(Self::PAGE)).then_some(base)
    }
}

impl Chart {
    /// Encodes the chart as a file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = (self.identity as u64).to_le_bytes().to_vec();
        for image in &self.images {
            for number in [image.level, image.address, image.words.len() as u64] {
                bytes.extend(number.to_le_bytes());
            }
            // xtask compiles this crate without optimisation: an iterator over single bytes takes five times as long.
            let words: Vec<_> = image.words.iter().map(|word| word.to_le_bytes()).collect();
            bytes.extend_from_slice(words.as_flattened());
            let kinds: Vec<_> = image
                .kinds
                .iter()
                .map(|kind| kind.0.to_le_bytes())
                .collect();
            bytes.extend_from_slice(kinds.as_flattened());
        }
        bytes
    }

    /// Decodes the output of [`Self::to_bytes`]. Returns `None` if `bytes` is anything else, or incomplete.
    #[must_use]
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let (identity, rest) = bytes.split_first_chunk()?;
        bytes = rest;
        let identity = u64::from_le_bytes(*identity);
        let is = |one: &Identity| *one as u64 == identity;
        let mut chart = Self {
            images: Vec::new(),
            identity: Identity::ALL.into_iter().find(is)?,
        };
        while !bytes.is_empty() {
            let mut number = || {
                let (first, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                Some(u64::from_le_bytes(*first))
            };
            let (level, address, count) = (number()?, number()?, number()? as usize);
            let words = bytes.get(..count.checked_mul(4)?)?;
            let kinds = bytes.get(words.len()..)?.get(..count * 2)?;
            bytes = &bytes[words.len() + kinds.len()..];
            let (words, _) = words.as_chunks();
            let (kinds, _) = kinds.as_chunks();
            chart.images.push(Image {
                level,
                address,
                words: words.iter().map(|word| u32::from_le_bytes(*word)).collect(),
                kinds: kinds
                    .iter()
                    .map(|kind| Reasons(u16::from_le_bytes(*kind)))
                    .collect(),
            });
        }
        Some(chart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let words: Vec<u32> = (0..4096).map(|n| n % 1500).collect();
        Image {
            level: 2,
            address: 0x1800,
            kinds: vec![Reasons::SYNC; words.len()],
            words,
        }
    }

    #[test]
    fn a_file_is_read_back() {
        let chart = Chart {
            images: vec![image(), Image::default()],
            identity: Identity::Vmpidr,
        };
        let bytes = chart.to_bytes();
        assert_eq!(Chart::from_bytes(&[9; 8]), None);
        assert_eq!(Chart::from_bytes(&bytes), Some(chart));
        assert_eq!(Chart::from_bytes(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Chart::from_bytes(&bytes[..20]), None);
    }

    #[test]
    fn an_image_is_found_where_it_was_moved_to() {
        let image = image();
        let base = 0x4020_0000;
        let at = base + image.address + 4 * 2000;
        let words = &image.words[2000..2006];
        assert_eq!(image.find_base(at, words), Some(base));
        assert_eq!(image.find_words(Some(base), at, words), Some(2000));
        assert_eq!(image.find_words(Some(base), at + 4, words), None);
        assert_eq!(image.find_words(None, at, words), None);
        // A word may differ from the image only if the image's word sends an SGI, and a branch has replaced it.
        for (word, executed, same) in [
            (0xd518_cba1, 0x1400_0010, true),
            (0xd518_cba1, 0x9400_0010, false),
            (0xd518_cba1, 0xd503_201f, false),
            (0xd538_cc00, 0x1400_0010, false),
        ] {
            let mut image = image.clone();
            image.words[2001] = word;
            let mut words = words.to_vec();
            words[1] = executed;
            assert_eq!(
                image.find_words(Some(base), at, &words).is_some(),
                same,
                "{executed:#x}"
            );
        }
        // These are too few words to identify a position, or words that do not occur at this offset in a page.
        assert_eq!(image.find_base(at, &words[..3]), None);
        assert_eq!(image.find_base(at + 4, words), None);
        assert_eq!(image.find_words(Some(base), base + 4, &[1]), None);
    }

    #[test]
    fn a_program_is_found_by_its_mark_of_a_cell() {
        let mut image = image();
        assert_eq!(image.base_by_cell_mark(0x5000), None);
        image.kinds[100] = Reasons::CELL;
        let base = 0x7f_0000_0000;
        let at = base + image.address + 400;
        assert_eq!(image.base_by_cell_mark(at), Some(base));
        assert_eq!(image.base_by_cell_mark(at + 4), None);
        image.kinds[200] = Reasons::CELL;
        assert_eq!(image.base_by_cell_mark(at), None);
    }

    #[test]
    fn what_is_there_twice_tells_no_place() {
        let mut image = image();
        let page = image.words[..1024].to_vec();
        image.words[1024..2048].copy_from_slice(&page);
        let at = image.address + 4 * 10;
        assert_eq!(image.find_base(at, &image.words[10..20]), None);
    }
}
