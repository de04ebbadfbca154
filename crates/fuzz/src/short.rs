// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short run: a corpus, and inputs made from it, without anything that
//! differs from run to run or depends on time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// Longest input that is made.
const LONGEST: usize = 16 << 10;
/// Numbers at which readers are likely to go wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// Gives `run` every file in the folder `corpus`, in order of name, then `made`
/// inputs made from them; if there is no file, from nothing.
///
/// # Panics
/// Like `run`, after the input was written to `target/fuzz/`, which it reports;
/// if the folder can't be read.
pub fn run(corpus: &Path, made: usize, run: impl Fn(&[u8])) {
    let files = read(corpus);
    for (path, input) in &files {
        guarded(&run, input, &path.display().to_string());
    }
    let inputs: Vec<Vec<u8>> = files.into_iter().map(|(_, input)| input).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for number in 0..made {
        let input = make(&mut random, &inputs);
        guarded(&run, &input, &format!("made input {number}"));
    }
}

fn read(corpus: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let place = corpus.display();
    let entries = fs::read_dir(corpus).unwrap_or_else(|error| panic!("{place}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(&path).unwrap());
    paths.into_iter().map(read).collect()
}

fn guarded(run: &impl Fn(&[u8]), input: &[u8], what: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz");
        let name = input.iter().fold(5381_u64, |hash, &byte| {
            hash * 33 % (1 << 40) + u64::from(byte)
        });
        let path = folder.join(format!("{name:010x}"));
        let written = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, input));
        eprintln!(
            "{what}: it panics; input in {} ({written:?})",
            path.display()
        );
        resume_unwind(panic);
    }
}

/// G. Marsaglia's xorshift, 64 bits.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound.max(1)
    }
}

/// One of the inputs, changed in one to eight places.
fn make(random: &mut Random, inputs: &[Vec<u8>]) -> Vec<u8> {
    let start = inputs.get(random.below(inputs.len()));
    let mut input = start.cloned().unwrap_or_default();
    for _ in 0..=random.below(8) {
        change(random, &mut input, inputs);
    }
    input.truncate(LONGEST);
    input
}

fn change(random: &mut Random, input: &mut Vec<u8>, inputs: &[Vec<u8>]) {
    let at = random.below(input.len());
    match random.below(8) {
        0 if !input.is_empty() => input[at] ^= 1 << random.below(8),
        1 if !input.is_empty() => input[at] = random.next() as u8,
        2 => {
            let length = 1 + random.below(16);
            let new: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            input.splice(at..at, new);
        }
        3 => drop(input.drain(at..(at + 1 + random.below(16)).min(input.len()))),
        4 => input.truncate(at),
        5 if !inputs.is_empty() => {
            let other = &inputs[random.below(inputs.len())];
            let from = random.below(other.len());
            let length = random.below(other.len() - from + 1).min(64);
            let end = (at + length).min(input.len());
            input.splice(at..end, other[from..from + length].iter().copied());
        }
        kind => number(random, input, kind == 6),
    }
}

/// Writes a number at an edge over one, two, four or eight bytes.
fn number(random: &mut Random, input: &mut [u8], aligned: bool) {
    let size = 1 << random.below(4);
    let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
    let mut bytes = edge[..size].to_vec();
    if random.below(2) == 0 {
        bytes.reverse();
    }
    let at = random.below(input.len());
    let at = if aligned { at / size * size } else { at };
    if let Some(place) = input.get_mut(at..at + size) {
        place.copy_from_slice(&bytes);
    }
}
