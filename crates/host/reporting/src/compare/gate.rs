// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gate that B has to pass.

use anyhow::Result;
use results::Results;
use results::compare::{Comparison, Differs, Lost, Quantity, Verdict};
use results::merge::Run;

use super::side::{Side, parse_percent};

/// By how many per cent B may be worse, 0 by default.
#[derive(Clone, Copy, Debug)]
pub struct Gate(f64);

/// Whether B passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    Passed,
    /// B fails. The text is the reason.
    Failed(String),
    /// These runs can't decide whether B passes. The text is the reason, with a remedy.
    NotTried(String),
}

impl Gate {
    /// Reads a percentage.
    pub fn parse(text: &str) -> Result<Self> {
        parse_percent("--fail-if-worse", text).map(Self)
    }

    /// Judges B. If more than the code differs, no verdict on the code is possible. Reports worse or missing cells
    /// before it requests more runs, which could not make these cells better.
    pub fn judge(self, found: &Comparison<'_>, differs: &[&Differs], b: &Side) -> Judgement {
        if !differs.is_empty() {
            let mut words: Vec<&str> = differs.iter().map(|differs| differs.aspect).collect();
            words.dedup();
            return Judgement::NotTried(format!(
                "A and B were not measured alike: {} (see above); measure them so, or --allow {}",
                differs
                    .iter()
                    .map(|differs| differs.what.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
                words.join(",")
            ));
        }
        let reasons = [
            self.worse_quantities(found),
            lost_cells(found),
            repeated_cell(found),
            unfinished_run(b),
        ];
        let reasons: Vec<String> = reasons.into_iter().flatten().collect();
        if !reasons.is_empty() {
            return Judgement::Failed(reasons.join("; "));
        }
        match too_few_runs(found) {
            Some(why) => Judgement::NotTried(why),
            None => Judgement::Passed,
        }
    }

    /// Names the quantities that are worse in B by more than the gate allows.
    fn worse_quantities(self, found: &Comparison<'_>) -> Option<String> {
        let told = Quantity::ALL.iter().filter_map(|&quantity| {
            let figures = found.cells_and_figures().map(|(_, figure)| figure);
            let worse = figures.filter(|figure| {
                let is_worse =
                    figure.verdict == Verdict::Worse && figure.percent_difference() > self.0;
                is_worse && figure.quantity == quantity
            });
            let percents: Vec<f64> = worse.map(|figure| figure.percent_difference()).collect();
            let most = percents.iter().copied().fold(0.0, f64::max);
            let cells = format_cells(percents.len());
            let name = quantity.name();
            (!percents.is_empty()).then(|| match most.is_finite() {
                true => format!(
                    "{name} of {cells} worse by more than {} %, up to {most:.1} %",
                    self.0
                ),
                false => format!("{name} of {cells} worse, from none"),
            })
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

pub fn format_cells(count: usize) -> String {
    match count {
        1 => "1 cell".into(),
        _ => format!("{count} cells"),
    }
}

/// Formats a number of runs with its noun.
pub fn format_runs(count: usize) -> String {
    match count {
        1 => "1 run".into(),
        _ => format!("{count} runs"),
    }
}

/// Counts the cells that A measured and B did not.
fn lost_cells(found: &Comparison<'_>) -> Option<String> {
    let lost = found.lost.len();
    (lost > 0).then(|| format!("B has lost {}", format_cells(lost)))
}

/// Names a cell that a run of B has twice, because it is not known which one counts.
fn repeated_cell(found: &Comparison<'_>) -> Option<String> {
    let first = found.again.first()?;
    let more = match found.again.len() {
        1 => String::new(),
        some => format!(" and {} more", some - 1),
    };
    let Lost { cell, has, of, .. } = first;
    Some(format!(
        "B has {}{more} {has} times in {}",
        cell.title(),
        format_runs(*of)
    ))
}

/// Names a run of B that was cut short, is damaged or contradicts itself. The run may have lost cells that A lacks
/// too.
fn unfinished_run(b: &Side) -> Option<String> {
    let not_whole = |run: &&Run| {
        let Results {
            damaged, problems, ..
        } = &run.results;
        run.results.incomplete || !damaged.is_empty() || !problems.is_empty()
    };
    let count = b.runs.iter().filter(not_whole).count();
    (count > 0).then(|| {
        format!(
            "{count} of {} runs of B incomplete, damaged or with problems",
            b.runs.len()
        )
    })
}

/// Reports too few runs, or samples, for a verdict.
pub fn too_few_runs(found: &Comparison<'_>) -> Option<String> {
    // Without any figures, B does not pass.
    if found.cells_and_figures().next().is_none() {
        return Some("no cell was measured on both sides; run both with the same options".into());
    }
    let unsupported = found.count_verdict(Verdict::FewSamples);
    if unsupported > 0 {
        return Some(format!(
            "too few samples for a median, which takes 20: {}; --iterations and --cell-ms give more",
            format_cells(unsupported)
        ));
    }
    let few = found
        .cells_and_figures()
        .filter(|(_, figure)| figure.verdict == Verdict::TooFew);
    let least = few
        .map(|(_, figure)| figure.a.run_count().min(figure.b.run_count()))
        .min()?;
    let needed = found.runs_needed();
    Some(format!(
        "too few runs: {} ({} tests at {} %) need {needed} runs of each side, and there are {least}; \
         run each with --repeat {needed}",
        format_cells(found.pairs.len()),
        found.tests,
        found.level * 100.0
    ))
}
