// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which cells a chart shows, and how they are called and coloured there.

use crate::report::merge::Run;
use crate::results::Cell;
use crate::table::{MARK, Scale, operation};

/// Cells of one run that can stand in one chart: the same workload and shape.
#[derive(Debug)]
pub struct Panel<'r> {
    /// The run.
    pub run: &'r Run,
    /// How its values are shown.
    pub scale: Scale,
    /// What they are of: run, workload, shape.
    pub title: String,
    /// The measured ones.
    pub cells: Vec<&'r Cell>,
}

/// Dimensions of which a chart shows one value, and the value that it
/// prefers.
const SWEPT: [(&str, u64); 4] = [
    ("poll-limit-us", 100),
    ("host-poll-us", 0),
    ("event-stream-us", 100),
    ("gap-us", 0),
];

/// The panels of all runs, the headline's workload first. Shapes without a
/// receiver that waits are in the table.
pub fn panels(runs: &[Run]) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for run in runs {
        for cell in &run.results.cells {
            if cell.stats.is_none() || matches!(cell.shape.as_str(), "dry" | "self") {
                continue;
            }
            let title = title(run, runs.len() > 1, cell);
            match panels.iter_mut().find(|panel| panel.title == title) {
                Some(panel) => panel.cells.push(cell),
                None => panels.push(Panel {
                    run,
                    scale: Scale::of(&run.results),
                    title,
                    cells: vec![cell],
                }),
            }
        }
    }
    panels.sort_by_key(|panel| panel.cells[0].workload != "pingpong");
    panels
}

fn title(run: &Run, several: bool, cell: &Cell) -> String {
    let shape = match (cell.workload.as_str(), cell.shape.as_str()) {
        (_, "") | ("pingpong", _) => String::new(),
        (_, shape) => format!(" {shape}"),
    };
    let run = if several {
        format!("{}: ", run.label)
    } else {
        String::new()
    };
    format!("{run}{}{shape}", cell.workload)
}

impl<'r> Panel<'r> {
    /// What a value of it counts.
    pub fn unit(&self) -> &'r str {
        self.scale.unit(&self.run.results)
    }

    /// What a value of it is: `instructions per round trip`.
    pub fn measure(&self) -> String {
        format!("{} per {}", self.unit(), operation(&self.cells[0].workload))
    }

    /// A value as it is shown.
    pub fn value(&self, value: u64) -> f64 {
        self.scale.value(value)
    }

    /// The smallest and the largest number of samples of some cells.
    pub fn samples<'c>(cells: impl Iterator<Item = &'c &'c Cell>) -> String {
        let counts: Vec<u64> = cells.filter_map(|cell| Some(cell.stats?.count)).collect();
        match (counts.iter().min(), counts.iter().max()) {
            (Some(min), Some(max)) if min == max => format!("n = {min} each"),
            (Some(min), Some(max)) => format!("n = {min} to {max}"),
            _ => "n = 0".into(),
        }
    }

    /// Cells with one value of each swept dimension, and which that is where
    /// there are others.
    pub fn plain(&self) -> (Vec<&'r Cell>, String) {
        self.plain_but(&[])
    }

    /// As [`Self::plain`], with all values of the dimensions `kept`.
    pub fn plain_but(&self, kept: &[&str]) -> (Vec<&'r Cell>, String) {
        let mut cells = self.cells.clone();
        let mut notes = Vec::new();
        for (key, preferred) in SWEPT.into_iter().filter(|(key, _)| !kept.contains(key)) {
            let values = distinct(&cells, key);
            // Zero: the dimension does not apply, except for the gap.
            let values: Vec<u64> = values
                .into_iter()
                .filter(|&value| value > 0 || preferred == 0)
                .collect();
            let nearest = values
                .iter()
                .copied()
                .min_by_key(|value| value.abs_diff(preferred));
            if let Some(chosen) = nearest.filter(|_| values.len() > 1) {
                cells.retain(|cell| {
                    let value = number(cell, key);
                    value == chosen || (value == 0 && preferred > 0)
                });
                notes.push(format!("{key} {chosen} of {}", list(&values)));
            }
        }
        (cells, notes.join(", "))
    }
}

/// Different values of a dimension, ascending.
pub fn distinct(cells: &[&Cell], key: &str) -> Vec<u64> {
    let mut values: Vec<u64> = cells.iter().map(|cell| number(cell, key)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// The value of a dimension that is a number.
pub fn number(cell: &Cell, key: &str) -> u64 {
    cell.word(key)
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

fn list(values: &[u64]) -> String {
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    values.join(", ")
}

/// How a receiver waits, marked if the machine does not model what that depends
/// on, and what of it is special.
pub fn waiting(cell: &Cell) -> (String, String) {
    let mark = if cell.not_modelled.is_empty() {
        ""
    } else {
        MARK
    };
    let mut special = Vec::new();
    if !matches!(cell.trap.as_str(), "none" | "") {
        special.push(format!("trap {}", cell.trap));
    }
    if !matches!(cell.host_poll.as_str(), "" | "fixed") {
        special.push(format!("EL2 {}", cell.host_poll));
    }
    if !matches!(cell.hint.as_str(), "" | "none" | "off") {
        special.push(format!("hint {}", cell.hint));
    }
    (format!("{}{mark}", cell.wait), special.join(", "))
}

/// The same in one text.
pub fn waiting_text(cell: &Cell) -> String {
    let (wait, special) = waiting(cell);
    format!("{wait} {special}").trim_end().to_owned()
}

/// Where a wake-up goes: under, deliver, wake.
pub fn path(cell: &Cell) -> String {
    let under = match cell.under.as_str() {
        "rouse" => String::new(),
        "none" => "bare machine, ".into(),
        under => format!("under {under}, "),
    };
    let wake = match cell.wake.as_str() {
        "ipi" => "IPI",
        "elide" => "elided",
        wake => wake,
    };
    format!("{under}{}, {wake}", cell.deliver)
}

/// Classes of the paths' colours, in the order of legends.
pub const PATH_COLOURS: [&str; 6] = [
    "c-blue",
    "c-sky",
    "c-red",
    "c-orange",
    "c-green",
    "c-green-light",
];

/// Class of a path's colour: a hue for each way of delivery, light where the
/// interrupt is elided.
pub fn path_class(cell: &Cell) -> &'static str {
    let elided = cell.wake == "elide";
    match (cell.under.as_str(), cell.deliver.as_str()) {
        ("none", _) if elided => "c-green-light",
        ("none", _) => "c-green",
        (_, "direct") if elided => "c-orange",
        (_, "direct") => "c-red",
        _ if elided => "c-sky",
        _ => "c-blue",
    }
}

/// Classes of a wait's line: a colour for each wait, a pattern for each trap.
pub fn wait_class(cell: &Cell) -> String {
    let colour = match cell.wait.as_str() {
        "poll-wfi" => "c-blue",
        "wfi" => "c-red",
        "wfe" => "c-green",
        "wfe-sev" => "c-green-light",
        "wfet" => "c-purple",
        "spin" => "c-orange",
        "haltpoll" => "c-sky",
        "busy" => "c-grey",
        _ => "c-ink",
    };
    let pattern = match cell.trap.as_str() {
        "none" | "" => "",
        "wfi" => " dash",
        "wfe" => " dots",
        _ => " dash-dots",
    };
    format!("line {colour}{pattern}")
}
