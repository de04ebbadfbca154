// SPDX-License-Identifier: MIT OR Apache-2.0
//! Collects the results of a job's boots one by one, in their order.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use plan::{Shard, Under};
use results::merge::{self, Run as Measured};
use results::{Cell, Emulator, Results};

use super::stage::Left;
use crate::boot::{Lacks, TextFiles};
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::strict::BrokenRule;
use crate::traces::TracesOfBoot;
use crate::verdict::{Failure, judge, judge_reset};
use providing::toolchain;
use shell::interrupt::Signal;
use shell::terminal::note;

/// Results of the boots so far.
pub struct BootResults<'j> {
    pub job: &'j Job,
    /// The release of the kernel to measure, if known.
    kernel: Option<String>,
    /// Results before the first boot.
    nothing: Results,
    /// Other hypervisors that are missing or have failed. They are not tried again.
    pub failed: BTreeMap<Under, Failure>,
    /// Results of this repetition.
    pub results: Results,
    /// The latest boots, which measured parts of one set of cells.
    dealt: Dealt,
    /// Results of earlier repetitions.
    done: Vec<Measured>,
    pub found: Vec<BrokenRule>,
    pub traces: Vec<TracesOfBoot>,
    pub ended: Option<String>,
    pub kept: TextFiles,
}

/// Consecutive boots that measured parts of one set of cells.
#[derive(Default)]
struct Dealt {
    /// The variant that the boots share, except for its field `part`.
    of: Option<Variant>,
    /// The index of their first cell in the results.
    first: usize,
    /// The number of each cell in the whole list.
    places: Vec<usize>,
}

impl Dealt {
    /// Sorts `cells` into the order of the whole list. A boot of `variant` has added the cells from index `new` on.
    fn put_in_order(&mut self, variant: Variant, new: usize, cells: &mut Vec<Cell>) {
        let part = variant.part;
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
        let place = |cell: &Cell| part.cell(cell.id as usize);
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
    /// The boot was not made, because its hypervisor has already failed.
    Skipped,
    /// A signal came before the boot started.
    Interrupted(Signal),
    Booted(Under, Result<Box<Left>>),
}

impl<'j> BootResults<'j> {
    /// Creates the state before the first boot, without the hypervisors in `lacks`.
    pub fn new(
        job: &'j Job,
        emulator: &crate::emulator::Emulator,
        built: &Built,
        lacks: &Lacks,
    ) -> Result<Self> {
        let mut came = Self {
            job,
            kernel: job.load.kernel(),
            nothing: no_results(job, Some(emulator.describe(job)), built)?,
            failed: BTreeMap::new(),
            results: Results::default(),
            dealt: Dealt::default(),
            done: Vec::new(),
            found: Vec::new(),
            traces: Vec::new(),
            ended: None,
            kept: TextFiles::new(&emulator.shown()),
        };
        for (under, why) in lacks {
            let failure = Failure::lacking(why);
            // Several hypervisors may have failed for the same reason, which is reported once.
            if came.failed.values().all(|other| *other != failure) {
                note!("{}", failure.why);
            }
            came.failed.insert(*under, failure);
        }
        Ok(came)
    }

    /// Begins a repetition.
    pub fn begin_repetition(&mut self) {
        self.results = Results {
            began: start_time(),
            ..self.nothing.clone()
        };
    }

