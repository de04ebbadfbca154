// SPDX-License-Identifier: MIT OR Apache-2.0
//! `compare --over-time`: shows the same cells in many runs, from the oldest to the newest, as a table and as a page of
//! curves.

mod moments;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use foreign::Quoted;
use maud::{Markup, html};
use page::Trend;
use page::document::Document;
use page::grid::Column;
use page::scale::{Figure, Scale};
use page::table::distinguishing_columns;
use results::compare::Figures;
use results::merge::Run;
use results::{Cell, keys};

use crate::compare::{CompareArgs, across, format_cells};
use crate::report;
use moments::Moment;
use shell::failure::bad_input;
use shell::output::Output;
use shell::terminal::note;

/// Largest number of charts. The charts show the cells that changed most.
const CHARTS: usize = 24;

/// Largest number of characters in a note.
const LONG: usize = 600;

/// Number of a table's rows that fit on a screen.
const ROWS: usize = 24;

/// A cell with its median at each moment (a run, or the repetitions of a run) that has the cell.
struct CellOverTime<'r> {
    cell: &'r Cell,
    medians: Vec<Option<Figure>>,
}

impl CellOverTime<'_> {
    fn known_medians(&self) -> impl Iterator<Item = u64> {
        self.medians.iter().flatten().map(|(median, _)| *median)
    }

    fn has_changed(&self) -> bool {
        self.known_medians().min() != self.known_medians().max()
    }

    /// Returns the ratio of the largest median to the smallest.
    fn change_ratio(&self) -> f64 {
        let [least, most] = [self.known_medians().min(), self.known_medians().max()]
            .map(|median| median.unwrap_or(0) as f64);
        most / least.max(1.0)
    }
}

/// Runs `compare --over-time`.
pub fn over_time(args: &CompareArgs) -> Result<()> {
    let mut moments = moments::read_moments(&args.runs)?;
    // Sorted as texts, these times are in chronological order.
    moments.sort_by(|a, b| a.first_results().began.cmp(&b.first_results().began));
    let [first, .., last] = moments.as_slice() else {
        bad_input!(
            "{} run is not enough; keep more of them with `run --save NAME`, or name their folders",
            moments.len()
        );
    };
    for moment in &moments {
        if moment.first_results().unit != first.first_results().unit {
            bad_input!(
                "{} counts {}, {} counts {}: name runs of one unit",
                first.label,
                first.first_results().unit,
                moment.label,
                moment.first_results().unit
            );
        }
    }
    if cells_over_time(&moments).is_empty() {
        bad_input!(
            "{} runs, {} to {}, have no cell in common{}; run them with the same options, or name others",
            moments.len(),
            first.label,
            last.label,
            apart_note(first, &moments[1..])
        );
    }
    for alone in take_lone(&mut moments) {
        let Moment { label, .. } = &alone;
        let apart = apart_note(&alone, &moments);
        note!("{label} is left out: no other run has one of its cells{apart}");
    }
    let rows = cells_over_time(&moments);
    let out = args
        .out
        .as_ref()
        .map(|out| Output::claim("--out", out))
        .transpose()?;
    args.format.claim()?;
    let shown = document(&moments, &rows, args.format.is_whole());
    args.format.show_document(&shown)?;
    report::write_page(&page(&moments, &rows), out.zip(args.out.as_deref()))
}

/// Names, in brackets, the options in which a moment's cells differ from all other moments' cells.
fn apart_note(moment: &Moment, others: &[Moment]) -> String {
    let others: Vec<Run> = others.iter().flat_map(|one| one.runs.clone()).collect();
    let apart = across::separating_keys(&moment.runs, &others);
    let apart = apart.map(|(key, one, other)| format!("{key} {one}, not {other}"));
    match apart.collect::<Vec<_>>() {
        none if none.is_empty() => String::new(),
        some => format!(" ({})", some.join("; ")),
    }
}

/// Describes, for each moment, the options that have one value in all of its cells, and different values at different
/// moments.
fn differing_options(moments: &[Moment]) -> Vec<String> {
    let words: Vec<Vec<Option<String>>> = keys()
        .map(|key| {
            let of = |moment: &Moment| across::common_word(&moment.runs, key);
            moments.iter().map(of).collect()
        })
        .collect();
    let differs = |words: &&Vec<Option<String>>| {
        let known: BTreeSet<&String> = words.iter().flatten().collect();
        known.len() > 1
    };
    let of = |place: usize| {
        let named = keys().zip(&words).filter(|(_, words)| differs(words));
        let named =
            named.filter_map(|(key, words)| Some(format!(", {key} {}", words[place].as_ref()?)));
        named.collect()
    };
    (0..moments.len()).map(of).collect()
}

