// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the results of boots whose records were partly lost on the console.

use super::*;
use crate::samples::{collect_records, lines, number_records};

#[test]
fn no_cell_survives_the_loss_of_one_of_its_records() {
    for lost in 0..lines().len() {
        let mut lines = lines();
        lines.remove(lost);
        let records = collect_records(&lines);
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
    let records = collect_records(&lines);
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

/// Linux itself decides how it waits and which CPU it wakes.
#[test]
fn progress_names_what_a_cell_is() {
    let at = |workload: &str| {
        let mut collector = Collector::default();
        for line in number_records([
            &format!(
                "cell id=0 workload={workload} shape=one wait=busy trap=wfi deliver=inject wake=ipi"
            ),
            "skipped id=0 why=no",
            "done id=0 records=3 at=1 at_us=1",
        ]) {
            assert!(collector.feed(&line));
        }
        collector.at
    };
    assert_eq!(at("pingpong"), "pingpong one busy wfi inject ipi");
    assert_eq!(at("linux-pipe"), "linux-pipe wfi inject");
    assert_eq!(at("later"), "later one busy wfi inject ipi");
}

#[test]
fn the_last_count_of_the_soak_counts() {
    let soak = ["off count=3", "steps count=9", "off count=5"];
    let records = collect_records(&number_records(
        soak.map(|text| format!("soak name={text}")),
    ));
    let counts: Vec<_> = records.soak.into_iter().collect();
    assert_eq!(counts, [("off".into(), 5), ("steps".into(), 9)]);
}

/// Returns the records of a boot with two cells in four passes. The second cell ends after two passes.
fn passes() -> Vec<String> {
    let mut records = vec![
        "boot under=rouse".to_owned(),
        "plan cells=3 passes=4".into(),
    ];
    for (at, (id, passes, ended)) in [
        (0, 1, None),
        (1, 1, None),
        (1, 2, Some("settled")),
        (0, 2, None),
        (0, 3, None),
        (0, 4, Some("samples")),
    ]
    .into_iter()
    .enumerate()
    {
        let part = if ended.is_some() { "" } else { "part-" };
        let (at, count) = (at + 1, passes * 100);
        let ended = ended.map_or(String::new(), |ended| format!(" ended={ended}"));
        records.extend([
            format!("{part}cell id={id} workload=ipi"),
            format!("{part}more id={id}"),
            format!("{part}stat id={id} name=total count={count} p50=7"),
            format!("{part}done id={id} records=4 at={at} at_us={at}0 passes={passes} passes_planned=4{ended}"),
        ]);
    }
    records.push("end cells=2".into());
    number_records(records)
}

/// Returns the number of each cell, and the number of its samples.
fn counts(records: &Records) -> Vec<(u64, u64)> {
    let cells = records.cells.iter();
    cells
        .map(|cell| (cell.id, cell.stats[0].values["count"]))
        .collect()
}

#[test]
fn of_a_cells_blocks_the_newest_counts() {
    let records = collect_records(&passes());
    assert_eq!(counts(&records), [(0, 400), (1, 200)]);
    assert!(records.damaged.is_empty() && records.problems.is_empty());
    assert_eq!(records.missing_parts(), None);
}

#[test]
fn a_boot_that_is_cut_anywhere_keeps_what_cells_had() {
    let lines = passes();
    for end in 2..lines.len() {
        let records = collect_records(&lines[..end]);
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
        let missing = records.missing_parts().unwrap();
        assert!(missing.contains("of 3 without any"), "{missing}");
        assert_eq!(missing.contains("fewer passes"), (1..6).contains(&blocks));
    }
}

#[test]
fn a_damaged_newer_block_does_not_lose_an_older_one() {
    let lines = passes();
    // Damages each record of the third block of cell 0, with and without the records that follow it.
    for lost in 18..22 {
        let mut cut = lines[..22].to_vec();
        cut[lost] = cut[lost].replace("id=0", "id=1");
        let records = collect_records(&cut);
        assert_eq!(counts(&records), [(0, 200), (1, 200)], "without {lost}");
        let told = |records: &Records| {
            let mut problems = records.problems.iter();
            problems.any(|text| text.contains("pass 2 of 4 is what arrived whole"))
        };
        // If the last record is missing, only the end of the boot reveals this.
        assert!(lost == 21 || told(&records), "{:?}", records.problems);
        let mut whole = lines.clone();
        whole.remove(lost);
        let records = collect_records(&whole);
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

/// Returns the blocks of one cell after each of three passes, whose samples are 30, 40 and 20.
fn passes_with_values() -> Vec<String> {
    let totals = ["30:5,", "30:5,40:5,", "20:5,30:5,40:5,"];
    let passes = totals.iter().zip(1..).flat_map(|(buckets, pass)| {
        let (part, ended) = if pass == 3 {
            ("", " ended=budget")
        } else {
            ("part-", "")
        };
        let count = 5 * pass;
        [
            format!("{part}cell id=0 workload=ipi"),
            format!("{part}stat id=0 name=total count={count}"),
            format!("{part}hist id=0 name=total b={buckets}"),
            format!("{part}done id=0 records=4 passes={pass} passes_planned=4{ended}"),
        ]
    });
    number_records(passes)
}

#[test]
fn each_pass_has_its_median() {
    assert_eq!(
        collect_records(&passes_with_values()).cells[0].pass_p50,
        [30, 40, 20]
    );
    let two = collect_records(&passes_with_values()[..8]);
    assert_eq!(two.cells[0].pass_p50, [30, 40]);
}

#[test]
fn the_clock_at_the_passes_is_of_the_newest_block_and_a_damaged_one_spoils_it() {
    let records = |clocks: [&str; 2]| {
        let blocks = ["part-", ""].into_iter().zip(clocks);
        collect_records(&number_records(blocks.flat_map(|(part, clock)| {
            [
                format!("{part}cell id=0 workload=ipi"),
                format!("{part}stat id=0 name=total count=1"),
                format!("{part}clock id=0 core_hz={clock}"),
                format!("{part}done id=0 records=4 passes_planned=4"),
            ]
        })))
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
        let records = collect_records(&lines);
        assert_eq!(records.cells[0].number_field("passes"), 3);
        assert!(
            records.cells[0].pass_p50.is_empty(),
            "without block {block}"
        );
    }
}

#[test]
fn serrors_are_counted_by_kind() {
    let serrors = |text| collect_records(&number_records([text])).serrors;
    assert_eq!(serrors("end cells=0"), Serrors::default());
    let all = Serrors {
        left: 1,
        corrected: 2,
        restartable: 3,
    };
    assert_eq!(serrors("serrors left=1 corrected=2 restartable=3"), all);
}
