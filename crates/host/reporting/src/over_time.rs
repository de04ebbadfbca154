// SPDX-License-Identifier: MIT OR Apache-2.0
//! `compare --over-time`: shows the same cells in many runs, from the oldest to the newest, as a table and as a page of
//! curves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use foreign::Quoted;
use maud::{Markup, html};
use page::Trend;
use page::document::Document;
use page::grid::Column;
use page::scale::{Figure, Scale};
use page::table::names;
use results::merge::{self, Run};
use results::{Build, Cell};

use crate::compare::{CompareArgs, cells};
use crate::report;
use crate::report::inputs::Input;
use crate::saved_runs;
use shell::failure::bad_input;
use shell::output::Output;
use shell::terminal::note;

/// Largest number of charts. They show the cells that changed most.
const CHARTS: usize = 24;

/// Largest number of characters in a note.
const LONG: usize = 600;

/// Number of a table's rows that fit a screen.
const ROWS: usize = 24;

/// A cell in all runs, with its median in each run that has it.
struct CellOverTime<'r> {
    cell: &'r Cell,
    medians: Vec<Option<Figure>>,
}

impl CellOverTime<'_> {
    fn known(&self) -> impl Iterator<Item = u64> {
        self.medians.iter().flatten().map(|(median, _)| *median)
    }

    fn changed(&self) -> bool {
        self.known().min() != self.known().max()
    }

    /// Returns the ratio of the largest median to the least.
    fn change(&self) -> f64 {
        let [least, most] =
            [self.known().min(), self.known().max()].map(|median| median.unwrap_or(0) as f64);
        most / least.max(1.0)
    }
}

/// Shows the runs.
pub fn over_time(args: &CompareArgs) -> Result<()> {
    let mut runs = runs(&args.runs)?;
    // These times sort in order as text.
    runs.sort_by(|a, b| a.results.began.cmp(&b.results.began));
    let [first, .., last] = runs.as_slice() else {
        bad_input!(
            "{} run is not enough; keep more of them with `run --save NAME`, or name their folders",
            runs.len()
        );
    };
    for run in &runs {
        if run.results.unit != first.results.unit {
            bad_input!(
                "{} counts {}, {} counts {}: name runs of one unit",
                first.label,
                first.results.unit,
                run.label,
                run.results.unit
            );
        }
    }
    let rows = rows(&runs);
    if rows.is_empty() {
        bad_input!(
            "{} runs, {} to {}, have no cell in common; run them with the same options, or name others",
            runs.len(),
            first.label,
            last.label
        );
    }
    let out = args
        .out
        .as_ref()
        .map(|out| Output::claim("--out", out))
        .transpose()?;
    args.format.claim()?;
    let shown = document(&runs, &rows, args.format.is_whole());
    args.format.show_document(&shown)?;
    report::keep(&page(&runs, &rows), out.zip(args.out.as_deref()))
}

/// Reads the runs in `folders`.
fn runs(folders: &[PathBuf]) -> Result<Vec<Run>> {
    let named = match folders {
        [] => vec![saved_runs::all()],
        some => some.iter().map(|folder| saved_runs::find(folder)).collect(),
    };
    let mut runs = Vec::new();
    for folder in named {
        for place in places_in(&folder) {
            let input = Input::read(&place)?;
            let complaints = input.complaints();
            complaints.iter().for_each(|line| note!("warning: {line}"));
            runs.push(input.into_run());
        }
    }
    Ok(merge::boots(runs))
}

/// Returns `folder` if it is a run, or else the runs in it, sorted by name.
fn places_in(folder: &Path) -> Vec<PathBuf> {
    let has = |place: &Path| place.join("results.json").is_file();
    let is_json = |place: &Path| {
        place
            .extension()
            .is_some_and(|extension| extension == "json")
    };
    if has(folder) || !folder.is_dir() {
        return vec![folder.to_owned()];
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let places = entries.map(|entry| entry.path());
    let mut places: Vec<PathBuf> = places
        .filter(|place| has(place) || is_json(place))
        .collect();
    places.sort();
    places
}

/// Returns the cells that at least two runs have measured, in the order of their first appearance.
fn rows(runs: &[Run]) -> Vec<CellOverTime<'_>> {
    let mut rows: Vec<Vec<Option<&Cell>>> = Vec::new();
    let mut known: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for (number, run) in runs.iter().enumerate() {
        for cell in run.results.cells.iter().filter(|cell| cell.stats.is_some()) {
            let place = *known.entry(cell.key()).or_insert_with(|| {
                rows.push(vec![None; runs.len()]);
                rows.len() - 1
            });
            rows[place][number] = Some(cell);
        }
    }
    rows.retain(|cells| cells.iter().flatten().count() > 1);
    rows.iter().filter_map(|cells| row(cells)).collect()
}

