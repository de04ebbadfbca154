// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the boots in several inputs, each once.

use std::collections::BTreeSet;

use super::Run;
use crate::{Cell, Origin, Results};

/// Returns the runs of all inputs, each once. A run that occurs again, such as in a copy of its folder, is left out,
/// and its first occurrence gets a note.
pub fn distinct_runs(inputs: Vec<Run>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for input in inputs {
        for (label, results) in split_runs(input.label, input.results) {
            match runs
                .iter_mut()
                .find(|run| is_one_boot(&run.results, &results))
            {
                Some(known) => known
                    .results
                    .notes
                    .push(copy_note(&known.label, &label, &results)),
                None => runs.push(Run {
                    label,
                    results,
                    commands: input.commands.clone(),
                }),
            }
        }
    }
    runs
}

fn copy_note(known: &str, label: &str, results: &Results) -> String {
    let began = match results.began.as_str() {
        "" => "has the same samples".into(),
        began => format!("began at {began} too"),
    };
    format!("{label} {began}: it is the boot of {known}, which counts once")
}

/// Whether two runs are the same run, given twice: they must have begun at the same time, and must have a cell in
/// common. If either has no start time, all their cells must have equal samples, of a kind that varies between boots.
#[must_use]
pub fn is_one_boot(a: &Results, b: &Results) -> bool {
    fn measured_cells(results: &Results) -> impl Iterator<Item = &Cell> {
        results.cells.iter().filter(|cell| cell.stats.is_some())
    }
    if a.board != b.board && !a.board.is_empty() && !b.board.is_empty() {
        return false;
    }
    if !a.began.is_empty() && !b.began.is_empty() {
        let known: BTreeSet<_> = measured_cells(a).map(Cell::key).collect();
        return a.began == b.began && measured_cells(b).any(|cell| known.contains(&cell.key()));
    }
    let same = |(one, other): (&Cell, &Cell)| {
        (one.stats, &one.histograms) == (other.stats, &other.histograms) && one.key() == other.key()
    };
    !a.has_repeatable_counts()
        && measured_cells(a).next().is_some()
        && measured_cells(a).count() == measured_cells(b).count()
        && measured_cells(a).zip(measured_cells(b)).all(same)
}

/// Returns the runs in one results.json, which may contain several joined runs.
fn split_runs(label: String, mut all: Results) -> Vec<(String, Results)> {
    let origins = std::mem::take(&mut all.runs);
    if origins.is_empty() {
        return vec![(label, all)];
    }
    let parts = origins.into_iter().map(|origin| {
        let own = all.cells.extract_if(.., |cell| cell.run == origin.label);
        let own = own.map(|mut cell| {
            cell.run.clear();
            cell
        });
        let part = Results {
            schema: all.schema,
            tool: all.tool.clone(),
            build: origin.build,
            began: origin.began,
            board: origin.board,
            machine: origin.machine,
            fidelity: origin.fidelity,
            fidelity_details: origin.fidelity_details,
            unit: origin.unit,
            unit_how: origin.unit_how,
            cells: own.collect(),
            incomplete: origin.incomplete,
            missing: take_texts_of(&mut all.missing, &origin.label),
            damaged: take_texts_of(&mut all.damaged, &origin.label),
            problems: take_texts_of(&mut all.problems, &origin.label),
            notes: take_texts_of(&mut all.notes, &origin.label),
            serrors: origin.serrors,
            runs: Vec::new(),
        };
        (origin.label, part)
    });
    parts.collect()
}

/// Merges texts that differ only in the name of their run. The result is `text` if all runs have the text, or `run 1,
/// run 3: text` if only some have it.
pub fn merge_run_texts(texts: &[String], runs: &[Origin]) -> Vec<String> {
    let mut merged: Vec<(Vec<&str>, &str)> = Vec::new();
    for text in texts {
        let own = runs.iter().find_map(|run| {
            let text = text.strip_prefix(run.label.as_str())?.strip_prefix(": ")?;
            Some((run.label.as_str(), text))
        });
        let (label, text) = own.map_or((None, text.as_str()), |(label, text)| (Some(label), text));
        match merged.iter_mut().find(|(_, other)| *other == text) {
            Some((labels, _)) => labels.extend(label.filter(|label| !labels.contains(label))),
            None => merged.push((label.into_iter().collect(), text)),
        }
    }
    let shown = merged.into_iter().map(|(labels, text)| match labels.len() {
        0 => text.to_owned(),
        all if all == runs.len() => text.to_owned(),
        _ => format!("{}: {text}", labels.join(", ")),
    });
    shown.collect()
}

/// Removes the texts of the run `label` from `texts`. Returns the removed texts without the label.
fn take_texts_of(texts: &mut Vec<String>, label: &str) -> Vec<String> {
    let prefix = format!("{label}: ");
    let own = texts.extract_if(.., |text| text.starts_with(&prefix));
    own.map(|text| text[prefix.len()..].to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::join_sweeps;
    use crate::samples::results;

    fn at(label: &str, began: &str, unit: &str, p50: u64) -> Run {
        let mut results = results();
        results.began = began.into();
        results.unit = unit.into();
        results.cells[1].stats.as_mut().unwrap().p50 = p50;
        Run::new(label, results)
    }

    #[test]
    fn a_text_of_several_runs_is_shown_once() {
        let noted = |label: &str, notes: &[&str]| {
            let mut run = at(label, label, "ticks", 30);
            run.results.notes = notes.iter().map(|&note| note.into()).collect();
            run
        };
        let all = crate::merge::into_one(&[
            noted("run 1", &["stream: a", "own"]),
            noted("run 2", &["stream: a", "b"]),
            noted("run 3", &["b", "stream: a"]),
        ]);
        assert_eq!(all.notes.len(), 6);
        assert_eq!(
            all.shown_notes(),
            ["stream: a", "run 1: own", "run 2, run 3: b"]
        );
        assert_eq!(merge_run_texts(&["run 1: x".into()], &[]), ["run 1: x"]);
    }

    #[test]
    fn a_boot_that_is_given_again_is_one_run() {
        let count = |second: Run| join_sweeps(vec![at("a", "10:00", "ticks", 30), second]).len();
        assert_eq!(count(at("copy", "10:00", "ticks", 30)), 1);
        assert_eq!(count(at("b", "10:01", "ticks", 30)), 2);
        // A log has no start time, but equal samples show that it is a copy.
        assert_eq!(count(at("log", "", "ticks", 30)), 1);
        assert_eq!(count(at("log", "", "ticks", 31)), 2);
        let logs =
            |unit: &str| join_sweeps(vec![at("a", "", unit, 30), at("b", "", unit, 30)]).len();
        assert_eq!((logs("ticks"), logs("insns")), (1, 2));
        // Parts of a sweep that began at the same time have no cell in common.
        let mut parts = [at("a", "10:00", "ticks", 30), at("b", "10:00", "ticks", 30)];
        parts[1].results.cells.remove(0);
        parts[1].results.cells[0].what.gap_us = 20;
        let one = join_sweeps(parts.clone().into());
        assert_eq!((one.len(), one[0].results.notes.len()), (1, 0));
        // A copy of the second part is found too, and the note names that part.
        let copy = Run {
            label: "copy".into(),
            ..parts[1].clone()
        };
        let one = join_sweeps(parts.into_iter().chain([copy]).collect());
        assert_eq!(
            one[0].results.notes,
            ["copy began at 10:00 too: it is the boot of b, which counts once"]
        );
    }
}
