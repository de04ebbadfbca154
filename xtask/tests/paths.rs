// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that each path that the documentation or a comment names exists in this repository. A path is text in
//! backticks that begins with one of the top folders.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Prefixes of our paths.
const TOPS: [&str; 8] = [
    "boards/",
    "crates/",
    "docs/",
    "guest-kernel-shim/",
    "hypervisor/",
    "test-kernel/",
    "tests/",
    "xtask/",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Finds the files below `folder` that can name paths.
fn texts(folder: &Path, texts: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ends = |end: &str| name.ends_with(end);
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            self::texts(&path, texts);
        } else if ends(".md") || ends(".rs") {
            texts.push(path);
        }
    }
}

/// Returns the paths that `text` names. Ignores a path with a placeholder (`NAME`, `*`, `<...>`).
fn named(text: &str) -> BTreeSet<&str> {
    let quoted = text.lines().flat_map(|line| {
        let parts = line.split('`').enumerate();
        parts.filter(|(n, _)| n % 2 == 1).map(|(_, part)| part)
    });
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c);
    let ours = |path: &&str| TOPS.iter().any(|top| path.starts_with(top));
    quoted
        .filter(|path| path.chars().all(plain))
        .filter(ours)
        .collect()
}

/// Whether `path` exists, relative to the root or to a folder above `file`. A test may be named without its `.toml`.
fn exists(path: &str, file: &Path) -> bool {
    let folders = file.ancestors().skip(1);
    let mut folders = folders.take_while(|folder| folder.starts_with(root()));
    folders.any(|folder| {
        let place = folder.join(path);
        place.exists() || place.with_extension("toml").exists()
    })
}

/// Returns the walks in `text`: the heading and the lines of each third-level section in "Four walks".
fn walks(text: &str) -> Vec<(&str, &str)> {
    let (_, walks) = text.split_once("\n## Four walks\n").expect("the walks");
    let (walks, _) = walks.split_once("\n## ").unwrap_or((walks, ""));
    let sections = walks.split("\n### ").skip(1);
    sections
        .map(|section| section.split_once('\n').expect("a walk has lines"))
        .collect()
}

/// Returns the paths that a walk names more than once.
fn repeated(walk: &str) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let lines = walk.lines().flat_map(named);
    lines.filter(|path| !seen.insert(*path)).collect()
}

#[test]
fn a_file_that_a_walk_passes_twice_is_found() {
    let text = "\n## Four walks\n\n### A\n\n| a | `crates/x.rs` |\n| b | `crates/y.rs` |\n\
                | c | `crates/x.rs` |\n\n### B\n\n| d | `crates/x.rs` |\n\n## C\n`crates/x.rs`\n";
    let walks = walks(text);
    let names: Vec<_> = walks.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!(repeated(walks[0].1), ["crates/x.rs"]);
    assert!(repeated(walks[1].1).is_empty());
}

#[test]
fn no_walk_passes_a_file_twice() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let walks = walks(&text);
    assert_eq!(walks.len(), 4);
    for (name, walk) in walks {
        assert!(
            walk.lines().flat_map(named).count() >= 5,
            "{name} is not a walk"
        );
        assert!(repeated(walk).is_empty(), "{name}: {:?}", repeated(walk));
    }
}

#[test]
fn paths_in_backticks_are_found() {
    let text = "see `crates/no_std/vgic` and `hypervisor/src/x.rs`, not `crates/x/NAME` or `a/b`,\n\
                nor crates/plain, nor `what docs/y` says";
    let found: Vec<_> = named(text).into_iter().collect();
    assert_eq!(found, ["crates/no_std/vgic", "hypervisor/src/x.rs"]);
}

#[test]
fn every_path_that_is_named_exists() {
    let mut files = Vec::new();
    texts(&root(), &mut files);
    let mut missing = Vec::new();
    for file in files {
        // This file names some paths that do not exist.
        if file.ends_with("xtask/tests/paths.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for path in named(&text) {
            if !exists(path, &file) {
                missing.push(format!("{}: {path}", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
