// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records that are lost on the way, and the required results.

use super::*;
use crate::samples::lines;
use wire::Line;

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

/// Linux decides by itself how it waits and what it wakes.
#[test]
fn progress_names_what_a_cell_is() {
    let at = |workload: &str| {
        let words = [
            ("workload", workload),
            ("shape", "one"),
            ("wait", "busy"),
            ("trap", "wfi"),
            ("deliver", "inject"),
            ("wake", "ipi"),
        ];
        let cell = Line::new(0, "cell").field("id", 0);
        let cell = words
            .iter()
            .fold(cell, |line, (key, word)| line.field(key, word));
        let skipped = Line::new(1, "skipped").field("id", 0).field("why", "no");
        let done = Line::new(2, "done").field("id", 0).field("records", 3);
        let done = done.field("at", 1).field("at_us", 1);
        let mut collector = Collector::default();
        for line in [cell, skipped, done] {
            assert!(collector.feed(line.finish().unwrap().as_ref()));
        }
        collector.at
    };
    assert_eq!(at("pingpong"), "pingpong one busy wfi inject ipi");
    assert_eq!(at("linux-pipe"), "linux-pipe wfi inject");
    assert_eq!(at("later"), "later one busy wfi inject ipi");
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

/// A boot with two cells in four passes; the second cell ends after two.
fn passes() -> Vec<String> {
    let mut lines: Vec<(String, Vec<(&str, String)>)> = vec![
        ("boot".into(), vec![("under", "rouse".into())]),
        (
            "plan".into(),
            vec![("cells", "3".into()), ("passes", "4".into())],
        ),
    ];
    let mut at = 0;
    let mut block = |lines: &mut Vec<_>, id: u64, passes: u64, ended: Option<&str>| {
        let part = if ended.is_some() { "" } else { "part-" };
        at += 1;
        let id = ("id", id.to_string());
        let count = (passes * 100).to_string();
        lines.push((
            format!("{part}cell"),
            vec![id.clone(), ("workload", "ipi".into())],
        ));
        lines.push((format!("{part}more"), vec![id.clone()]));
        let stat = vec![
            id.clone(),
            ("name", "total".into()),
            ("count", count),
            ("p50", "7".into()),
        ];
        lines.push((format!("{part}stat"), stat));
        let mut done = vec![
            id,
            ("records", "4".into()),
            ("at", at.to_string()),
            ("at_us", (at * 10).to_string()),
            ("passes", passes.to_string()),
            ("passes_planned", "4".into()),
        ];
        done.extend(ended.map(|ended| ("ended", ended.into())));
        lines.push((format!("{part}done"), done));
    };
    for (id, passes, ended) in [
        (0, 1, None),
        (1, 1, None),
        (1, 2, Some("settled")),
        (0, 2, None),
        (0, 3, None),
        (0, 4, Some("samples")),
    ] {
        block(&mut lines, id, passes, ended);
    }
    lines.push(("end".into(), vec![("cells", "2".into())]));
    let numbered = lines.into_iter().enumerate();
    numbered
        .map(|(seq, (kind, fields))| {
            let line = fields
                .iter()
                .fold(Line::new(seq as u64, &kind), |line, (key, value)| {
                    line.field(key, value)
                });
            line.finish().unwrap().to_string()
        })
        .collect()
}

/// Returns cells and the samples of each.
fn counts(records: &Records) -> Vec<(u64, u64)> {
    let cells = records.cells.iter();
    cells
        .map(|cell| (cell.id, cell.stats[0].values["count"]))
        .collect()
}

#[test]
fn of_a_cells_blocks_the_newest_counts() {
    let records = collect(&passes());
    assert_eq!(counts(&records), [(0, 400), (1, 200)]);
    assert!(records.damaged.is_empty() && records.problems.is_empty());
    assert_eq!(records.missing(), None);
}

#[test]
fn a_boot_that_is_cut_anywhere_keeps_what_cells_had() {
    let lines = passes();
    for end in 2..lines.len() {
        let records = collect(&lines[..end]);
        let blocks = (end - 2) / 4;
        let expected: &[(u64, u64)] = match blocks {
            0 => &[],
            1 => &[(0, 100)],
            2 => &[(0, 100), (1, 100)],
            3 => &[(0, 100), (1, 200)],
            4 => &[(0, 200), (1, 200)],
            5 => &[(0, 300), (1, 200)],
            _ => &[(0, 400), (1, 200)],
        };
        assert_eq!(counts(&records), expected, "{end} lines");
        assert!(records.damaged.is_empty(), "{end} lines");
        let missing = records.missing().unwrap();
        assert!(missing.contains("of 3 without any"), "{missing}");
        assert_eq!(missing.contains("fewer passes"), (1..6).contains(&blocks));
    }
}

#[test]
fn a_damaged_newer_block_does_not_lose_an_older_one() {
    let lines = passes();
    // Each record of the third block of cell 0, with and without what follows.
    for lost in 18..22 {
        let mut cut = lines[..22].to_vec();
        cut[lost] = cut[lost].replace("id=0", "id=1");
        let records = collect(&cut);
        assert_eq!(counts(&records), [(0, 200), (1, 200)], "without {lost}");
        let told = |records: &Records| {
            let mut problems = records.problems.iter();
            problems.any(|text| text.contains("pass 2 of 4 is what arrived whole"))
        };
        // Only the end shows that a last record is missing.
        assert!(lost == 21 || told(&records), "{:?}", records.problems);
        let mut whole = lines.clone();
        whole.remove(lost);
        let records = collect(&whole);
        assert_eq!(counts(&records), [(0, 400), (1, 200)]);
        assert!(records.damaged.is_empty() && !told(&records));
        assert!(!records.problems.is_empty());
    }
}

#[test]
fn a_block_that_ends_is_progress() {
    let mut collector = Collector::default();
    let mut seen = Vec::new();
    for line in passes() {
        collector.feed(&line);
        let step = collector.step;
        if seen.last() != Some(&(step.done, step.done_us, step.ended)) {
            seen.push((step.done, step.done_us, step.ended));
        }
    }
    assert_eq!(collector.step.of, 12);
    assert_eq!(
        seen,
        [
            (0, 0, false),
            (1, 10, false),
            (2, 20, false),
            (3, 30, true),
            (4, 40, false),
            (5, 50, false),
            (6, 60, true)
        ]
    );
}

/// Blocks of one cell after each of three passes: of 30, of 40 and of 20.
fn passes_with_values() -> Vec<String> {
    let totals = ["30:5,", "30:5,40:5,", "20:5,30:5,40:5,"];
    let mut lines = Vec::new();
    for (pass, buckets) in totals.iter().enumerate() {
        let ended = pass == 2;
        let (part, passes) = (if ended { "" } else { "part-" }, (pass + 1).to_string());
        let count = (5 * (pass + 1)).to_string();
        let mut done = vec![
            ("records", "4"),
            ("passes", &passes),
            ("passes_planned", "4"),
        ];
        done.extend(ended.then_some(("ended", "budget")));
        for (kind, fields) in [
            ("cell", vec![("workload", "ipi")]),
            ("stat", vec![("name", "total"), ("count", &count)]),
            ("hist", vec![("name", "total"), ("b", buckets)]),
            ("done", done),
        ] {
            let line = Line::new(lines.len() as u64, format!("{part}{kind}")).field("id", 0);
            let fields = fields.iter();
            let line = fields.fold(line, |line, (key, value)| line.field(key, value));
            lines.push(line.finish().unwrap().to_string());
        }
    }
    lines
}

#[test]
fn each_pass_has_its_median() {
    assert_eq!(
        collect(&passes_with_values()).cells[0].pass_p50,
        [30, 40, 20]
    );
    let two = collect(&passes_with_values()[..8]);
    assert_eq!(two.cells[0].pass_p50, [30, 40]);
}

#[test]
fn the_clock_at_the_passes_is_of_the_newest_block_and_a_damaged_one_spoils_it() {
    let records = |clocks: [&str; 2]| {
        let mut lines = Vec::new();
        for (part, clock) in ["part-", ""].iter().zip(clocks) {
            for (kind, fields) in [
                ("cell", vec![("workload", "ipi")]),
                ("stat", vec![("name", "total"), ("count", "1")]),
                ("clock", vec![("core_hz", clock)]),
                ("done", vec![("records", "4"), ("passes_planned", "4")]),
            ] {
                let line = Line::new(lines.len() as u64, format!("{part}{kind}")).field("id", 0);
                let fields = fields.iter();
                let line = fields.fold(line, |line, (key, value)| line.field(key, value));
                lines.push(line.finish().unwrap().to_string());
            }
        }
        collect(&lines)
    };
    let two = records(["5:6", "5:6,7:0"]);
    assert_eq!(two.cells[0].core_hz, [[5, 6], [7, 0]]);
    let damaged = records(["5:6", "5:6,7"]);
    assert_eq!(damaged.cells[0].core_hz, [[5, 6]]);
}

#[test]
fn the_passes_are_not_known_where_one_is_missing() {
    for block in 0..2 {
        let mut lines = passes_with_values();
        lines.remove(4 * block + 1);
        let records = collect(&lines);
        assert_eq!(records.cells[0].number("passes"), 3);
        assert!(
            records.cells[0].pass_p50.is_empty(),
            "without block {block}"
        );
    }
}

#[test]
fn serrors_are_counted_by_kind() {
    let line = Line::new(0, "serrors")
        .field("left", 1)
        .field("corrected", 2);
    let line = line.field("restartable", 3).finish().unwrap().to_string();
    let none = Line::new(0, "end").field("cells", 0).finish().unwrap();
    assert_eq!(collect(&[none.to_string()]).serrors, Serrors::default());
    let all = Serrors {
        left: 1,
        corrected: 2,
        restartable: 3,
    };
    assert_eq!(collect(&[line]).serrors, all);
}
