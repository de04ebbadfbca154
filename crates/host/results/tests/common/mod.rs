// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks results against the schema.
#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Returns the folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Lists the places where `results` violates docs/results.schema.json.
pub fn violations(results: &Value) -> Vec<String> {
    let schema = serde_json::from_str(&results::schema::schema_text()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let errors = validator.iter_errors(results);
    errors.map(|error| error.to_string()).collect()
}
