// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that comments keep the language rules of CONTRIBUTING.md, as far as a machine can tell: some sentences have a
//! beginning that the rules forbid.

use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of a comment that delay the verb of its first sentence.
const COMMENT: [&str; 6] = [
    "What ",
    "That of ",
    "Those that ",
    "Those of ",
    "The same ",
    "As ",
];
/// Forbidden beginnings of any later sentence in a line. "As" is allowed there, because it may begin a clause.
const SENTENCE: [&str; 4] = ["What ", "That of ", "Those that ", "The same "];

/// Finds the Rust files below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// Whether the line is a comment with a sentence that begins in a forbidden way.
fn is_against_the_rules(line: &str) -> bool {
    let Some(comment) = line.trim_start().strip_prefix("//") else {
        return false;
    };
    let text = comment.trim_start_matches(['/', '!']).trim_start();
    let begins = |words: &[&str], text: &str| words.iter().any(|word| text.starts_with(word));
    begins(&COMMENT, text)
        || text
            .split(". ")
            .skip(1)
            .any(|sentence| begins(&SENTENCE, sentence))
}

#[test]
fn sentences_begin_as_the_rules_ask() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 1000, "{}", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            if is_against_the_rules(line) {
                let file = file.strip_prefix(&root).unwrap().display().to_string();
                found.push(format!("{file}:{number}: {}", line.trim()));
            }
        }
    }
    assert!(
        found.is_empty(),
        "rule 2 of CONTRIBUTING.md:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_planted_sentence_is_found() {
    for wrong in [
        "/// What is measured.",
        "    // As `other`.",
        "//! The words. That of a cell is the last.",
    ] {
        assert!(is_against_the_rules(wrong), "{wrong}");
    }
    for right in [
        "/// Reports what is measured.",
        "let what = 1; // What",
        "/// Like `other`. As long as it runs, it counts.",
    ] {
        assert!(!is_against_the_rules(right), "{right}");
    }
}
