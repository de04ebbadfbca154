// SPDX-License-Identifier: MIT OR Apache-2.0
//! The failures that can be requested, grouped by who causes them and when.
//!
//! Images for measurements cause none of them: see [`Planted`].

use core::fmt;

use super::{Word, words};
use crate::Planted;

/// Declares an enum and its kinds. Each kind is an enum of words, and the enum has the words of all
/// kinds.
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
    /// A failure caused on purpose, to see how it looks and to check that it is noticed.
    Fault {
        /// Faults of firmware, in its tables or services.
        Firmware(FirmwareFault) {
            /// Firmware's SPCR has a wrong checksum.
            SpcrDamaged = "spcr-damaged",
            /// The SPCR is shorter than its required fields.
            SpcrShort = "spcr-short",
            /// The SPCR's console is at address 0, which means that there is no console.
            SpcrNowhere = "spcr-nowhere",
            /// The SPCR's console has an unknown type.
            SpcrUnknown = "spcr-unknown",
            /// There is no SPCR.
            SpcrMissing = "spcr-missing",
            /// The MADT has a wrong checksum.
            MadtDamaged = "madt-damaged",
            /// Firmware's tables are at unaligned addresses, at the end of reserved memory.
            TablesMoved = "tables-moved",
            /// Firmware does not support SetWatchdogTimer.
            NoWatchdog = "no-watchdog",
            /// Firmware leaves a generic watchdog running.
            WatchdogRuns = "watchdog-runs",
            /// Firmware's GTDT says that the watchdog belongs to the secure side.
            WatchdogSecure = "watchdog-secure",
            /// Firmware's GTDT puts the watchdog's frame in RAM.
            WatchdogInRam = "watchdog-in-ram",
        }
        /// Faults that the machine seems to have.
        Machine(MachineFault) {
            /// Firmware has left an SError pending on each CPU.
            SerrorLeft = "serror-left",
            /// A started CPU never arrives.
            SecondarySilent = "secondary-silent",
            /// The counter does not advance.
            CounterStands = "counter-stands",
            /// The interrupt controller has one list register.
            OneListRegister = "one-list-register",
            /// Firmware refuses to turn the machine off.
            PowerOffFails = "power-off-fails",
            /// The guest's RAM contains foreign data before the guest is loaded.
            RamDirty = "ram-dirty",
        }
        /// Faults of EL2 before the guest runs.
        Start(StartFault) {
            /// EL2 panics before the guest runs.
            Panic = "el2-panic",
            /// EL2 reads an unmapped address.
            Abort = "el2-abort",
            /// EL2 stops doing anything.
            Hang = "el2-hang",
            /// EL2's boot stack overflows.
            Overflow = "el2-overflow",
            /// EL2 writes into its code.
            WriteCode = "el2-write-code",
            /// EL2 jumps into its variables.
            RunData = "el2-run-data",
            /// EL2 breaks rules of the architecture that an emulator does not enforce.
            BreaksRules = "el2-breaks-rules",
            /// The console accepts nothing for a while.
            ConsoleStalls = "console-stalls",
            /// The console accepts nothing from the guest's start on.
            ConsoleDies = "console-dies",
        }
        /// Faults of EL2 when a guest calls it, as the trials do.
        Call(CallFault) {
            /// EL2 panics while the guest runs.
            PanicRunning = "el2-panic-running",
            /// The stack of a CPU overflows while the guest runs.
            OverflowRunning = "el2-overflow-running",
            /// EL2 panics while it handles a panic.
            PanicNested = "el2-panic-nested",
            /// EL2 panics while it holds the console's lock.
            PanicHeld = "el2-panic-held",
            /// Every CPU that enters EL2 panics there.
            PanicEverywhere = "el2-panic-everywhere",
            /// The interrupt controller no longer delivers SGI 0 to the second CPU.
            SgiLost = "sgi-lost",
        }
        /// SErrors that EL2 takes when the first cell begins.
        Serror(SerrorFault) {
            /// EL2 takes SErrors after which the run continues.
            GoOn = "serrors-go-on",
            /// EL2 takes an SError after which the guest can't continue.
            Recoverable = "serror-recoverable",
            /// EL2 takes an SError that may have spread anywhere.
            Uncontainable = "serror-uncontainable",
            /// EL2 takes an SError whose origin is unknown.
            Uncategorized = "serror-uncategorized",
        }
        /// Contradictions that EL2 causes while a soak audits it.
        Audit(AuditFault) {
            /// A list register holds an interrupt that nothing will end.
            StuckLr = "soak-stuck-lr",
            /// An interrupt is in two list registers.
            ListedTwice = "soak-listed-twice",
            /// Accesses to the virtual CPU interface trap without a reason that EL2 knows of.
            TrapsLeft = "soak-traps-left",
            /// An interrupt is delivered twice.
            DoubleDelivery = "soak-double-delivery",
            /// The priority mask is left open.
            UnbalancedMask = "soak-unbalanced-mask",
            /// A counter goes backwards.
            CounterBack = "soak-counter-back",
            /// The virtual time goes backwards.
            TimeBack = "soak-time-back",
            /// A bit is left in a pending word of EL2.
            PendingWord = "soak-pending-word",
            /// SGIs to the second CPU are lost.
            SgisLost = "soak-sgis-lost",
            /// The second CPU's timer interrupts are lost.
            TimersLost = "soak-timers-lost",
        }
        /// Faults of the guest while it measures.
        Cell(CellFault) {
            /// The counter seems to advance by 16 ticks at a time.
            CounterCoarse = "counter-coarse",
            /// The last cell's second pass does not end.
            CellHang = "cell-hang",
            /// The core seems twice as fast from the third pass on.
            CoreClockMoves = "core-clock-moves",
            /// Every core except the first seems twice as fast.
            CoresDiffer = "cores-differ",
            /// The second core seems 0.5 % faster at the end.
            CoreDrifts = "core-drifts",
        }
        /// Faults of the guest that runs trials.
        Guest(GuestFault) {
            /// The guest panics.
            Panic = "guest-panic",
            /// The guest reads an unmapped address.
            Abort = "guest-abort",
            /// The guest stops doing anything.
            Hang = "guest-hang",
            /// Two CPUs of the guest stop doing anything, with interrupts masked.
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
    /// Returns the image that has to be built for tests to cause the fault, if there is one. Every image
    /// for trials can cause the trials' faults.
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

    /// Whether the fault needs code of the guest that only the trials' image has, even if nothing
    /// else asks for that image.
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
