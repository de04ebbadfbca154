// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up runs for tests.

use plan::{Under, Wait, Workload};
use wire::Line;

use crate::records::Collector;
use crate::{Cell, Emulator, Parameter, Results, Stats};

/// Returns the records of a boot with two cells.
pub fn lines() -> Vec<String> {
    lines_in("insns", "1000000000", None)
}

/// Likewise in another unit, with another counter, and a core with a known clock.
pub fn lines_in(unit: &str, counter: &str, core: Option<&str>) -> Vec<String> {
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

/// Returns the results of [`lines`].
pub fn results() -> Results {
    let mut collector = Collector::default();
    for line in lines() {
        collector.feed(&line);
    }
    let mut results = Results::new("virt", "max", None);
    results.add(Some(Under::Rouse), &collector.finish());
    results
}

/// Returns a measured cell of `pingpong` by interrupt, with nothing trapped.
pub fn cell(wait: Wait, unit: &str, stats: Stats) -> Cell {
    Cell {
        what: plan::Cell {
            workload: Workload::Pingpong,
            wait,
            ..plan::Cell::default()
        },
        unit: unit.into(),
        stats: Some(stats),
        ..Cell::default()
    }
}

/// Returns a run in cycles, of a core that a simulator models.
pub fn in_cycles() -> Results {
    let mut collector = Collector::default();
    for line in lines_in("cycles", "25000000", Some("2600000000")) {
        collector.feed(&line);
    }
    let parameter = Parameter {
        value: "60 ns".into(),
        source: "chosen".into(),
    };
    let emulator = Emulator {
        name: "gem5".into(),
        version: "24.0".into(),
        exact: String::new(),
        mode: "o3".into(),
        parameters: [("memory".into(), parameter)].into(),
    };
    let mut results = Results::new("gem5", "O3", Some(emulator));
    results.add(Some(Under::Rouse), &collector.finish());
    results
}
