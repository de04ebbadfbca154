// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report of all experiments with invented figures, for checking how its page looks.

use super::ALL;
use super::outcome::{ByBoot, Chart, Claim, Constant, Curve, Outcome, Series, Table};
use super::page;
use super::report::Report;

/// Returns a page that contains every element that a page can have.
pub fn page() -> String {
    page::html(&reports().collect::<Vec<_>>(), "cargo xtask experiment all")
}

fn reports() -> impl Iterator<Item = Report> {
    ALL.iter().map(|experiment| Report {
        name: experiment.name,
        question: experiment.question,
        source: experiment.source,
        comparable: experiment.comparable,
        metric: experiment.metric,
        medians: Vec::new(),
        runs: Vec::new(),
        caveats: vec![
            "samples of poll-wfi depend on what this machine does not model: wfe_halts".into(),
        ],
        outcome: outcome(),
    })
}

fn outcome() -> Outcome {
    let columns = [
        "seconds before",
        "seconds after",
        "change",
        "theirs before",
        "theirs after",
        "their change",
        "wake-ups",
        "IPIs",
    ];
    let mut table = Table::new("A table in the shape of the source's", &columns);
    for (name, value) in [("pipe, one CPU", 30.0), ("messaging, all CPUs", 1234.5)] {
        let texts = (1..).take(columns.len());
        let texts = texts.map(|part| format!("{:.1}", value / f64::from(part)));
        table.add_row(name, texts.collect());
    }
    let claim = |missing: &[&str]| {
        let missing = missing.iter().map(|&probe| probe.to_owned());
        let after = ByBoot::from(Constant(1.0)).with_missing_probes(missing.collect());
        Claim::new_below("it takes less", ("after", after), ("before", Constant(2.0)))
    };
    let series = [
        Series::Here(0, "before"),
        Series::Here(1, "after"),
        Series::Published(3, "before"),
    ];
    let bars = Chart::bars(&table, "Bars", "seconds", &series, |_| true);
    Outcome {
        tables: vec![table],
        charts: vec![chart(), bars, chart_below_zero()],
        claims: vec![
            claim(&[]),
            claim(&["wfe_halts"]),
            Claim::new_below(
                "it takes more",
                ("before", Constant(2.0)),
                ("after", Constant(1.0)),
            ),
            Claim::new_below(
                "it is the same",
                ("one", Constant(1.0)),
                ("other", Constant(1.0)),
            ),
        ],
        notes: vec!["all figures of this page are invented".into()],
    }
}

fn chart() -> Chart {
    let classes = [
        "line c-green",
        "line c-red dash",
        "line c-blue dots",
        "line c-purple dash-dots",
    ];
    let curve = |(number, class): (u32, &'static str)| Curve {
        name: format!("way {number} of waiting"),
        class,
        points: [1.0, 10.0, 100.0, 1000.0]
            .map(|limit: f64| (limit, 50.0 * f64::from(number) + limit.sqrt()))
            .to_vec(),
    };
    Chart::Curves {
        title: "A chart".into(),
        along: "limit, µs",
        unit: "µs".into(),
        lines: (1..).zip(classes).map(curve).collect(),
    }
}

/// Returns a bar chart in which most bars are below zero.
fn chart_below_zero() -> Chart {
    let mut table = Table::new("Changes", &["VM", "metal"]);
    table.add_row(
        "messaging between all CPUs",
        vec!["-3 %".into(), "+0.4 %".into()],
    );
    table.add_row("pipe", vec!["-50 %".into(), "-14 %".into()]);
    let series = [Series::Here(0, "VM"), Series::Published(1, "metal")];
    Chart::bars(&table, "Changes", "change, %", &series, |_| true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::page::document::Document;
    use results::goldens::golden;
    use shell::places;

    #[test]
    fn golden_screens() {
        let mut document = Document::default();
        reports()
            .take(1)
            .for_each(|report| report.show(&mut document));
        let screens = [80, 120, 200].map(|width| {
            let lines = document.terminal(Some(width)).join("\n");
            format!("{width} columns\n{lines}\n\n")
        });
        let path = "crates/host/experiments/tests/goldens/experiment.screens.txt";
        golden(&places::inside(path), &screens.concat());
    }
}
