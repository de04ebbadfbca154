// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of experiments as a page.

use maud::{Markup, html};

use super::Report;
use super::outcome::{Claim, Table};
use crate::page;

/// The page.
pub fn html(reports: &[Report]) -> String {
    let body = html! {
        header {
            h1 { "Idle systems: what was published, measured here" }
            p.about { (summary(reports)) }
        }
        @for report in reports { (section(report)) }
    };
    page::document("Idle systems: what was published, measured here", body)
}

/// How many claims hold.
fn summary(reports: &[Report]) -> String {
    let claims = || reports.iter().flat_map(|report| &report.outcome.claims);
    let agree = claims().filter(|claim| claim.agrees).count();
    format!(
        "{} experiments; of {} claims of their sources our numbers agree with {agree}.",
        reports.len(),
        claims().count()
    )
}

fn section(report: &Report) -> Markup {
    html! {
        section id=(report.name) {
            h2 { (report.name) }
            p.about { (report.question) }
            p.about.muted { "Source: " (report.source) }
            @for table in &report.outcome.tables { (drawn(table)) }
            ul { @for claim in &report.outcome.claims { li { (told(claim)) } } }
            @for note in &report.outcome.notes { p.about { (note) } }
            p.about { b { "Comparable: " } (report.comparable) }
        }
    }
}

fn drawn(table: &Table) -> Markup {
    html! {
        h3 { (table.title) }
        div.scroll {
            table.data {
                thead {
                    tr {
                        th {}
                        @for column in &table.columns { th { (column) } }
                    }
                }
                tbody {
                    @for (name, texts) in &table.rows {
                        tr {
                            td.words { (name) }
                            @for text in texts { td { (text) } }
                        }
                    }
                }
            }
        }
    }
}

fn told(claim: &Claim) -> Markup {
    html! {
        @if claim.agrees { "Agrees: " } @else { b { "Differs: " } }
        (claim.text) " "
        span.muted { "(ours: " (claim.ours) ")" }
        @if let Some(why) = claim.why { " " (why) "." }
    }
}