    /// Keeps the results of repetition `number`, which ended with `failure`.
    pub fn keep_repetition(
        &mut self,
        number: usize,
        failure: Result<Option<Failure>>,
    ) -> Result<Option<Failure>> {
        if let Some(watts) = &self.job.watts {
            self.results.model_energy(watts);
        }
        let kept = !self.done.is_empty();
        // Drops the results of a repetition that measured no cell, if an earlier repetition has results.
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

    /// Takes the output of a boot. Returns the failure if it ends the job.
    pub fn take_boot(&mut self, boot: Boot) -> Result<Option<Failure>> {
        let (under, left) = match boot {
            Boot::Skipped => return Ok(None),
            Boot::Interrupted(signal) => return Ok(Some(Failure::interrupted(signal))),
            Boot::Booted(under, left) => (under, left),
        };
        match left.and_then(|left| self.add_boot(*left)) {
            Ok(None) => Ok(None),
            // If a hypervisor other than Rouse fails, boots under the others are not affected.
            Ok(Some(failure)) if under.is_other() && !failure.ends_all() => {
                self.failed.entry(under).or_insert(failure);
                Ok(None)
            }
            Err(error) if self.results.has_cells() => Ok(Some(Failure::broken(&error))),
            failed => failed,
        }
    }

    /// Adds the output of a boot. Returns the boot's failure, if any.
    fn add_boot(&mut self, left: Left) -> Result<Option<Failure>> {
        let Left {
            variant,
            mut outcome,
            found,
            watched,
            traces,
            kept,
        } = left;
        let (job, under) = (self.job, variant.under);
        self.kept.append(&kept);
        self.found.extend(found);
        let records = std::mem::take(&mut outcome.console.collector).finish();
        let first = self.results.cells.len();
        self.results.add(Some(under), &records);
        let ran = records.machine.get("atomics");
        let other = ran.and_then(|ran| job.check_image(variant, ran));
        // If the boot ran the guest's other image, the plugin observed the wrong code.
        if let Some(watched) = watched.filter(|_| other.is_none()) {
            self.results.add_samples(first, under, watched);
        }
        match traces {
            Some(Ok(traces)) => self.keep_traces(traces, first),
            Some(Err(why)) => self.results.notes.push(format!(
                "under {under}: the samples can't be explained: {why}"
            )),
            None => {}
        }
        self.dealt
            .put_in_order(variant, first, &mut self.results.cells);
        // Another kernel may print no records of ours.
        let owes_records = job.load.guest.is_none() || job.load.measures_linux() || records.begun;
        self.ended = outcome.ended();
        let failure = judge(&outcome, under, owes_records && !records.ended)
            .or_else(|| other.map(|other| Failure::broken(&anyhow!(other))))
            .or_else(|| self.check_kernel(under, records.features.get("linux")?));
        let silent = job.load.measures_linux() && !records.begun;
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

    /// Keeps the traces of a boot whose cells begin at index `first`. Repetitions have the same cells, so the traces of
    /// one repetition are enough.
    fn keep_traces(&mut self, traces: TracesOfBoot, first: usize) {
        if self.done.is_empty() {
            let cells = self.results.cells[first..].to_vec();
            self.traces.push(TracesOfBoot { cells, ..traces });
        }
    }

    /// Returns a failure if `ran`, the release of the kernel that ran, differs from the requested release.
    fn check_kernel(&self, under: Under, ran: &str) -> Option<Failure> {
        let asked = self.kernel.as_ref().filter(|asked| *asked != ran)?;
        let why = format!("under {under}: Linux {ran} was measured, and not {asked}");
        Some(Failure::broken(&anyhow!(why)))
    }

    /// Returns the results of the first repetition, or the results before the first boot if there is no repetition
    /// yet.
    pub fn first_results(&self) -> &Results {
        self.done.first().map_or(&self.nothing, |run| &run.results)
    }

    /// Returns the results of all repetitions as one value, with a list of the missing repetitions.
    pub fn join_repetitions(&self) -> Results {
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

/// Returns the results of `job` before its first boot.
fn no_results(job: &Job, emulator: Option<Emulator>, built: &Built) -> Result<Results> {
    let mut results = Results {
        build: toolchain::build()
            .map(|build| built.identify(build))
            .transpose()?,
        ..Results::new(&job.board().name, &job.model, emulator)
    };
    let unders = job.unders.iter();
    let below = unders.filter_map(|under| Some((under.to_string(), built.version(*under)?.into())));
    results.machine.below = below.collect();
    let guest = job.load.guest.as_ref().and_then(|guest| guest.handed_over);
    let host = built.host.as_ref().and_then(|host| host.handed_over);
    let changed = [("guest", guest), ("host", host)];
    let changed = changed
        .into_iter()
        .filter_map(|(name, words)| Some((name.into(), words?)));
    results.machine.handed_over = changed.collect();
    Ok(results)
}

/// The start of the last repetition, in milliseconds.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns the current time, as text that sorts by time. A repetition is identified by its start time, so consecutive
/// repetitions get times at least a millisecond apart, even in boots of different kernels.
fn start_time() -> String {
    let since = UNIX_EPOCH.elapsed().unwrap_or_default();
    let now = u64::try_from(since.as_millis()).unwrap_or_default();
    let next = |last| Some(now.max(last + 1));
    let last = LAST.fetch_update(Relaxed, Relaxed, next).unwrap_or(now);
    let time = UNIX_EPOCH + Duration::from_millis(now.max(last + 1));
    humantime::format_rfc3339_millis(time).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plan::Choice;

    use super::*;

    #[test]
    fn no_two_repetitions_begin_at_once() {
        let times: BTreeSet<String> = (0..50).map(|_| start_time()).collect();
        assert_eq!(times.len(), 50);
    }

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
        // The fourth cell, which the first part has in the second round, was not measured.
        assert_eq!(boot(2, 1, 2, &[(0, "a"), (2, "e")]), "xyae");
        assert_eq!(boot(2, 2, 2, &[(0, "b"), (1, "c"), (2, "f")]), "xyabcef");
        // In another repetition, the parts may arrive in reverse order.
        assert_eq!(boot(4, 2, 2, &[(0, "h")]), "xyabcefh");
        assert_eq!(boot(4, 1, 2, &[(0, "g")]), "xyabcefgh");
    }
}