/// Removes the moments that have no cell in common with any other moment, and returns them.
fn take_lone(moments: &mut Vec<Moment>) -> Vec<Moment> {
    let rows = cells_over_time(moments);
    let has = |place: usize| rows.iter().any(|row| row.medians[place].is_some());
    let has: Vec<bool> = (0..moments.len()).map(has).collect();
    let mut has = has.into_iter();
    let left_out = moments.extract_if(.., |_| !has.next().unwrap_or(true));
    left_out.collect()
}

/// Returns the cells that were measured at two moments or more, in the order of their first appearance.
fn cells_over_time(moments: &[Moment]) -> Vec<CellOverTime<'_>> {
    let mut rows: Vec<Vec<Vec<&Cell>>> = Vec::new();
    let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for (number, moment) in moments.iter().enumerate() {
        let cells = moment.runs.iter().flat_map(|run| &run.results.cells);
        for cell in cells.filter(|cell| cell.stats.is_some()) {
            let place = *known.entry(cell.key()).or_insert_with(|| {
                rows.push(vec![Vec::new(); moments.len()]);
                rows.len() - 1
            });
            rows[place][number].push(cell);
        }
    }
    let rows = rows.iter().filter_map(|cells| cell_over_time(cells));
    rows.filter(|row| row.known_medians().count() > 1).collect()
}

/// Returns a cell at all moments. `None` if it was measured at none.
fn cell_over_time<'r>(cells: &[Vec<&'r Cell>]) -> Option<CellOverTime<'r>> {
    let cell = cells.iter().flatten().next()?;
    let median = |cells: &Vec<&Cell>| Some(Figures::collect_medians(cells)?.rounded_median());
    Some(CellOverTime {
        cell,
        medians: cells.iter().map(median).collect(),
    })
}

/// Names the moments in charts, by commit if the commits differ.
fn short_names(moments: &[Moment]) -> Vec<String> {
    let commits: Vec<String> = moments.iter().map(Moment::commit).collect();
    let distinct = commits.iter().collect::<BTreeSet<_>>();
    match distinct.len() == moments.len() && !distinct.contains(&String::new()) {
        true => commits,
        false => moments.iter().map(|moment| moment.label.clone()).collect(),
    }
}

