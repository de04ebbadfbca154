// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dimension that is no choice of a cell but of a boot: the guest has an image for
//! each word of `atomics`, and a boot runs one of them.
//!
//! The host boots once for each word that is asked for ([`Plan::with_atomics`]). The
//! hypervisor chooses the image ([`Names::atomics`](crate::Names)). The guest says in
//! every cell which one it is ([`Plan::runs_on`]).

use core::fmt;

use crate::{Atomics, Dimension, Plan};

/// The guest's image is not one that the plan can be measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherImage {
    /// The plan names several words.
    Several,
    /// The plan names this word alone, and the image is the other one.
    Asked(Atomics),
}

impl fmt::Display for OtherImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Several => f.write_str(
                "atomics: a boot has one image of the guest; name one word, and boot again for the other",
            ),
            Self::Asked(asked) => write!(
                f,
                "atomics: this image is not the one for {asked}; boot the hypervisor with both, or leave it out"
            ),
        }
    }
}

impl Plan {
    /// The plan of one boot: of the words of `atomics` this one, or what the machine's
    /// best is.
    #[must_use]
    pub fn with_atomics(&self, atomics: Option<Atomics>) -> Self {
        let mut plan = self.clone();
        plan.lists.atomics = match atomics {
            None => Dimension::default_of(&[Atomics::Llsc]),
            Some(atomics) => Dimension {
                values: [atomics].into_iter().collect(),
                named: true,
            },
        };
        plan
    }

    /// The words that are asked for, each of which needs a boot; none: the machine's best.
    pub fn atomics(&self) -> impl Iterator<Item = Atomics> + '_ {
        let asked = &self.lists.atomics;
        let values = asked.values.iter().copied();
        values.filter(|_| asked.named)
    }

    /// Says that image `own` runs the plan: what nothing was asked of has its word. Asked for
    /// `lse` where not every CPU has it (`lse`), the other image runs, to skip every cell.
    ///
    /// # Errors
    /// [`OtherImage`]: it can't.
    pub fn runs_on(&mut self, own: Atomics, lse: bool) -> Result<(), OtherImage> {
        let mut asked = self.atomics();
        let (first, others) = (asked.next(), asked.count());
        match first {
            None => self.lists.atomics = Dimension::default_of(&[own]),
            Some(_) if others > 0 => return Err(OtherImage::Several),
            Some(asked) if asked == own => {}
            Some(Atomics::Lse) if !lse => {}
            Some(asked) => return Err(OtherImage::Asked(asked)),
        }
        Ok(())
    }
}
