// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stages as numbers, with their sums.

use maud::{Markup, html};
use results::Cell;

use crate::cells::{Panel, path_name, wait_text};
use crate::charts::parts::stage_names;
use crate::svg::format_number;

/// Returns a table for each workload that has stages whose sum is known.
pub fn tables(panels: &[Panel<'_>]) -> Markup {
    html! {
        @for panel in panels {
            @let (cells, _) = panel.unswept_cells();
            @let cells = cells.into_iter().filter(|cell| cell.stamped_stage().is_some()).collect::<Vec<_>>();
            @if !cells.is_empty() { (table(panel, &cells)) }
        }
    }
}

fn table(panel: &Panel<'_>, cells: &[&Cell]) -> Markup {
    let names = stage_names(cells);
    let median = |cell: &Cell, name: &str| {
        let stage = cell.stages().find(|stage| stage.name == name);
        stage.map(|stage| panel.shown_value(stage.stats.p50))
    };
    html! {
        details.numbers {
            summary { "Stages of " (panel.title) " as numbers" span.muted { ", p50, " (panel.value_label()) } }
            div.scroll.tall {
                table.data {
                    thead { tr {
                        th.words { "path" } th.words { "wait" }
                        @for name in &names { th { (name) } }
                        th { "sum" } th { "with stamps" } th { "without" } th { "stamps cost" }
                    } }
                    tbody {
                        @for cell in cells {
                            @let sum: f64 = names.iter().filter_map(|name| median(cell, name)).sum();
                            @let with = cell.stamped_stage().map_or(0.0, |whole| panel.shown_value(whole.stats.p50));
                            @let without = cell.stats.map_or(0.0, |stats| panel.shown_value(stats.p50));
                            tr {
                                td.words { (path_name(cell)) } td.words { (wait_text(cell)) }
                                @for name in &names {
                                    td { (median(cell, name).map_or("·".to_owned(), format_number)) }
                                }
                                td { (format_number(sum)) } td { (format_number(with)) } td { (format_number(without)) }
                                td { (format_number(with - without)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
