// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boot arguments that are ours: words that begin with `rouse.`.
//!
//! Hypervisor, guest and host read them by this one type, so that all three know
//! the same words and refuse the same mistakes. Words of another prefix are of
//! whatever else is booted.

use crate::dimensions;
use crate::nearest::nearest;
use crate::{Error, Fault, PREFIX, Plan, Word};

/// Declares the arguments that are no part of the plan.
macro_rules! arguments {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $key:literal, $read:expr;)*) => {
        /// What an image is told.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Arguments<'a, P = Plan> {
            /// What is to be measured.
            pub plan: P,
            $($(#[$doc])* pub $field: $type,)*
        }

        /// Names of the arguments that are no part of the plan.
        const KEYS: &[&str] = &[$($key),*];

        impl<'a, P: Part<'a>> Arguments<'a, P> {
            /// Takes one argument. Of those that are no part of the plan the first of
            /// a name counts, of the plan's the last.
            fn take(&mut self, key: &'a str, value: &'a str) -> Result<(), Error<'a>> {
                match key {
                    $($key => {
                        let read: $type = $read(key, value)?;
                        if self.$field == <$type>::default() {
                            self.$field = read;
                        }
                        Ok(())
                    })*
                    _ => self.plan.take(key, value),
                }
            }
        }
    };
}

arguments! {
    /// The check that is run instead of the plan, or `all`.
    check: Option<&'a str> = "check", text;
    /// The paths that are run once each instead, for a tracer: `all`, or names with commas.
    cost: Option<&'a str> = "cost", text;
    /// A failure that is asked for.
    fault: Option<Fault> = "fault", word;
    /// The class of hostile guests that is run instead, or `all`.
    hostile: Option<&'a str> = "hostile", text;
    /// What chance is made of.
    seed: Option<u64> = "seed", count;
    /// Wake-ups of a soak, which is run instead.
    soak: Option<u64> = "soak", count;
    /// The same without other operations.
    stress: Option<u64> = "stress", count;
    /// The hypervisor prints what the machine is.
    survey: bool = "survey", on;
    /// Here the boot arguments begin, where a boot manager may put something in front.
    options: bool = "options", on;
    /// The console, as `platform::uart::Named` reads it.
    uart: Option<&'a str> = "uart", text;
}

/// What becomes of the arguments that say what is to be measured.
pub trait Part<'a>: Default {
    /// Takes one argument.
    ///
    /// # Errors
    /// [`Error`] names what is wrong.
    fn take(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>>;
}

impl<'a> Part<'a> for Plan {
    fn take(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>> {
        self.set(key, values)
    }
}

/// For the hypervisor, which measures nothing: their names are known or not, their
/// values are the guest's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names;

impl<'a> Part<'a> for Names {
    fn take(&mut self, key: &'a str, _: &'a str) -> Result<(), Error<'a>> {
        match keys().any(|known| known == key) {
            true => Ok(()),
            false => Err(Error::unknown(key)),
        }
    }
}

impl<'a> Arguments<'a> {
    /// Reads the words of `text` that begin with `rouse.`.
    ///
    /// # Errors
    /// [`Error`] names the first thing that is wrong.
    pub fn parse(text: &'a str) -> Result<Self, Error<'a>> {
        let (arguments, wrong) = Self::read(text);
        wrong.map_or(Ok(arguments), Err)
    }
}

impl<'a, P: Part<'a>> Arguments<'a, P> {
    /// The same, with what can be read although something is wrong: where to say so.
    #[must_use]
    pub fn read(text: &'a str) -> (Self, Option<Error<'a>>) {
        let mut arguments = Self::default();
        let mut wrong = None;
        for word in text.split_ascii_whitespace() {
            if let Some(argument) = word.strip_prefix(PREFIX) {
                let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
                wrong = wrong.or(arguments.take(key, value).err());
            }
        }
        (arguments, wrong)
    }

    /// Whether the plan is what is run.
    #[must_use]
    pub const fn measures(&self) -> bool {
        let Self {
            check,
            cost,
            hostile,
            soak,
            stress,
            ..
        } = self;
        check.is_none() && cost.is_none() && hostile.is_none() && soak.is_none() && stress.is_none()
    }
}

/// Every name that an argument can have.
pub fn keys() -> impl Iterator<Item = &'static str> {
    // Not from the table, which has everything else of the dimensions with it.
    let names = dimensions::NAMES.iter().chain(Plan::OTHERS).chain(KEYS);
    names.copied()
}

impl<'a> Error<'a> {
    /// There is no argument `key`.
    pub(crate) fn unknown(key: &'a str) -> Self {
        let nearest = nearest(key, keys()).unwrap_or_default();
        Self::UnknownKey { key, nearest }
    }
}

fn text<'a>(key: &'a str, value: &'a str) -> Result<Option<&'a str>, Error<'a>> {
    if value.is_empty() {
        Err(Error::NeedsValue(key))
    } else {
        Ok(Some(value))
    }
}

fn word<'a, W: Word>(key: &'a str, word: &'a str) -> Result<Option<W>, Error<'a>> {
    let known = W::NAMES;
    match W::parse(word) {
        Some(value) => Ok(Some(value)),
        None => Err(Error::UnknownName {
            key,
            word,
            nearest: nearest(word, known.iter().copied()).unwrap_or_default(),
        }),
    }
}

fn count<'a>(key: &'a str, word: &'a str) -> Result<Option<u64>, Error<'a>> {
    let count = word.parse();
    count.map(Some).map_err(|_| Error::Count { key, word })
}

/// A switch, which has no value.
pub(crate) fn on<'a>(key: &'a str, value: &str) -> Result<bool, Error<'a>> {
    if value.is_empty() {
        Ok(true)
    } else {
        Err(Error::NoValue(key))
    }
}