/// Returns a cell in all runs. `None` if no run has it.
fn row<'r>(cells: &[Option<&'r Cell>]) -> Option<CellOverTime<'r>> {
    let cell = cells.iter().flatten().next()?;
    let median = |cell: &&Cell| cell.stats.map(|stats| (stats.p50, Some(stats.bounds())));
    Some(CellOverTime {
        cell,
        medians: cells
            .iter()
            .map(|cell| cell.as_ref().and_then(median))
            .collect(),
    })
}

/// Returns the short commit of a run, if known.
fn commit(run: &Run) -> String {
    let build = run.results.build.as_ref();
    build.map(Build::short_tree).unwrap_or_default()
}

/// Names the runs in charts, by commit if the commits differ.
fn short_names(runs: &[Run]) -> Vec<String> {
    let commits: Vec<String> = runs.iter().map(commit).collect();
    let distinct = commits.iter().collect::<BTreeSet<_>>();
    match distinct.len() == runs.len() && !distinct.contains(&String::new()) {
        true => commits,
        false => runs.iter().map(|run| run.label.clone()).collect(),
    }
}

/// Returns the sentence, the runs and the table. With `whole`, the table has all cells, else only those that changed,
/// with the largest change first.
fn document(runs: &[Run], rows: &[CellOverTime<'_>], whole: bool) -> Document {
    let scale = Scale::of(&runs[0].results);
    let (mut changed, same): (Vec<&CellOverTime<'_>>, Vec<&CellOverTime<'_>>) =
        rows.iter().partition(|row| row.changed());
    changed.sort_by(|one, other| other.change().total_cmp(&one.change()));
    let mut document = Document::from(vec![
        format!(
            "{} of {} cells changed over {} runs; medians in {}.",
            changed.len(),
            rows.len(),
            runs.len(),
            scale.unit(&runs[0].results),
        ),
        String::new(),
    ]);
    for (number, run) in (1..).zip(runs) {
        let results = &run.results;
        document.push(format!(
            "{number}: {}, {} ({}), {}, {}",
            run.label,
            results.board,
            results.machine.cpu,
            results.began,
            commit(run)
        ));
        let of_all = |note: &&String| runs.iter().all(|run| run.results.notes.contains(note));
        let own = results.notes.iter().filter(|note| !of_all(note));
        document.extend(own.map(|note| format!("   {}", Quoted::up_to(LONG, note))));
    }
    document.push(String::new());
    if whole {
        let all: Vec<&CellOverTime<'_>> = changed.into_iter().chain(same).collect();
        let words = names(all.iter().map(|row| row.cell).collect());
        document.table(words.into_iter().chain(medians(&all, scale)).collect());
        return document;
    }
    let more = changed.split_off(changed.len().min(ROWS)).len();
    if !changed.is_empty() {
        let words = [titles(&changed)].into_iter();
        document.table(words.chain(medians(&changed, scale)).collect());
    }
    document.extend((more > 0).then(|| format!("and {more} more that changed: --wide")));
    document.extend(
        (!same.is_empty()).then(|| format!("{} without a change: --wide", cells(same.len()))),
    );
    document
}

/// Returns a column for each run. A narrow terminal shows only the first and the last.
fn medians(rows: &[&CellOverTime<'_>], scale: Scale) -> Vec<Column> {
    let runs = rows.first().map_or(0, |row| row.medians.len());
    let column = |run: usize| {
        let texts = rows.iter().map(|row| match row.medians[run] {
            Some((median, bounds)) => scale.of_cell(row.cell).show_figure((median, bounds)),
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

fn page(runs: &[Run], rows: &[CellOverTime<'_>]) -> String {
    let mut changed: Vec<&CellOverTime<'_>> = rows.iter().filter(|row| row.changed()).collect();
    changed.sort_by(|one, other| other.change().total_cmp(&one.change()));
    let scale = Scale::of(&runs[0].results);
    let names = short_names(runs);
    let titles = titles(&changed);
    let body = html! {
        h1 { "The same cells in " (runs.len()) " runs" }
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
                        (trend(row, title, (runs, &names), scale))
                    }
                }
            }
        }
        section id="cells" { h2 { "All runs and cells" } (document(runs, rows, true).html()) }
        (page::machine(runs))
    };
    page::document("Over time", body)
}

/// Names the cells by the workload and the dimensions in which they differ.
fn titles(rows: &[&CellOverTime<'_>]) -> Column {
    let cells: Vec<&Cell> = rows.iter().map(|row| row.cell).collect();
    let workloads = cells.iter().map(|cell| cell.table()).collect();
    let mut columns = vec![Column::words("workload", workloads)];
    let others = names(cells).into_iter();
    columns.extend(others.filter(|column| column.title() != "workload"));
    Column::joined("cell", &columns, " ")
}

/// The chart of a cell.
fn trend(
    row: &CellOverTime<'_>,
    title: &str,
    (runs, names): (&[Run], &[String]),
    scale: Scale,
) -> Markup {
    let scale = scale.of_cell(row.cell);
    let points = row.medians.iter().enumerate();
    let points = points.filter_map(|(run, median)| Some((run, scale.value((*median)?.0))));
    let trend = Trend {
        points: points.collect(),
    };
    let [first, last] =
        [trend.points.first(), trend.points.last()].map(|point| point.map_or(0.0, |point| point.1));
    let by = match first {
        0.0 => String::new(),
        first => format!("{:+.1} %", (last - first) * 100.0 / first),
    };
    let unit = scale.unit_of(&runs[0].results, &[row.cell]);
    page::trend_of(title, &by, &trend, names, unit)
}

/// Returns a sample page of `runs`, with other medians in each.
pub fn sample(runs: &[Run]) -> String {
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
    let runs: Vec<Run> = (1..)
        .zip(first.into_iter().cycle().take(6))
        .map(later)
        .collect();
    page(&runs, &rows(&runs))
}

#[cfg(test)]
mod tests {
    use results::samples;

    use super::*;

    fn run(label: &str, began: &str, p50: u64) -> Run {
        let mut results = samples::results();
        results.began = began.into();
        for cell in &mut results.cells {
            if let Some(stats) = &mut cell.stats {
                stats.p50 = p50;
            }
        }
        Run {
            label: label.into(),
            results,
            commands: Vec::new(),
        }
    }

    #[test]
    fn a_cell_is_followed_through_runs() {
        let mut missing = run("c", "2026-03", 7);
        missing.results.cells.clear();
        let runs = [run("a", "2026-01", 30), run("b", "2026-02", 40), missing];
        let rows = rows(&runs);
        assert_eq!(rows.len(), 1);
        let medians = rows[0]
            .medians
            .iter()
            .map(|median| median.map(|(median, _)| median));
        assert!(medians.eq([Some(30), Some(40), None]));
        assert!(rows[0].changed());
        let text = document(&runs, &rows, true).terminal(None).join("\n");
        assert!(text.contains("1 of 1 cells changed"), "{text}");
        assert!(text.contains("wfi   30  40  -"), "{text}");
        let page = page(&runs, &rows);
        assert!(page.contains("Cells that changed"), "{page}");
        // Runs are named along the axis, without numbers between them.
        assert!(
            page.contains(">a</text>") && page.contains(">b</text>"),
            "{page}"
        );
        assert!(!page.contains(">0.5"), "{page}");
    }

    #[test]
    fn what_never_changes_has_no_curve() {
        let runs = [run("a", "2026-01", 30), run("b", "2026-02", 30)];
        let rows = rows(&runs);
        assert!(!rows[0].changed());
        assert!(!page(&runs, &rows).contains("Cells that changed"));
        // One run has no history.
        assert!(super::rows(&runs[..1]).is_empty());
    }
}
