// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON Schema of `results.json`, made from the types that write it: it is
//! docs/results.schema.json.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::Value;

use crate::Results;

/// The text of the schema.
///
/// # Panics
/// Never: a schema is JSON.
pub fn text() -> String {
    // Describes written files, not read ones: a field that is always written is required.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<Results>();
    RecursiveTransform(closed).transform(&mut schema);
    serde_json::to_string_pretty(&schema)
        .map(|text| text + "\n")
        .expect("a schema is JSON")
}

/// Forbids other names in an object whose fields are named: a name that is spelt wrongly is an
/// error. Objects with any names, like counters, declare that themselves.
fn closed(schema: &mut Schema) {
    let named = schema.get("properties").is_some_and(Value::is_object);
    if named && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".into(), Value::Bool(false));
    }
}
