// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells of a chart, with their names and colours there.

use plan::{DIMENSIONS, Deliver, Info, Show, Trap, Under, Wait, Wake, Workload};
use results::Cell;
use results::merge::Run;

use crate::columns::MARK;
use crate::leading_median::By;
use crate::pairs;
use crate::scale::{Scale, operation_of};

/// Cells of one run that fit into one chart: the same workload and shape.
#[derive(Debug)]
pub struct Panel<'r> {
    /// The run.
    pub run: &'r Run,
    /// How to show its values.
    pub scale: Scale,
    /// Title of the cells: run, workload, shape.
    pub title: String,
    /// The measured cells.
    pub cells: Vec<&'r Cell>,
}

/// Returns the panels of all runs, the headline's workload first. Shapes without a
/// receiver that waits are only in the table.
pub fn panels(runs: &[Run]) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for run in runs {
        for cell in &run.results.cells {
            if cell.stats.is_none() || !cell.what.shape.has_receiver() {
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
    panels.sort_by_key(|panel| panel.cells[0].what.workload != Workload::Pingpong);
    panels
}

fn title(run: &Run, several: bool, cell: &Cell) -> String {
    let run = if several {
        format!("{}: ", run.label)
    } else {
        String::new()
    };
    format!("{run}{}", cell.subject())
}

impl<'r> Panel<'r> {
    /// Keeps one pair of CPUs where there are many, which only a map shows.
    pub fn thinned(self) -> Self {
        let cells = pairs::thinned(&self.cells);
        Self { cells, ..self }
    }

    /// Returns the unit of its values.
    pub fn unit(&self) -> &'r str {
        self.scale.unit_of(&self.run.results, &self.cells)
    }

    /// Chooses the quantity that leads in its charts.
    pub fn lead(&self) -> By {
        By::of(&self.cells)
    }

    /// Describes it: `instructions on the path, bookkeeping left out, per round trip`.
    pub fn lead_measure(&self) -> String {
        self.measured(self.lead().between())
    }

    /// Describes a value: `instructions per round trip`.
    pub fn measure(&self) -> String {
        self.measured("")
    }

    /// Likewise, with the subject of the value.
    pub fn measured(&self, of: &str) -> String {
        let operation = operation_of(self.cells[0]);
        format!("{}{of} per {operation}", self.unit())
    }

    /// Returns a value in the shown unit.
    pub fn value(&self, value: u64) -> f64 {
        self.scale.value(value)
    }

    /// Describes the smallest and the largest number of samples of some cells.
    pub fn samples<'c>(cells: impl Iterator<Item = &'c &'c Cell>) -> String {
        let counts: Vec<u64> = cells.filter_map(|cell| Some(cell.stats?.count)).collect();
        match (counts.iter().min(), counts.iter().max()) {
            (Some(min), Some(max)) if min == max => format!("n = {min} each"),
            (Some(min), Some(max)) => format!("n = {min} to {max}"),
            _ => "n = 0".into(),
        }
    }

    /// Returns the cells with one value of each swept dimension, and names that value if
    /// there are others.
    pub fn plain(&self) -> (Vec<&'r Cell>, String) {
        self.plain_but(&[])
    }

    /// Like [`Self::plain`], with all values of the dimensions `kept`.
    pub fn plain_but(&self, kept: &[&str]) -> (Vec<&'r Cell>, String) {
        let mut cells = self.cells.clone();
        let mut notes = Vec::new();
        for info in DIMENSIONS.iter().filter(|info| !kept.contains(&info.key)) {
            let Show::Sweep { preferred, .. } = info.show else {
                continue;
            };
            let preferred = u64::from(preferred);
            // Zero means that the dimension does not apply, unless zero is preferred.
            let values = distinct(&cells, info).into_iter();
            let values: Vec<u64> = values
                .filter(|&value| value > 0 || preferred == 0)
                .collect();
            let nearest = values
                .iter()
                .copied()
                .min_by_key(|value| value.abs_diff(preferred));
            if let Some(chosen) = nearest.filter(|_| values.len() > 1) {
                cells.retain(|cell| {
                    let value = info.rank(&cell.what);
                    value == chosen || (value == 0 && preferred > 0)
                });
                notes.push(format!("{} {chosen} of {}", info.key, list(&values)));
            }
        }
        (cells, notes.join(", "))
    }
}

