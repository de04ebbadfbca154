// SPDX-License-Identifier: MIT OR Apache-2.0
//! The dimensions of the workloads that run on the guest's executor: what they
//! do, and which of the systems under comparison is on.
//!
//! They are a table: one line each gives type, default, range and name, and
//! everything else follows from it.

use core::fmt;

use crate::text::{Error, number};
use crate::words::{CallBy, Calls, Completion, Spread, Switch};
use crate::{CpuSet, Dimension};

/// Declares [`System`], one value of each dimension, and [`Systems`], the lists.
macro_rules! dimensions {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $default:expr, $read:expr, $key:literal;)*) => {
        /// One value of each; `None` where it does not apply to the cell.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct System { $($(#[$doc])* pub $field: Option<$type>,)* }

        /// The values of each.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Systems { $($(#[$doc])* pub $field: Dimension<$type>,)* }

        impl Default for Systems {
            fn default() -> Self {
                Self { $($field: Dimension::default_of(&[$default]),)* }
            }
        }

        impl Systems {
            /// The names of the dimensions.
            pub const KEYS: &'static [&'static str] = &[$($key),*];

            /// Sets dimension `key`; `None` if it is none of these.
            pub(crate) fn set<'a>(
                &mut self,
                key: &'a str,
                values: &'a str,
            ) -> Option<Result<(), Error<'a>>> {
                match key {
                    $($key => Some($read(&mut self.$field, key, values)),)*
                    _ => None,
                }
            }

            /// Prints what was named.
            pub(crate) fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $(crate::text::show(f, $key, &self.$field)?;)*
                Ok(())
            }

            /// How many combinations there are.
            pub(crate) fn combinations(&self) -> usize {
                1 $(* self.$field.values.len())*
            }

            /// Lengths of the dimensions, the fastest first.
            pub(crate) fn lengths(&self) -> impl IntoIterator<Item = usize> {
                [$(self.$field.values.len()),*]
            }

            /// Combination `number` of them.
            pub(crate) fn combination(&self, mut number: usize) -> System {
                System { $($field: {
                    let values = &self.$field.values;
                    let value = values[number % values.len()];
                    number /= values.len();
                    let _ = number;
                    Some(value)
                },)* }
            }
        }

        impl System {
            /// What applies, by name.
            ///
            /// # Errors
            /// What `each` answers.
            pub fn each<E>(
                &self,
                mut each: impl FnMut(&'static str, &dyn fmt::Display) -> Result<(), E>,
            ) -> Result<(), E> {
                $(if let Some(value) = &self.$field {
                    each($key, value)?;
                })*
                Ok(())
            }
        }
    };
}

dimensions! {
    /// Groups of tasks, as `perf bench sched messaging -g` has them; pairs for `notify`.
    groups: u32 = 1, numbers::<1, 16>, "groups";
    /// Whom `ipistorm` calls.
    calls: Calls = Calls::Single, Dimension::read, "calls";
    /// A call of one CPU goes to the caller's number plus this.
    offset: u32 = 1, numbers::<0, 63>, "offset";
    /// CPUs that a call to many goes to.
    mask: CpuSet = CpuSet::ALL, Dimension::read_sets, "mask";
    /// CPUs that call, or that wake up by time; the first one for `ipistorm`, all
    /// for the others, unless some are named.
    cpulist: CpuSet = CpuSet::ALL, Dimension::read_sets, "cpulist";
    /// The caller waits until the function has run.
    call_wait: Switch = Switch::On, Dimension::read, "call-wait";
    /// How a call reaches a CPU that polls.
    call_by: CallBy = CallBy::Notify, Dimension::read, "call-by";
    /// How long the device of workload `io` takes, microseconds.
    device_us: u32 = 20, numbers::<1, 1_000_000>, "device-us";
    /// How its times are distributed.
    spread: Spread = Spread::Fixed, Dimension::read, "spread";
    /// Which CPU it interrupts.
    completion: Completion = Completion::Same, Dimension::read, "completion";
    /// For how long after a request to a device a CPU stays shallow, milliseconds; 0 is off.
    psd_ms: u32 = 0, numbers::<0, 1000>, "psd-ms";
    /// Exit latency of the standby state, microseconds; 0 is without that state.
    standby_us: u32 = 100, numbers::<0, 10_000>, "standby-us";
    /// CPUs that poll whatever the governor says.
    idle_poll: CpuSet = CpuSet::NONE, Dimension::read_sets, "idle-poll";
}

/// Reads numbers from `MIN` to `MAX`.
fn numbers<'a, const MIN: u32, const MAX: u32>(
    dimension: &mut Dimension<u32>,
    key: &'a str,
    values: &'a str,
) -> Result<(), Error<'a>> {
    dimension.read_each(key, values, |key, word| number(key, word, MIN, MAX))
}

/// Like `psd-ms=3,call-by=notify`; nothing where nothing applies.
impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        self.each(|key, value| {
            write!(f, "{separator}{key}={value}")?;
            separator = ",";
            Ok(())
        })
    }
}
