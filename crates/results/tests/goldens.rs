// SPDX-License-Identifier: MIT OR Apache-2.0
//! Logs of boots, and the results.json and results.csv that come of each.
//!
//! The tables and pages of the same logs are tested in `xtask/src/goldens.rs`. All are
//! written anew by `ROUSE_REWRITE=1 cargo test -p results -p xtask golden`; look at the
//! difference before it is committed.

mod common;

use std::fs;

use common::{follow, golden, logs};

#[test]
fn results_of_logs_are_the_golden_ones() {
    let entries = fs::read_dir(logs())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let logs: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .collect();
    assert!(!logs.is_empty());
    for log in logs {
        let text = fs::read_to_string(&log).unwrap();
        let results = results::capture::results(&text).expect("the log has records");
        golden(&log.with_extension("json"), &results.to_json().unwrap());
        golden(&log.with_extension("csv"), &results::csv(&results).unwrap());
        let found = follow(&serde_json::to_value(&results).unwrap());
        assert!(found.is_empty(), "{}: {}", log.display(), found.join("; "));
    }
}
