// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shows a repeated run, and the spread of its repetitions.

use results::compare::{Compared, Comparison, Figures, LEVEL, Pair, Quantity, Verdict};
use results::merge::{self, Run};
use results::{Cell, Results};

use super::{Scale, Units, cells_not_shown, distinguishing_columns, machine_lines};
use crate::cell_names::CellNames;
use crate::document::Document;
use crate::grid::Column;

/// Returns the whole output.
pub fn repetitions_document(results: &Results) -> Document {
    let mut lines = Document::from(machine_lines(results));
    lines.push(String::new());
    lines.append(medians_of_runs(
        results,
        Scale::for_results(results),
        Naming::Keys,
    ));
    if let [first, ..] = split_repetitions(results).as_slice() {
        lines.extend(cells_not_shown(&first.results));
    }
    let missing = results.incomplete_text();
    lines.extend(missing.map(|missing| format!("incomplete: {missing}")));
    lines
}

/// Returns the repetitions as separate runs.
fn split_repetitions(results: &Results) -> Vec<Run> {
    merge::join_sweeps(vec![Run {
        label: "run".into(),
        results: results.clone(),
        commands: Vec::new(),
    }])
}

/// Returns the number of repetitions and the first repetition, if all repetitions are complete and equal: every cell
/// has the same median, path and exits in each.
pub fn equal_runs(results: &Results) -> Option<(usize, Results)> {
    if results.incomplete || !results.damaged.is_empty() || !results.problems.is_empty() {
        return None;
    }
    let mut runs = split_repetitions(results);
    let found = Comparison::new(&runs, &runs, LEVEL);
    let is_whole = |pair: &Pair<'_>| {
        pair.deciding_figure()
            .is_none_or(|total| total.a.run_count() == runs.len())
    };
    let is_equal = |(_, figure): (&Pair<'_>, &Compared)| {
        let of_screen = matches!(
            figure.quantity,
            Quantity::Median | Quantity::Path | Quantity::Exits
        );
        !of_screen || figure.a.lowest() == figure.a.highest()
    };
    let equal = found.pairs.iter().all(is_whole) && found.cells_and_figures().all(is_equal);
    let count = runs.len();
    (equal && count > 1).then(|| (count, runs.swap_remove(0).results))
}

/// How the rows of a table are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// By a column for each dimension, as in the table of all cells.
    Keys,
    /// By the words of the screen.
    Words,
}

/// Returns the table of medians, with a heading before it and an explanation after it.
pub fn medians_of_runs(results: &Results, scale: Scale, naming: Naming) -> Document {
    let runs = split_repetitions(results);
    // Comparing the runs with themselves shows how small a difference could be detected between this set of runs and
    // another such set.
    let found = Comparison::new(&runs, &runs, LEVEL);
    let has_path = |pair: &Pair<'_>| pair.figure(Quantity::Path).is_some();
    let cells = found.pairs.iter().map(|pair| pair.cell);
    let units = Units::of_cells(cells, results, scale);
    let mut lines = Document::from(vec![
        format!(
            "medians of {} runs in {}{}",
            runs.len(),
            units.common_unit(),
            match found.pairs.iter().any(has_path) {
                false => "",
                true => "; in brackets the path, from the waker's store to the woken task",
            }
        ),
        String::new(),
    ]);
    lines.table(median_columns(&found, results, scale, naming));
    lines.extend(explain_comparison(&found, runs.len(), naming));
    lines
}

