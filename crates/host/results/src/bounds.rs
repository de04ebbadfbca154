// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks each number in a file against a bound when it is read, so that computations with the numbers can't overflow.

use std::fmt::Write;

use foreign::Quoted;
use serde_json::{Number, Value};
use wire::Record;

use crate::Results;

/// The largest allowed number: about three days, in ticks of a 1 GHz counter.
pub const MOST: u64 = 1 << 48;
/// The largest allowed sum of the numbers in a file.
pub const SUM: u64 = 1 << 58;
/// The largest allowed number of CPUs. This bound is lower than the others, because the number of CPU pairs grows with
/// the square of the number of CPUs.
pub const CPUS: u64 = 1 << 16;

/// Objects that describe the machine with arbitrary names and numbers. The numbers are not checked, because they are
/// only displayed.
const SHOWN: [&str; 2] = ["features", "fidelity"];
/// Kinds of records that have no numbers. In other kinds, the text of the keys [`TEXT_KEYS`] may look like a number.
const TEXTS: [&str; 6] = ["feature", "probe", "note", "unit", "refused", "failed"];
const TEXT_KEYS: [&str; 5] = ["name", "why", "text", "version", "hypervisor"];

/// Sum of the numbers read from one file so far.
#[derive(Debug, Default)]
pub struct Numbers {
    sum: u64,
}

impl Numbers {
    /// Checks `number`, which is the value of `key`, and adds it to the sum.
    fn check_number(&mut self, key: &str, number: u64) -> Result<(), String> {
        let most = if key == "cpus" { CPUS } else { MOST };
        if number > most {
            return Err(format!("{number} is above {most}"));
        }
        self.sum = self.sum.saturating_add(number);
        match self.sum > SUM {
            true => Err(format!("the numbers up to here add up to more than {SUM}")),
            false => Ok(()),
        }
    }

    /// Checks the numbers of a record, and adds them to the sum.
    ///
    /// # Errors
    /// Names the key and the bound.
    pub fn check_record(&mut self, record: &Record<'_>) -> Result<(), String> {
        if TEXTS.contains(&record.kind) {
            return Ok(());
        }
        for (key, value) in record.fields() {
            if TEXT_KEYS.contains(&key) {
                continue;
            }
            for word in value.split([',', ':']) {
                if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_digit()) {
                    continue;
                }
                // A number that does not fit in a u64 exceeds every bound.
                let number = word.parse().unwrap_or(u64::MAX);
                self.check_number(key, number)
                    .map_err(|why| format!("{}: {why}", Quoted::new(key)))?;
            }
        }
        Ok(())
    }

    /// Checks the numbers in `value` and adds them to the sum. `key` is the key that `value` belongs to, and `path` is
    /// the path of `value` in the file.
    fn check_json(&mut self, path: &mut String, key: &str, value: &Value) -> Result<(), String> {
        let at = path.len();
        match value {
            Value::Number(number) => {
                let taken = self.check_number(key, magnitude(number));
                return taken.map_err(|why| format!("{path}: {why}"));
            }
            Value::Array(all) => {
                for (index, value) in all.iter().enumerate() {
                    let _ = write!(path, "[{index}]");
                    self.check_json(path, key, value)?;
                    path.truncate(at);
                }
            }
            Value::Object(all) => {
                let read = all.iter().filter(|(key, _)| !SHOWN.contains(&key.as_str()));
                for (key, value) in read {
                    let dot = if at == 0 { "" } else { "." };
                    let _ = write!(path, "{dot}{}", Quoted::new(key));
                    self.check_json(path, key, value)?;
                    path.truncate(at);
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
        Ok(())
    }
}

/// Returns the absolute value of a number, without the fractional part.
fn magnitude(number: &Number) -> u64 {
    let integer = number.as_u64();
    let integer = integer.or_else(|| number.as_i64().map(i64::unsigned_abs));
    // The conversion from a float saturates.
    integer.unwrap_or_else(|| number.as_f64().map_or(u64::MAX, |float| float.abs() as u64))
}

impl Results {
    /// Reads the text of a `results.json`.
    ///
    /// # Errors
    /// Names the mistake and its position, either by line and column or by the path of the field. `shown` formats the
    /// parser's error.
    pub fn read_json(
        text: &str,
        shown: impl Fn(&serde_json::Error) -> String,
    ) -> Result<Self, String> {
        let results: Self = serde_json::from_str(text).map_err(|error| shown(&error))?;
        let value: Value = serde_json::from_str(text).map_err(|error| shown(&error))?;
        Numbers::default().check_json(&mut String::new(), "", &value)?;
        let mut cells = results.cells.iter();
        match cells.position(|cell| cell.stats.is_none() && cell.skipped.is_none()) {
            Some(empty) => Err(format!(
                "cells[{empty}]: there is neither `stats` nor `skipped`"
            )),
            None => Ok(results),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn read(text: &str) -> Result<Results, String> {
        Results::read_json(text, ToString::to_string)
    }

    #[test]
    fn a_number_above_the_bound_is_named_with_its_path() {
        assert!(read(&samples::results().to_json().unwrap()).is_ok());
        for (text, path) in [
            (
                r#""cells":[{"stats":{"count":9223372036854775808}}]"#,
                "cells[0].stats.count: 9223372036854775808 is above",
            ),
            (
                r#""cells":[{"stats":{"mean":1e300}}]"#,
                "cells[0].stats.mean: ",
            ),
            (
                r#""cells":[{"stats":{},"pass_core_hz":[[1,281474976710657]]}]"#,
                "cells[0].pass_core_hz[0][1]: ",
            ),
            (
                r#""cells":[{"stats":{},"counters":{"a":{"b":281474976710657}}}]"#,
                "cells[0].counters.a.b: ",
            ),
            (
                r#""machine":{"cpus":65537}"#,
                "machine.cpus: 65537 is above 65536",
            ),
            (
                r#""machine":{"core_clocks":[{"drift_ppm":-9223372036854775808}]}"#,
                "machine.core_clocks[0].drift_ppm: ",
            ),
            (
                r#""cells":[{"skipped":"x"},{}]"#,
                "cells[1]: there is neither",
            ),
        ] {
            let error = read(&format!(r#"{{"schema":1,{text}}}"#)).unwrap_err();
            assert!(error.contains(path), "{error}");
        }
        let many = vec![MOST.to_string(); 1 + (SUM / MOST) as usize].join(",");
        let error = read(&format!(
            r#"{{"cells":[{{"stats":{{}},"pass_p50":[{many}]}}]}}"#
        ))
        .unwrap_err();
        assert!(
            error.contains("cells[0].pass_p50[1024]: ") && error.contains("add up"),
            "{error}"
        );
        // The numbers in a machine's features have no bound.
        assert!(read(r#"{"machine":{"features":{"a":18446744073709551615}}}"#).is_ok());
    }
}
