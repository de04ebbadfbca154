// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether the images for tests and the images for measurements execute the same instructions on a path. If they
//! do, findings about one kind of image also hold for the other.
//!
//! The images are linked separately, so code and data have different addresses in each. Distances that instructions
//! encode are therefore not compared.

use anyhow::Result;
use cost::Path;

use super::costs::{self, Mode};
use super::trace::Trace;
use super::visit;
use shell::failure;

/// Compares the hypervisor's part of every path that both traces contain. The most frequent pass in each trace must
/// also occur in the other trace.
pub fn compare_traces(measured: &Trace, tested: &Trace, mode: Mode) -> Result<()> {
    let paths = Path::ALL.iter().filter(|path| !path.is_floor());
    let different: Vec<String> = paths
        .filter_map(|&path| {
            let [measured, tested] =
                [measured, tested].map(|trace| passes_of_path(trace, path, mode));
            let (is, other) = (commonest_pass(&measured)?, commonest_pass(&tested)?);
            if measured.contains(other) && tested.contains(is) {
                return None;
            }
            let same = is.iter().zip(other).take_while(|(a, b)| a == b);
            let first = same.count();
            let word = |words: &[u32]| match words.get(first) {
                Some(word) => format!("{word:08x}"),
                None => "nothing".into(),
            };
            Some(format!(
                "{}, where {} follows instruction {first}, and not {}",
                path.name(),
                word(other),
                word(is)
            ))
        })
        .collect();
    if !different.is_empty() {
        return Err(failure::listed(
            "the image for tests executes other instructions than the image for measurements; nothing of \
             hypervisor/src/planted may be on a path",
            &different.join("\n"),
        ));
    }
    Ok(())
}

/// Returns the instructions at EL2 of each pass of `path`, sorted so that equal passes are next to each other.
fn passes_of_path(trace: &Trace, path: Path, mode: Mode) -> Vec<Vec<u32>> {
    let (windows, _) = costs::clean_windows(&trace.windows, path, mode);
    let words = |window| {
        let steps = visit::hypervisor_steps(window);
        without_distances(steps.iter().map(|step| step.word))
    };
    let mut passes: Vec<Vec<u32>> = windows.into_iter().map(words).collect();
    passes.sort();
    passes
}

fn commonest_pass(passes: &[Vec<u32>]) -> Option<&Vec<u32>> {
    let runs = passes.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len())?.first()
}

/// Returns `words` without the distances that they encode (encodings: DDI 0487K.a, C4.1). B, BL, ADR and ADRP encode a
/// distance. The linker chooses ADR or ADRP by the distance, so these two count as equal. A later instruction that uses
/// ADRP's register adds the low part of ADRP's distance: an ADD of an immediate, a load or a store. This low part is
/// left out, too.
fn without_distances(words: impl Iterator<Item = u32>) -> Vec<u32> {
    const IMMEDIATE: u32 = 0xfff << 10;
    let mut pages = 0_u32;
    let without = words.map(|word| {
        let register = word & 0x1f;
        let base = word >> 5 & 0x1f;
        let adds = word & 0xffc0_0000 == 0x9100_0000;
        let accesses = word & 0x3b00_0000 == 0x3900_0000;
        if word & 0x7c00_0000 == 0x1400_0000 {
            word & 0xfc00_0000
        } else if word & 0x1f00_0000 == 0x1000_0000 {
            pages |= 1 << register;
            word & 0x1f00_001f
        } else if pages & 1 << base != 0 && (adds || accesses) {
            word & !IMMEDIATE
        } else {
            word
        }
    });
    without.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_distances_are_left_out() {
        let without = |words: [u32; 4]| without_distances(words.into_iter());
        // adrp x8, 0x5000; add x8, x8, #0x8a0; sub sp, sp, #0x30; bl 0x40
        let words = [0xb000_0028, 0x9122_8108, 0xd100_c3ff, 0x9400_0010];
        // adr x8, 0x100; add x8, x8, #0x940; sub sp, sp, #0x30; bl 0x80
        let elsewhere = [0x1000_0808, 0x9125_0108, 0xd100_c3ff, 0x9400_0020];
        assert_eq!(without(words), without(elsewhere));
        // These words change a register, change an immediate, and turn a branch with link into one without link.
        for (place, word) in [(1, 0x9122_8129), (2, 0xd101_03ff), (3, 0x1400_0010)] {
            let mut other = words;
            other[place] = word;
            assert_ne!(without(words), without(other), "{word:08x}");
        }
    }
}
