// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between the boots of a job: what is below the guest, how that is set, and which image of the guest it
//! is.

use std::fmt;

use plan::{Atomics, Choice, Given, Shard, Under};

use anyhow::Result;

use super::{Job, Load};
use crate::options::{Boot, Metric};
use shell::failure::bad_input;

/// One boot of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Hypervisor of the guest, or none.
    pub under: Under,
    /// Choice of which a boot has one.
    pub choice: Choice,
    /// Knobs that are turned for the whole boot, where cells can't turn them.
    pub given: Option<Given>,
    /// Seed of Linux's random numbers: each repetition has its own.
    pub seed: u64,
    /// Which of the cells that are asked for.
    pub part: Shard,
}

impl Variant {
    /// The seed of the first repetition.
    pub const FIRST_SEED: u64 = 1;

    /// All that is asked for, under Rouse, with this choice.
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

/// Has `load` ask for no more than CPUs of `model` survive.
pub fn usable(load: &mut Load, model: &str) -> Result<()> {
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

/// Cells of a part, about: a boot takes as long as some of them before it comes to its first.
const PART: usize = 128;
/// From how many cells on there are at least two parts: two boots side by side, with a CPU each, then end before one would.
const TWO: usize = 48;

/// How many parts `cells` are dealt out to. A prime number: the values of dimensions take turns in
/// the list of cells, and a number of parts that divides such a turn would give all that takes long
/// to one of them.
fn number_of_parts(cells: usize) -> u32 {
    let least = if cells < TWO { 1 } else { 2 };
    let needed = u32::try_from(cells.div_ceil(PART).max(least)).unwrap_or(u32::MAX);
    let is_prime = |number: u32| (2..number).all(|divisor| !number.is_multiple_of(divisor));
    let mut numbers = needed.clamp(1, 997)..;
    numbers.find(|&number| is_prime(number)).unwrap_or(1)
}

impl Job {
    /// Its boots, in turn: one for each of what the guest is to run under, for each choice
    /// that is a boot's, and for each setting of what is below that has
    /// cells.
    pub fn variants(&self) -> Result<Vec<Variant>> {
        let mut variants = Vec::new();
        for &under in &self.unders {
            let givens = self.givens(under)?;
            for choice in self.choices() {
                let parts = self.parts(under, choice)?;
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

    /// Variants of repetition `number`, from 1.
    pub fn variants_of(&self, number: usize) -> Result<Vec<Variant>> {
        let mut variants = self.variants()?;
        // By turns, A B B A: what changes meanwhile meets both alike.
        if number.is_multiple_of(2) {
            variants.reverse();
        }
        for variant in &mut variants {
            variant.seed = number as u64;
        }
        Ok(variants)
    }

    /// The one boot of a job that has no more: the first.
    pub fn variant(&self) -> Variant {
        Variant {
            under: self.unders[0],
            ..Variant::of(self.choices()[0])
        }
    }

    /// The parts of the cells with `choice`, each a boot. They follow from what is asked for alone, and
    /// not from how many are booted at a time: so that does not change what comes out.
    fn parts(&self, under: Under, choice: Choice) -> Result<Vec<Shard>> {
        // Where a boot takes long, or has more to do than cells, one has all of them.
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
        if plan.shard.of * of > Shard::MOST {
            return whole;
        }
        Ok((1..=of).map(|index| Shard { index, of }).collect())
    }

    /// Choices of which its boots have one.
    fn choices(&self) -> plan::List<Choice> {
        self.load.plan.choices(self.load.linux())
    }

    /// How what is below is set, for each boot: where cells can't turn a knob, each has its
    /// place in the boot that suits it.
    fn givens(&self, under: Under) -> Result<Vec<Option<Given>>> {
        if !under.is_other() || !self.measures() {
            return Ok(vec![None]);
        }
        let machine = self.machine(under)?;
        let givens = request::givens(&self.load.plan, machine, None);
        Ok(givens.into_iter().map(Some).collect())
    }

    /// The image of the guest that a boot will run, as far as the board's file knows: what is
    /// needed of it before the machine has chosen.
    pub fn image(&self, variant: Variant) -> Atomics {
        match variant.choice.atomics {
            Some(Atomics::Llsc) => Atomics::Llsc,
            Some(Atomics::Lse) | None if self.board().has_lse(&self.model) => Atomics::Lse,
            Some(Atomics::Lse) | None => Atomics::Llsc,
        }
    }

    /// Complains if a boot ran the image `ran`, and not the one of [`Self::image`].
    pub fn other_image(&self, variant: Variant, ran: &str) -> Option<String> {
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
