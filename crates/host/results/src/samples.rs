// SPDX-License-Identifier: MIT OR Apache-2.0
//! Made-up runs for tests.

use plan::{Under, Wait, Workload};
use wire::Line;

use crate::records::{Collector, Records};
use crate::{Cell, Emulator, Parameter, Results, Stats};

/// Returns the record with sequence number `seq`. `text` has its kind and its fields, such as `stat id=1 name=total`.
/// A value may contain spaces.
pub fn numbered_record(seq: usize, text: &str) -> String {
    let (kind, fields) = text.split_once(' ').unwrap_or((text, ""));
    let mut line = Line::new(seq as u64, kind);
    let mut fields = fields.split(' ').filter(|word| !word.is_empty()).peekable();
    while let Some((key, value)) = fields.next().and_then(|field| field.split_once('=')) {
        let mut value = value.to_owned();
        while let Some(more) = fields.next_if(|word| !word.contains('=')) {
            value = format!("{value} {more}");
        }
        line = line.field(key, value);
    }
    line.finish().unwrap().to_string()
}

/// Returns records with the texts in `texts`, numbered from 0.
pub fn number_records<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<String> {
    let texts = texts.into_iter().enumerate();
    texts
        .map(|(seq, text)| numbered_record(seq, text.as_ref()))
        .collect()
}

/// Collects the records in `lines`.
pub fn collect_records(lines: &[String]) -> Records {
    let mut collector = Collector::default();
    for line in lines {
        assert!(collector.feed(line), "{line}");
    }
    collector.finish()
}

/// Returns the records of a boot with two cells.
pub fn lines() -> Vec<String> {
    boot_records_in("insns", "1000000000")
}

/// Like [`lines`], but in another unit, with another `counter`, and with further fields of the machine.
pub fn boot_records_in(unit: &str, counter: &str) -> Vec<String> {
    number_records([
        "boot under=rouse version=0.1.0",
        &format!("machine cpus=2 cntfrq_hz={counter}"),
        &format!("unit unit={unit} how=INST_RETIRED"),
        "cell id=0 workload=ipi wait=wfi",
        "skipped id=0 why=one CPU only",
        "done id=0 records=3",
        "cell id=1 workload=pingpong wait=wfi",
        "stat id=1 name=total count=4 p50=30 sum=120",
        "hist id=1 name=total b=29:1,30:3,",
        "count id=1 exit.wfi=8 ipi.sent=8",
        "done id=1 records=5",
        "end cells=2",
    ])
}

/// Returns the results of [`lines`].
pub fn results() -> Results {
    let mut results = Results::new("virt", "max", None);
    results.add(Some(Under::Rouse), &collect_records(&lines()));
    results
}

/// Returns a measured cell of `pingpong` whose wake-up is an interrupt, without traps.
pub fn measured_cell(wait: Wait, unit: &str, stats: Stats) -> Cell {
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

/// Returns a run whose values are cycles of a core that a simulator models.
pub fn results_in_cycles() -> Results {
    let lines = boot_records_in("cycles", "25000000 core_hz=2600000000");
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
    results.add(Some(Under::Rouse), &collect_records(&lines));
    results
}
