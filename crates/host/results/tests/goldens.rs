// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares results.json and results.csv of logged boots with the expected files.
//!
//! `crates/host/reporting/src/goldens.rs` tests the tables of these boots, and `crates/host/page/tests/goldens.rs`
//! tests their pages.

mod common;

use common::violations;
use results::goldens::{golden, log_results, logs_as_runs, logs_folder};
use results::merge;

#[test]
fn golden_results_of_logs() {
    let logs = log_results();
    assert!(!logs.is_empty());
    for (name, results) in logs {
        let place = |end: &str| logs_folder().join(format!("{name}.{end}"));
        golden(&place("json"), &results.to_json().unwrap());
        golden(&place("csv"), &results::csv(&results).unwrap());
        let found = violations(&serde_json::to_value(&results).unwrap());
        assert!(found.is_empty(), "{name}: {}", found.join("; "));
    }
}

/// Puts the runs of several logs into one file.
#[test]
fn golden_results_of_all_runs() {
    let merged = merge::into_one(&merge::join_sweeps(logs_as_runs()));
    golden(&logs_folder().join("all.json"), &merged.to_json().unwrap());
}
