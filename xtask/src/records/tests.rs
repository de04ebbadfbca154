// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is lost on the way, and what must come of it.

use super::*;
use wire::Line;

/// The records of a boot with two cells.
pub(crate) fn lines() -> Vec<String> {
    lines_in("insns", "1000000000", None)
}

/// The same in another unit, with another counter, and a core whose clock is known.
pub(crate) fn lines_in(unit: &str, counter: &str, core: Option<&str>) -> Vec<String> {
    let line = |seq: u64, kind: &str, fields: &[(&str, &str)]| {
        let fields = fields.iter();
        let line = fields.fold(Line::new(seq, kind), |line, (key, value)| {
            line.field(key, value)
        });
        line.finish().unwrap().to_string()
    };
    let total = [
        ("id", "1"),
        ("name", "total"),
        ("count", "4"),
        ("p50", "30"),
        ("sum", "120"),
    ];
    let mut machine = vec![("cpus", "2"), ("cntfrq_hz", counter)];
    machine.extend(core.map(|hertz| ("core_hz", hertz)));
    vec![
        line(0, "boot", &[("under", "rouse"), ("version", "0.1.0")]),
        line(1, "machine", &machine),
        line(2, "unit", &[("unit", unit), ("how", "INST_RETIRED")]),
        line(
            3,
            "cell",
            &[("id", "0"), ("workload", "ipi"), ("wait", "wfi")],
        ),
        line(4, "skipped", &[("id", "0"), ("why", "one CPU only")]),
        line(5, "done", &[("id", "0"), ("records", "3")]),
        line(
            6,
            "cell",
            &[("id", "1"), ("workload", "pingpong"), ("wait", "wfi")],
        ),
        line(7, "stat", &total),
        line(
            8,
            "hist",
            &[("id", "1"), ("name", "total"), ("b", "29:1,30:3,")],
        ),
        line(
            9,
            "count",
            &[("id", "1"), ("exit.wfi", "8"), ("ipi.sent", "8")],
        ),
        line(10, "done", &[("id", "1"), ("records", "5")]),
        line(11, "end", &[("cells", "2")]),
    ]
}

fn collect(lines: &[String]) -> Records {
    let mut collector = Collector::default();
    for line in lines {
        assert!(collector.feed(line));
    }
    collector.finish()
}

#[test]
fn a_whole_boot_is_taken() {
    let records = collect(&lines());
    assert!(records.ended && records.problems.is_empty() && records.damaged.is_empty());
    assert_eq!(records.cells.len(), 2);
    assert_eq!(records.cells[0].skipped.as_deref(), Some("one CPU only"));
    let cell = &records.cells[1];
    assert_eq!(cell.stats[0].values["p50"], 30);
    assert_eq!(cell.histograms["total"], [(29, 1), (30, 3)]);
    assert_eq!(cell.counts["exit.wfi"], 8);
}

#[test]
fn no_cell_survives_the_loss_of_one_of_its_records() {
    for lost in 0..lines().len() {
        let mut lines = lines();
        lines.remove(lost);
        let records = collect(&lines);
        let whole: Vec<u64> = records.cells.iter().map(|cell| cell.id).collect();
        let expected: &[u64] = match lost {
            3..=5 => &[1],
            6..=10 => &[0],
            _ => &[0, 1],
        };
        assert_eq!(whole, expected, "without record {lost}");
        assert!(!records.problems.is_empty(), "without record {lost}");
        assert_eq!(
            records.damaged.is_empty(),
            expected.len() == 2,
            "without record {lost}"
        );
    }
}

#[test]
fn a_changed_character_is_a_lost_record() {
    let mut lines = lines();
    lines[7] = lines[7].replace("p50=30", "p50=20");
    let records = collect(&lines);
    assert_eq!(records.cells.len(), 1);
    assert_eq!(records.damaged, ["cell 1 (pingpong wfi)"]);
    assert_eq!(records.problems, ["record 7 is missing or damaged"]);
}

#[test]
fn other_output_is_no_record() {
    let mut collector = Collector::default();
    assert!(!collector.feed("rouse: stage mmu: on"));
    let records = collector.finish();
    assert!(!records.begun && records.problems.is_empty());
}

#[test]
fn the_last_count_of_the_soak_counts() {
    let line = |seq, name, count: u64| {
        let line = Line::new(seq, "soak").field("name", name);
        line.field("count", count).finish().unwrap().to_string()
    };
    let records = collect(&[line(0, "off", 3), line(1, "steps", 9), line(2, "off", 5)]);
    let counts: Vec<_> = records.soak.into_iter().collect();
    assert_eq!(counts, [("off".into(), 5), ("steps".into(), 9)]);
}
