// SPDX-License-Identifier: MIT OR Apache-2.0
//! The failures that can be asked for, by the one who makes them, and when.
//!
//! Images that measure make none of them: see [`Planted`].

use core::fmt;

use super::{Word, words};
use crate::Planted;

/// Declares the kinds of an enum, each an enum of words, and the enum, which has all their words.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident {$(
        $(#[$kdoc:meta])* $kind:ident($of:ident) { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }
    )*}) => {
        words! {$($(#[$kdoc])* $of { $($(#[$vdoc])* $variant = $word,)* })*}

        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$kdoc])* $kind($of),)* }

        impl Word for $name {
            const ALL: &'static [Self] = &[$($(Self::$kind($of::$variant),)*)*];
            const NAMES: &'static [&'static str] = &[$($($word,)*)*];
            fn name(self) -> &'static str {
                match self { $(Self::$kind(it) => it.name(),)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

kinds! {
    /// A failure that is asked for, to see what it looks like and that it is noticed.
    Fault {
        /// Faults that firmware leaves, in its tables or services.
        Firmware(FirmwareFault) {
            /// Firmware's SPCR has a wrong checksum.
            SpcrDamaged = "spcr-damaged",
            /// The SPCR is shorter than what it has to have.
            SpcrShort = "spcr-short",
            /// The SPCR's console is at address 0, which says that there is none.
            SpcrNowhere = "spcr-nowhere",
            /// The SPCR's console is of a type that is not known.
            SpcrUnknown = "spcr-unknown",
            /// There is no SPCR.
            SpcrMissing = "spcr-missing",
            /// Firmware's tables are at odd addresses, at the end of reserved memory.
            TablesMoved = "tables-moved",
            /// Firmware does not support SetWatchdogTimer.
            NoWatchdog = "no-watchdog",
            /// Firmware leaves a generic watchdog running.
            WatchdogRuns = "watchdog-runs",
            /// Firmware's GTDT says that the watchdog is the secure side's.
            WatchdogSecure = "watchdog-secure",
            /// Firmware's GTDT says that the watchdog's frame is where RAM is.
            WatchdogInRam = "watchdog-in-ram",
        }
        /// Faults that the machine seems to have.
        Machine(MachineFault) {
            /// Each CPU has an SError pending that firmware left.
            SerrorLeft = "serror-left",
            /// A CPU that is started never arrives.
            SecondarySilent = "secondary-silent",
            /// The counter stands still.
            CounterStands = "counter-stands",
            /// Firmware refuses to turn the machine off.
            PowerOffFails = "power-off-fails",
            /// Another's data is in the guest's RAM before the guest is.
            RamDirty = "ram-dirty",
        }
        /// Faults of EL2 before the guest runs.
        Start(StartFault) {
            /// EL2 panics before the guest runs.
            Panic = "el2-panic",
            /// EL2 reads what is not mapped.
            Abort = "el2-abort",
            /// EL2 does nothing any more.
            Hang = "el2-hang",
            /// The stack of EL2's start runs over.
            Overflow = "el2-overflow",
            /// EL2 writes into its code.
            WriteCode = "el2-write-code",
            /// EL2 goes to where its variables are.
            RunData = "el2-run-data",
            /// EL2 breaks rules of the architecture that an emulator does not enforce.
            BreaksRules = "el2-breaks-rules",
            /// The console takes nothing for a while.
            ConsoleStalls = "console-stalls",
            /// The console takes nothing any more from the guest's start on.
            ConsoleDies = "console-dies",
        }
        /// Faults of EL2 when a guest calls it, which the trials do.
        Call(CallFault) {
            /// EL2 panics while the guest runs.
            PanicRunning = "el2-panic-running",
            /// The stack of a CPU runs over while the guest runs.
            OverflowRunning = "el2-overflow-running",
            /// EL2 panics in its own panic.
            PanicNested = "el2-panic-nested",
            /// EL2 panics while it holds the console.
            PanicHeld = "el2-panic-held",
            /// Every CPU that comes by panics at EL2.
            PanicEverywhere = "el2-panic-everywhere",
            /// The interrupt controller loses SGI 0 of the second CPU.
            SgiLost = "sgi-lost",
        }
        /// SErrors that EL2 takes when the first cell begins.
        Serror(SerrorFault) {
            /// EL2 takes SErrors after which the run goes on.
            GoOn = "serrors-go-on",
            /// EL2 takes one after which the guest can't go on.
            Recoverable = "serror-recoverable",
            /// EL2 takes one of which it is not known where it has spread.
            Uncontainable = "serror-uncontainable",
            /// EL2 takes one of which it is not known whose it is.
            Uncategorized = "serror-uncategorized",
        }
        /// Contradictions that EL2 makes while a soak has it audited.
        Audit(AuditFault) {
            /// A list register keeps an interrupt that nothing will end.
            StuckLr = "soak-stuck-lr",
            /// An interrupt is in two list registers.
            ListedTwice = "soak-listed-twice",
            /// An interrupt is delivered twice.
            DoubleDelivery = "soak-double-delivery",
            /// The priority mask is left open.
            UnbalancedMask = "soak-unbalanced-mask",
            /// A counter goes back.
            CounterBack = "soak-counter-back",
            /// The virtual time goes back.
            TimeBack = "soak-time-back",
            /// A bit is left in a pending word of EL2.
            PendingWord = "soak-pending-word",
            /// The second CPU's SGIs are lost.
            SgisLost = "soak-sgis-lost",
            /// The second CPU's timers' interrupts are lost.
            TimersLost = "soak-timers-lost",
        }
        /// Faults of the guest while it measures.
        Cell(CellFault) {
            /// The counter seems to advance by 16 ticks at a time.
            CounterCoarse = "counter-coarse",
            /// The last cell's second pass does not end.
            CellHang = "cell-hang",
            /// The core seems to be twice as fast from the third pass on.
            CoreClockMoves = "core-clock-moves",
            /// Every core but the first seems to be twice as fast.
            CoresDiffer = "cores-differ",
            /// The second core seems to be faster at the end, by 1 in 200.
            CoreDrifts = "core-drifts",
        }
        /// Faults of the guest that has trials.
        Guest(GuestFault) {
            /// The guest panics.
            Panic = "guest-panic",
            /// The guest reads what is not mapped.
            Abort = "guest-abort",
            /// The guest does nothing any more.
            Hang = "guest-hang",
            /// Two CPUs of the guest do nothing any more, with interrupts masked.
            HangMasked = "guest-hang-masked",
        }
        /// Faults of the guest in a soak.
        Soak(SoakFault) {
            /// The guest requests wake-ups without an interrupt.
            LostWakeUp = "lost-wake-up",
            /// A bit is left in a request word.
            Leak = "soak-leak",
        }
    }
}

impl Fault {
    /// The image that makes it, where measuring takes one without it; every image of the trials makes theirs.
    #[must_use]
    pub const fn planted(self) -> Planted {
        match self {
            Self::Firmware(_)
            | Self::Machine(_)
            | Self::Start(_)
            | Self::Call(_)
            | Self::Serror(_)
            | Self::Audit(_) => Planted {
                hypervisor: true,
                guest: false,
            },
            Self::Cell(_) => Planted {
                hypervisor: false,
                guest: true,
            },
            Self::Guest(_) | Self::Soak(_) => Planted::NOTHING,
        }
    }

    /// Whether the guest has a part in it that only the trials have, also where nothing else asks for them.
    #[must_use]
    pub const fn is_trial(self) -> bool {
        match self {
            Self::Call(_) | Self::Guest(_) | Self::Machine(MachineFault::RamDirty) => true,
            Self::Firmware(_)
            | Self::Machine(_)
            | Self::Start(_)
            | Self::Serror(_)
            | Self::Audit(_)
            | Self::Cell(_)
            | Self::Soak(_) => false,
        }
    }
}
