// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dimensions that a boot fixes for all its cells: the guest has an image for each word of
//! `atomics`, and Linux decides at its boot how it idles.
//!
//! The host boots once for each requested choice ([`Plan::choices`]), with that choice's part of
//! the plan ([`Plan::chosen`]). The hypervisor chooses the image
//! ([`Names::atomics`](crate::Names)). The guest reports in every cell which image it is
//! ([`Plan::runs_on`]). Linux learns from its command line how to idle.

use core::fmt;

use crate::{Atomics, Dimension, LinuxCpuidle, List, Plan, Value};

/// The dimensions that have one value per boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The atomic instructions of the guest, if they were requested; otherwise the best that the
    /// machine has.
    pub atomics: Option<Atomics>,
    /// How Linux idles, if Linux is the guest.
    pub cpuidle: LinuxCpuidle,
}

impl Choice {
    /// No choice was requested.
    pub const NONE: Self = Self {
        atomics: None,
        cpuidle: LinuxCpuidle::Default,
    };
}

impl fmt::Display for Choice {
    /// Writes the requested values, each after a comma: `, atomics lse`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(atomics) = self.atomics {
            write!(f, ", atomics {atomics}")?;
        }
        match self.cpuidle {
            LinuxCpuidle::Default => Ok(()),
            cpuidle => write!(f, ", linux-cpuidle {cpuidle}"),
        }
    }
}

/// The reason why the guest's image can't measure the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherImage {
    /// The plan names several words.
    Several,
    /// The plan names only this word, but the image was built for the other word.
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
    /// Returns the requested choices; each needs its own boot. A choice is the guest's image or, if the guest
    /// is Linux (`linux`), how Linux idles.
    #[must_use]
    pub fn choices(&self, linux: bool) -> List<Choice> {
        let choose = |cpuidle: &LinuxCpuidle| Choice {
            cpuidle: *cpuidle,
            ..Choice::NONE
        };
        if linux {
            return self.lists.linux_cpuidle.values.iter().map(choose).collect();
        }
        let images = self.atomics().map(|atomics| Choice {
            atomics: Some(atomics),
            ..Choice::NONE
        });
        let images: List<Choice> = images.collect();
        if images.is_empty() {
            return [Choice::NONE].into_iter().collect();
        }
        images
    }

    /// Returns the plan of a boot with `choice`.
    #[must_use]
    pub fn chosen(&self, choice: Choice) -> Self {
        let mut plan = self.clone();
        plan.lists.atomics = match choice.atomics {
            None => Dimension::default_of(&[Atomics::Llsc]),
            Some(atomics) => list_of_one(atomics, true),
        };
        let named = self.lists.linux_cpuidle.named;
        plan.lists.linux_cpuidle = list_of_one(choice.cpuidle, named);
        plan
    }

    /// Returns the requested words of `atomics`; each needs its own boot. An empty list means the machine's best.
    pub fn atomics(&self) -> impl Iterator<Item = Atomics> + '_ {
        let asked = &self.lists.atomics;
        let values = asked.values.iter().copied();
        values.filter(|_| asked.named)
    }

    /// Records that image `own` runs the plan: if no word was requested, the plan gets the image's
    /// word. If `lse` was requested and not every CPU has it (`lse` is false), the other image runs
    /// and skips every cell.
    ///
    /// # Errors
    /// Returns [`OtherImage`] if the image can't run the plan.
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

/// Makes a dimension whose list has one value.
fn list_of_one<T: Value>(value: T, named: bool) -> Dimension<T> {
    Dimension {
        named,
        ..Dimension::default_of(&[value])
    }
}
