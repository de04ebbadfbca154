// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of a cell in `results.json`: a field for each dimension of [`plan::DIMENSIONS`]. Words that are numbers
//! become JSON numbers, and all others become text.
//!
//! A missing word means the neutral value. An unknown word causes an error that names the word.

use std::collections::BTreeMap;

use foreign::{QUOTED, Quoted};
use plan::{Cell, DIMENSIONS, Info, Place, ValueKind};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serializer};
use serde_json::{Map, Value, json};

/// The field that contains the dimensions of the executor.
const SYSTEM: &str = "system";

/// Returns the name of a dimension's field.
pub fn field_name(info: &Info) -> String {
    info.key.replace('-', "_")
}

/// Writes the words of `cell` as fields of the enclosing object.
pub fn serialize<S: Serializer>(cell: &Cell, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    let fields = DIMENSIONS.iter().filter(|info| info.place != Place::System);
    for info in fields.filter(|info| info.is_told(cell)) {
        match info.kind {
            ValueKind::Numbers => map.serialize_entry(&field_name(info), &info.rank(cell))?,
            ValueKind::Words
            | ValueKind::Cpus
            | ValueKind::Pairs
            | ValueKind::Tables
            | ValueKind::Names => {
                map.serialize_entry(&field_name(info), &info.text(cell).to_string())?;
            }
        }
    }
    let system = cell
        .system()
        .map(|info| (info.key, info.text(cell).to_string()));
    let system: BTreeMap<&str, String> = system.collect();
    if !system.is_empty() {
        map.serialize_entry(SYSTEM, &system)?;
    }
    map.end()
}

/// Returns the schema of the fields that [`serialize`] writes. Both use the same table of dimensions.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    let mut fields = Map::new();
    let mut required = Vec::new();
    let mut system = Map::new();
    for info in &DIMENSIONS {
        match info.place {
            Place::System => drop(system.insert(info.key.into(), text_schema(info))),
            Place::Always | Place::Unusual => {
                let name = field_name(info);
                if info.place == Place::Always {
                    required.push(name.clone());
                }
                fields.insert(name, value_schema(info));
            }
        }
    }
    fields.insert(
        SYSTEM.into(),
        json_schema!({
            "description": "Options of the executor that apply to the workload, by the name of the option.",
            "type": "object",
            "properties": system,
        })
        .into(),
    );
    json_schema!({ "type": "object", "properties": fields, "required": required })
}

/// Describes a dimension and its words by the help text of its option.
pub fn help(info: &Info) -> String {
    let list = |family: &str| info.family(family).collect::<Vec<_>>().join(", ");
    let help = info.help.replace("{words}", &list(""));
    help.replace("{governor}", &list("governor:"))
}

/// Names a value of a dimension, like `gap 10 us`.
pub fn valued(info: &Info, text: &str) -> String {
    match info.key.strip_suffix("-us") {
        Some(name) => format!("{name} {text} us"),
        None => format!("{} {text}", info.key),
    }
}

/// Returns the schema of a dimension that has its own field.
fn value_schema(info: &Info) -> Value {
    match info.kind {
        ValueKind::Numbers => json!({ "description": help(info), "type": "integer", "minimum": 0 }),
        ValueKind::Words
        | ValueKind::Cpus
        | ValueKind::Pairs
        | ValueKind::Tables
        | ValueKind::Names => text_schema(info),
    }
}

/// Returns the schema of a dimension whose value is text.
fn text_schema(info: &Info) -> Value {
    let mut schema = json!({ "description": help(info), "type": "string" });
    if info.kind == ValueKind::Words {
        schema["enum"] = info.words.into();
    }
    schema
}

/// Reads the words of a cell.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cell, D::Error> {
    let fields = BTreeMap::<String, Value>::deserialize(deserializer)?;
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut words: Vec<(String, String)> = Vec::new();
    for info in DIMENSIONS.iter().filter(|info| info.place != Place::System) {
        let value = fields.get(&field_name(info));
        words.extend(value.map(|value| (info.key.to_owned(), text(value))));
    }
    if let Some(Value::Object(system)) = fields.get(SYSTEM) {
        words.extend(system.iter().map(|(key, value)| (key.clone(), text(value))));
    }
    read_cell(words).map_err(D::Error::custom)
}

/// Returns the cell with `words`, which are keyed by the dimensions' names. Missing or empty words mean neutral
/// values.
///
/// # Errors
/// Names the unknown word, and the known ones.
pub fn read_cell(words: impl IntoIterator<Item = (String, String)>) -> Result<Cell, String> {
    let mut cell = Cell::default();
    for (key, word) in words {
        if !word.is_empty() {
            let quoted = |error: plan::Error| match word.chars().count() {
                ..=QUOTED => error.to_string(),
                _ => error
                    .to_string()
                    .replace(&word, &Quoted::new(&word).to_string()),
            };
            cell.set(&key, &word).map_err(quoted)?;
        }
    }
    Ok(cell)
}
