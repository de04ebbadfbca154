// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the boots of a job differ in: what is below the guest, how that is set, and which
//! image of the guest it is.

use std::fmt;

use plan::{Atomics, Choice, Given, Under};

use anyhow::Result;

use super::{Job, Load};
use crate::failure::bad_input;

/// One boot of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What the guest runs under.
    pub under: Under,
    /// What a boot has one of.
    pub choice: Choice,
    /// Knobs that are turned for the whole boot, where cells can't turn them.
    pub given: Option<Given>,
    /// What Linux draws from: each repetition has its own.
    pub seed: u64,
}

impl Variant {
    /// The seed of the first repetition.
    pub const FIRST_SEED: u64 = 1;
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
        Ok(())
    }
}

/// Has `load` ask for no more than CPUs of `model` survive.
pub fn usable(load: &mut Load, model: &str) -> Result<()> {
    if load.guest.is_some() || !load.board.machine.breaks_lse(model) {
        return Ok(());
    }
    if load.plan.atomics().any(|atomics| atomics == Atomics::Lse) {
        bad_input!(
            "--atomics: the emulator of board {} does not survive every atomic instruction on `{model}` (docs/gem5.md); \
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

impl Job {
    /// Its boots, in turn: one for each of what the guest is to run under, for each choice
    /// that is a boot's, and for each setting of what is below that has
    /// cells.
    pub fn variants(&self) -> Result<Vec<Variant>> {
        let mut variants = Vec::new();
        for &under in &self.unders {
            let givens = self.givens(under)?;
            for choice in self.choices() {
                variants.extend(givens.iter().map(|&given| Variant {
                    under,
                    choice,
                    given,
                    seed: Variant::FIRST_SEED,
                }));
            }
        }
        Ok(variants)
    }

    /// The one boot of a job that has no more: the first.
    pub fn variant(&self) -> Variant {
        Variant {
            under: self.unders[0],
            choice: self.choices()[0],
            given: None,
            seed: Variant::FIRST_SEED,
        }
    }

    /// What its boots have one of.
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

    /// What is wrong if a boot ran the image `ran`, and not the one of [`Self::image`].
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
