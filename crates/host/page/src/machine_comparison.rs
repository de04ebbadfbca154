// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the same cells on each machine: a table, a chart for each machine with its own
//! axis, and the differences between the orders.

use maud::{Markup, html};
use results::merge::Run;

use crate::appendix::table;
use crate::cells::Panel;
use crate::charts::cost;
use crate::frame::Figure;
use crate::machines::{Group, groups, sentences};
use crate::scale::Scale;

/// Returns the section; empty if no two machines have a cell in common.
pub fn section(runs: &[Run]) -> Markup {
    let groups = groups(runs);
    if groups.is_empty() {
        return html! {};
    }
    html! {
        section id="machines" {
            h2 { "The same cells on each machine" }
            p.about {
                "Cells that differ in nothing but the machine. Each machine keeps its own unit: instructions, \
                 cycles and times are never put on one axis, added or divided. The ratio is to a cell of the \
                 same machine, so it is a pure number, and may be held against that of another machine. A \
                 star (*): that machine does not model what the wait depends on."
            }
            @for sentence in sentences(&groups) { p { (sentence) } }
            @for group in &groups {
                h3 {
                    (group.title)
                    span.muted {
                        ", " (group.size()) " cells"
                        @if let Some(reference) = group.reference_name() { "; ratio to " (reference) }
                    }
                }
                (table(&group.columns()))
                div.charts { @for figure in figures(group, runs) { (figure) } }
            }
        }
    }
}

/// Returns a chart for each machine.
pub fn figures(group: &Group<'_>, runs: &[Run]) -> Vec<Figure> {
    let panels = runs.iter().enumerate().map(|(at, run)| Panel {
        run,
        scale: Scale::of(&run.results),
        title: format!("{}: {}", run.label, group.title),
        cells: group.cells(at),
    });
    let panels = panels.filter(|panel| !panel.cells.is_empty());
    panels.filter_map(|panel| cost(&panel)).collect()
}
