// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of experiments as a page.

use maud::{Markup, html};
use page::Line;

use super::outcome::{Chart, Claim, Table};
use super::report::Report;

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
    let count = |agrees| claims().filter(|claim| claim.agrees == agrees).count();
    let not_modelled = match count(None) {
        0 => String::new(),
        some => format!("; {some} are about what the machine does not model"),
    };
    format!(
        "{} experiments; of {} claims of their sources our numbers agree with {}{not_modelled}.",
        reports.len(),
        claims().count(),
        count(Some(true))
    )
}

fn section(report: &Report) -> Markup {
    html! {
        section id=(report.name) {
            h2 { (report.name) }
            p.about { (report.question) }
            p.about.muted { "Source: " (report.source) }
            @for table in &report.outcome.tables { (drawn(table)) }
            @if !report.outcome.charts.is_empty() {
                div.charts { @for chart in &report.outcome.charts { (plotted(chart)) } }
            }
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

fn plotted(chart: &Chart) -> Markup {
    let lines = chart.lines.iter().map(|curve| Line {
        class: curve.class.into(),
        name: curve.name.clone(),
        points: curve.points.clone(),
    });
    let lines: Vec<Line> = lines.collect();
    page::chart_of(&chart.title, &lines, chart.along, &chart.unit)
}

fn told(claim: &Claim) -> Markup {
    html! {
        @match claim.agrees {
            Some(true) => "Agrees: ",
            Some(false) => b { "Differs: " },
            None => i { "Not modelled: " },
        }
        (claim.text) " "
        span.muted { "(ours: " (claim.ours) ")" }
        @if let Some(why) = &claim.why { " " (why) "." }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::{Curve, Outcome};

    #[test]
    fn charts_are_drawn_and_claims_told_as_they_were_judged() {
        let claim = |text| Claim::new(text, true, "1");
        let curve = Curve {
            name: "a curve".into(),
            class: "line c-green",
            points: vec![(1.0, 2.0), (3.0, 4.0)],
        };
        let report = Report {
            name: "x",
            question: "",
            source: "",
            comparable: "",
            medians: Vec::new(),
            outcome: Outcome {
                tables: Vec::new(),
                charts: vec![Chart {
                    title: "a chart".into(),
                    along: "limit, us",
                    unit: "us".into(),
                    lines: vec![curve],
                }],
                claims: vec![
                    claim("one").unless_missing(&["wfe_halts".into()]),
                    claim("two"),
                ],
                notes: Vec::new(),
            },
        };
        let page = html(&[report]);
        for part in [
            "of 2 claims of their sources our numbers agree with 1; 1 are about what the machine does not model",
            "a chart",
            "a curve",
            "<svg",
            "Not modelled: </i>one",
            "Agrees: two",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
