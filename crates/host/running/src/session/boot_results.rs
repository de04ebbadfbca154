// SPDX-License-Identifier: MIT OR Apache-2.0
//! Results of the boots of a job, taken one by one in their order.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Result, anyhow};
use jiff::Timestamp;
use plan::{Shard, Under};
use results::merge::{self, Run as Measured};
use results::{Build, Cell, Emulator, Results};

use super::stage::Left;
use crate::boot::{Lacks, TextFiles};
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::strict::BrokenRule;
use crate::verdict::{Failure, judge, judge_reset};
use providing::toolchain;
use shell::digest::sum;
use shell::interrupt::Signal;
use shell::terminal::note;

/// Results of the boots so far.
pub struct BootResults<'j> {
    pub job: &'j Job,
    /// The release of the kernel that is to be measured, where that is known.
    kernel: Option<String>,
    /// Results before the first boot.
    nothing: Results,
    /// Hypervisors of others that are missing, or failed, and are not tried again.
    pub failed: BTreeMap<Under, Failure>,
    /// Results of this repetition.
    pub results: Results,
    /// The boots that had parts of the same cells, up to now.
    dealt: Dealt,
    /// Results of those before.
    done: Vec<Measured>,
    pub found: Vec<BrokenRule>,
    pub ended: Option<String>,
    pub kept: TextFiles,
}

/// Boots one after another that had parts of the same cells.
#[derive(Default)]
struct Dealt {
    /// Their common variant.
    of: Option<Variant>,
    /// The first of their cells.
    first: usize,
    /// Where each has its place among all.
    places: Vec<u64>,
}

impl Dealt {
    /// Puts `cells`, which a boot of `variant` has added to from `new` on, in the order in which they were dealt out.
    fn put_in_order(&mut self, variant: Variant, new: usize, cells: &mut Vec<Cell>) {
        let Shard { index, of } = variant.part;
        let common = Some(Variant {
            part: Shard::WHOLE,
            ..variant
        });
        if self.of != common {
            *self = Self {
                of: common,
                first: new,
                places: Vec::new(),
            };
        }
        let place = |cell: &Cell| cell.id * u64::from(of) + u64::from(index - 1);
        self.places.extend(cells[new..].iter().map(place));
        let these = cells.split_off(self.first);
        let mut placed: Vec<_> = self.places.drain(..).zip(these).collect();
        placed.sort_by_key(|(place, _)| *place);
        for (place, cell) in placed {
            self.places.push(place);
            cells.push(cell);
        }
    }
}

/// Result of a boot.
pub enum Boot {
    /// Its hypervisor has failed before.
    Skipped,
    /// A signal came before it was begun.
    Interrupted(Signal),
    Booted(Under, Result<Box<Left>>),
}

impl<'j> BootResults<'j> {
    /// Before the first boot, without what `lacks`.
    pub fn new(
        job: &'j Job,
        emulator: &crate::emulator::Emulator,
        built: &Built,
        lacks: &Lacks,
    ) -> Self {
        let mut came = Self {
            job,
            kernel: job.load.kernel(),
            nothing: nothing(job, Some(emulator.describe(job)), built),
            failed: BTreeMap::new(),
            results: Results::default(),
            dealt: Dealt::default(),
            done: Vec::new(),
            found: Vec::new(),
            ended: None,
            kept: TextFiles::new(&emulator.shown()),
        };
        for (under, why) in lacks {
            let failure = Failure::lacking(why);
            // One reason may be that of several.
            if came.failed.values().all(|other| *other != failure) {
                note!("{}", failure.why);
            }
            came.failed.insert(*under, failure);
        }
        came
    }

    /// A repetition begins.
    pub fn begin(&mut self) {
        self.results = Results {
            began: began(),
            ..self.nothing.clone()
        };
    }

    /// Keeps what a repetition has measured, which ended like this.
    pub fn keep(
        &mut self,
        number: usize,
        failure: Result<Option<Failure>>,
    ) -> Result<Option<Failure>> {
        if let Some(watts) = &self.job.watts {
            self.results.model_energy(watts);
        }
        let kept = !self.done.is_empty();
        // Of a repetition that measured nothing there is nothing to keep, unless it is the only one.
        if self.results.has_cells() || !kept {
            self.done.push(Measured {
                label: format!("run {number}"),
                results: std::mem::take(&mut self.results),
                commands: Vec::new(),
            });
        }
        match failure {
            Err(error) if kept => Ok(Some(Failure::broken(&error))),
            failed => failed,
        }
    }

