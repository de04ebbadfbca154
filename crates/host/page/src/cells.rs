// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells of a chart, with their names and colours in the chart.

use std::collections::BTreeSet;

use plan::{DIMENSIONS, Deliver, Info, Show, Trap, Under, Wait, Wake, Workload};
use results::Cell;
use results::merge::Run;

use crate::columns::MARK;
use crate::pairs;
use crate::scale::{Scale, cell_operation, shown_median};
use crate::screen::words;

/// Cells of one run that fit into one chart, because they have the same workload and shape.
#[derive(Debug)]
pub struct Panel<'r> {
    /// The run.
    pub run: &'r Run,
    /// The scale of the run's values.
    pub scale: Scale,
    /// The cells' workload and shape.
    pub subject: String,
    /// Title of the cells: the run (if there are several) and the subject.
    pub title: String,
    /// The measured cells.
    pub cells: Vec<&'r Cell>,
}

/// Returns the panels of all runs, beginning with the workload of the headline. Shapes without a waiting receiver
/// appear only in the table.
pub fn panels(runs: &[Run]) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for run in runs {
        for cell in &run.results.cells {
            if cell.stats.is_none() || !cell.what.shape.has_receiver() {
                continue;
            }
            let title = panel_title(run, runs.len() > 1, cell);
            match panels.iter_mut().find(|panel| panel.title == title) {
                Some(panel) => panel.cells.push(cell),
                None => panels.push(Panel {
                    run,
                    scale: Scale::for_results(&run.results),
                    subject: cell.operation_name(),
                    title,
                    cells: vec![cell],
                }),
            }
        }
    }
    panels.sort_by_key(|panel| panel.cells[0].what.workload != Workload::Pingpong);
    panels
}

fn panel_title(run: &Run, several: bool, cell: &Cell) -> String {
    let run = if several {
        format!("{}: ", run.label)
    } else {
        String::new()
    };
    format!("{run}{}", cell.operation_name())
}

impl<'r> Panel<'r> {
    /// Keeps only one of several pairs of CPUs. Only a map shows all pairs.
    pub fn with_one_pair(self) -> Self {
        let cells = pairs::drop_further_pairs(&self.cells, 2);
        Self { cells, ..self }
    }

    /// Returns the unit of the panel's values.
    pub fn unit(&self) -> &'r str {
        self.scale.unit_of_cells(&self.run.results, &self.cells)
    }

    /// Describes a value: `instructions per round trip`.
    pub fn value_label(&self) -> String {
        format!("{} per {}", self.unit(), cell_operation(self.cells[0]))
    }

    /// Returns a value in the shown unit.
    pub fn shown_value(&self, value: u64) -> f64 {
        self.scale.convert_value(value)
    }

    /// Describes the smallest and the largest number of samples in `cells`.
    pub fn sample_counts<'c>(cells: impl Iterator<Item = &'c &'c Cell>) -> String {
        let counts: Vec<u64> = cells.filter_map(|cell| Some(cell.stats?.count)).collect();
        match (counts.iter().min(), counts.iter().max()) {
            (Some(min), Some(max)) if min == max => format!("n = {min} each"),
            (Some(min), Some(max)) => format!("n = {min} to {max}"),
            _ => "n = 0".into(),
        }
    }

    /// Returns the cells with one chosen value of each swept dimension. If a dimension has several values, the note
    /// names the chosen one.
    pub fn unswept_cells(&self) -> (Vec<&'r Cell>, String) {
        self.cells_swept_by(&[])
    }

    /// Like [`Self::unswept_cells`], but with all values of the dimensions `kept`.
    pub fn cells_swept_by(&self, kept: &[&str]) -> (Vec<&'r Cell>, String) {
        let mut cells = self.cells.clone();
        let mut notes = Vec::new();
        for info in DIMENSIONS.iter().filter(|info| !kept.contains(&info.key)) {
            let Show::Sweep {
                preferred, chart, ..
            } = info.show
            else {
                continue;
            };
            let preferred = u64::from(preferred);
            // The value 0 means that the dimension does not apply, unless 0 is the preferred value.
            let values = distinct_values(&cells, info).into_iter();
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
                let name = chart.to_lowercase();
                notes.push(format!("{name} {chosen} of {} µs", join_values(&values)));
            }
        }
        (drop_repeats(&cells), notes.join(", "))
    }
}

