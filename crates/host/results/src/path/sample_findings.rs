// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds the observer's findings about samples to the cells that the samples belong to.

use std::collections::BTreeMap;

use critical::{Sample, Samples};
use plan::Under;

use crate::{Cell, Critical, INSNS, Results};

impl Results {
    /// Adds the `samples` of the last boot to its cells, which begin at index `first` and are identified by their
    /// number in the boot. Only cells under `under` were observed, but not the cells of a guest that ran on its own. If
    /// the samples differ from the guest's measurement, adds a problem. If there is no observer, adds a note.
    pub fn add_samples(&mut self, first: usize, under: Under, samples: Result<Samples, String>) {
        let cells = self.cells.iter_mut().skip(first);
        let of_boot = |cell: &&mut Cell| {
            // Values can be divided into kinds of instructions only if they count instructions.
            cell.under == under
                && cell.unit == INSNS
                && cell.stats.is_some()
                && cell.what.workload.is_marked()
        };
        let mut cells: Vec<&mut Cell> = cells.filter(of_boot).collect();
        if cells.is_empty() {
            return;
        }
        let samples = match samples {
            Ok(samples) => group_by_cell(samples),
            Err(why) => {
                let note = format!("under {under}: nothing is known of the critical path: {why}");
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
                return;
            }
        };
        for cell in &mut cells {
            let Some(stats) = cell.stats else { continue };
            let of_cell = samples.get(&cell.id).map_or(&[][..], Vec::as_slice);
            match Critical::summarize_samples(of_cell, &stats) {
                Ok(mut critical) => {
                    // Exceptions to EL2 may also come from the host's own programs, so they are not counted as exits.
                    if under.kvm_mode().is_some() {
                        critical.exits.clear();
                    }
                    cell.critical = Some(critical);
                }
                Err(why) => {
                    let problem = format!("cell {} ({}): {why}", cell.id, cell.title());
                    self.problems.push(problem);
                }
            }
        }
    }
}

fn group_by_cell(samples: Samples) -> BTreeMap<u64, Vec<(Sample, u64)>> {
    let mut cells: BTreeMap<u64, Vec<(Sample, u64)>> = BTreeMap::new();
    for ((cell, sample), times) in samples {
        cells.entry(cell).or_default().push((sample, times));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example_results() -> Results {
        let cell = |id, workload: &str| {
            let mut cell = Cell {
                id,
                unit: INSNS.into(),
                stats: Some(crate::Stats::of(&BTreeMap::from([(10, 4)]))),
                ..Cell::default()
            };
            cell.what.set("workload", workload).unwrap();
            cell
        };
        Results {
            cells: vec![cell(0, "pingpong"), cell(1, "timer"), cell(2, "ipi")],
            ..Results::default()
        }
    }

    fn sample() -> Sample {
        let mut sample = Sample {
            value: 10,
            ..Sample::default()
        };
        sample.work.levels[1] = 10;
        sample.path.levels[1] = 7;
        sample
    }

    #[test]
    fn samples_go_to_their_cells() {
        let mut results = example_results();
        let samples = Samples::from([((0, sample()), 4), ((2, sample()), 4)]);
        results.add_samples(0, Under::Rouse, Ok(samples));
        let paths: Vec<_> = results.cells.iter().map(|cell| &cell.critical).collect();
        assert_eq!(paths[0].as_ref().unwrap().path.p50, 7);
        assert!(paths[1].is_none() && paths[2].is_some());
        assert!(results.problems.is_empty() && results.notes.is_empty());
    }

    #[test]
    fn samples_of_a_boot_go_to_its_cells_alone() {
        let mut results = example_results();
        // The cells of the second boot have the same numbers as those of the first boot.
        results.cells.extend(results.cells.clone());
        let samples = Samples::from([((0, sample()), 4), ((2, sample()), 4)]);
        results.add_samples(3, Under::Rouse, Ok(samples));
        let known = |cell: &Cell| cell.critical.is_some();
        let known: Vec<bool> = results.cells.iter().map(known).collect();
        assert_eq!(known, [false, false, false, true, false, true]);
    }

    #[test]
    fn what_is_missing_or_wrong_is_told() {
        let mut results = example_results();
        let samples = Samples::from([((0, sample()), 3)]);
        results.add_samples(0, Under::Rouse, Ok(samples));
        assert_eq!(results.problems.len(), 2, "{:?}", results.problems);
        assert!(results.cells.iter().all(|cell| cell.critical.is_none()));
        results.add_samples(3, Under::Rouse, Err("no".into()));
        results.add_samples(0, Under::None, Err("no".into()));
        assert!(results.notes.is_empty());
        results.add_samples(0, Under::Rouse, Err("no".into()));
        assert_eq!(results.notes.len(), 1);
    }
}
