// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds figures in the output of `fio`.
//!
//! | line | figure |
//! |---|---|
//! | `read: IOPS=2801, BW=10.9MiB/s (11.5MB/s)(4096KiB/366msec)` | reads per second |
//! | ` lat (usec): min=344, max=420, avg=351.20, stdev= 6.12` | latency of a read: min, avg, max, us |

use super::figures::parse_number;

/// Units of latencies, with their length in microseconds.
const UNITS: [(&str, f64); 3] = [("nsec", 1e-3), ("usec", 1.0), ("msec", 1e3)];
/// Suffixes of counts, with their factors.
const SUFFIXES: [(&str, f64); 2] = [("k", 1e3), ("M", 1e6)];
/// Names of the operations.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Returns the figures of `fio` in `lines`, which have no surrounding white space.
pub fn fio_figures(lines: &[&str]) -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    let mut direction = None;
    for line in lines {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        if let Some(rate) = value.trim_start().strip_prefix("IOPS=") {
            direction = DIRECTIONS.iter().find(|name| **name == key);
            let rate = rate.split(',').next().and_then(parse_count);
            let named = direction.zip(rate);
            figures.extend(named.map(|(of, rate)| (format!("{of}s per second"), rate)));
        }
        // `clat` and `slat` are parts of `lat`, so they are ignored. A histogram's `lat` has no minimum.
        let unit = key
            .strip_prefix("lat (")
            .and_then(|key| key.strip_suffix(')'));
        let unit = UNITS.iter().find(|(name, _)| Some(*name) == unit);
        let (Some(of), Some((_, microseconds))) = (direction, unit) else {
            continue;
        };
        for part in value.split(',') {
            let Some((name @ ("min" | "avg" | "max"), text)) = part.trim().split_once('=') else {
                continue;
            };
            let value = parse_count(text).map(|value| value * microseconds);
            figures.extend(value.map(|value| (format!("latency of a {of}, {name}, us"), value)));
        }
    }
    figures
}

/// Parses a number that may end with `k` or `M`.
fn parse_count(text: &str) -> Option<f64> {
    let text = text.trim();
    let scaled = SUFFIXES.iter().find_map(|(suffix, times)| {
        let number = parse_number(text.strip_suffix(suffix)?)?;
        Some(number * times)
    });
    scaled.or_else(|| parse_number(text))
}
