// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report of experiments as a page.

use maud::{Markup, html};
use results::Results;
use results::merge::Run;

use super::outcome::{Claim, Table};
use super::report::{Report, verdicts};
use super::verdict::Verdict;

pub fn html(reports: &[Report], command: &str) -> String {
    let body = html! {
        header {
            h1 { "Idle systems: what was published, measured here" }
            p.about { (summary(reports)) }
            p.about { "Again: " code { (command) } }
        }
        @for report in reports { (report_section(report)) }
        (page::machine(&distinct_machines(reports)))
    };
    page::document("Idle systems: what was published, measured here", body)
}

/// Describes how many claims have each verdict.
fn summary(reports: &[Report]) -> String {
    let number = match reports.len() {
        1 => "1 experiment".into(),
        number => format!("{number} experiments"),
    };
    format!(
        "{number}; {}. What the verdicts mean is in docs/experiments.md.",
        verdicts(reports).summary_line()
    )
}

/// Returns each machine once. Most boots differ only in the number of CPUs and in the time.
fn distinct_machines(reports: &[Report]) -> Vec<Run> {
    let mut machines: Vec<(Results, Run)> = Vec::new();
    for run in reports.iter().flat_map(|report| &report.runs) {
        let mut alike = run.results.clone();
        alike.began.clear();
        alike.notes.clear();
        alike.problems.clear();
        (alike.machine.cpus, alike.machine.core_hz) = (0, 0);
        let known = machines.iter().any(|(other, _)| same_origin(other, &alike));
        if !known {
            machines.push((alike, run.clone()));
        }
    }
    machines.into_iter().map(|(_, run)| run).collect()
}

fn same_origin(one: &Results, other: &Results) -> bool {
    one.board == other.board
        && one.machine == other.machine
        && one.fidelity == other.fidelity
        && one.is_of_same_sources(other)
        && one.unit == other.unit
}

fn report_section(report: &Report) -> Markup {
    html! {
        section id=(report.name) {
            h2 { (report.name) }
            p.about { (report.question) }
            p.about { b { (report.verdict_summary()) "." } }
            @for line in report.lacking_properties() { p.about { (line) } }
            ul { @for claim in &report.outcome.claims { li { (claim_item(claim)) } } }
            p.about.muted { "Source: " (report.source) }
            @for table in &report.outcome.tables { (table_html(table)) }
            @if !report.outcome.charts.is_empty() {
                div.charts { @for chart in &report.outcome.charts { (chart.draw(&report.outcome.charts)) } }
            }
            @for line in &report.caveats { p.caution { (line) } }
            @for note in &report.outcome.notes { p.about { (note) } }
            p.about { b { "Comparable: " } (report.comparable) }
        }
    }
}

fn table_html(table: &Table) -> Markup {
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

fn claim_item(claim: &Claim) -> Markup {
    let verdict = claim.verdict();
    html! {
        @match verdict {
            Verdict::Agrees => "Agrees: ",
            Verdict::DirectionOnly => i { "Direction only: " },
            Verdict::NoDifference => i { "No difference: " },
            Verdict::Differs => b { "Differs: " },
            Verdict::NotModelled => i { "Not modelled (our counts: " (claim.verdict_on_counts().shown_word()) "): " },
        }
        (claim.source()) ". "
        span.muted { "Tested: " (claim.what_is_tested()) ". Ours: " (claim.our_numbers()) "." }
        @if let Some(why) = claim.reason_for_difference().filter(|_| verdict != Verdict::NotModelled) { " " (why) "." }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{ByBoot, Chart, Constant, Curve, Outcome};

    #[test]
    fn charts_are_drawn_and_claims_told_as_they_were_judged() {
        let claim = |text| Claim::new_below(text, ("a", Constant(1.0)), ("b", Constant(2.0)));
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
            metric: None,
            medians: Vec::new(),
            runs: Vec::new(),
            caveats: Vec::new(),
            outcome: Outcome {
                tables: Vec::new(),
                charts: vec![Chart::Curves {
                    title: "a chart".into(),
                    along: "limit, us",
                    unit: "us".into(),
                    lines: vec![curve],
                }],
                claims: vec![
                    Claim::new_below(
                        "one",
                        (
                            "a",
                            ByBoot::from(Constant(1.0))
                                .with_missing_probes(["wfe_halts".into()].into()),
                        ),
                        ("b", Constant(2.0)),
                    ),
                    claim("two"),
                    Claim::new_below("three", ("a", Constant(1.0)), ("b", Constant(1.0)))
                        .with_reason("they are one"),
                ],
                notes: Vec::new(),
            },
        };
        let page = html(&[report], "cargo xtask experiment x");
        for part in [
            "1 experiment; 2 of 3 claims can be judged on this board: agrees 1, direction only 0, \
             no difference 1, differs 0; of the other 1, which it does not model, our counts agree with 1 and contradict 0.",
            "a chart",
            "a curve",
            "<svg",
            "Not modelled (our counts: agrees): </i>one",
            "Agrees: two",
            "No difference: </i>three",
            "Tested: a below b by at least 1 %. Ours: a 1.00, b 1.00: +0.00 %.</span> they are one.",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
