// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the words that describe cells and builds, and which of them may be missing.

use plan::{Shape, Workload};
use results::{Build, Cell, Emulator, Results, Stage, Stats};
use serde_json::json;

#[test]
fn compilers_and_trees_in_words() {
    let build = |rustc: &str, commit: &str, llvm: &str| Build {
        rustc: rustc.into(),
        rustc_commit: commit.into(),
        llvm: llvm.into(),
        ..Build::default()
    };
    for (build, text) in [
        (
            build("1.95.0", "59807616", "22.1"),
            "rustc 1.95.0 (59807616, LLVM 22.1)",
        ),
        (build("1.95.0", "", "22.1"), "rustc 1.95.0 (LLVM 22.1)"),
        (build("1.95.0", "", ""), "rustc 1.95.0"),
        (build("", "59807616", "22.1"), ""),
    ] {
        assert_eq!(build.compiler_text(), text);
    }
    let tree = |commit: &str, dirty| {
        Build {
            commit: commit.into(),
            dirty,
            ..Build::default()
        }
        .tree_text()
    };
    assert_eq!(
        [tree("", true), tree("12ab", false), tree("12ab", true)],
        ["", "12ab", "12ab, with changes"]
    );
    let sums = |image: &str, guests: &[(&str, &str)]| {
        let guests = guests
            .iter()
            .map(|&(atomics, sum)| (atomics.into(), sum.into()));
        Build {
            image: image.into(),
            guests: guests.collect(),
            ..Build::default()
        }
        .sums_text()
    };
    assert_eq!(sums("", &[]), "");
    assert_eq!(sums("8d", &[]), "SHA-256 8d");
    assert_eq!(
        sums("8d", &[("llsc", "1"), ("lse", "2")]),
        "SHA-256 8d, guest llsc 1, guest lse 2"
    );
}

#[test]
fn cells_by_their_words() {
    let mut cell = Cell {
        cpus: 3,
        ..Cell::default()
    };
    cell.what.workload = Workload::Ipistorm;
    let word = |cell: &Cell, key: &str| cell.word(key).unwrap();
    assert_eq!(
        (word(&cell, "under"), word(&cell, "cpus")),
        ("rouse".into(), "3".into())
    );
    assert_eq!(
        word(&cell, "system"),
        "call-by=notify,call-wait=on,calls=single,cpulist=all,crowd=none,offset=1"
    );
    assert!(
        cell.title()
            .ends_with(" call-by=notify,call-wait=on,calls=single,cpulist=all,crowd=none,offset=1")
    );
    assert_eq!(
        (word(&cell, "offset"), word(&cell, "groups")),
        ("1".into(), String::new())
    );
    assert_eq!(cell.word("colour"), None);
    assert_eq!(cell.key().len(), results::keys().count());
    assert_eq!(cell.operation_name(), "ipistorm one");
    cell.what = plan::Cell {
        workload: Workload::Ipi,
        shape: Shape::Dry,
        ..plan::Cell::default()
    };
    assert_eq!(
        (
            cell.operation_name().as_str(),
            word(&cell, "system").as_str()
        ),
        ("ipi dry", "")
    );
    assert!(!cell.title().ends_with(' '));
    cell.what.workload = Workload::Pingpong;
    assert_eq!(cell.operation_name(), "pingpong");
}

#[test]
fn what_is_empty_need_not_be_written() {
    let bare =
        serde_json::to_value(Results::new("virt", "max", Some(Emulator::default()))).unwrap();
    assert_eq!(
        bare.get("missing")
            .or(bare.get("runs"))
            .or(bare["machine"].get("core_hz")),
        None
    );
    assert_eq!(bare["machine"]["emulator"].get("parameters"), None);
    let cell = serde_json::to_value(Cell::default()).unwrap();
    for field in [
        "run",
        "passes",
        "passes_planned",
        "raw",
        "not_modelled",
        "system",
    ] {
        assert_eq!(cell.get(field), None, "{field}");
    }
    let stage = Stage {
        name: "kick".into(),
        stats: Stats {
            p50: 7,
            ..Stats::default()
        },
    };
    let mut full = Cell {
        passes: 1,
        passes_planned: 2,
        stages: vec![stage],
        ..Cell::default()
    };
    full.what.workload = Workload::Timer;
    let value = serde_json::to_value(&full).unwrap();
    assert_eq!(
        (
            &value["passes"],
            &value["passes_planned"],
            &value["stages"][0]["p50"]
        ),
        (&1.into(), &2.into(), &7.into())
    );
    assert_eq!(value["system"], json!({"cpulist": "all"}));
    let again: Cell = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&again).unwrap(), value);
    for (field, word, told) in [
        ("under", "nothing", "known are rouse, none"),
        ("wait", "wfx", "there is no `wfx`"),
    ] {
        let mut wrong = value.clone();
        wrong[field] = word.into();
        let error = serde_json::from_value::<Cell>(wrong)
            .unwrap_err()
            .to_string();
        assert!(error.contains(told), "{error}");
    }
}
