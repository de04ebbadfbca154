// SPDX-License-Identifier: MIT OR Apache-2.0
//! The failures that can be asked for.

use core::fmt;

use super::{Word, words};

words! {
    /// A requested failure, to see its report and that it is noticed.
    Fault {
        /// EL2 panics before the guest runs.
        El2Panic = "el2-panic",
        /// EL2 reads what is not mapped.
        El2Abort = "el2-abort",
        /// EL2 does nothing any more.
        El2Hang = "el2-hang",
        /// The stack of EL2's start runs over.
        El2Overflow = "el2-overflow",
        /// EL2 writes into its code.
        El2WriteCode = "el2-write-code",
        /// EL2 goes to where its variables are.
        El2RunData = "el2-run-data",
        /// EL2 breaks rules of the architecture that an emulator does not enforce.
        El2BreaksRules = "el2-breaks-rules",
        /// EL2 panics while the guest runs.
        El2PanicRunning = "el2-panic-running",
        /// The stack of a CPU runs over while the guest runs.
        El2OverflowRunning = "el2-overflow-running",
        /// EL2 panics in its own panic.
        El2PanicNested = "el2-panic-nested",
        /// EL2 panics while it holds the console.
        El2PanicHeld = "el2-panic-held",
        /// Every CPU that comes by panics at EL2.
        El2PanicEverywhere = "el2-panic-everywhere",
        /// Each CPU has an SError pending that firmware left.
        SerrorLeft = "serror-left",
        /// EL2 takes SErrors after which the run goes on.
        SerrorsGoOn = "serrors-go-on",
        /// EL2 takes one after which the guest can't go on.
        SerrorRecoverable = "serror-recoverable",
        /// EL2 takes one of which it is not known where it has spread.
        SerrorUncontainable = "serror-uncontainable",
        /// EL2 takes one of which it is not known whose it is.
        SerrorUncategorized = "serror-uncategorized",
        /// Firmware's SPCR has a wrong checksum.
        SpcrDamaged = "spcr-damaged",
        /// It is shorter than what it has to have.
        SpcrShort = "spcr-short",
        /// Its console is at address 0, which means no console.
        SpcrNowhere = "spcr-nowhere",
        /// Its console is of a type that is not known.
        SpcrUnknown = "spcr-unknown",
        /// The SPCR is missing.
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
        /// A CPU that is started never arrives.
        SecondarySilent = "secondary-silent",
        /// The counter stands still.
        CounterStands = "counter-stands",
        /// The counter seems to advance by 16 ticks at a time.
        CounterCoarse = "counter-coarse",
        /// The console takes nothing for a while.
        ConsoleStalls = "console-stalls",
        /// The console takes nothing any more from the guest's start on.
        ConsoleDies = "console-dies",
        /// Firmware refuses to turn the machine off.
        PowerOffFails = "power-off-fails",
        /// Another's data is in the guest's RAM before the guest is.
        RamDirty = "ram-dirty",
        /// The interrupt controller loses SGI 0 of the second CPU.
        SgiLost = "sgi-lost",
        /// The guest panics.
        GuestPanic = "guest-panic",
        /// The guest reads what is not mapped.
        GuestAbort = "guest-abort",
        /// The guest does nothing any more.
        GuestHang = "guest-hang",
        /// Two CPUs of the guest do nothing any more, with interrupts masked.
        GuestHangMasked = "guest-hang-masked",
        /// The last cell's second pass does not end.
        CellHang = "cell-hang",
        /// The core seems to be twice as fast from the third pass on.
        CoreClockMoves = "core-clock-moves",
        /// Every core but the first seems to be twice as fast.
        CoresDiffer = "cores-differ",
        /// The second core seems to be faster at the end, by 1 in 200.
        CoreDrifts = "core-drifts",
        /// The guest requests wake-ups without an interrupt.
        LostWakeUp = "lost-wake-up",
        /// Likewise, in a soak.
        SoakLostWakeUp = "soak-lost-wake-up",
        /// A bit is left in a request word.
        SoakLeak = "soak-leak",
        /// A list register keeps an interrupt that nothing will end.
        SoakStuckLr = "soak-stuck-lr",
        /// An interrupt is in two list registers.
        SoakListedTwice = "soak-listed-twice",
        /// An interrupt is delivered twice.
        SoakDoubleDelivery = "soak-double-delivery",
        /// The priority mask is left open.
        SoakUnbalancedMask = "soak-unbalanced-mask",
        /// A counter goes back.
        SoakCounterBack = "soak-counter-back",
        /// The virtual time goes back.
        SoakTimeBack = "soak-time-back",
        /// A bit is left in a pending word of EL2.
        SoakPendingWord = "soak-pending-word",
        /// The second CPU's SGIs are lost.
        SoakSgisLost = "soak-sgis-lost",
        /// The second CPU's timers' interrupts are lost.
        SoakTimersLost = "soak-timers-lost",
    }
}

impl Fault {
    /// Whether the guest has a part in it that only the trials have.
    #[must_use]
    pub const fn is_trial(self) -> bool {
        match self {
            Self::El2PanicRunning
            | Self::El2OverflowRunning
            | Self::El2PanicNested
            | Self::El2PanicHeld
            | Self::El2PanicEverywhere
            | Self::RamDirty
            | Self::GuestPanic
            | Self::GuestAbort
            | Self::GuestHang
            | Self::GuestHangMasked => true,
            // The hypervisor's alone, or of a soak, which is asked for by itself.
            Self::El2Panic
            | Self::El2Abort
            | Self::El2Hang
            | Self::El2Overflow
            | Self::El2WriteCode
            | Self::El2RunData
            | Self::El2BreaksRules
            | Self::SerrorLeft
            | Self::SerrorsGoOn
            | Self::SerrorRecoverable
            | Self::SerrorUncontainable
            | Self::SerrorUncategorized
            | Self::SpcrDamaged
            | Self::SpcrShort
            | Self::SpcrNowhere
            | Self::SpcrUnknown
            | Self::SpcrMissing
            | Self::TablesMoved
            | Self::NoWatchdog
            | Self::WatchdogRuns
            | Self::WatchdogSecure
            | Self::WatchdogInRam
            | Self::SecondarySilent
            | Self::CounterStands
            | Self::CounterCoarse
            | Self::ConsoleStalls
            | Self::ConsoleDies
            | Self::PowerOffFails
            | Self::SgiLost
            | Self::CellHang
            | Self::CoreClockMoves
            | Self::CoresDiffer
            | Self::CoreDrifts
            | Self::LostWakeUp
            | Self::SoakLostWakeUp
            | Self::SoakLeak
            | Self::SoakStuckLr
            | Self::SoakListedTwice
            | Self::SoakDoubleDelivery
            | Self::SoakUnbalancedMask
            | Self::SoakCounterBack
            | Self::SoakTimeBack
            | Self::SoakPendingWord
            | Self::SoakSgisLost
            | Self::SoakTimersLost => false,
        }
    }
}
