// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short run: calls a target with the files of a corpus, and with inputs made from these files. All runs use the
//! same inputs, which do not depend on time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use fastrand::Rng;

/// Length of the longest input that is made, in bytes.
const LONGEST: usize = 16 << 10;
/// Numbers that are likely to make a parser fail.
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

/// Calls `run` with every file in the folder `corpus`, sorted by name, and then with `made` inputs that are made from
/// these files, or from nothing if there are none.
///
/// # Panics
/// Panics if `run` panics; the input is first written to `target/fuzz/`, and its path is reported. Also panics if the
/// folder can't be read.
pub fn run(corpus: &Path, made: usize, run: impl Fn(&[u8])) {
    let files = read_corpus(corpus);
    for (path, input) in &files {
        run_guarded(&run, input, &path.display().to_string());
    }
    let inputs: Vec<Vec<u8>> = files.into_iter().map(|(_, input)| input).collect();
    let mut random = Rng::with_seed(0);
    for number in 0..made {
        let input = make_input(&mut random, &inputs);
        run_guarded(&run, &input, &format!("made input {number}"));
    }
}

fn read_corpus(corpus: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let place = corpus.display();
    let entries = fs::read_dir(corpus).unwrap_or_else(|error| panic!("{place}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: PathBuf| (path.clone(), fs::read(&path).unwrap());
    paths.into_iter().map(read).collect()
}

fn run_guarded(run: &impl Fn(&[u8]), input: &[u8], what: &str) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/fuzz");
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

/// Draws a number below `bound`, or 0 if `bound` is 0.
fn below(random: &mut Rng, bound: usize) -> usize {
    random.usize(..bound.max(1))
}

/// Makes an input from one of `inputs`, with one to eight changes.
fn make_input(random: &mut Rng, inputs: &[Vec<u8>]) -> Vec<u8> {
    let start = inputs.get(below(random, inputs.len()));
    let mut input = start.cloned().unwrap_or_default();
    for _ in 0..=below(random, 8) {
        change_once(random, &mut input, inputs);
    }
    input.truncate(LONGEST);
    input
}

fn change_once(random: &mut Rng, input: &mut Vec<u8>, inputs: &[Vec<u8>]) {
    let at = below(random, input.len());
    match below(random, 8) {
        0 if !input.is_empty() => input[at] ^= 1 << below(random, 8),
        1 if !input.is_empty() => input[at] = random.u8(..),
        2 => {
            let length = 1 + below(random, 16);
            let new: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
            input.splice(at..at, new);
        }
        3 => drop(input.drain(at..(at + 1 + below(random, 16)).min(input.len()))),
        4 => input.truncate(at),
        5 if !inputs.is_empty() => {
            let other = &inputs[below(random, inputs.len())];
            let from = below(random, other.len());
            let length = below(random, other.len() - from + 1).min(64);
            let end = (at + length).min(input.len());
            input.splice(at..end, other[from..from + length].iter().copied());
        }
        kind => write_edge(random, input, kind == 6),
    }
}

/// Overwrites one, two, four or eight bytes with one of [`EDGES`].
fn write_edge(random: &mut Rng, input: &mut [u8], aligned: bool) {
    let size = 1 << below(random, 4);
    let edge = EDGES[below(random, EDGES.len())].to_le_bytes();
    let mut bytes = edge[..size].to_vec();
    if below(random, 2) == 0 {
        bytes.reverse();
    }
    let at = below(random, input.len());
    let at = if aligned { at / size * size } else { at };
    if let Some(place) = input.get_mut(at..at + size) {
        place.copy_from_slice(&bytes);
    }
}
