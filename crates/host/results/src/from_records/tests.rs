// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests which records become results, and which records are refused.

use plan::Workload;

use super::*;
use crate::csv;
use crate::samples::{
    boot_records_in, collect_records, number_records, results, results_in_cycles,
};

#[test]
fn the_schema_has_the_promised_names() {
    let json = serde_json::to_value(results()).unwrap();
    assert_eq!(json["schema"], 1);
    assert_eq!(json["machine"]["cntfrq_hz"], 1_000_000_000);
    assert_eq!(json["machine"]["emulator"], Value::Null);
    assert_eq!(json["machine"].get("core_hz"), None);
    let [skipped, cell] = json["cells"].as_array().unwrap().as_slice() else {
        panic!("two cells");
    };
    assert_eq!(skipped["skipped"], "one CPU only");
    assert_eq!(skipped["stats"], Value::Null);
    assert_eq!(cell["unit"], "insns");
    assert_eq!(cell["skipped"], Value::Null);
    assert_eq!(cell["stats"]["mean"], 30.0);
    assert_eq!(cell["exits"]["wfi"], 8);
    assert_eq!(cell["ipis"]["sent"], 8);
    for name in [
        "under",
        "poll_limit_us",
        "host_poll_us",
        "stages",
        "wakes",
        "residency",
    ] {
        assert!(cell.get(name).is_some(), "{name}");
    }
}

/// Returns two cells, one measured by the first core and one by the third. If the boot is `cut`, the clock records at
/// its end are missing.
fn on_two_cores(cut: bool) -> Results {
    let mut records = vec![
        "boot under=rouse version=0.1.0",
        "machine cpus=3 cntfrq_hz=1000000000 core_hz=2000000000 counter_step=20",
        "unit unit=cycles how=CNTVCT",
        "core-clock cpu=0 affinity=0x0 begin_hz=1999000000 cycles_hz=2000000000",
        "core-clock cpu=2 affinity=0x100 begin_hz=1000000000 cycles_hz=1000000000",
        "cell id=0 workload=pingpong wait=wfi pair=0,1",
        "stat id=0 name=total count=4 p50=200 sum=800",
        "done id=0 records=3",
        "cell id=1 workload=pingpong wait=wfi pair=2,1",
        "stat id=1 name=total count=4 p50=200 sum=800",
        "done id=1 records=3",
    ];
    if !cut {
        records.extend([
            "core-clock cpu=0 affinity=0x0 end_hz=1999000000",
            "core-clock cpu=2 affinity=0x100 end_hz=1002000000",
            "end cells=2",
        ]);
    }
    let mut results = Results::new("virt", "max", None);
    results.add(
        Some(Under::Rouse),
        &collect_records(&number_records(records)),
    );
    results
}

#[test]
fn each_cell_is_of_the_clock_of_its_core_and_each_core_has_its_drift() {
    let results = on_two_cores(false);
    let cells: Vec<_> = results.cells.iter().collect();
    assert_eq!(cells[0].cycles_hz, Some(2_000_000_000));
    assert_eq!(cells[1].cycles_hz, Some(1_000_000_000));
    // 20 ticks are 40 cycles of the first core and 20 cycles of the third.
    assert_eq!(
        [cells[0].counter_coarse, cells[1].counter_coarse],
        [Some(0.2), Some(0.1)]
    );
    let clocks = &results.machine.core_clocks;
    let told: Vec<_> = clocks
        .iter()
        .map(|clock| (clock.cpu, clock.affinity.as_str(), clock.drift_ppm))
        .collect();
    assert_eq!(told, [(0, "0x0", Some(0)), (2, "0x100", Some(2000))]);
}

#[test]
fn a_boot_that_is_cut_short_has_the_clocks_at_its_begin() {
    let results = on_two_cores(true);
    let json = serde_json::to_value(&results.machine.core_clocks[1]).unwrap();
    let expected = serde_json::json!({"cpu": 2, "affinity": "0x100", "begin_hz": 1_000_000_000});
    assert_eq!(json, expected);
    assert_eq!(results.cells[1].cycles_hz, Some(1_000_000_000));
}

#[test]
fn clocks_that_are_not_told_are_absent() {
    let json = serde_json::to_value(crate::samples::results()).unwrap();
    assert_eq!(json["machine"].get("core_clocks"), None);
    assert_eq!(json["cells"][1].get("cycles_hz"), None);
}