    /// Takes what a boot has left; what is wrong if it ends the job.
    pub fn take(&mut self, boot: Boot) -> Result<Option<Failure>> {
        let (under, left) = match boot {
            Boot::Skipped => return Ok(None),
            Boot::Interrupted(signal) => return Ok(Some(Failure::interrupted(signal))),
            Boot::Booted(under, left) => (under, left),
        };
        match left.and_then(|left| self.add(*left)) {
            Ok(None) => Ok(None),
            // A failure of another hypervisor says nothing of the others.
            Ok(Some(failure)) if under.is_other() && !failure.ends_all() => {
                self.failed.entry(under).or_insert(failure);
                Ok(None)
            }
            Err(error) if self.results.has_cells() => Ok(Some(Failure::broken(&error))),
            failed => failed,
        }
    }

    /// Adds what a boot has left; what is wrong with it.
    fn add(&mut self, left: Left) -> Result<Option<Failure>> {
        let Left {
            variant,
            mut outcome,
            found,
            watched,
            kept,
        } = left;
        let (job, under) = (self.job, variant.under);
        self.kept.append(&kept);
        self.found.extend(found);
        let records = std::mem::take(&mut outcome.console.collector).finish();
        let first = self.results.cells.len();
        self.results.add(Some(under), &records);
        let ran = records.machine.get("atomics");
        let other = ran.and_then(|ran| job.other_image(variant, ran));
        // It was the other image that was watched.
        if let Some(watched) = watched.filter(|_| other.is_none()) {
            self.results.add_samples(first, under, watched);
        }
        self.dealt
            .put_in_order(variant, first, &mut self.results.cells);
        // Another kernel need not know our records.
        let owes_records = job.load.guest.is_none() || job.load.linux() || records.begun;
        self.ended = outcome.ended();
        let failure = judge(&outcome, under, owes_records && !records.ended)
            .or_else(|| other.map(|other| Failure::broken(&anyhow!(other))))
            .or_else(|| self.other_kernel(under, records.features.get("linux")?));
        let silent = job.load.linux() && !records.begun;
        let failure = failure.map(|failure| {
            if silent {
                failure.of_silent_linux()
            } else {
                failure
            }
        });
        Ok(match job.expect_reset {
            true => judge_reset(&outcome, under, failure),
            false => failure,
        })
    }

    /// Complains if it was another kernel than the one asked for that `ran`.
    fn other_kernel(&self, under: Under, ran: &str) -> Option<Failure> {
        let asked = self.kernel.as_ref().filter(|asked| *asked != ran)?;
        let why = format!("under {under}: Linux {ran} was measured, and not {asked}");
        Some(Failure::broken(&anyhow!(why)))
    }

    /// All repetitions as one, which says which are missing.
    pub fn together(&self) -> Results {
        let mut all = merge::into_one(&self.done);
        let of = self.job.repeat;
        if self.done.len() < of && all.has_cells() {
            all.incomplete = true;
            all.missing.push(format!(
                "{} of {of} runs without any cell",
                of - self.done.len()
            ));
        }
        all
    }
}

/// Results of `job` before its first boot.
fn nothing(job: &Job, emulator: Option<Emulator>, built: &Built) -> Results {
    let mut results = Results {
        build: toolchain::build().map(|build| Build {
            image: fs::read(&built.packed).map_or_else(|_| String::new(), |bytes| sum(&bytes)),
            ..build
        }),
        ..Results::new(&job.board().name, &job.model, emulator)
    };
    let unders = job.unders.iter();
    let below = unders.filter_map(|under| Some((under.to_string(), built.below(*under)?.into())));
    results.machine.below = below.collect();
    results
}

/// This moment, in a form that sorts as text does.
fn began() -> String {
    Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S.%3fZ")
        .to_string()
}

#[cfg(test)]
mod tests {
    use plan::Choice;

    use super::*;

    #[test]
    fn parts_come_together_as_they_were_dealt_out() {
        let mut dealt = Dealt::default();
        let mut cells = Vec::new();
        let mut boot = |seed, index, of, added: &[(u64, &str)]| {
            let new = cells.len();
            cells.extend(added.iter().map(|&(id, unit)| Cell {
                id,
                unit: unit.into(),
                ..Cell::default()
            }));
            let variant = Variant {
                seed,
                part: Shard { index, of },
                ..Variant::of(Choice::NONE)
            };
            dealt.put_in_order(variant, new, &mut cells);
            let units: Vec<&str> = cells.iter().map(|cell| cell.unit.as_str()).collect();
            units.join("")
        };
        assert_eq!(boot(1, 1, 1, &[(0, "x"), (1, "y")]), "xy");
        // The third was not measured.
        assert_eq!(boot(2, 1, 2, &[(0, "a"), (2, "e")]), "xyae");
        assert_eq!(boot(2, 2, 2, &[(0, "b"), (1, "d"), (2, "f")]), "xyabdef");
        // In a repetition they may come the other way round.
        assert_eq!(boot(4, 2, 2, &[(0, "h")]), "xyabdefh");
        assert_eq!(boot(4, 1, 2, &[(0, "g")]), "xyabdefgh");
    }
}
