// SPDX-License-Identifier: MIT OR Apache-2.0
//! `compare --over-time`: the same cells in many runs, from the oldest to the newest: a table, and a page of curves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use foreign::Quoted;
use maud::html;
use page::document::Document;
use page::grid::Column;
use page::scale::{Figure, Scale};
use page::table::names;
use page::{Line, chart_of};
use results::merge::{self, Run};
use results::{Build, Cell};

use crate::compare::CompareArgs;
use crate::report::inputs::Input;
use crate::saved_runs;
use shell::failure::bad_input;
use shell::output::{self, Output};
use shell::places;
use shell::terminal::{note, say};

/// Colours of the lines of a chart: as many as a reader can distinguish.
const COLOURS: [&str; 6] = [
    "c-blue",
    "c-red",
    "c-green",
    "c-purple dash",
    "c-ink dots",
    "c-grey dash-dots",
];

/// Most characters of a note.
const LONG: usize = 600;

/// A cell in all runs: its median in each that has it.
struct CellOverTime<'r> {
    cell: &'r Cell,
    medians: Vec<Option<Figure>>,
}

impl CellOverTime<'_> {
    fn changed(&self) -> bool {
        let mut known = self.medians.iter().flatten().map(|(median, _)| median);
        let first = known.next();
        known.any(|median| Some(median) != first)
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
    let target = args.out.clone();
    let target = target.unwrap_or_else(|| places::target().join("over-time.html"));
    let out = Output::claim("--out", &target)?;
    args.format.claim()?;
    args.format.show_document(&document(&runs, &rows))?;
    out.write(&page(&runs, &rows))?;
    say!("curves: {}", output::shown(&target));
    Ok(())
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

/// Returns `folder`, if it is a run, or the runs in it, sorted by name.
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

/// The cells that two runs at least have measured, in the order in which they come up.
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

/// A cell in all runs, or `None` of no run.
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

/// Returns the short commit of a run, as far as it is known.
fn commit(run: &Run) -> String {
    let build = run.results.build.as_ref();
    build.map(Build::short_tree).unwrap_or_default()
}

/// Identifies a run, as far as possible.
fn told(run: &Run) -> String {
    let results = &run.results;
    let cpu = &results.machine.cpu;
    let parts = [
        &run.label,
        &results.board,
        cpu,
        &results.began,
        &commit(run),
    ];
    let known = parts.into_iter().filter(|part| !part.is_empty());
    known.map(String::as_str).collect::<Vec<_>>().join(", ")
}

fn document(runs: &[Run], rows: &[CellOverTime<'_>]) -> Document {
    let scale = Scale::of(&runs[0].results);
    let mut document = Document::default();
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
    let (changed, same): (Vec<&CellOverTime<'_>>, Vec<&CellOverTime<'_>>) =
        rows.iter().partition(|row| row.changed());
    document.extend([
        String::new(),
        format!(
            "medians in {}; {} of {} cells changed",
            scale.unit(&runs[0].results),
            changed.len(),
            rows.len()
        ),
    ]);
    // Changed rows come first.
    let all: Vec<&CellOverTime<'_>> = changed.into_iter().chain(same).collect();
    let mut columns = names(all.iter().map(|row| row.cell).collect());
    for number in 0..runs.len() {
        let texts = all.iter().map(|row| match row.medians[number] {
            Some((median, bounds)) => scale.of_cell(row.cell).show_figure((median, bounds)),
            None => "-".into(),
        });
        columns.push(Column::numbers(
            "run",
            &(number + 1).to_string(),
            texts.collect(),
        ));
    }
    document.table(columns);
    document
}

fn page(runs: &[Run], rows: &[CellOverTime<'_>]) -> String {
    let changed: Vec<&CellOverTime<'_>> = rows.iter().filter(|row| row.changed()).collect();
    let unit = Scale::of(&runs[0].results)
        .unit(&runs[0].results)
        .to_owned();
    let body = html! {
        h1 { "History" }
        p.about {
            (changed.len()) " of " (rows.len()) " cells changed over " (runs.len()) " runs. Cells that did not have no curve. Medians."
        }
        section id="runs" {
            h2 { "Runs" }
            ol {
            @for run in runs {
                li { (told(run)) }
            }
            }
        }
        section id="curves" {
            h2 { "Curves" }
            div.charts {
            @for (number, some) in (1..).zip(changed.chunks(COLOURS.len())) {
                (chart_of(&format!("Cells that changed, {number}"), &lines(some), "run", &unit))
            }
            }
        }
    };
    page::document("History", body)
}

/// Returns a page of `runs` with other medians in each, to look at it.
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

/// A line for each of `rows`, over the numbers of the runs.
fn lines(rows: &[&CellOverTime<'_>]) -> Vec<Line> {
    let line = |(colour, row): (&str, &&CellOverTime<'_>)| Line {
        class: format!("line {colour}"),
        name: row.cell.title(),
        points: (1..)
            .zip(&row.medians)
            .filter_map(|(run, median)| Some((f64::from(run), (*median)?.0 as f64)))
            .collect(),
    };
    COLOURS.into_iter().zip(rows).map(line).collect()
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
        let text = document(&runs, &rows).terminal(None).join("\n");
        assert!(text.contains("1 of 1 cells changed"), "{text}");
        assert!(text.contains("wfi   30  40  -"), "{text}");
        let page = page(&runs, &rows);
        assert!(page.contains("Cells that changed, 1"), "{page}");
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
