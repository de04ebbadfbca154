// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the boots of a job differ in: below the guest, and in which image it is.

use std::fmt;

use plan::{Atomics, Under};

use anyhow::Result;

use super::{Job, Load};
use crate::failure::bad_input;

/// One boot of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// What the guest runs under.
    pub under: Under,
    /// Its atomic instructions, if they were asked for; else the best that the machine has.
    pub atomics: Option<Atomics>,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "under {}", self.under)?;
        match self.atomics {
            Some(atomics) => write!(f, ", atomics {atomics}"),
            None => Ok(()),
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
            "--atomics: the emulator of board {} does not survive every atomic instruction on `{model}` (docs/gem5.md); \
             use llsc",
            load.board.name
        );
    }
    load.plan = load.plan.with_atomics(Some(Atomics::Llsc));
    Ok(())
}

impl Job {
    /// Its boots, in turn: one for each of what the guest is to run under, and for each of
    /// the atomic instructions that were named.
    pub fn variants(&self) -> Vec<Variant> {
        let named: Vec<Option<Atomics>> = self.load.plan.atomics().map(Some).collect();
        let all = if named.is_empty() { vec![None] } else { named };
        let of = |&under| {
            let all = all.clone().into_iter();
            all.map(move |atomics| Variant { under, atomics })
        };
        self.unders.iter().flat_map(of).collect()
    }

    /// The one boot of a job that has no more: the first.
    pub fn variant(&self) -> Variant {
        self.variants()[0]
    }

    /// The image of the guest that a boot will run, as far as the board's file knows: what is
    /// needed of it before the machine has chosen.
    pub fn image(&self, variant: Variant) -> Atomics {
        match variant.atomics {
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