/// Returns the distinct values of a dimension that is a number, ascending.
pub fn distinct(cells: &[&Cell], info: &Info) -> Vec<u64> {
    let mut values: Vec<u64> = cells.iter().map(|cell| info.rank(&cell.what)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn list(values: &[u64]) -> String {
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    values.join(", ")
}

/// Describes how a receiver waits, marked if the machine does not model what that depends
/// on, and its special properties.
pub fn waiting(cell: &Cell) -> (String, String) {
    let mark = if cell.not_modelled.is_empty() {
        ""
    } else {
        MARK
    };
    let mut special = Vec::new();
    if cell.what.trap != Trap::None {
        special.push(format!("trap {}", cell.what.trap));
    }
    for info in &DIMENSIONS {
        if let Show::Special(name) = info.show
            && !info.is_neutral(&cell.what)
        {
            special.push(format!("{name} {}", info.text(&cell.what)));
        }
    }
    (format!("{}{mark}", cell.what.wait), special.join(", "))
}

/// Likewise in one text.
pub fn waiting_text(cell: &Cell) -> String {
    let (wait, special) = waiting(cell);
    format!("{wait} {special}").trim_end().to_owned()
}

/// Describes the way of a wake-up: under, deliver, wake.
pub fn path(cell: &Cell) -> String {
    let under = match cell.under {
        Under::Rouse => "",
        Under::None => "guest alone, ",
        Under::Xen => "Xen, ",
        Under::Kvm => "KVM, ",
        Under::KvmNvhe => "KVM nVHE, ",
        Under::KvmProtected => "protected KVM, ",
    };
    let wake = match cell.what.wake {
        Wake::Ipi => "IPI",
        Wake::Elide => "elided",
    };
    format!("{under}{}, {wake}", cell.what.deliver)
}

/// Classes of the paths' colours, in the order of legends.
pub const PATH_COLOURS: [&str; 7] = [
    "c-blue",
    "c-sky",
    "c-red",
    "c-orange",
    "c-green",
    "c-green-light",
    "c-grey",
];

/// Returns the class of a path's colour: a hue for each way of delivery, light if the
/// interrupt is elided.
pub fn path_class(cell: &Cell) -> &'static str {
    match (cell.under, cell.what.deliver, cell.what.wake) {
        (Under::None, _, Wake::Elide) => "c-green-light",
        (Under::None, _, Wake::Ipi) => "c-green",
        (Under::Xen | Under::Kvm | Under::KvmNvhe | Under::KvmProtected, _, _) => "c-grey",
        (Under::Rouse, Deliver::Direct, Wake::Elide) => "c-orange",
        (Under::Rouse, Deliver::Direct, Wake::Ipi) => "c-red",
        (Under::Rouse, Deliver::Inject, Wake::Elide) => "c-sky",
        (Under::Rouse, Deliver::Inject, Wake::Ipi) => "c-blue",
    }
}

/// Returns the classes of a wait's line: a colour for each wait, a pattern for each trap.
pub fn wait_class(cell: &Cell) -> String {
    let colour = match cell.what.wait {
        Wait::PollWfi => "c-blue",
        Wait::Wfi => "c-red",
        Wait::Wfe => "c-green",
        Wait::WfeSev => "c-green-light",
        Wait::Wfet => "c-purple",
        Wait::Spin => "c-orange",
        Wait::Haltpoll => "c-sky",
        Wait::Busy => "c-grey",
        Wait::Yield | Wait::Governed(_) => "c-ink",
    };
    let pattern = match cell.what.trap {
        Trap::None => "",
        Trap::Wfi => " dash",
        Trap::Wfe => " dots",
        Trap::Both => " dash-dots",
    };
    format!("line {colour}{pattern}")
}
