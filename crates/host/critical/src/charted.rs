// SPDX-License-Identifier: MIT OR Apache-2.0
//! The code that CPUs execute, and the kinds of its instructions.

use std::collections::HashSet;

use crate::{Chart, Identity, Image, Reasons};
use cost::SampleMark;

/// All code that has run so far.
#[derive(Debug)]
pub struct Charted {
    /// The images of the chart, each with the distance by which it was moved, if that is already known.
    images: Vec<(Image, Option<u64>)>,
    /// Addresses of the instructions that follow pauses, in code outside the images.
    resumes: HashSet<u64>,
    /// Whether code outside the images has run at EL2, which means that there is a hypervisor other than Rouse.
    pub foreign: bool,
    /// The register that identifies a CPU under such a hypervisor.
    pub identity: Identity,
}

impl Charted {
    /// Creates the state for the code of `chart` before any of it has run.
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

    /// Finds `words` in an image. The words were found at address `at`, and executed at `level`.
    fn find_in_image(&mut self, level: u8, at: u64, words: &[u32]) -> Option<(&Image, usize)> {
        let of_level = |(image, _): &&mut (Image, _)| image.level == u64::from(level);
        let (image, base) = self.images.iter_mut().find(of_level)?;
        match level {
            // Other programs share some code with the program of the chart, because both use the same libraries. Only
            // the program of the chart contains the mark of a cell.
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

    /// Returns the kind of each instruction of a block, and the instruction word before the block, if it is known. For
    /// code in an image of the chart, the image lists the kinds. The kinds of other code follow from the instructions
    /// themselves.
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
