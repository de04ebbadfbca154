// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the same cells on several machines, in a table and in sentences about how the order of the cells differs
//! from machine to machine.

use maud::{Markup, html};
use results::merge::Run;

use crate::appendix::table;
use crate::machines::{comparable_groups, order_sentences};

/// Returns the section. The section is empty if no two machines have a cell in common.
pub fn section(runs: &[Run]) -> Markup {
    let groups = comparable_groups(runs);
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
            @for sentence in order_sentences(&groups) { p { (sentence) } }
            @for group in &groups {
                h3 {
                    (group.title)
                    span.muted {
                        ", " (group.cell_count()) " cells"
                        @if let Some(reference) = group.reference_name() { "; ratio to " (reference) }
                    }
                }
                (table(&group.columns()))
            }
        }
    }
}
