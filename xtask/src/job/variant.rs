// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the boots of a job differ in: what is below the guest, how that is set, and which
//! image of the guest it is.

use std::fmt;

use plan::{Atomics, Given, Under};

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
    /// Knobs that are turned for the whole boot, where cells can't turn them.
    pub given: Option<Given>,
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "under {}", self.under)?;
        if let Some(atomics) = self.atomics {
            write!(f, ", atomics {atomics}")?;
        }
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
    load.plan = load.plan.with_atomics(Some(Atomics::Llsc));
    Ok(())
}

impl Job {
    /// Its boots, in turn: one for each of what the guest is to run under, for each of the
    /// atomic instructions that were named, and for each setting of what is below that has
    /// cells.
    pub fn variants(&self) -> Result<Vec<Variant>> {
        let mut variants = Vec::new();
        for &under in &self.unders {
            let givens = self.givens(under)?;
            for atomics in self.atomics() {
                variants.extend(givens.iter().map(|&given| Variant {
                    under,
                    atomics,
                    given,
                }));
            }
        }
        Ok(variants)
    }

    /// The one boot of a job that has no more: the first.
    pub fn variant(&self) -> Variant {
        Variant {
            under: self.unders[0],
            atomics: self.atomics()[0],
            given: None,
        }
    }

    /// The atomic instructions of its boots.
    fn atomics(&self) -> Vec<Option<Atomics>> {
        let named: Vec<_> = self.load.plan.atomics().map(Some).collect();
        if named.is_empty() { vec![None] } else { named }
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
