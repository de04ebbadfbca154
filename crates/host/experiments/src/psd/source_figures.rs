// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of the source, and the cells whose figures are compared with them.

/// Columns of the re-test: the name, and three values of our cell, which are the wait, `psd-ms` and `standby-us`.
pub const COLUMNS: [(&str, &str, &str, &str); 5] = [
    ("baseline", "governor:menu-6.14", "0", "170"),
    ("C6 disabled", "governor:menu-6.14", "0", "0"),
    ("Wysocki's", "governor:menu", "0", "170"),
    ("PSD", "governor:menu-6.14", "3", "170"),
    ("both", "governor:menu", "3", "170"),
];

/// Indices into [`COLUMNS`].
pub const BASELINE: usize = 0;
pub const DISABLED: usize = 1;
pub const WYSOCKI: usize = 2;
pub const PSD: usize = 3;
pub const BOTH: usize = 4;

/// A value for each column, or NaN if the source has none.
pub type Values = [f64; 5];

/// A row of the re-test: our cells, and their published figures. The first published figures are rates.
pub struct SourceRow {
    pub name: &'static str,
    /// Label of the boot, and the words that select the row's cells in that boot.
    pub boot: &'static str,
    pub words: &'static [(&'static str, &'static str)],
    pub published: &'static [(&'static str, Values)],
}

/// Words that select the reads, or the writes, in a boot whose cells have only one of the two.
pub const READS: [(&str, &str); 1] = [("writes", "0")];
pub const WRITES: [(&str, &str); 1] = [("writes", "100")];

const NONE: f64 = f64::NAN;

pub const ROWS: [SourceRow; 4] = [
    SourceRow {
        name: "reads, fixed",
        boot: "fixed",
        words: &[],
        published: &[],
    },
    SourceRow {
        name: "reads, uniform",
        boot: "apart",
        words: &READS,
        published: &[
            ("re-test, GB/s", [25.689, 25.840, 25.696, 25.782, 25.793]),
            ("deviation, %", [0.15, 0.19, 0.06, 0.07, 0.10]),
            ("latency, us", [326.177, 324.349, 326.150, 324.999, 324.924]),
            ("first posting, GB/s", [21.366, NONE, NONE, 25.950, NONE]),
            ("deviation, % ", [1.86, NONE, NONE, 0.16, NONE]),
        ],
    },
    SourceRow {
        name: "writes",
        boot: "apart",
        words: &WRITES,
        published: &[
            ("re-test, GB/s", [15.220, 13.406, 14.018, 15.444, 14.038]),
            ("deviation, %", [3.33, 0.66, 1.15, 3.73, 1.13]),
            ("latency, us", [550.290, 625.424, 598.049, 467.818, 597.143]),
            ("its deviation, %", [3.36, 0.66, 1.16, 29.10, 1.13]),
        ],
    },
    SourceRow {
        name: "both",
        boot: "mixed",
        words: &[],
        published: &[
            (
                "re-test, reads, GB/s",
                [10.132, 10.568, 10.171, 10.469, 10.175],
            ),
            ("deviation, %", [0.41, 0.60, 0.37, 0.07, 1.26]),
            (
                "a read, us, published",
                [484.919, 515.260, 486.937, 504.797, 488.263],
            ),
            (
                "re-test, writes, GB/s",
                [10.139, 10.583, 10.178, 10.483, 10.184],
            ),
            ("deviation, % ", [0.44, 0.63, 0.39, 1.28, 0.38]),
            (
                "a write, us, published",
                [342.132, 277.052, 336.989, 294.803, 330.657],
            ),
            (
                "first posting, reads, GB/s",
                [9.938, NONE, NONE, 10.503, NONE],
            ),
            (
                "first posting, writes, GB/s",
                [9.945, NONE, NONE, 10.517, NONE],
            ),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of requests in flight at the same time: the rate times the latency. Each request is one
    /// mebibyte.
    fn requests_in_flight(rates: &Values, latencies: &Values, column: usize) -> f64 {
        rates[column] * 1e9 / f64::from(1 << 20) * latencies[column] / 1e6
    }

    #[test]
    fn eight_jobs_have_one_request_each_wherever_the_latency_is_steady() {
        for row in &ROWS {
            let value = |name: &str| {
                let mut values = row.published.iter();
                values
                    .find(|(what, _)| *what == name)
                    .map(|(_, values)| values)
            };
            for column in 0..COLUMNS.len() {
                let all = match row.boot {
                    "mixed" => [
                        ("re-test, reads, GB/s", "a read, us, published"),
                        ("re-test, writes, GB/s", "a write, us, published"),
                    ]
                    .map(|(rate, latency)| {
                        requests_in_flight(value(rate).unwrap(), value(latency).unwrap(), column)
                    })
                    .iter()
                    .sum(),
                    _ => match (value("re-test, GB/s"), value("latency, us")) {
                        (Some(rates), Some(latencies)) => {
                            requests_in_flight(rates, latencies, column)
                        }
                        _ => continue,
                    },
                };
                let steady = !(row.name == "writes" && column == PSD);
                assert_eq!(
                    (all - 8.0f64).abs() < 0.1,
                    steady,
                    "{}, column {column}: {all}",
                    row.name
                );
            }
        }
    }
}
