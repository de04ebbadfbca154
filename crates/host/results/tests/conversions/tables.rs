// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests where values appear in results, in results.csv, and in the lines of results.json.

use std::collections::BTreeMap;

use results::{csv, json};
use serde_json::json;

use super::of;

#[test]
fn records_become_results() {
    let results = of("rouse", "insns");
    assert!(results.problems.is_empty() && results.damaged.is_empty() && !results.incomplete);
    let machine = &results.machine;
    assert_eq!(
        (machine.cpus, machine.cntfrq_hz, machine.core_hz),
        (2, 1_000_000, 7)
    );
    assert_eq!(
        (machine.list_registers, machine.midr.as_str()),
        (4, "0x410fd034")
    );
    assert_eq!(
        (machine.gic.as_str(), machine.firmware.as_str()),
        ("v3", "fdt")
    );
    // A value that has no field of its own becomes a feature, with the type that its text looks like.
    let features = json!({"wfxt": true, "cache": 64});
    assert_eq!(serde_json::to_value(&machine.features).unwrap(), features);
    let fidelity = json!({"wfe_halts": "not-sure", "sev": false});
    assert_eq!(serde_json::to_value(&results.fidelity).unwrap(), fidelity);
    let details: Vec<_> = results.fidelity_details.iter().collect();
    assert_eq!(details, [(&"wfe_halts".to_owned(), &"busy".to_owned())]);
    assert_eq!(
        (results.unit.as_str(), results.unit_how.as_str()),
        ("insns", "counted")
    );
    assert_eq!(results.notes, ["hot"]);
    let [skipped, cell] = results.cells.as_slice() else {
        panic!("two cells, by number");
    };
    assert_eq!(skipped.skipped.as_deref(), Some("no"));
    assert!(skipped.stats.is_none() && !skipped.is_part() && skipped.passes_text() == "all");
    assert_eq!(
        (
            cell.id,
            cell.cpus,
            cell.iterations,
            cell.event_stream_made_ns
        ),
        (1, 2, 40, 11)
    );
    assert_eq!((cell.passes, cell.passes_planned), (4, 4));
    assert!(cell.ran_out_of_time() && !skipped.ran_out_of_time());
    assert_eq!(cell.not_modelled, ["a", "b"]);
    assert_eq!(cell.stats.unwrap().mean, 2.5);
    let stages: Vec<&str> = cell.stages().map(|stage| stage.name.as_str()).collect();
    assert_eq!((stages, cell.stages[0].stats.mean), (vec!["kick"], 1.5));
    assert_eq!(cell.stamped_stage().unwrap().stats.p50, 9);
    assert_eq!(cell.histograms["total"], [(1, 3), (2, 5)]);
    assert_eq!(cell.raw["total"], [1, 2]);
    assert!(cell.residency.is_empty(), "of instructions");
    assert_eq!(
        (cell.counters["el2"]["kick"], cell.counters[""]["halts"]),
        (61, 71)
    );
    assert_eq!(cell.per_sample(&cell.exits, "wfe"), 2.75);
    assert_eq!(cell.per_sample(&cell.exits, "none"), 0.0);
    assert_eq!(skipped.per_sample(&cell.exits, "wfe"), 22.0);
}

#[test]
fn every_column_has_its_own_value() {
    let text = csv(&of("none", "ticks")).unwrap();
    let mut lines = text.lines().map(|line| line.split(','));
    let header: Vec<&str> = lines.next().unwrap().collect();
    let mut row =
        || -> BTreeMap<&str, &str> { header.iter().copied().zip(lines.next().unwrap()).collect() };
    let (skipped, cell) = (row(), row());
    for (name, value) in [
        ("under", "none"),
        ("workload", "pingpong"),
        ("wait", "wfi"),
        ("trap", "wfi"),
        ("cpus", "2"),
        ("iterations", "40"),
        ("unit", "ticks"),
        ("count", "8"),
        ("min", "1"),
        ("p50", "2"),
        ("p90", "3"),
        ("p99", "4"),
        ("p999", "5"),
        ("max", "6"),
        ("mean", "2.500"),
        ("exits_wfi", "21"),
        ("exits_wfe", "22"),
        ("exits_sgi", "23"),
        ("exits_irq", "24"),
        ("exits_hvc", "25"),
        ("exits_smc", "26"),
        ("exits_sysreg", "27"),
        ("exits_mmio", "28"),
        ("exits_maintenance", "29"),
        ("exits_other", "30"),
        ("ipis_sent", "31"),
        ("ipis_elided", "32"),
        ("ipis_coalesced", "33"),
        ("wakes_timeout", "42"),
        ("skipped", ""),
        ("event_stream_made_ns", "11"),
        ("passes", "4"),
        ("passes_planned", "4"),
        ("ended", "budget"),
        ("run", ""),
    ] {
        assert_eq!(cell[name], value, "{name}");
    }
    for (name, value) in [
        ("workload", "ipi"),
        ("skipped", "no"),
        ("count", ""),
        ("mean", ""),
        ("exits_wfi", ""),
        ("passes", ""),
        ("passes_planned", ""),
        ("ended", ""),
        ("event_stream_made_ns", "0"),
    ] {
        assert_eq!(skipped[name], value, "{name}");
    }
}

#[test]
fn what_is_not_a_table_is_on_one_line() {
    let value = json!({"a": {"b": {"c": [1, {"d": 2}]}, "e": []}, "f": [[1, 2], {}], "g": {}});
    let text = json::text(&value).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "{",
            "  \"a\": {",
            "    \"b\": {\"c\":[1,{\"d\":2}]},",
            "    \"e\": []",
            "  },",
            "  \"f\": [",
            "    [1,2],",
            "    {}",
            "  ],",
            "  \"g\": {}",
            "}",
        ]
    );
    assert!(text.ends_with("}\n"));
    assert_eq!(json::text(&json!([])).unwrap(), "[]\n");
}
