// SPDX-License-Identifier: MIT OR Apache-2.0
//! The numbers of the table, which are extracted from results and then stored.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use page::scale::Scale;
use plan::{Under, Word};
use results::{Build, Cell, Results};
use serde::{Deserialize, Serialize};

use super::boots::{ComparedCell, ROWS};
use shell::failure::bad_input;
use shell::{files, mistake, places};

const SCHEMA: u32 = 1;

/// The numbers, and the versions on which they depend.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Numbers {
    schema: u32,
    pub emulator: String,
    /// The compiler that built the guest.
    pub compiler: String,
    /// Versions of the other hypervisors, by their words in `under`.
    pub below: BTreeMap<String, String>,
    cells: Vec<Number>,
}

/// The number in one cell of the table.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
pub struct Number {
    row: String,
    under: String,
    /// The cell's median, in instructions.
    pub p50: f64,
    /// Exits of a sample by cause, without the causes that did not occur; `null` if the exits are unknown.
    pub exits: Option<BTreeMap<String, f64>>,
}

impl Numbers {
    /// Extracts the numbers of `results`.
    pub fn of_results(results: &Results) -> Self {
        let scale = Scale::for_results(results);
        let cells = || results.cells.iter().filter(|cell| cell.stats.is_some());
        let mut numbers = Vec::new();
        for row in &ROWS {
            let found = cells().filter(|cell| row.matches_cell(cell));
            numbers.extend(found.filter_map(|cell| cell_number(row, cell, scale)));
        }
        let emulator = results.machine.emulator.clone().unwrap_or_default();
        Self {
            schema: SCHEMA,
            emulator: format!("{} {} ({})", emulator.name, emulator.version, emulator.mode),
            compiler: results
                .build
                .as_ref()
                .map(Build::compiler_text)
                .unwrap_or_default(),
            below: results.machine.below.clone(),
            cells: numbers,
        }
    }

    /// Reads the numbers stored at `path`.
    pub fn read_file(path: &Path) -> Result<Self> {
        let shown = places::shown(path);
        let remedy = "make it by `cargo xtask dev publish hypervisors`";
        let text = match files::read_text(path) {
            Ok(text) => text,
            Err(error) => bad_input!("{shown} can't be read ({error}); {remedy}"),
        };
        match serde_json::from_str::<Self>(&text) {
            Ok(numbers) if numbers.schema == SCHEMA => Ok(numbers),
            Ok(numbers) => bad_input!(
                "{shown} has format {}, not {SCHEMA}; {remedy}",
                numbers.schema
            ),
            Err(error) => {
                let why = mistake::of_json(&error);
                bad_input!("{shown} has no such numbers ({why}); {remedy}")
            }
        }
    }

