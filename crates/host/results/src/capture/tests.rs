// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that damaged logs never yield wrong results.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::Cell;
use crate::samples::number_records;
use plan::Under;

/// Returns a log of two boots with several cells each, and with other output between the boots.
fn log() -> String {
    let mut text = String::from("U-Boot 2026.01\r\nrouse: stage mmu: on\r\n");
    for under in ["rouse", "none"] {
        let mut records = vec![
            format!("boot under={under} version=0.1.0"),
            "machine cpus=2 cntfrq_hz=1000000000".into(),
            "unit unit=insns how=by counting".into(),
        ];
        for id in 0..12_u64 {
            records.extend(cell(
                under,
                id,
                if under == "rouse" { 400 } else { 100 } + id,
            ));
        }
        records.push("end cells=12".into());
        for line in number_records(records) {
            text += &format!("{line}\r\n");
        }
        text.push_str("rouse: exit status 0\n");
    }
    text
}

fn cell(under: &str, id: u64, p50: u64) -> [String; 8] {
    let stat = |name: &str, p50: u64| {
        let (min, max, sum) = (p50 - 1, p50 + 9, p50 * 100);
        format!("stat id={id} name={name} count=100 min={min} p50={p50} max={max} sum={sum}")
    };
    [
        format!("cell id={id} under={under} workload=pingpong wait=wfi poll_limit_us={id}"),
        format!("more id={id} gap_us=5"),
        stat("total", p50),
        stat("kick", p50 / 3),
        format!(
            "hist id={id} name=total b={}:1,{p50}:98,{}:1,",
            p50 - 1,
            p50 + 9
        ),
        format!("raw id={id} name=total v={p50},{p50},"),
        format!("count id={id} exit.wfi={}", p50 * 2),
        format!("done id={id} under={under} records=8"),
    ]
}

/// Returns, by key, the cells of `results` that a reader could take for measurements.
fn numbers(results: &Results) -> BTreeMap<Vec<String>, Cell> {
    let cells = results.cells.iter().cloned();
    cells.map(|cell| (cell.key(), cell)).collect()
}

#[test]
fn a_whole_log_is_taken_whole() {
    for text in [
        log(),
        log().replace('\r', ""),
        log().replace("\r\n", "\r\r\n"),
    ] {
        let results = results(&text).unwrap();
        assert_eq!(results.cells.len(), 24);
        assert!(results.problems.is_empty() && results.damaged.is_empty());
        assert_eq!(results.cells[12].under, Under::None);
        assert_eq!(results.cells[12].what.gap_us, 5);
        assert_eq!(results.cells[0].raw["total"], [400, 400]);
    }
}

#[test]
fn no_record_is_no_result() {
    assert!(results("").is_none());
    assert!(results("@r1 0 boot under=rouse #00000000").is_none());
    assert!(!has_records("hello"));
}

#[test]
fn a_lost_line_end_costs_nothing() {
    let results = results(&log().replace(['\r', '\n'], "")).unwrap();
    assert_eq!(results.cells.len(), 24);
    assert!(results.problems.is_empty(), "{:?}", results.problems);
}

#[test]
fn a_boot_without_its_beginning_is_not_the_one_before() {
    let text = log();
    let second = text.rfind("@r1 0 boot").unwrap();
    for cut in [second, text.find("@r1 90 ").unwrap()] {
        let joined = format!("{}\n{}", &text[..cut], &text[second + 60..]);
        check(&joined).unwrap();
        let boots = split_boots(&joined);
        assert_eq!((boots.len(), boots[1].machine.get("under")), (2, None));
    }
}

/// Damage from a bad serial line, which affects at most one byte in a hundred.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip(u8),
    Drop,
    Insert(u8),
}

fn harms() -> impl Strategy<Value = Vec<(usize, Harm)>> {
    let length = log().len();
    let harm = prop_oneof![
        (0_u8..8).prop_map(|bit| Harm::Flip(1 << bit)),
        Just(Harm::Drop),
        any::<u8>().prop_map(Harm::Insert),
    ];
    prop::collection::vec((0..length, harm), 0..length / 100)
}

fn harmed(mut harms: Vec<(usize, Harm)>) -> String {
    let mut bytes = log().into_bytes();
    harms.sort_by_key(|harm| std::cmp::Reverse(harm.0));
    for (at, harm) in harms {
        match harm {
            Harm::Flip(bit) => bytes[at] ^= bit,
            Harm::Drop => drop(bytes.remove(at)),
            Harm::Insert(byte) => bytes.insert(at, byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Checks that the results of `text` agree with the undamaged log's results.
fn check(text: &str) -> Result<(), TestCaseError> {
    let whole = numbers(&results(&log()).unwrap());
    let Some(read) = results(text) else {
        return Ok(());
    };
    let read = numbers(&read);
    for (key, mut cell) in read {
        // The unit of values may be lost, but is never replaced by another unit.
        prop_assert!(cell.unit.is_empty() || cell.unit == "insns");
        cell.unit = "insns".into();
        let cell = serde_json::to_value(&cell).unwrap();
        let whole = whole
            .get(&key)
            .map(|cell| serde_json::to_value(cell).unwrap());
        prop_assert_eq!(whole, Some(cell));
    }
    Ok(())
}

proptest! {
    #[test]
    fn damage_never_makes_a_number(harms in harms()) {
        check(&harmed(harms))?;
    }

    #[test]
    fn lost_stretches_never_make_a_number(from in 0_usize..4000, length in 0_usize..9000) {
        let text = log();
        let end = (from + length).min(text.len());
        check(&format!("{}{}", &text[..from.min(text.len())], &text[end..]))?;
    }

    #[test]
    fn any_text_can_be_read(text in "(.|\\n|@r1 |#[0-9a-f]{8})*") {
        let _ = results(&text);
    }
}
