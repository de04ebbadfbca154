// SPDX-License-Identifier: MIT OR Apache-2.0
//! The differences between a job's boots: the hypervisor, its settings, and the guest's image.

use std::collections::BTreeSet;
use std::fmt;

use plan::{Atomics, Choice, Given, Shard, Under};

use anyhow::Result;

use super::{Job, Load};
use crate::images::Built;
use crate::options::{Boot, Metric};
use shell::failure::bad_input;

/// One boot of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Hypervisor of the guest, or none.
    pub under: Under,
    /// Values of the dimensions that are fixed in a boot.
    pub choice: Choice,
    /// Settings that hold for the whole boot, if cells can't change them.
    pub given: Option<Given>,
    /// Seed of Linux's random numbers. Each repetition has a different seed.
    pub seed: u64,
    /// The part of the cells that the boot measures.
    pub part: Shard,
}

impl Variant {
    /// The seed of the first repetition.
    pub const FIRST_SEED: u64 = 1;

    /// Returns the variant that measures all cells under Rouse with `choice`.
    pub const fn of(choice: Choice) -> Self {
        Self {
            under: Under::Rouse,
            choice,
            given: None,
            seed: Self::FIRST_SEED,
            part: Shard::WHOLE,
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "under {}{}", self.under, self.choice)?;
        if let Some(Given {
            trap, host_poll_us, ..
        }) = self.given
        {
            write!(f, ", trap {trap}")?;
            if host_poll_us != 0 {
                write!(f, ", host polls {host_poll_us} us")?;
            }
        }
        match self.part {
            Shard::WHOLE => Ok(()),
            part => write!(f, ", part {part}"),
        }
    }
}

/// Removes from `load` the images that CPUs of `model` can't run.
pub fn restrict_to_usable(load: &mut Load, model: &str) -> Result<()> {
    if load.guest.is_some() || !load.board.machine.breaks_lse(model) {
        return Ok(());
    }
    if load.plan.atomics().any(|atomics| atomics == Atomics::Lse) {
        bad_input!(
            "--atomics: the emulator of board {} does not survive every atomic instruction on `{model}` (docs/cost.md); \
             use llsc",
            load.board.name
        );
    }
    load.plan = load.plan.chosen(Choice {
        atomics: Some(Atomics::Llsc),
        ..Choice::NONE
    });
    Ok(())
}

/// Approximate number of cells in a part. A boot takes as much time as a few cells.
const PART: usize = 128;
/// Minimum number of cells that are divided into two parts. From this number on, two parallel boots, each on its own
/// CPU of this computer, are faster than one boot.
const TWO: usize = 48;

/// Returns the number of parts into which `cells` are divided. The number is prime. The values of a dimension recur
/// periodically in the list of cells, and a number that divides such a period would put all slow cells into one part.
fn number_of_parts(cells: usize) -> u32 {
    let least = if cells < TWO { 1 } else { 2 };
    let needed = u32::try_from(cells.div_ceil(PART).max(least)).unwrap_or(u32::MAX);
    let is_prime = |number: u32| (2..number).all(|divisor| !number.is_multiple_of(divisor));
    let mut numbers = needed.clamp(1, 997)..;
    numbers.find(|&number| is_prime(number)).unwrap_or(1)
}

impl Job {
    /// Returns the job's boots, in order: one for each combination of a hypervisor, a choice that is fixed in a boot,
    /// and a setting of the hypervisor that has cells.
    pub fn variants(&self) -> Result<Vec<Variant>> {
        let mut variants = Vec::new();
        for &under in &self.unders {
            let givens = self.settings_of_boots(under)?;
            for choice in self.choices() {
                let parts = self.parts_of_cells(under, choice)?;
                let of_given = |&given| {
                    parts.iter().map(move |&part| Variant {
                        under,
                        given,
                        part,
                        ..Variant::of(choice)
                    })
                };
                variants.extend(givens.iter().flat_map(of_given));
            }
        }
        Ok(variants)
    }

    /// Returns the variants of repetition `number`, counted from 1.
    pub fn variants_of(&self, number: usize) -> Result<Vec<Variant>> {
        let mut variants = self.variants()?;
        // The order is A B B A, so that slow changes affect A and B alike.
        if number.is_multiple_of(2) {
            variants.reverse();
        }
        for variant in &mut variants {
            variant.seed = number as u64;
        }
        Ok(variants)
    }

    /// Returns the first boot, for a job that has no other.
    pub fn variant(&self) -> Variant {
        Variant {
            under: self.unders[0],
            ..Variant::of(self.choices()[0])
        }
    }

    /// Returns the parts of the cells with `choice`. Each part has its own boot. The parts depend only on the
    /// request, and not on the number of parallel boots, so that this number does not change the results.
    fn parts_of_cells(&self, under: Under, choice: Choice) -> Result<Vec<Shard>> {
        // If a boot takes long, or does more than measure cells, one boot measures all cells.
        let alone = self.load.guest.is_some() || under.is_other() || self.load.survey;
        let exact = self.metric == Metric::Insns && self.boot == Boot::Kernel;
        let whole = Ok(vec![Shard::WHOLE]);
        if alone || !exact || !self.measures() || self.disturb.is_some() {
            return whole;
        }
        let machine = self.machine(under)?;
        let plan = self.load.plan.chosen(choice);
        let cells = plan.cells(&machine);
        let runs = cells.filter(|cell| cell.skip_reason(&machine).is_none());
        let of = number_of_parts(runs.count());
        Ok((1..=of).map(|index| Shard { index, of }).collect())
    }

    /// Returns the job's choices. Each boot has one of these choices.
    fn choices(&self) -> plan::List<Choice> {
        self.load.plan.choices(self.load.measures_linux())
    }

    /// Returns the hypervisor's settings for each boot. A cell whose settings can't change within a boot
    /// belongs to the boot that has them.
    fn settings_of_boots(&self, under: Under) -> Result<Vec<Option<Given>>> {
        if !under.is_other() || !self.measures() {
            return Ok(vec![None]);
        }
        let machine = self.machine(under)?;
        let givens = request::settings_of_boots(&self.load.plan, machine, None);
        Ok(givens.into_iter().map(Some).collect())
    }

    /// Builds and packs the images that the job's boots need.
    pub fn build(&self) -> Result<Built> {
        self.load.build(&self.needed_images())
    }

    /// Returns the images of our guest that the job's boots run.
    pub(super) fn needed_images(&self) -> BTreeSet<Atomics> {
        let choices = self.choices();
        let boots = choices.iter().map(|&choice| Variant::of(choice));
        boots.map(|boot| self.image(boot)).collect()
    }

    /// Returns the image of our guest that a boot runs, according to the board's file.
    pub fn image(&self, variant: Variant) -> Atomics {
        match variant.choice.atomics {
            Some(Atomics::Llsc) => Atomics::Llsc,
            Some(Atomics::Lse) | None if self.board().has_lse(&self.model) => Atomics::Lse,
            Some(Atomics::Lse) | None => Atomics::Llsc,
        }
    }

    /// Returns a complaint if the boot ran image `ran` instead of the one that [`Self::image`] returns.
    pub fn check_image(&self, variant: Variant, ran: &str) -> Option<String> {
        let expected = self.image(variant);
        let (board, model) = (&self.board().name, &self.model);
        (ran != expected.to_string()).then(|| {
            format!(
                "{variant}: the guest ran with atomics {ran}, and not {expected}: correct \
                 `cpus.without_lse` of board {board} for {model}"
            )
        })
    }
}
