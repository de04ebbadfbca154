// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code that CPUs execute, and the kinds of its instructions.

use std::collections::HashSet;

use crate::{Chart, Identity, Image, Reasons};
use cost::SampleMark;

/// The code that is known so far.
#[derive(Debug)]
pub struct Charted {
    /// The images of the chart, each with the distance by which it was moved, once that is known.
    images: Vec<(Image, Option<u64>)>,
    /// Addresses of the instructions after pauses, in code that belongs to no image.
    resumes: HashSet<u64>,
    /// Whether code that belongs to no image ran at EL2: a hypervisor other than Rouse.
    pub foreign: bool,
    /// The register that distinguishes CPUs under such a hypervisor.
    pub identity: Identity,
}

impl Charted {
    /// Creates the state for the code of `chart`, none of which has run yet.
    #[must_use]
    pub fn new(chart: Chart) -> Self {
        let images = chart.images.into_iter();
        Self {
            images: images.map(|image| (image, None)).collect(),
            resumes: HashSet::new(),
            foreign: false,
            identity: chart.identity,
        }
    }

    /// Finds the place of `words`, found at address `at` and executed at `level`, in an image.
    fn find_in_image(&mut self, level: u8, at: u64, words: &[u32]) -> Option<(&Image, usize)> {
        let of_level = |(image, _): &&mut (Image, _)| image.level == u64::from(level);
        let (image, base) = self.images.iter_mut().find(of_level)?;
        match level {
            // Other programs have some of the same code, from libraries. Only the program of the chart has the mark of
            // a cell.
            0 => {
                let cell = |word: &u32| SampleMark::decode(*word) == Some(SampleMark::Cell);
                let at = words.iter().position(cell).map(|n| at + 4 * n as u64);
                *base = at.and_then(|at| image.base_by_cell_mark(at)).or(*base);
            }
            _ if base.is_none() => *base = image.find_base(at, words),
            _ => {}
        }
        let index = image.find_words(*base, at, words)?;
        Some((image, index))
    }

    /// Returns the kind of each instruction of a block, and the instruction word before it if that is known. Code of an
    /// image has the kinds in the chart; the kinds of other code follow from its instructions.
    pub fn kinds_of_block(
        &mut self,
        level: u8,
        at: u64,
        words: &[u32],
    ) -> Vec<(Reasons, Option<u32>)> {
        if let Some((image, index)) = self.find_in_image(level, at, words) {
            let of = |n: usize| {
                let before = (index + n).checked_sub(1).map(|n| image.words[n]);
                let kind = match image.words[index + n] == words[n] {
                    true => image.kinds[index + n],
                    false => Reasons::of_word(words[n]),
                };
                (kind, before)
            };
            return (0..words.len()).map(of).collect();
        }
        let is_ours = |(image, _): &(Image, _)| image.level == 2;
        self.foreign |= level == 2 && !self.images.iter().any(is_ours);
        let mut resumes = self.resumes.contains(&at);
        let mut kinds = Vec::with_capacity(words.len());
        for (n, &word) in words.iter().enumerate() {
            let mut kind = Reasons::of_word(word);
            if resumes {
                kind = kind.and(Reasons::RESUME);
            }
            resumes = kind.has(Reasons::PAUSE);
            if resumes {
                self.resumes.insert(at + 4 * (n as u64 + 1));
            }
            kinds.push((kind, n.checked_sub(1).map(|n| words[n])));
        }
        kinds
    }

    /// Whether the instruction at `pc` follows a pause.
    #[must_use]
    pub fn is_after_pause(&self, pc: u64) -> bool {
        let in_image = |(image, base): &(Image, Option<u64>)| {
            let offset = base.map(|base| pc.wrapping_sub(base).wrapping_sub(image.address) / 4);
            let index = offset.and_then(|offset| usize::try_from(offset).ok());
            let kind = index.and_then(|index| image.kinds.get(index));
            kind.is_some_and(|kind| kind.has(Reasons::RESUME))
        };
        self.resumes.contains(&pc) || self.images.iter().any(in_image)
    }
}
