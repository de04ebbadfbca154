// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the texts in results for which only a fixed set of values is allowed. A file with any other value is refused.

use foreign::Quoted;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::UNITS;

/// Parses a unit.
///
/// # Errors
/// Names the unknown unit, and the known ones.
pub fn parse_unit(text: &str) -> Result<&'static str, String> {
    let known = UNITS.iter().find(|known| **known == text);
    known.copied().ok_or_else(|| {
        let units = UNITS[1..].join(", ");
        format!(
            "there is no unit `{}`; known are {units}",
            Quoted::new(text)
        )
    })
}

/// Parses the affinity of a CPU (MPIDR_EL1), such as `0x101`. An empty text means unknown.
///
/// # Errors
/// Names the text, if it is not an affinity.
pub fn parse_affinity(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("0x");
    let number = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    let number = number.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    match (text, number) {
        ("", _) => Ok(String::new()),
        (_, Some(number)) => Ok(format!("{number:#x}")),
        (_, None) => Err(format!(
            "`{}` is not an affinity such as 0x101",
            Quoted::new(text)
        )),
    }
}

pub fn read_unit<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_unit(&text)
        .map(str::to_owned)
        .map_err(D::Error::custom)
}

pub fn read_affinity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    parse_affinity(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub fn schema_of_unit(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": UNITS })
}

pub fn schema_of_affinity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^(0x[0-9a-f]+)?$" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_affinities_are_affinities() {
        assert_eq!(parse_affinity("0x0"), Ok("0x0".into()));
        assert_eq!(parse_affinity("0x10A"), Ok("0x10a".into()));
        assert_eq!(parse_affinity(""), Ok(String::new()));
        for text in [
            "0",
            "0x",
            "0x+1",
            "=1+1",
            "-1",
            " 0x0",
            "0x1ffffffffffffffff",
        ] {
            assert!(parse_affinity(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_units_are_units() {
        assert_eq!(parse_unit("vticks"), Ok("vticks"));
        let why = parse_unit(&"=1".repeat(1000)).unwrap_err();
        assert!(
            why.contains("(2000 characters)") && why.len() < 400,
            "{why}"
        );
    }
}