fn median_columns(
    found: &Comparison<'_>,
    results: &Results,
    scale: Scale,
    naming: Naming,
) -> Vec<Column> {
    let pairs = found.pairs.iter();
    let measured: Vec<_> = pairs
        .filter_map(|pair| Some((pair, pair.deciding_figure()?)))
        .collect();
    let of = |title, text: &dyn Fn(&Compared, Scale) -> String| {
        let texts = measured
            .iter()
            .map(|(pair, total)| text(total, scale.for_cell(pair.cell)));
        Column::numbers("", title, texts.collect())
    };
    let medians = measured.iter().map(|(pair, total)| {
        let median = |of: &Compared| format_figure(&of.a, of.a.median(), scale.for_cell(pair.cell));
        match pair.figure(Quantity::Path) {
            Some(path) => format!("{} ({})", median(total), median(path)),
            None => median(total),
        }
    });
    let cells = || measured.iter().map(|(pair, _)| pair.cell);
    let mut columns = match naming {
        Naming::Keys => distinguishing_columns(cells().collect()),
        Naming::Words => vec![joined_words(cells().collect())],
    };
    columns.extend(Units::of_cells(cells(), results, scale).unit_column());
    // Most cells are in as many runs as the heading says.
    let first = measured.first().map(|(_, total)| total.a.run_count());
    let differ = measured
        .iter()
        .any(|(_, total)| Some(total.a.run_count()) != first);
    if differ || naming == Naming::Keys {
        columns.push(of("runs", &|total, _| total.a.run_count().to_string()));
    }
    columns.push(Column::numbers("", "median", medians.collect()).result());
    match naming {
        Naming::Keys => columns.extend([
            of("lowest", &|total, scale| {
                format_figure(&total.a, total.a.lowest(), scale)
            }),
            of("highest", &|total, scale| {
                format_figure(&total.a, total.a.highest(), scale)
            }),
        ]),
        Naming::Words => columns.push(of("lowest, highest", &|total, scale| {
            let [low, high] = [total.a.lowest(), total.a.highest()];
            let [low, high] = [low, high].map(|end| scale.show_figure((end as u64, None)));
            match low == high {
                true => "equal".into(),
                false => format!("{low}, {high}"),
            }
        })),
    }
    if !found.exact && naming == Naming::Keys {
        columns.push(of("sees %", &|total, _| match (
            total.verdict,
            total.least_detectable_percent(),
        ) {
            (Verdict::TooFew, _) | (_, None) => "?".into(),
            (_, Some(sees)) => format!("{sees:.1}"),
        }));
    }
    columns
}

fn joined_words(cells: Vec<&Cell>) -> Column {
    let names = CellNames::for_cells(cells.iter().copied());
    let texts = cells.iter().map(|cell| names.name(cell).to_owned());
    Column::words("cell", texts.collect())
}

fn format_figure(of: &Figures, figure: f64, scale: Scale) -> String {
    scale.show_figure((figure as u64, of.bounds(figure)))
}

/// Explains the last column, and reports if there are too few runs for a comparison.
fn explain_comparison(found: &Comparison<'_>, runs: usize, naming: Naming) -> Vec<String> {
    if found.exact {
        return Vec::new();
    }
    let (figures, needed) = (found.tests, found.runs_needed());
    let mut lines = Vec::new();
    let sees = format!(
        "sees: the smallest difference, in per cent of the median, that `compare` sees between two such sets of runs \
         ({}, at {} %, with 80 %)",
        match figures {
            1 => "1 figure".into(),
            _ => format!("{figures} figures"),
        },
        LEVEL * 100.0
    );
    lines.extend((naming == Naming::Keys).then_some(sees));
    lines.extend((runs < needed).then(|| {
        format!("too few runs to be compared: {figures} figures need {needed} of each side: --repeat {needed}")
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen;
    use results::samples::results;

    fn repeated(medians: &[u64], unit: &str) -> Results {
        let runs = medians.iter().enumerate().map(|(number, &median)| {
            let mut results = results();
            results.unit = unit.into();
            let stats = results.cells[1].stats.as_mut().unwrap();
            // 20 samples are enough for a median.
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
        let text = repetitions_document(&repeated(&[1000, 1010, 990, 1005, 995], "ticks"))
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
        let text = repetitions_document(&repeated(&[190, 190], "insns"))
            .terminal(None)
            .join("\n");
        assert!(text.contains("190") && !text.contains("sees"), "{text}");
        let text = repetitions_document(&repeated(&[1000, 1010], "ticks"))
            .terminal(None)
            .join("\n");
        assert!(
            text.contains('?') && text.contains("need 5 of each side: --repeat 5"),
            "{text}"
        );
    }

    #[test]
    fn runs_without_a_difference_have_the_screen_of_one() {
        let screen = |results: &Results| {
            let document = screen::document(results, screen::Rest::Below).unwrap();
            document.terminal(None).join("\n")
        };
        let text = screen(&repeated(&[190, 190], "insns"));
        assert!(
            text.contains("2 runs: each cell has the same median in all."),
            "{text}"
        );
        let text = screen(&repeated(&[190, 191], "insns"));
        assert!(
            text.contains("190, 191") && !text.contains("each cell"),
            "{text}"
        );
        // If a cell is missing from one run, it is not equal in all runs.
        let mut lacking = repeated(&[190, 190], "insns");
        lacking.cells.pop();
        assert!(equal_runs(&lacking).is_none());
        // If the complete run were shown alone, the screen would hide that the other run was cut short.
        let mut cut = repeated(&[190, 190], "insns");
        cut.incomplete = true;
        assert!(equal_runs(&cut).is_none());
    }
}