/// For each hypervisor and delivery, drops the cells of wake-ups without an interrupt, if each of them costs the same
/// as under Rouse with injected interrupts. The cells' cost then depends neither on the hypervisor nor on the delivery.
fn drop_repeats<'r>(cells: &[&'r Cell]) -> Vec<&'r Cell> {
    let way = |cell: &Cell| (cell.under, cell.what.deliver);
    let first = (Under::Rouse, Deliver::Inject);
    let has_twin = |cell: &&&Cell| {
        let what = plan::Cell {
            deliver: Deliver::Inject,
            ..cell.what
        };
        let mut others = cells.iter().filter(|other| way(other) == first);
        others.any(|other| other.what == what && shown_median(other) == shown_median(cell))
    };
    let elided = || cells.iter().filter(|cell| cell.what.wake.elides());
    let is_again = |cell: &&&Cell| {
        let mut alike = elided().filter(|other| way(other) == way(cell));
        cell.what.wake.elides() && way(cell) != first && alike.all(|other| has_twin(&other))
    };
    let shown = cells.iter().filter(|cell| !is_again(cell));
    shown.copied().collect()
}

/// Returns the distinct values of a numeric dimension, ascending.
pub fn distinct_values(cells: &[&Cell], info: &Info) -> Vec<u64> {
    let mut values: Vec<u64> = cells.iter().map(|cell| info.rank(&cell.what)).collect();
    values.sort_unstable();
    values.dedup();
    values
}

fn join_values(values: &[u64]) -> String {
    let values: Vec<String> = values.iter().map(u64::to_string).collect();
    values.join(", ")
}

/// Returns how many different limits the hypervisor's poll has. Cells without this poll count as limit 0.
pub fn count_host_polls(cells: &[&Cell]) -> usize {
    let values = cells.iter().map(|cell| cell.what.host_poll_us);
    values.collect::<BTreeSet<_>>().len()
}

/// Returns how a receiver waits, and its special properties. The wait is marked if it depends on a property that the
/// machine does not model.
pub fn wait_and_properties(cell: &Cell) -> (String, String) {
    let mark = if cell.not_modelled.is_empty() {
        ""
    } else {
        MARK
    };
    let mut special = Vec::new();
    let (halts, listens) = (cell.what.wait.halts(), cell.what.wait.uses_events());
    special.extend(match cell.what.trap {
        Trap::None => None,
        Trap::Wfi if halts && !listens => Some("trapped".to_owned()),
        Trap::Wfe if listens && !halts => Some("trapped".to_owned()),
        Trap::Wfi => Some("WFI trapped".to_owned()),
        Trap::Wfe => Some("WFE trapped".to_owned()),
        Trap::Both => Some("both trapped".to_owned()),
    });
    if cell.what.host_poll_us > 0 {
        special.push(format!("EL2 polls {} µs", cell.what.host_poll_us));
    }
    for info in &DIMENSIONS {
        if let Show::Special(name) = info.show
            && !info.is_neutral(&cell.what)
        {
            special.push(format!("{name} {}", info.text(&cell.what)));
        }
    }
    // The caption of a chart already states the poll's limit.
    let name = words::wait_text(cell, true);
    (format!("{name}{mark}"), special.join(", "))
}

/// Like [`wait_and_properties`], joined into one text.
pub fn wait_text(cell: &Cell) -> String {
    let (wait, special) = wait_and_properties(cell);
    match special.as_str() {
        "" => wait,
        special => format!("{wait}, {special}"),
    }
}

/// Names the layer below the guest.
pub fn layer_name(cell: &Cell) -> &'static str {
    match cell.under {
        Under::Rouse => "Rouse",
        Under::None => "guest alone",
        Under::Xen => "Xen",
        Under::Bao => "Bao",
        Under::Kvm => "KVM",
        Under::KvmNvhe => "KVM nVHE",
        Under::KvmProtected => "protected KVM",
    }
}

/// Describes the path of a wake-up: the layer below the guest, and how the wake-up arrives.
pub fn path_name(cell: &Cell) -> String {
    let direct = cell.what.wake.elides()
        && (cell.under, cell.what.deliver) == (Under::Rouse, Deliver::Direct);
    let direct = if direct { " (direct)" } else { "" };
    format!(
        "{}: {}{direct}",
        layer_name(cell),
        words::arrival_text(cell)
    )
}

/// Returns the CSS classes of a path's colour. Each hypervisor has one colour, except Rouse, which has one for each of
/// its two ways of delivery. A path without an interrupt is drawn hollow.
pub fn path_class(cell: &Cell) -> String {
    let colour = match (cell.under, cell.what.deliver) {
        (Under::None, _) => "c-green",
        (Under::Rouse, Deliver::Inject) => "c-blue",
        (Under::Rouse, Deliver::Direct) => "c-sky",
        (Under::Xen, _) => "c-orange",
        (Under::Bao, _) => "c-ink",
        (Under::Kvm, _) => "c-purple",
        (Under::KvmNvhe, _) => "c-red",
        (Under::KvmProtected, _) => "c-grey",
    };
    match cell.what.wake {
        Wake::Ipi => colour.into(),
        Wake::Elide => format!("{colour} hollow"),
    }
}

/// Returns the CSS classes of a wait's line: each wait has a colour, and each trap has a pattern.
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
