// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expected files, and the schema as a test of results.
#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the logs are.
pub fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens")
}

/// Compares `text` with the file at `path`; with `ROUSE_REWRITE` writes it.
pub fn golden(path: &Path, text: &str) {
    if std::env::var_os("ROUSE_REWRITE").is_some() {
        return std::fs::write(path, text).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let mut lines = expected.lines().zip(text.lines()).enumerate();
    if let Some((number, (was, is))) = lines.find(|(_, (was, is))| was != is) {
        panic!(
            "{}, line {}:\nexpected {was}\nmade     {is}\n\
             If that is meant: ROUSE_REWRITE=1 cargo test -p results -p xtask golden",
            path.display(),
            number + 1
        );
    }
    assert_eq!(expected.len(), text.len(), "{}: the length", path.display());
}

/// What of `results` is not as the schema says, which docs/results.schema.json is.
pub fn follow(results: &Value) -> Vec<String> {
    let schema = serde_json::from_str(&results::schema::text()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors = validator.iter_errors(results);
    errors.map(|error| error.to_string()).collect()
}
