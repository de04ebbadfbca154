// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of experiments as a page.

use maud::{Markup, html};
use page::Line;

use super::outcome::{Chart, Claim, Table};
use super::report::{Report, verdicts};
use super::verdict::Verdict;

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
    format!(
        "{} experiments; {}. What the verdicts mean is in docs/experiments.md.",
        reports.len(),
        verdicts(reports).line()
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
                        th.words { "case" }
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
    let verdict = claim.verdict();
    html! {
        @match verdict {
            Verdict::Agrees => "Agrees: ",
            Verdict::DirectionOnly => i { "Direction only: " },
            Verdict::NoDifference => i { "No difference: " },
            Verdict::Differs => b { "Differs: " },
            Verdict::NotModelled => i { "Not modelled: " },
        }
        (claim.source()) ". "
        span.muted { "Tested: " (claim.what_is_tested()) ". Ours: " (claim.our_numbers()) "." }
        @if let Some(why) = claim.why() { " " (why) "." }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::{Curve, Outcome};

    #[test]
    fn charts_are_drawn_and_claims_told_as_they_were_judged() {
        let claim = |text| Claim::below(text, ("a", 1.0), ("b", 2.0));
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
                    Claim::below("three", ("a", 1.0), ("b", 1.0)).else_because("they are one"),
                ],
                notes: Vec::new(),
            },
        };
        let page = html(&[report]);
        for part in [
            "1 experiments; 3 claims: agrees 1, direction only 0, no difference 1, differs 0, not modelled 1.",
            "a chart",
            "a curve",
            "<svg",
            "Not modelled: </i>one",
            "Agrees: two",
            "No difference: </i>three",
            "Tested: a below b. Ours: a 1.00, b 1.00: +0.00 %.</span> they are one.",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
