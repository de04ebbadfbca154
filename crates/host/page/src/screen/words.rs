// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of a run's first screen: for the machine, ways of waiting, and ways in which a wake-up arrives.

use std::collections::BTreeSet;

use plan::{Deliver, Shape, Trap, Wait, Wake};
use results::{Cell, Results};

use crate::columns::MARK;
use crate::machine::asked;
use crate::scale::Scale;

/// Title of the column with the names of the rows.
pub const SUBJECT: &str = "how it waits";

/// Describes the machine, and the unit of its numbers.
pub fn machine_line(results: &Results, scale: Scale) -> String {
    let machine = &results.machine;
    let emulator = machine.emulator.as_ref();
    let emulator = emulator.map(|emulator| format!("{} {}", emulator.name, emulator.version));
    let parts = [
        emulator,
        match machine.cpus {
            0 => None,
            1 => Some("1 CPU".to_owned()),
            cpus => Some(format!("{cpus} CPUs")),
        },
        (!machine.cpu.is_empty()).then(|| machine.cpu.clone()),
        machine.kernel_text(),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let board = match results.board.as_str() {
        "" => "a board that is not named",
        board => board,
    };
    let unit = match results.unit.as_str() {
        "insns" => "Instructions: exact, not a time.".to_owned(),
        _ => format!(
            "Unit: {} ({}).",
            scale.unit_of_results(results),
            results.unit_how
        ),
    };
    format!("{board}: {}. {unit}", parts.join(", "))
}

/// Describes how a cell waits, without traps. Includes the limit of the guest's poll unless the limit has a column.
pub fn wait_text(cell: &Cell, limit_is_swept: bool) -> String {
    let what = &cell.what;
    if what.workload.is_a_run() {
        return what.command.to_string();
    }
    if what.workload.is_linux() {
        return "as Linux idles".into();
    }
    match what.wait {
        Wait::Busy => "busy, does not wait".into(),
        Wait::Spin => "spins".into(),
        Wait::Yield => "spins, YIELD".into(),
        Wait::Wfe => "WFE".into(),
        Wait::WfeSev => "WFE, woken by SEV".into(),
        Wait::Wfet => "WFET".into(),
        Wait::Wfi => "WFI".into(),
        Wait::PollWfi if limit_is_swept => "polls, then WFI".into(),
        Wait::PollWfi => format!("polls {} us, then WFI", what.poll_limit_us),
        other => other.to_string().replace(':', " "),
    }
}

/// Names the receivers of an interrupt, unless it is the usual single receiver.
pub fn receivers_text(cell: &Cell) -> &'static str {
    match cell.what.shape {
        Shape::Dry => "unsent: ",
        Shape::Itself => "to itself: ",
        Shape::One => "",
        Shape::Broadcast => "to all: ",
    }
}

/// Describes the trap of the wait. Includes the hypervisor's poll unless the limit of that poll has a column.
pub fn trap_text(cell: &Cell, poll_is_swept: bool) -> String {
    let what = &cell.what;
    if what.workload.is_linux() {
        return match what.trap {
            Trap::None => String::new(),
            trap => format!(", {} trapped", trap_words(trap)),
        };
    }
    let (halts, uses_events) = (what.wait.halts(), what.wait.uses_events());
    let trapped = match (halts && what.trap.wfi(), uses_events && what.trap.wfe()) {
        (false, false) => return String::new(),
        // The text names the instruction only if the wait uses both WFI and WFE.
        (true, false) if uses_events => ", WFI trapped",
        (false, true) if halts => ", WFE trapped",
        (true, true) => ", both trapped",
        _ => ", trapped",
    };
    match what.host_poll_us {
        0 => trapped.into(),
        _ if poll_is_swept => trapped.into(),
        limit => format!("{trapped}, EL2 polls {limit} us"),
    }
}

/// Names the instructions of a trap.
pub fn trap_words(trap: Trap) -> &'static str {
    match trap {
        Trap::None => "nothing",
        Trap::Wfi => "WFI",
        Trap::Wfe => "WFE",
        Trap::Both => "WFI and WFE",
    }
}

/// Describes the way in which the wake-up arrives.
pub fn arrival_text(cell: &Cell) -> &'static str {
    match (cell.what.wake, cell.what.deliver) {
        (Wake::Elide, _) => "no IPI, polled",
        (Wake::Ipi, Deliver::Inject) => "IPI injected",
        (Wake::Ipi, Deliver::Direct) => "IPI direct",
    }
}

/// Explains the star: lists the properties on which starred waits depend and which the machine does not model.
pub fn explain_star(results: &Results) -> String {
    let cells = results.cells.iter().filter(|cell| cell.stats.is_some());
    let missing: BTreeSet<&str> = cells
        .flat_map(|cell| cell.not_modelled.iter().map(String::as_str))
        .collect();
    let missing: Vec<&str> = missing.into_iter().map(asked).collect();
    format!(
        "{MARK} the length of the code, not of the wait. On a core, unlike here: {}.",
        missing.join("; ")
    )
}
