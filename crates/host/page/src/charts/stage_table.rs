// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stages as numbers, with their sums.

use maud::{Markup, html};
use results::Cell;

use crate::cells::{Panel, path, waiting_text};
use crate::charts::parts::stage_names;
use crate::svg::number;

/// Returns a table for each workload whose samples have stages with a sum.
pub fn tables(panels: &[Panel<'_>]) -> Markup {
    html! {
        @for panel in panels {
            @let (cells, _) = panel.plain();
            @let cells = cells.into_iter().filter(|cell| cell.stamped().is_some()).collect::<Vec<_>>();
            @if !cells.is_empty() { (table(panel, &cells)) }
        }
    }
}

fn table(panel: &Panel<'_>, cells: &[&Cell]) -> Markup {
    let names = stage_names(cells);
    let median = |cell: &Cell, name: &str| {
        let stage = cell.stages().find(|stage| stage.name == name);
        stage.map(|stage| panel.value(stage.stats.p50))
    };
    html! {
        details.numbers {
            summary { "Stages of " (panel.title) " as numbers" span.muted { ", p50, " (panel.measure()) } }
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
                            @let with = cell.stamped().map_or(0.0, |whole| panel.value(whole.stats.p50));
                            @let without = cell.stats.map_or(0.0, |stats| panel.value(stats.p50));
                            tr {
                                td.words { (path(cell)) } td.words { (waiting_text(cell)) }
                                @for name in &names {
                                    td { (median(cell, name).map_or("·".to_owned(), number)) }
                                }
                                td { (number(sum)) } td { (number(with)) } td { (number(without)) }
                                td { (number(with - without)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
