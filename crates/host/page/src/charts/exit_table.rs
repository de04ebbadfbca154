// SPDX-License-Identifier: MIT OR Apache-2.0
//! The exits as numbers, with a column for every cause. The tables of all cells have only one column for all rare
//! causes.

use maud::{Markup, html};
use plan::Under;

use super::parts::exit_causes;
use crate::cells::{Panel, path_name, wait_text};
use crate::column::format_rate;

/// Returns a table for each workload with exits.
pub fn tables(panels: &[Panel<'_>]) -> Markup {
    html! {
        @for panel in panels {
            @let causes = exit_causes(panel);
            @if !causes.is_empty() { (table(panel, &causes)) }
        }
    }
}

fn table(panel: &Panel<'_>, causes: &[String]) -> Markup {
    let (cells, _) = panel.unswept_cells();
    let cells = cells.into_iter().filter(|cell| cell.under == Under::Rouse);
    html! {
        details.numbers {
            summary { "Exits of " (panel.title) " by every cause, as numbers" span.muted { ", per sample" } }
            div.scroll.tall {
                table.data {
                    thead { tr {
                        th.words { "path" } th.words { "wait" }
                        @for cause in causes { th { (cause) } }
                        th { "sum" }
                    } }
                    tbody {
                        @for cell in cells {
                            @let each = causes.iter().map(|cause| cell.exits_per_sample(cause));
                            @let each = each.collect::<Vec<f64>>();
                            tr {
                                td.words { (path_name(cell)) } td.words { (wait_text(cell)) }
                                @for exits in &each { td { (format_rate(*exits)) } }
                                td { (format_rate(each.iter().sum())) }
                            }
                        }
                    }
                }
            }
        }
    }
}
