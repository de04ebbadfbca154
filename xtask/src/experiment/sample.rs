// SPDX-License-Identifier: MIT OR Apache-2.0
//! A report of all experiments with figures that nothing has measured, to look at its page.

use super::ALL;
use super::outcome::{Chart, Claim, Curve, Outcome, Table};
use super::page;
use super::report::Report;

/// The page, with all that one can have.
pub fn page() -> String {
    let reports = ALL.iter().map(|experiment| Report {
        name: experiment.name,
        question: experiment.question,
        source: experiment.source,
        comparable: experiment.comparable,
        medians: Vec::new(),
        outcome: outcome(),
    });
    page::html(&reports.collect::<Vec<_>>())
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
        table.row(name, texts.collect());
    }
    let claim = || Claim::below("it takes less", ("after", 1.0), ("before", 2.0));
    Outcome {
        tables: vec![table],
        charts: vec![chart()],
        claims: vec![
            claim(),
            claim().unless_missing(&["wfe_halts".into()]),
            Claim::below("it takes more", ("before", 2.0), ("after", 1.0)),
            Claim::below("it is the same", ("one", 1.0), ("other", 1.0)),
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
    Chart {
        title: "A chart".into(),
        along: "limit, µs",
        unit: "µs".into(),
        lines: (1..).zip(classes).map(curve).collect(),
    }
}
