// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a repeated run, and the spread of its repetitions.

use results::Results;
use results::compare::{Compared, Comparison, Figures, LEVEL, Pair, Quantity, Verdict};
use results::merge::{self, Run};

use super::{Scale, Units, machine, names, not_shown};
use crate::document::Document;
use crate::grid::Column;

/// Returns the whole output.
pub fn document(results: &Results) -> Document {
    let mut lines = Document::from(machine(results));
    lines.push(String::new());
    lines.append(medians_of_runs(results, Scale::of(results)));
    if let [first, ..] = runs(results).as_slice() {
        lines.extend(not_shown(&first.results));
    }
    let missing = results.incomplete_text();
    lines.extend(missing.map(|missing| format!("incomplete: {missing}")));
    lines
}

/// Returns the repetitions as separate runs.
fn runs(results: &Results) -> Vec<Run> {
    merge::runs(vec![Run {
        label: "run".into(),
        results: results.clone(),
        commands: Vec::new(),
    }])
}

/// Returns the table of medians, with a heading before it and an explanation after it.
pub fn medians_of_runs(results: &Results, scale: Scale) -> Document {
    let runs = runs(results);
    // A comparison of the runs with themselves shows the smallest difference from another such set of runs that
    // would be detected.
    let found = Comparison::new(&runs, &runs, LEVEL);
    let has_path = |pair: &Pair<'_>| pair.figure(Quantity::Path).is_some();
    let cells = found.pairs.iter().map(|pair| pair.cell);
    let units = Units::of(cells, results, scale);
    let mut lines = Document::from(vec![
        format!(
            "medians of {} runs in {}{}",
            runs.len(),
            units.shown(),
            match found.pairs.iter().any(has_path) {
                false => "",
                true => "; in brackets the path, from the store that wakes to the woken task",
            }
        ),
        String::new(),
    ]);
    lines.table(columns(&found, results, scale));
    lines.extend(what_is_seen(&found, runs.len()));
    lines
}

fn columns(found: &Comparison<'_>, results: &Results, scale: Scale) -> Vec<Column> {
    let pairs = found.pairs.iter();
    let measured: Vec<_> = pairs
        .filter_map(|pair| Some((pair, pair.total()?)))
        .collect();
    let of = |title, text: &dyn Fn(&Compared, Scale) -> String| {
        let texts = measured
            .iter()
            .map(|(pair, total)| text(total, scale.of_cell(pair.cell)));
        Column::numbers("", title, texts.collect())
    };
    let medians = measured.iter().map(|(pair, total)| {
        let median = |of: &Compared| figure(&of.a, of.a.median(), scale.of_cell(pair.cell));
        match pair.figure(Quantity::Path) {
            Some(path) => format!("{} ({})", median(total), median(path)),
            None => median(total),
        }
    });
    let mut columns = names(measured.iter().map(|(pair, _)| pair.cell).collect());
    let cells = measured.iter().map(|(pair, _)| pair.cell);
    columns.extend(Units::of(cells, results, scale).column());
    columns.extend([
        of("runs", &|total, _| total.a.runs().to_string()),
        Column::numbers("", "median", medians.collect()).result(),
        of("lowest", &|total, scale| {
            figure(&total.a, total.a.low(), scale)
        }),
        of("highest", &|total, scale| {
            figure(&total.a, total.a.high(), scale)
        }),
    ]);
    if !found.exact {
        columns.push(of(
            "sees %",
            &|total, _| match (total.verdict, total.sees()) {
                (Verdict::TooFew, _) | (_, None) => "?".into(),
                (_, Some(sees)) => format!("{sees:.1}"),
            },
        ));
    }
    columns
}

fn figure(of: &Figures, figure: f64, scale: Scale) -> String {
    scale.show_figure((figure as u64, of.bounds(figure)))
}

/// Explains the last column, and how many runs a difference takes.
fn what_is_seen(found: &Comparison<'_>, runs: usize) -> Vec<String> {
    if found.exact {
        return Vec::new();
    }
    let (figures, needed) = (found.tests, found.runs_needed());
    let mut lines = vec![format!(
        "sees: the smallest difference, in per cent of the median, that `compare` sees between two such sets of runs \
         ({}, at {} %, with 80 %)",
        match figures {
            1 => "1 figure".into(),
            _ => format!("{figures} figures"),
        },
        LEVEL * 100.0
    )];
    lines.extend((runs < needed).then(|| {
        format!("too few runs to be compared: {figures} figures need {needed} of each side: --repeat {needed}")
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::samples::results;

    fn repeated(medians: &[u64], unit: &str) -> Results {
        let runs = medians.iter().enumerate().map(|(number, &median)| {
            let mut results = results();
            results.unit = unit.into();
            let stats = results.cells[1].stats.as_mut().unwrap();
            // A median needs this many samples.
            (stats.count, stats.p50) = (20, median);
            Run {
                label: format!("run {}", number + 1),
                results,
                commands: Vec::new(),
            }
        });
        merge::into_one(&runs.collect::<Vec<_>>())
    }

    #[test]
    fn a_cell_is_a_row_with_its_spread() {
        let text = document(&repeated(&[1000, 1010, 990, 1005, 995], "ticks"))
            .terminal(None)
            .join("\n");
        assert!(text.contains("medians of 5 runs in ns"), "{text}");
        let row = text.lines().find(|line| line.starts_with("wfi")).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[..5], ["wfi", "5", "1,000", "990", "1,010"], "{text}");
        assert!(
            words[5]
                .parse::<f64>()
                .is_ok_and(|sees| sees > 1.0 && sees < 3.0),
            "{text}"
        );
        assert!(!text.contains("too few runs"), "{text}");
    }

    #[test]
    fn what_repeats_needs_no_spread_and_few_runs_show_none() {
        let text = document(&repeated(&[190, 190], "insns"))
            .terminal(None)
            .join("\n");
        assert!(text.contains("190") && !text.contains("sees"), "{text}");
        let text = document(&repeated(&[1000, 1010], "ticks"))
            .terminal(None)
            .join("\n");
        assert!(
            text.contains('?') && text.contains("need 5 of each side: --repeat 5"),
            "{text}"
        );
    }
}