    /// Returns the text of the numbers to store.
    pub fn to_json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self).context("numbers")?;
        Ok(text + "\n")
    }

    /// Returns the table's number in row `row` and column `under`.
    pub fn number_at(&self, row: &ComparedCell, under: Under) -> Option<&Number> {
        let mut cells = self.column_numbers(under);
        cells.find(|cell| cell.row == row.name)
    }

    /// Returns the numbers of one column.
    pub fn column_numbers(&self, under: Under) -> impl Iterator<Item = &Number> {
        let name = under.name();
        self.cells.iter().filter(move |cell| cell.under == name)
    }

    /// Returns the number on the bare machine with which a number in `row` is compared.
    pub fn bare_machine_number(&self, row: &ComparedCell) -> Option<&Number> {
        let floor = row.bare_machine_row();
        let row = ROWS.iter().find(|row| row.equals_but_for_name(&floor))?;
        self.number_at(row, Under::None)
    }

    /// Returns the number that has the same row and column as `cell`.
    fn number_of_same_cell(&self, cell: &Number) -> Option<&Number> {
        let same = |other: &&Number| (&other.row, &other.under) == (&cell.row, &cell.under);
        self.cells.iter().find(same)
    }

    /// Replaces the columns `unders` with the columns of `new`.
    pub fn replace_columns(self, new: Self, unders: &[Under]) -> Self {
        let is_new = |under: &str| unders.iter().any(|new| new.name() == under);
        let mut cells: Vec<Number> = self.cells;
        cells.retain(|cell| !is_new(&cell.under));
        cells.extend(new.cells);
        let place = |cell: &Number| {
            let row = ROWS.iter().position(|row| row.name == cell.row);
            let under = Under::ALL
                .iter()
                .position(|under| under.name() == cell.under);
            (row, under)
        };
        cells.sort_by_key(place);
        Self {
            below: self.below.into_iter().chain(new.below).collect(),
            cells,
            ..new
        }
    }

    /// Returns the cells whose numbers differ from the numbers in `kept`.
    pub fn changed_cells(&self, kept: &Self) -> Vec<String> {
        let other = self.cells.iter().filter_map(|cell| {
            let was = kept.number_of_same_cell(cell).map(|other| other.p50);
            (was != Some(cell.p50)).then(|| {
                let was = was.map_or("nothing".into(), |was| format!("{was:.0}"));
                format!(
                    "{} under {} is {:.0}, kept {was}",
                    cell.row, cell.under, cell.p50
                )
            })
        });
        other.collect()
    }

    /// Lists the numbers that differ from the numbers in `kept` by more than the fraction `near`. Also lists the
    /// emulator and the versions if they differ.
    pub fn list_differences(&self, kept: &Self, near: f64) -> Vec<String> {
        let mut lines = Vec::new();
        if self.emulator != kept.emulator {
            lines.push(format!(
                "not alike: emulator: {}, kept {}",
                self.emulator, kept.emulator
            ));
        }
        for (under, told) in &self.below {
            match kept.below.get(under) {
                Some(other) if other != told => {
                    lines.push(format!("not alike: under {under}: {told}, kept {other}"));
                }
                _ => {}
            }
        }
        let (mut alike, mut further) = (0, 0);
        for cell in &self.cells {
            let Some(other) = kept.number_of_same_cell(cell) else {
                continue;
            };
            if (cell.p50 / other.p50 - 1.0).abs() <= near {
                alike += 1;
                continue;
            }
            further += 1;
            lines.push(format!(
                "{} under {}: {:.0}, kept {:.0}",
                cell.row, cell.under, cell.p50, other.p50
            ));
        }
        lines.push(format!(
            "against docs/hypervisors.md: {alike} cells within {:.0} %, {further} further away",
            near * 100.0
        ));
        lines
    }
}

fn cell_number(row: &ComparedCell, cell: &Cell, scale: Scale) -> Option<Number> {
    let stats = cell.stats_with_median()?;
    let exits = cell.exits_of_samples().keys();
    let exits = exits.map(|name| {
        (
            name.clone(),
            round_to_hundredths(cell.exits_per_sample(name)),
        )
    });
    let exits = exits.filter(|(_, count)| *count > 0.0).collect();
    Some(Number {
        row: row.name.into(),
        under: cell.under.to_string(),
        p50: scale
            .for_cell(cell)
            .convert_percentile(stats.p50, stats.bounds()),
        exits: cell.has_exit_counts().then_some(exits),
    })
}

fn round_to_hundredths(count: f64) -> f64 {
    (count * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(p50: f64, below: &str) -> Numbers {
        Numbers {
            below: [("xen".to_owned(), below.to_owned())].into(),
            cells: vec![Number {
                row: ROWS[0].name.into(),
                under: "xen".into(),
                p50,
                exits: None,
            }],
            ..Numbers::default()
        }
    }

    #[test]
    fn columns_that_are_not_measured_again_stay() {
        let kept = numbers(1000.0, "Xen 4.20");
        let mut new = numbers(140.0, "");
        new.below.clear();
        new.cells[0].under = "rouse".into();
        let both = kept.replace_columns(new, &[Under::Rouse]);
        let of = |under| {
            both.column_numbers(under)
                .map(|cell| cell.p50)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (of(Under::Rouse), of(Under::Xen)),
            (vec![140.0], vec![1000.0])
        );
        assert_eq!(both.below["xen"], "Xen 4.20");
    }

    #[test]
    fn what_moved_is_told_with_the_version_that_did() {
        let kept = numbers(1000.0, "Xen 4.20");
        let near = numbers(1090.0, "Xen 4.20").list_differences(&kept, 0.1);
        assert_eq!(
            near,
            ["against docs/hypervisors.md: 1 cells within 10 %, 0 further away"]
        );
        let far = numbers(1200.0, "Xen 4.21").list_differences(&kept, 0.1);
        assert_eq!(far[0], "not alike: under xen: Xen 4.21, kept Xen 4.20");
        assert!(far[1].ends_with("under xen: 1200, kept 1000"), "{far:?}");
    }

    #[test]
    fn every_row_has_a_floor() {
        for row in &ROWS {
            let floor = row.bare_machine_row();
            assert!(
                ROWS.iter().any(|row| row.equals_but_for_name(&floor)),
                "{}",
                row.name
            );
        }
    }
}