#[test]
fn cycles_bring_the_clock_of_their_core() {
    let results = results_in_cycles();
    let json = serde_json::to_value(&results).unwrap();
    assert_eq!(json["machine"]["core_hz"], 2_600_000_000_u64);
    assert_eq!(json["machine"]["features"].get("core_hz"), None);
    let memory = &json["machine"]["emulator"]["parameters"]["memory"];
    assert_eq!(
        (&memory["value"], &memory["source"]),
        (&"60 ns".into(), &"chosen".into())
    );
    assert_eq!(json["cells"][1]["unit"], "cycles");
    let table = csv(&results).unwrap();
    assert!(
        table.lines().nth(2).unwrap().contains(",cycles,"),
        "{table}"
    );
    let again: Results = serde_json::from_value(json).unwrap();
    assert_eq!(again.machine, results.machine);
}

#[test]
fn a_boot_that_counts_something_else_is_left_out_and_named() {
    let mut results = results();
    let other = collect_records(&boot_records_in("cycles", "25000000"));
    let cells = results.cells.len();
    results.add(Some(Under::None), &other);
    assert_eq!(results.cells.len(), cells);
    assert!(results.cells.iter().all(|cell| cell.unit != "cycles"));
    let problem = &results.problems[0];
    assert!(
        problem.contains("under none counts cycles, those before it insns"),
        "{problem}"
    );
}

/// Returns the records of a cell with two samples of 60 ticks in total, which were spent in three states.
fn with_parts() -> CellRecords {
    let counts = [
        ("stamped.samples", 2),
        ("stamped.lost", 0),
        ("stamped.ticks", 60),
        ("res.run", 20),
        ("res.poll", 0),
        ("res.wfi", 30),
        ("res.el2", 10),
        ("time.sgi", 4),
        ("time.irq", 6),
    ];
    let samples = |name: &str| Stat {
        name: name.into(),
        values: [("count".into(), 2)].into(),
    };
    CellRecords {
        fields: [("wait".into(), "wfi".into())].into(),
        stats: vec![samples("total"), samples("traced")],
        counts: counts.map(|(name, count)| (name.into(), count)).into(),
        ..CellRecords::default()
    }
}

fn results_of(cell: CellRecords, unit: &str) -> Results {
    let mut results = Results::default();
    let records = Records {
        unit: Some((unit.into(), String::new())),
        cells: vec![cell],
        ended: true,
        ..Records::default()
    };
    results.add(Some(Under::Rouse), &records);
    results
}

#[test]
fn parts_that_do_not_add_up_are_a_problem_that_is_named() {
    let whole = results_of(with_parts(), "ticks");
    assert!(whole.problems.is_empty(), "{:?}", whole.problems);
    assert_eq!(whole.cells[0].residency["wfi"], 30);
    for (name, count, said) in [
        (
            "res.run",
            21,
            "its parts are 61 ticks, its samples with stamps 60",
        ),
        ("time.sgi", 3, "at EL2 for 10 ticks, by cause for 9"),
        ("stamped.lost", 1, "3 samples have parts, 2 have stamps"),
    ] {
        let mut cell = with_parts();
        cell.counts.insert(name.into(), count);
        let problems = results_of(cell, "ticks").problems;
        assert!(
            matches!(problems.as_slice(), [one] if one.contains(said)),
            "{problems:?}"
        );
    }
}

#[test]
fn parts_of_other_code_than_the_samples_are_not_their_residency() {
    let insns = &results_of(with_parts(), "insns").cells[0];
    assert!(insns.residency.is_empty());
    assert_eq!(insns.counters["res"]["wfi"], 30);
    // In old logs, the parts also cover everything between the samples.
    let mut old = with_parts();
    old.counts.retain(|name, _| !name.starts_with("stamped."));
    let old = &results_of(old, "ticks").cells[0];
    assert!(old.residency.is_empty() && !old.counters.contains_key("time"));
}

#[test]
fn what_may_contain_idle_time_is_never_called_instructions() {
    let units = Workload::ALL.iter().map(|&workload| {
        let mut cell = plan::Cell {
            workload,
            ..plan::Cell::default()
        };
        let unit = unit_of(&cell, "insns");
        assert_eq!(unit == VIRTUAL, workload.has_idle_time(), "{workload}");
        assert_eq!(unit_of(&cell, "cycles"), "cycles");
        cell.arrival_us = 10;
        let open = cell.is_open().then(|| unit_of(&cell, "insns"));
        assert_eq!(open, (workload == Workload::Notify).then_some(VIRTUAL));
        unit
    });
    assert_eq!(units.filter(|unit| *unit == "insns").count(), 12);
}

#[test]
fn values_keep_their_type() {
    assert_eq!(json_value("true"), Value::Bool(true));
    assert_eq!(json_value("2"), Value::from(2));
    assert_eq!(json_value("not-run"), Value::from("not-run"));
}