/// Returns the document: a sentence, the runs and the table. With `whole`, the table has all cells, else only those
/// that changed, with the largest change first.
fn document(moments: &[Moment], rows: &[CellOverTime<'_>], whole: bool) -> Document {
    let scale = Scale::for_results(moments[0].first_results());
    let (mut changed, same): (Vec<&CellOverTime<'_>>, Vec<&CellOverTime<'_>>) =
        rows.iter().partition(|row| row.has_changed());
    changed.sort_by(|one, other| other.change_ratio().total_cmp(&one.change_ratio()));
    let mut document = Document::from(vec![
        format!(
            "{} of {} cells changed over {} runs; medians in {}.{}",
            changed.len(),
            rows.len(),
            moments.len(),
            scale.unit_of_results(moments[0].first_results()),
            single_note(moments, rows.len()),
        ),
        String::new(),
    ]);
    let all_notes = |moment: &Moment| -> Vec<String> {
        let runs = moment.runs.iter();
        runs.flat_map(|run| run.results.notes.clone()).collect()
    };
    let differing = differing_options(moments);
    for ((number, moment), own) in (1..).zip(moments).zip(differing) {
        document.push(format!("{number}: {}{own}", moment.describe()));
        let of_all = |note: &String| {
            moments
                .iter()
                .all(|moment| all_notes(moment).contains(note))
        };
        let own: BTreeSet<String> = all_notes(moment).into_iter().collect();
        let own = own.into_iter().filter(|note| !of_all(note));
        document.extend(own.map(|note| format!("   {}", Quoted::up_to(LONG, &note))));
    }
    document.push(String::new());
    if whole {
        let all: Vec<&CellOverTime<'_>> = changed.into_iter().chain(same).collect();
        let words = distinguishing_columns(all.iter().map(|row| row.cell).collect());
        document.table(
            words
                .into_iter()
                .chain(median_columns(&all, scale))
                .collect(),
        );
        document.explain_rounding();
        return document;
    }
    let more = changed.split_off(changed.len().min(ROWS)).len();
    if !changed.is_empty() {
        let words = [cell_titles(&changed)].into_iter();
        document.table(words.chain(median_columns(&changed, scale)).collect());
    }
    document.extend((more > 0).then(|| format!("and {more} more that changed: --wide")));
    document.extend(
        (!same.is_empty())
            .then(|| format!("{} without a change: --wide", format_cells(same.len()))),
    );
    document.explain_rounding();
    document
}

/// Counts the cells that only one run has, in addition to the `shown` cells.
fn single_note(moments: &[Moment], shown: usize) -> String {
    let runs = moments.iter().flat_map(|moment| &moment.runs);
    let cells = runs.flat_map(|run| &run.results.cells);
    let all: BTreeSet<Vec<String>> = cells
        .filter(|cell| cell.stats.is_some())
        .map(Cell::key)
        .collect();
    match all.len() - shown {
        0 => String::new(),
        1 => " A further cell is in one run alone.".into(),
        more => format!(" {more} further cells are in one run each."),
    }
}

/// Returns a column for each run. A narrow terminal shows only the first and the last.
fn median_columns(rows: &[&CellOverTime<'_>], scale: Scale) -> Vec<Column> {
    let runs = rows.first().map_or(0, |row| row.medians.len());
    let column = |run: usize| {
        let texts = rows.iter().map(|row| match row.medians[run] {
            Some((median, bounds)) => scale.for_cell(row.cell).show_figure((median, bounds)),
            None => "-".into(),
        });
        let column = Column::numbers("run", &(run + 1).to_string(), texts.collect());
        match run == 0 || run + 1 == runs {
            true => column.result(),
            false => column,
        }
    };
    (0..runs).map(column).collect()
}

fn page(moments: &[Moment], rows: &[CellOverTime<'_>]) -> String {
    let mut changed: Vec<&CellOverTime<'_>> = rows.iter().filter(|row| row.has_changed()).collect();
    changed.sort_by(|one, other| other.change_ratio().total_cmp(&one.change_ratio()));
    let scale = Scale::for_results(moments[0].first_results());
    let names = short_names(moments);
    let runs: Vec<Run> = moments
        .iter()
        .flat_map(|moment| moment.runs.clone())
        .collect();
    let titles = cell_titles(&changed);
    let body = html! {
        h1 { "The same cells in " (moments.len()) " runs" }
        p.headline {
            (changed.len()) " of " (rows.len()) " cells changed"
            @if changed.len() > CHARTS { "; charts are of the " (CHARTS) " that changed most" }
            ". Medians."
        }
        @if !changed.is_empty() {
            section id="trends" {
                h2 { "Cells that changed" }
                p.about { "An axis spans 5 % of the largest value to each side at least." }
                div.charts {
                    @for (row, title) in changed.iter().zip(titles.texts()).take(CHARTS) {
                        (trend_chart(row, title, (moments, &names), scale))
                    }
                }
            }
        }
        section id="cells" { h2 { "All runs and cells" } (document(moments, rows, true).html()) }
        (page::machine(&runs))
    };
    page::document("Over time", body)
}

/// Names the cells by the workload and the dimensions in which they differ.
fn cell_titles(rows: &[&CellOverTime<'_>]) -> Column {
    let cells: Vec<&Cell> = rows.iter().map(|row| row.cell).collect();
    let workloads = cells.iter().map(|cell| cell.table_key()).collect();
    let mut columns = vec![Column::words("workload", workloads)];
    let others = distinguishing_columns(cells).into_iter();
    columns.extend(others.filter(|column| column.title() != "workload"));
    Column::join_columns("cell", &columns, " ")
}

/// Returns the chart of a cell over time.
fn trend_chart(
    row: &CellOverTime<'_>,
    title: &str,
    (moments, names): (&[Moment], &[String]),
    scale: Scale,
) -> Markup {
    let scale = scale.for_cell(row.cell);
    let points = row.medians.iter().enumerate();
    let points = points.filter_map(|(run, median)| Some((run, scale.convert_value((*median)?.0))));
    let trend = Trend {
        points: points.collect(),
    };
    let [first, last] =
        [trend.points.first(), trend.points.last()].map(|point| point.map_or(0.0, |point| point.1));
    let by = match first {
        0.0 => String::new(),
        first => format!("{:+.1} %", (last - first) * 100.0 / first),
    };
    let unit = scale.unit_of_cells(moments[0].first_results(), &[row.cell]);
    page::chart_of_trend(title, &by, &trend, names, unit)
}

/// Returns a sample page of `runs`, with different medians in each.
pub fn sample_page(runs: &[Run]) -> String {
    let first = runs.iter().find(|run| run.results.cells.len() > 1);
    let later = |(number, run): (u64, &Run)| {
        let mut run = run.clone();
        run.results.began = format!("2026-01-0{number}T10:00:00Z");
        for (place, cell) in (1..).zip(&mut run.results.cells) {
            cell.critical = None;
            if let Some(stats) = &mut cell.stats {
                stats.p50 += number * place * 7 % 40;
            }
        }
        run
    };
    let runs = (1..).zip(first.into_iter().cycle().take(6)).map(later);
    let moments: Vec<Moment> = runs.map(Moment::of_one_run).collect();
    page(&moments, &cells_over_time(&moments))
}

#[cfg(test)]
mod tests;
