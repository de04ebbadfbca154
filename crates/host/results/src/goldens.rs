// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of boots, some with the instructions that samples executed, and the expected files for comparisons in tests.
//!
//! The command [`AGAIN`] rewrites all expected files. Review the difference before you commit it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::merge::Run;
use crate::{Results, capture};

/// The command that rewrites every expected file.
pub const AGAIN: &str = "ROUSE_REWRITE=1 cargo test -p results -p page -p xtask golden";

/// Returns the folder of the logs.
pub fn logs_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens")
}

/// Returns the names of the logs, sorted, each with its results.
///
/// # Panics
///
/// If a log can't be read.
pub fn log_results() -> Vec<(String, Results)> {
    let entries = fs::read_dir(logs_folder()).expect("the folder of logs can be read");
    let files = entries.map(|entry| entry.expect("it can be listed").path());
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    files.sort();
    let named = files.iter().map(|path| {
        let text = fs::read_to_string(path).expect("the log can be read");
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut results = capture::results(&text).expect("the log has records");
        // If a plugin of the emulator observed the samples of the same boot, its output is in a file next to the log.
        if let Ok(seen) = fs::read_to_string(path.with_extension("samples")) {
            results.add_samples(0, plan::Under::Rouse, critical::from_text(&seen));
        }
        (name.into_owned(), results)
    });
    named.collect()
}

/// Returns each log as a run.
pub fn logs_as_runs() -> Vec<Run> {
    let runs = log_results().into_iter().map(|(label, results)| Run {
        commands: vec![format!("cargo xtask report {label}.log")],
        label,
        results,
    });
    runs.collect()
}

/// Compares `text` with the file at `path`, or writes the file if `ROUSE_REWRITE` is set.
///
/// # Panics
///
/// If the text and the file differ, or the file can't be written.
pub fn golden(path: &Path, text: &str) {
    if std::env::var_os("ROUSE_REWRITE").is_some() {
        return fs::write(path, text).expect("the expected file can be written");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    let mut lines = expected.lines().zip(text.lines()).enumerate();
    if let Some((number, (was, is))) = lines.find(|(_, (was, is))| was != is) {
        panic!(
            "{}, line {}:\nexpected {was}\nmade     {is}\nIf that is meant: {AGAIN}",
            path.display(),
            number + 1
        );
    }
    assert_eq!(expected.len(), text.len(), "{}: the length", path.display());
}
