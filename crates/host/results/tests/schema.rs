// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that docs/results.schema.json agrees with the types, and that results follow the schema.
//!
//! The command `ROUSE_REWRITE=1 cargo test -p results golden` rewrites the file.

mod common;

use common::{root, violations};
use results::goldens::{self, golden};
use serde_json::{Value, json};

#[test]
fn golden_schema() {
    golden(
        &root().join("docs/results.schema.json"),
        &results::schema::schema_text(),
    );
}

/// Returns results that have all optional fields.
fn sample() -> Value {
    let log = std::fs::read_to_string(goldens::logs_folder().join("passes.log")).unwrap();
    serde_json::to_value(results::capture::results(&log).unwrap()).unwrap()
}

#[test]
fn results_follow_it() {
    assert_eq!(violations(&sample()), Vec::<String>::new());
}

/// The schema must detect each of these mistakes.
#[test]
fn planted_mistakes_are_found() {
    let plant = |place: &str, field: &str, value: Value| {
        let mut results = sample();
        results.pointer_mut(place).unwrap()[field] = value;
        let found = violations(&results);
        assert!(!found.is_empty(), "{place}/{field} is not noticed");
    };
    plant("", "colour", json!(1));
    plant("", "schema", json!(2));
    plant("", "cells", Value::Null);
    plant("/machine", "cpus", json!("2"));
    plant("/cells/0", "wiat", json!("wfi"));
    plant("/cells/0", "wait", json!("wfx"));
    plant("/cells/0", "under", json!("nothing"));
    plant("/cells/0", "poll_limit_us", json!("0"));
    plant("/cells/0", "ended", json!("tired"));
    plant("/cells/0/stats", "p50", json!(-1));
    plant("/cells/0/stats", "p95", json!(1));
    let mut results = sample();
    let cell = results.pointer_mut("/cells/0").unwrap();
    cell.as_object_mut().unwrap().remove("wait");
    assert!(!violations(&results).is_empty(), "a cell without `wait`");
}

/// Checks that the schema has every dimension of `plan::DIMENSIONS`, without listing the dimensions here.
#[test]
fn every_dimension_is_in_it() {
    let schema: Value = serde_json::from_str(&results::schema::schema_text()).unwrap();
    let fields = &schema["$defs"]["Cell"]["properties"];
    for info in &plan::DIMENSIONS {
        let field = match info.place {
            plan::Place::System => &fields["system"]["properties"][info.key],
            _ => &fields[info.key.replace('-', "_")],
        };
        assert_eq!(field["description"], results::help(info), "{}", info.key);
    }
}

/// Checks every results.json whose path is in `ROUSE_RESULTS`, one path per line. `cargo xtask test` sets this variable
/// to the paths for its boots.
#[test]
fn named_files_follow_it() {
    let Ok(paths) = std::env::var("ROUSE_RESULTS") else {
        return;
    };
    for path in paths.lines() {
        let text = std::fs::read_to_string(path).unwrap();
        let found = violations(&serde_json::from_str(&text).unwrap());
        assert!(found.is_empty(), "{path}: {}", found.join("; "));
    }
}

/// docs/results.md must describe every column, and every field except the dimensions, which `--help` lists.
#[test]
fn every_field_and_column_is_documented() {
    let document = std::fs::read_to_string(root().join("docs/results.md")).unwrap();
    let schema: Value = serde_json::from_str(&results::schema::schema_text()).unwrap();
    let objects = schema["$defs"]
        .as_object()
        .unwrap()
        .values()
        .chain([&schema]);
    let fields = objects.flat_map(|object| object["properties"].as_object().unwrap().keys());
    let header = results::csv(&results::Results::default()).unwrap();
    let columns = header.trim_end().split(',');
    let is_dimension = |name: &str| {
        plan::DIMENSIONS
            .iter()
            .any(|info| info.key.replace('-', "_") == name)
    };
    let mut missing: Vec<&str> = fields
        .map(String::as_str)
        .chain(columns)
        .filter(|name| !is_dimension(name) && !document.contains(&format!("`{name}`")))
        .collect();
    missing.sort_unstable();
    assert_eq!(missing, Vec::<&str>::new());
}
