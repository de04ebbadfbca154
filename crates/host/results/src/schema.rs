// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of `results.json`. It is generated from the types that write this file, and stored as
//! docs/results.schema.json.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

use crate::Results;

/// Returns the text of the schema.
///
/// # Panics
/// Never: a schema is JSON.
pub fn schema_text() -> String {
    // The schema describes files as they are written, so a field that is always written is required.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Results>();
    RecursiveTransform(forbid_others).transform(&mut schema);
    serde_json::to_string_pretty(&schema)
        .map(|text| text + "\n")
        .expect("a schema is JSON")
}

/// Forbids unknown names in an object whose fields are fixed, so that a misspelt name is an error. Objects with
/// arbitrary names, such as counters, state in their own schema which names they allow.
fn forbid_others(schema: &mut Schema) {
    let named = schema.get("properties").is_some_and(Value::is_object);
    if named && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".into(), Value::Bool(false));
    }
}
