// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests where boots in a log begin and end, the problems reported for missing parts, and the combination of several
//! boots.

use plan::Under;
use results::{Cell, Results, capture};

use results::samples::{collect_records, number_records, numbered_record as line};

use super::{boot, of, results_of};

#[test]
fn a_console_that_echoes_is_no_second_boot() {
    let lines = boot("rouse", "insns");
    let twice: Vec<&str> = lines
        .iter()
        .flat_map(|line| [line.as_str(), "noise", line])
        .collect();
    let text = twice.join("\r\n");
    assert!(capture::has_records(&text));
    let boots = capture::split_boots(&text);
    assert_eq!((boots.len(), boots[0].cells.len()), (1, 2));
    assert!(boots[0].problems.is_empty(), "{:?}", boots[0].problems);
}

#[test]
fn a_boot_begins_with_its_first_record_or_where_the_numbers_go_back() {
    let lines = boot("rouse", "insns");
    let boots = |from: usize, to: usize, again: usize| {
        let text = [&lines[from..to], &lines[again..]].concat().join("\n");
        let boots = capture::split_boots(&text);
        boots
            .iter()
            .map(|boot| (boot.ended, boot.cells.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(boots(0, lines.len(), 0), [(true, 2), (true, 2)]);
    assert_eq!(boots(0, 17, 0), [(false, 1), (true, 2)]);
    // The beginning of the second boot is lost.
    assert_eq!(boots(0, 17, 7), [(false, 1), (true, 2)]);
    assert_eq!(boots(0, lines.len(), 17), [(true, 2), (true, 1)]);
    // If the sequence numbers continue to increase, the records belong to the same boot.
    assert_eq!(boots(0, 17, 20), [(true, 1)]);
    let noise = capture::split_boots("rouse: stage mmu: on\n@r1 broken #00000000\n");
    assert!(noise.is_empty());
}

#[test]
fn problems_say_which_records_are_missing() {
    let lines = boot("rouse", "insns");
    let without = |lost: std::ops::Range<usize>| {
        let mut kept = lines.clone();
        kept.drain(lost);
        collect_records(&kept).problems
    };
    assert_eq!(without(3..4), ["record 3 is missing or damaged"]);
    assert_eq!(without(2..5), ["records 2 to 4 are missing or damaged"]);
    assert_eq!(without(21..22), ["the records stop after number 20"]);
    let mut swapped = lines.clone();
    swapped.swap(3, 4);
    assert_eq!(
        collect_records(&swapped).problems,
        [
            "record 3 is missing or damaged",
            "record 3 comes after record 4",
            "record 4 is missing or damaged",
        ]
    );
}

#[test]
fn what_a_block_lacks_makes_it_no_result() {
    let spoilt = |at: usize, record: &str| {
        let mut lines = boot("rouse", "insns");
        lines[at] = line(at, record);
        let records = collect_records(&lines);
        let whole: Vec<u64> = records.cells.iter().map(|cell| cell.id).collect();
        (whole, records.damaged)
    };
    let lost = (vec![0], vec!["cell 1 (pingpong wfi wfi)".to_owned()]);
    for (at, record) in [
        (8, "stat id=1 name=total p50=2"),
        (8, "stat id=1 count=8"),
        (8, "stat id=1 name=totals count=8"),
        (11, "hist id=1 b=1:3,2,"),
        (11, "hist id=1"),
        (12, "raw id=1 v=1,x,"),
        (16, "done id=1 records=9"),
        (16, "done id=1"),
        (16, "done id=1 records=10 wait=wfe"),
        (16, "part-done id=1 records=10"),
    ] {
        assert_eq!(spoilt(at, record), lost, "{record}");
    }
    // This reader ignores a kind of record that a newer version adds.
    let (whole, damaged) = spoilt(12, "colour id=1 v=1");
    assert_eq!((whole.len(), damaged.len()), (2, 0));
    assert_eq!(spoilt(18, "skipped id=0").0, [1]);
}

#[test]
fn what_was_cut_short_is_counted() {
    let plan = [
        "boot under=rouse",
        "unit unit=insns how=x",
        "plan cells=4 passes=4",
    ];
    let part = |id: u32| {
        [
            format!("part-cell id={id} workload=ipi wait=wfi"),
            format!("part-stat id={id} name=total count=1 sum=1"),
            format!("part-done id={id} records=3 passes=2 passes_planned=4"),
        ]
    };
    let of = |parts: u32, end: &[&str]| {
        let parts: Vec<String> = (0..parts).flat_map(part).collect();
        let parts = parts.iter().map(String::as_str);
        let records: Vec<&str> = plan
            .into_iter()
            .chain(parts)
            .chain(end.iter().copied())
            .collect();
        let results = results_of(&number_records(&records));
        (
            results.incomplete,
            results.missing.clone(),
            results.incomplete_text(),
        )
    };
    let told = |text: &str| {
        let text = format!("under rouse: {text}");
        (true, vec![text.clone()], Some(text))
    };
    assert_eq!(of(0, &[]), told("4 cells of 4 without any"));
    assert_eq!(
        of(1, &[]),
        told("1 cell with fewer passes than planned, 3 cells of 4 without any")
    );
    assert_eq!(
        of(3, &[]),
        told("3 cells with fewer passes than planned, 1 cell of 4 without any")
    );
    assert_eq!(of(4, &[]), told("4 cells with fewer passes than planned"));
    assert_eq!(
        of(1, &["end cells=1"]),
        told("1 cell with fewer passes than planned")
    );
    assert_eq!(of(0, &["end cells=0"]), (false, vec![], None));
    // All cells have arrived, but the end of the boot is missing.
    let mut lines = boot("rouse", "insns");
    lines.pop();
    let cut = results_of(&lines);
    assert!(cut.incomplete && cut.missing.is_empty());
    assert_eq!(
        cut.incomplete_text().as_deref(),
        Some("the run was cut short")
    );
    // A soak has no cells.
    let soak = results_of(&number_records([
        "boot under=rouse",
        "soak name=steps count=5",
    ]));
    assert!(!soak.incomplete && !soak.has_cells());
    let mut part = Cell {
        passes: 2,
        passes_planned: 4,
        ..Cell::default()
    };
    assert_eq!((part.is_part(), part.passes_text().as_str()), (true, "2/4"));
    part.ended = Some(plan::End::Samples);
    assert_eq!(
        (part.is_part(), part.passes_text().as_str()),
        (false, "all")
    );
    assert!(!part.ran_out_of_time());
}

#[test]
fn boots_of_one_unit_are_one_table() {
    let join = |units: [&str; 2]| {
        let mut results = Results::new("virt", "max", None);
        for (under, unit) in [Under::Rouse, Under::None].into_iter().zip(units) {
            let records = collect_records(&boot(under.to_string().as_str(), unit));
            results.add(Some(under), &records);
        }
        results
    };
    let joined = join(["insns", "insns"]);
    let under: Vec<Under> = joined.cells.iter().map(|cell| cell.under).collect();
    assert_eq!(
        under,
        [Under::Rouse, Under::Rouse, Under::None, Under::None]
    );
    let apart = join(["insns", "cycles"]);
    assert_eq!(
        (apart.cells.len(), apart.problems.len(), apart.unit.as_str()),
        (2, 1, "insns")
    );
    assert_eq!(
        (
            apart.board.as_str(),
            apart.machine.cpu.as_str(),
            apart.schema
        ),
        ("virt", "max", 1)
    );
    // If the record with the unit was lost, the cells are kept without a unit.
    let mut lines = boot("none", "insns");
    lines.remove(5);
    let mut results = of("rouse", "insns");
    results.add(Some(Under::None), &collect_records(&lines));
    assert_eq!(
        (results.cells.len(), results.cells[3].unit.as_str()),
        (4, "")
    );
    // If `under` is unknown, no cell of the boot is usable.
    let mut results = Results::new("", "", None);
    results.add(None, &collect_records(&boot("rouse", "insns")));
    assert!(results.cells.is_empty() && results.has_cells());
    assert!(
        results.damaged[1].ends_with("under: it is not said"),
        "{:?}",
        results.damaged
    );
    assert!(!Results::default().has_cells());
}

#[test]
fn a_record_of_another_cell_is_of_no_block() {
    let mut lines = boot("rouse", "insns");
    lines[9] = line(9, "stat id=2 name=kick count=4");
    let records = collect_records(&lines);
    let whole: Vec<u64> = records.cells.iter().map(|cell| cell.id).collect();
    assert_eq!(whole, [0]);
    assert_eq!(
        records.damaged,
        [
            "cell 1 (pingpong wfi wfi)",
            "cell 2 (its first record is missing)",
            "cell 1 (its first record is missing)",
        ]
    );
    lines[9] = line(9, "stat name=kick count=4");
    let records = collect_records(&lines);
    assert!(
        records
            .damaged
            .contains(&"a cell without a number".to_owned())
    );
}

/// A record is lost in each of three passes, so no block of the cell is complete.
#[test]
fn what_is_lost_again_and_again_is_told_once() {
    let pass = ["part-cell id=5 wait=wfe", "part-done id=5 records=3"];
    let records = [&["boot under=rouse"][..], &pass, &pass, &pass].concat();
    let records = collect_records(&number_records(&records));
    assert!(records.cells.is_empty());
    assert_eq!(records.damaged, ["cell 5 (wfe)"]);
}
