// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generic watchdogs of the GTDT: which ones are found, and which defect ends the search.

use crate::tables::{self, MachineTables, block, gtdt_with, small, watchdog};
use acpi::{Error, Table};
use platform::{MAX_WATCHDOGS, Watchdog};

/// Returns a machine with the platform timers `timers`.
fn with(count: u32, timers: &[Vec<u8>]) -> MachineTables {
    let mut machine = small();
    machine.gtdt = gtdt_with(count, &timers.concat());
    machine
}

/// Returns the watchdogs that were found, and the offset of the defect if there is one.
fn found(machine: &MachineTables) -> (Vec<Watchdog>, Option<usize>) {
    let read = machine.read().unwrap();
    let wrong = read.notes.wrong_watchdogs.map(|error| match error {
        Error::Defect {
            table: Table::Gtdt,
            offset,
            ..
        } => offset,
        other => panic!("{other}"),
    });
    (read.platform.watchdogs.found.to_vec(), wrong)
}

const fn at(control: u64, kept: bool) -> Watchdog {
    Watchdog { control, kept }
}

#[test]
fn each_is_found_with_its_side() {
    assert_eq!(found(&small()), (vec![], None));
    let (first, second) = (watchdog(0xf00_1000, 0), watchdog(0xf10_1000, 0b111));
    let machine = with(4, &[block(), first, block(), second]);
    let expected = vec![at(0xf00_1000, false), at(0xf10_1000, true)];
    assert_eq!(found(&machine), (expected, None));
    // The mode and the polarity of a watchdog's interrupt do not decide whether it is Secure.
    assert_eq!(
        found(&with(1, &[watchdog(0x1000, 0b011)])).0,
        [at(0x1000, false)]
    );
}

#[test]
fn what_may_be_touched() {
    let why = |control, flags| {
        let platform = with(1, &[watchdog(control, flags)])
            .read()
            .unwrap()
            .platform;
        platform.why_not(&platform.watchdogs.found[0])
    };
    assert_eq!(why(0xf00_1000, 0), None);
    assert!(why(0xf00_1000, 4).unwrap().contains("secure"));
    for control in [0, 0xf00_1004, 1 << 48, u64::MAX - 0xfff] {
        assert!(
            why(control, 0).unwrap().contains("not that of a frame"),
            "{control:#x}"
        );
    }
    for control in [tables::RAM.base, tables::RAM.end() - 0x1000] {
        assert!(why(control, 0).unwrap().contains("RAM"), "{control:#x}");
    }
    assert_eq!(why(tables::RAM.end(), 0), None);
    for control in [0x800_0000, 0x80a_0000, 0x811_f000] {
        assert!(
            why(control, 0).unwrap().contains("interrupt controller"),
            "{control:#x}"
        );
    }
    assert!(why(0x900_0000, 0).unwrap().contains("console"));
}

#[test]
fn what_ends_too_early_costs_the_rest_only() {
    let timers = [watchdog(0xf00_1000, 0), watchdog(0xf10_1000, 0)];
    for length in 0..2 * 28 {
        let mut machine = with(2, &timers);
        machine.gtdt.truncate(104 + length);
        tables::seal(&mut machine.gtdt);
        let expected = vec![at(0xf00_1000, false); length / 28];
        let (found, wrong) = found(&machine);
        assert_eq!(found, expected, "{length}");
        let second = 104 + length / 28 * 28;
        assert!(
            wrong.is_some_and(|at| (second..second + 3).contains(&at)),
            "{length}"
        );
    }
}

#[test]
fn odd_lengths_and_offsets_are_said() {
    for (length, good) in [
        (0, false),
        (3, false),
        (27, false),
        (28, true),
        (32, true),
        (60, false),
    ] {
        let mut one = watchdog(0xf00_1000, 0);
        one.resize(32, 0);
        one[1] = length;
        let (found, wrong) = found(&with(1, &[one]));
        assert_eq!(
            (found.len(), wrong),
            (usize::from(good), (!good).then_some(105)),
            "{length}"
        );
    }
    // A timer of unknown type is skipped by its length, unless the length is 0.
    let other = |length| tables::bytes(8, &[(0, &[0xee, length])]);
    assert_eq!(found(&with(2, &[other(8), watchdog(0x1000, 0)])).0.len(), 1);
    assert_eq!(
        found(&with(2, &[other(0), watchdog(0x1000, 0)])).1,
        Some(105)
    );
    for first in [0_u32, 95, 1 << 31, u32::MAX] {
        let mut machine = with(1, &[watchdog(0x1000, 0)]);
        machine.gtdt[92..96].copy_from_slice(&first.to_le_bytes());
        tables::seal(&mut machine.gtdt);
        assert!(found(&machine).1.is_some(), "{first:#x}");
    }
    let text = with(1, &[]).read().unwrap().notes.to_string();
    assert!(
        text.contains("watchdogs not all known: ACPI: GTDT: offset 0x68"),
        "{text}"
    );
}

#[test]
fn more_than_there_is_room_for_are_counted() {
    let many = vec![watchdog(0xf00_1000, 0); MAX_WATCHDOGS + 3];
    let read = with(many.len() as u32, &many).read().unwrap();
    let watchdogs = read.platform.watchdogs;
    assert_eq!(
        (watchdogs.found.len(), watchdogs.ignored),
        (MAX_WATCHDOGS, 3)
    );
    // If the count exceeds the timers in the table, reading stops at the table's end.
    let (found, wrong) = found(&with(u32::MAX, &many[..2]));
    assert_eq!((found.len(), wrong), (2, Some(104 + 56)));
}
