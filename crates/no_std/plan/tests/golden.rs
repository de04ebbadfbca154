// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells that some plans expand to, on three machines: `golden/plans.txt`.
//!
//! A change to that file means that the same options now give different cells.
//! `UPDATE=1` in the environment rewrites the file, so that people can look at the difference.

use std::fmt::Write;
use std::{env, fs};

use plan::{Arguments, Cell, DIMENSIONS, Machine, Place, Plan, ValueKind};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/plans.txt");

const MACHINES: [(&str, Machine); 3] = [
    ("full", Machine::COMPLETE),
    (
        "bare",
        Machine {
            cpus: 1,
            wfxt: false,
            lse: false,
            ecv: false,
            frequency: 25_000_000,
            under: plan::Under::None,
            caches: false,
            ..Machine::COMPLETE
        },
    ),
    (
        "o3",
        Machine {
            cpus: 2,
            ecv: false,
            frequency: 62_500_000,
            event_loses_irq: true,
            ..Machine::COMPLETE
        },
    ),
];

fn line(cell: &Cell, machine: &Machine) -> String {
    let mut line = cell.title().to_string();
    for (name, value) in [
        ("limit", cell.poll_limit_us),
        ("host", cell.host_poll_us),
        ("stream", cell.event_stream_us),
        ("gap", cell.gap_us),
        ("arrival", cell.arrival_us),
        ("service", cell.service_us),
    ] {
        if value != 0 {
            write!(line, " {name}={value}").unwrap();
        }
    }
    let unusual = DIMENSIONS
        .iter()
        .filter(|info| info.place == Place::Unusual && !info.is_neutral(cell));
    for info in unusual {
        match (info.kind, info.key) {
            (ValueKind::Words | ValueKind::Tables, _) => write!(line, " {}", info.text(cell)),
            (_, "hz") => write!(line, " hz={}", cell.hz),
            _ => Ok(()),
        }
        .unwrap();
    }
    let system = cell.system();
    let system: Vec<String> = system
        .map(|info| format!("{}={}", info.key, info.text(cell)))
        .collect();
    if !system.is_empty() {
        write!(line, " [{}]", system.join(",")).unwrap();
    }
    if let Some(reason) = cell.skip_reason(machine) {
        write!(line, " !{reason:?}").unwrap();
    }
    line
}

/// `machine` with the guest that `plan` is for.
fn with_guest(plan: &Plan, machine: &Machine) -> Machine {
    let workloads = &plan.lists.workload.values;
    Machine {
        linux: workloads.iter().all(|workload| workload.is_linux()),
        ..*machine
    }
}

fn expanded(text: &str) -> String {
    let plan = match Arguments::parse(text) {
        Ok(arguments) => arguments.plan,
        Err(error) => return format!("error: {error}\n"),
    };
    let mut shown = String::new();
    for (name, machine) in &MACHINES {
        let machine = with_guest(&plan, machine);
        writeln!(shown, "# {name}").unwrap();
        for cell in plan.cells(&machine) {
            writeln!(shown, "{}", line(&cell, &machine)).unwrap();
        }
    }
    shown
}

#[test]
fn plans_expand_to_what_they_always_did() {
    let golden = fs::read_to_string(FILE).unwrap();
    let headings = golden.lines().filter_map(|line| line.strip_prefix("## "));
    let now: String = headings
        .map(|text| format!("## {text}\n{}", expanded(text)))
        .collect();
    if env::var_os("UPDATE").is_some() {
        fs::write(FILE, &now).unwrap();
    }
    for (was, is) in golden.lines().zip(now.lines()) {
        assert_eq!(is, was);
    }
    assert_eq!(now.lines().count(), golden.lines().count());
}

/// A cell can be read back from the words reported for it, whatever these words leave out.
#[test]
fn cells_read_back_from_what_is_told() {
    let golden = fs::read_to_string(FILE).unwrap();
    for text in golden.lines().filter_map(|line| line.strip_prefix("## ")) {
        let Ok(arguments) = Arguments::parse(text) else {
            continue;
        };
        for (_, machine) in &MACHINES {
            for cell in arguments.plan.cells(&with_guest(&arguments.plan, machine)) {
                let mut read = Cell::default();
                for info in DIMENSIONS.iter().filter(|info| info.is_told(&cell)) {
                    read.set(info.key, &info.text(&cell).to_string()).unwrap();
                }
                assert_eq!(read, cell);
            }
        }
    }
}
