// SPDX-License-Identifier: MIT OR Apache-2.0
//! Failing as the boot arguments ask by `rouse.fault=NAME`: a way to see
//! what a failure looks like, and that it is noticed. The guest has no say in it.
//!
//! Nothing of this is looked at on a measured path: the machine's own faults are
//! made while it starts, those of EL2 when the guest asks for a watch
//! ([`abi::CALL_WATCH`]), which every guest does that wants one of them.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};

/// Declares the faults by their names.
macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A fault that can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault { $($(#[$doc])* $name,)* }
        impl Fault {
            fn named(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$name),)* _ => None }
            }
        }
    };
}

faults! {
    /// EL2 panics before the guest runs.
    Panic = "el2-panic",
    /// EL2 reads what is not mapped.
    Abort = "el2-abort",
    /// EL2 does nothing any more.
    Hang = "el2-hang",
    /// The stack of the start runs over.
    Overflow = "el2-overflow",
    /// EL2 writes into its code.
    WriteCode = "el2-write-code",
    /// EL2 goes to where its variables are.
    RunData = "el2-run-data",
    /// A CPU that is started never arrives.
    Secondary = "secondary-silent",
    /// The counter stands still.
    Counter = "counter-stands",
    /// The console takes nothing for a while.
    Console = "console-stalls",
    /// Somebody else's data is in the guest's RAM before the guest is.
    Dirty = "ram-dirty",
    /// The interrupt controller loses SGI 0 of the second CPU.
    Sgi = "sgi-lost",
    /// EL2 panics while the guest runs.
    Running = "el2-panic-running",
    /// The stack of a CPU runs over while the guest runs.
    RunningOverflow = "el2-overflow-running",
    /// EL2 panics in its own panic.
    Nested = "el2-panic-nested",
    /// EL2 panics while it holds the console.
    Held = "el2-panic-held",
    /// Every CPU that comes by panics.
    Every = "el2-panic-everywhere",
}

/// The fault that is asked for, by its number + 1; 0 is none.
static ASKED: AtomicU32 = AtomicU32::new(0);

/// Reads which fault is asked for.
pub fn read(bootargs: &str) {
    let mut arguments = bootargs.split_ascii_whitespace();
    let name = arguments.find_map(|argument| argument.strip_prefix("rouse.fault="));
    let asked = name.and_then(Fault::named);
    ASKED.store(asked.map_or(0, |fault| 1 + fault as u32), Relaxed);
}

/// Whether `fault` is asked for.
pub fn is(fault: Fault) -> bool {
    ASKED.load(Relaxed) == 1 + fault as u32
}

/// The counter as EL2 reads it while it starts.
pub fn counter() -> u64 {
    if is(Fault::Counter) {
        0
    } else {
        CNTPCT_EL0.get()
    }
}
