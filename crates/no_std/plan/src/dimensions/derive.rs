// SPDX-License-Identifier: MIT OR Apache-2.0
//! Derives cells, lists and their product, and the host's description of each dimension
//! ([`Info`](super::Info)), from the table of the dimensions.

use core::fmt;

/// The first operand if there is one, otherwise the second.
macro_rules! or {
    ([$given:expr] $default:expr) => {
        $given
    };
    ([] $default:expr) => {
        $default
    };
}

macro_rules! dimensions {
    ($($(#[$doc:meta])* $field:ident: $type:ty {
        key: $key:literal,
        $(aliases: $aliases:expr,)?
        help: $help:literal,
        $(range: $range:expr,)?
        default: $default:expr,
        $(neutral: $neutral:expr,)?
        turn: $turn:literal,
        $(place: $place:expr, show: $show:expr,)?
        applies: $applies:expr,
        $(own_default: $own:expr,)?
        $(forced: $forced:expr,)?
        $(contradicts: $contradicts:expr,)?
    })*) => {
        /// One combination of values, which is measured as a unit. A dimension that does not apply
        /// has its neutral value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Cell { $($(#[$doc])* pub $field: $type,)* }

        /// The values of each dimension.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Lists { $($(#[$doc])* pub $field: Dimension<$type>,)* }

        /// Names of the dimensions.
        pub(crate) const NAMES: &[&str] = &[$($key),*];

        /// Number of dimensions.
        pub const COUNT: usize = NAMES.len();

        /// The dimensions, in the order of options, records and results.
        pub static DIMENSIONS: [Info; COUNT] = [$(Info {
            key: $key,
            aliases: or!([$($aliases)?] &[]),
            help: $help,
            words: <$type as Value>::WORDS,
            kind: <$type as Value>::KIND,
            place: or!([$($place)?] Place::System),
            show: or!([$($show)?] Show::IfDifferent),

            applies: $applies,
            takes_listed: |cell| {
                const APPLIES: fn(&Cell) -> bool = $applies;
                const OWN: Option<fn(&Cell) -> Option<$type>> = or!([$(Some($own))?] None);
                const FORCED: fn(&Cell) -> Option<$type> = or!([$($forced)?] |_| None);
                OWN.is_none() && APPLIES(cell) && FORCED(cell).is_none()
            },
            contradicts: or!([$($contradicts)?] |_, _| None),
            set: |cell, key, word| {
                // The neutral value may be one that can't be requested.
                let neutral: $type = or!([$($neutral)?] ($default)[0]);
                cell.$field = match <$type as Value>::read(key, word, or!([$($range)?] ())) {
                    Err(Error::Number { .. }) if is_text(word, &neutral) => neutral,
                    read => read?,
                };
                Ok(())
            },
            write: |cell, f| fmt::Display::fmt(&cell.$field, f),
            is_neutral: |cell| cell.$field == or!([$($neutral)?] ($default)[0]),
            rank: |cell| Value::sort_key(cell.$field),
        }),*];

        /// How slowly the values of each dimension change from cell to cell: 0 is slowest.
        const TURNS: [u8; COUNT] = [$($turn),*];

        impl Default for Cell {
            /// Returns the cell in which every dimension has its neutral value.
            fn default() -> Self {
                Self { $($field: or!([$($neutral)?] ($default)[0]),)* }
            }
        }

        impl Cell {
            /// Returns the cell with every dimension that does not apply set to its neutral value.
            pub(crate) fn normalise(&self) -> Self {
                Self { $($field: {
                    const APPLIES: fn(&Cell) -> bool = $applies;
                    const FORCED: fn(&Cell) -> Option<$type> = or!([$($forced)?] |_| None);
                    if APPLIES(self) {
                        FORCED(self).unwrap_or(self.$field)
                    } else {
                        or!([$($neutral)?] ($default)[0])
                    }
                },)* }
            }
        }

        impl Default for Lists {
            fn default() -> Self {
                Self { $($field: Dimension::default_of(&$default),)* }
            }
        }

        impl Lists {
            /// Sets dimension `key`; `None` if no dimension is called `key`.
            pub(crate) fn set<'a>(
                &mut self,
                key: &'a str,
                values: &'a str,
            ) -> Option<Result<(), Error<'a>>> {
                match key {
                    $($key => Some(self.$field.read(key, values, or!([$($range)?] ()))),)*
                    _ => None,
                }
            }

            /// Prints the named values.
            pub(crate) fn print_arguments(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(self.$field.print_argument(f, $key)?;)*
                Ok(())
            }

            /// Returns the lengths of the lists.
            pub(crate) fn lengths(&self) -> [usize; COUNT] {
                [$(self.$field.values.len()),*]
            }

            /// Returns the cell whose values are at the indices `at` in the lists.
            pub(crate) fn cell_at(&self, at: &[usize; COUNT]) -> Cell {
                let mut at = at.iter().copied();
                let cell = Cell { $($field: self.$field.values[at.next().unwrap_or(0)],)* };
                let mut cell = cell.with_real_wait();
                $($({
                    const OWN: fn(&Cell) -> Option<$type> = $own;
                    if let Some(own) = OWN(&cell).filter(|_| !self.$field.named) {
                        cell.$field = own;
                    }
                })?)*
                cell.normalise()
            }
        }
    };
}

pub(super) use {dimensions, or};

/// Whether `value` prints as `text`.
pub fn is_text(text: &str, value: &impl fmt::Display) -> bool {
    /// Text that remains to be matched.
    struct Rest<'t>(&'t str);
    impl fmt::Write for Rest<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    let mut rest = Rest(text);
    fmt::write(&mut rest, format_args!("{value}")).is_ok() && rest.0.is_empty()
}
