// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds figures in the output of `fio`.
//!
//! | line | figure |
//! |---|---|
//! | `read: IOPS=2801, BW=10.9MiB/s (11.5MB/s)(4096KiB/366msec)` | reads per second |
//! | ` lat (usec): min=344, max=420, avg=351.20, stdev= 6.12` | latency of a read: min, avg, max, us |

use super::figures::number;

/// Units of latencies, in microseconds.
const UNITS: [(&str, f64); 3] = [("nsec", 1e-3), ("usec", 1.0), ("msec", 1e3)];
/// Suffixes of counts.
const SUFFIXES: [(&str, f64); 2] = [("k", 1e3), ("M", 1e6)];
/// Names of operations.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Returns the figures of `fio` in these lines, which have no space around them.
pub fn of(lines: &[&str]) -> Vec<(String, f64)> {
    let mut figures = Vec::new();
    let mut direction = None;
    for line in lines {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        if let Some(rate) = value.trim_start().strip_prefix("IOPS=") {
            direction = DIRECTIONS.iter().find(|name| **name == key);
            let rate = rate.split(',').next().and_then(count);
            let named = direction.zip(rate);
            figures.extend(named.map(|(of, rate)| (format!("{of}s per second"), rate)));
        }
        // `clat` and `slat` are parts of it; a histogram's line has no minimum.
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
            let value = count(text).map(|value| value * microseconds);
            figures.extend(value.map(|value| (format!("latency of a {of}, {name}, us"), value)));
        }
    }
    figures
}

/// Reads a number that may end with `k` or `M`.
fn count(text: &str) -> Option<f64> {
    let text = text.trim();
    let scaled = SUFFIXES.iter().find_map(|(suffix, times)| {
        let number = number(text.strip_suffix(suffix)?)?;
        Some(number * times)
    });
    scaled.or_else(|| number(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(output: &str) -> Vec<String> {
        let lines: Vec<&str> = output.lines().map(str::trim).collect();
        let figures = of(&lines).into_iter();
        figures
            .map(|(name, value)| format!("{name} = {value}"))
            .collect()
    }

    #[test]
    fn each_direction_has_its_rate_and_latency() {
        // Printed by fio 3.39, shortened.
        let read = "r: (groupid=0, jobs=1): err= 0: pid=74: Thu Jan  1 00:00:07 1970\n  \
                    read: IOPS=990, BW=3960KiB/s (4055kB/s)(800KiB/202msec)\n    \
                    clat (nsec): min=1006.7k, max=1016.4k, avg=1006957.60, stdev=732.91\n     \
                    lat (nsec): min=1006.9k, max=1016.6k, avg=1007164.60, stdev=732.91\n    \
                    clat percentiles (usec):\n     |  1.00th=[ 1004],  5.00th=[ 1004]\n  \
                    lat (msec)   : 2=100.00%\n  cpu          : usr=0.00%, sys=1.99%, ctx=200\n";
        let of_read = [
            "reads per second = 990",
            "latency of a read, min, us = 1006.9",
            "latency of a read, max, us = 1016.6",
            "latency of a read, avg, us = 1007.1646",
        ];
        assert_eq!(found(read), of_read);
        let write = "  write: IOPS=12.5k, BW=1MiB/s\n     lat (msec): min=1, max=2, avg= 1.50, stdev= 0.10\n";
        let of_write = [
            "writes per second = 12500",
            "latency of a write, min, us = 1000",
            "latency of a write, max, us = 2000",
            "latency of a write, avg, us = 1500",
        ];
        assert_eq!(found(write), of_write);
        assert_eq!(found(&format!("{read}{write}")).len(), 8);
    }

    #[test]
    fn a_latency_without_an_operation_is_none() {
        for text in [
            "     lat (usec): min=1, max=2, avg=1\n",
            "read: IOPS=, BW=1\n",
            "sync: IOPS=12, BW=1\n",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }
}
