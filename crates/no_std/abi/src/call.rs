// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that a guest makes to the hypervisor.

/// The number of the first call: a 64-bit fast call to a vendor-specific hypervisor service
/// (DEN0028F, 2.4 and 2.5).
const FIRST: u32 = 0xc600_0001;

numbered! {
    /// A call: its arguments are in x1 and up, its results in x0 and up. Calls are numbered in this
    /// order, so no two calls share a number; new calls belong at the end.
    Call {
        /// Sets knob x1 of the calling vCPU to x2; x0 is [`SUCCESS`](crate::SUCCESS) or [`INVALID`](crate::INVALID).
        Set = "set",
        /// Reads the [`Counter`](crate::Counter)s of the calling vCPU since it started: x0 =
        /// [`SUCCESS`](crate::SUCCESS), x1.. = the counters. The call does not count itself.
        Counters = "counters",
        /// Reads facts: x0 = [`SUCCESS`](crate::SUCCESS), x1.. = [`Info`](crate::Info).
        Info = "info",
        /// Ends the machine with exit status x1, which reaches the shell.
        Exit = "exit",
        /// Watches [`WatchPoint`](crate::WatchPoint)s at guest physical address x1, one per vCPU,
        /// and stops the machine if no vCPU makes progress for x2 ticks; x2 = 0 ends the watch. x0 is
        /// [`SUCCESS`](crate::SUCCESS) or [`INVALID`](crate::INVALID).
        Watch = "watch",
        /// x0 = [`SUCCESS`](crate::SUCCESS) or [`INVALID`](crate::INVALID); x1.. = the last [`EVENTS`](crate::EVENTS) events of vCPU x1
        /// (its number in the device tree) as pairs of time (virtual count) and [`Traced`](crate::Traced), the newest first.
        Trace = "trace",
        /// Makes EL2 also record its trace events of the calling vCPU in the
        /// [`TimeLog`](crate::TimeLog) at guest physical address x1, each event as an
        /// [`event_word`](crate::event_word), until a call with x1 = 0 or until the vCPU turns off.
        /// x0 is [`SUCCESS`](crate::SUCCESS) or [`INVALID`](crate::INVALID).
        Log = "log",
        /// Compares EL2's record of the calling vCPU's interrupts with its list registers; x1 is
        /// one of the modes in [`audit`](crate::audit). x0 is [`SUCCESS`](crate::SUCCESS), or
        /// [`INVALID`](crate::INVALID) if the two contradict each other or the guest.
        Audit = "audit",
        /// Prints the state of every CPU and ends the machine with exit status x1.
        Dump = "dump",
        /// Evicts the EL2 memory that a wake-up uses from all caches: the memory of EL2's image if
        /// x1 is [`EVICT_IMAGE`](crate::EVICT_IMAGE), otherwise the memory for vCPU x1 (its number
        /// in the device tree). Memory keeps its contents. x0 is [`SUCCESS`](crate::SUCCESS) or
        /// [`INVALID`](crate::INVALID). Other CPUs keep running. On this CPU, EL2 takes no interrupt
        /// during the call, which takes as long as cleaning some thousands of cache lines.
        Evict = "evict",
        /// Announces that pass x2 of cell x1 - 1 begins, or, if x1 is 0, that no cell runs. The
        /// deadline of a cell runs from this call. The report of a missed deadline names the cell
        /// with the words in x3 to x10, packed as [`CellWords`](crate::CellWords). x0 is
        /// [`SUCCESS`](crate::SUCCESS).
        Cell = "cell",
        /// Reports that the calling vCPU, which owns the physical CPU interface, has taken an interrupt
        /// of EL2's timer: EL2 then handles the expiry. Once a guest has made this call, with or
        /// without an interrupt, EL2 relies on it for later expiries. x0 is [`SUCCESS`](crate::SUCCESS).
        Timer = "timer",
        /// x0 = [`SUCCESS`](crate::SUCCESS), x1.. = [`Shared`](crate::Shared) of the calling vCPU since it started.
        Shared = "shared",
        /// Makes the calling vCPU's exits use the smallest possible vectors, the
        /// [`Floor`](crate::Floor) with number x1. Available only if the boot arguments allow it.
        /// x0 is [`SUCCESS`](crate::SUCCESS) or [`INVALID`](crate::INVALID).
        Floor = "floor",
        /// Prints x1 to x16, packed as [`ConsoleWords`](crate::ConsoleWords), on the console as if
        /// the calling vCPU had written them to its UART. This takes one exit per 128 characters
        /// instead of two exits per character. x0 is [`SUCCESS`](crate::SUCCESS).
        Console = "console",
    }
}

impl Call {
    /// Returns the function's number, for x0.
    #[must_use]
    pub const fn function(self) -> u64 {
        FIRST as u64 + self as u64
    }

    /// Returns the call whose number is `function`.
    #[must_use]
    pub fn of(function: u32) -> Option<Self> {
        let index = function.wrapping_sub(FIRST) as usize;
        Self::ALL.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_earlier_versions() {
        assert_eq!(Call::Set.function(), 0xc600_0001);
        assert_eq!(Call::Console.function(), 0xc600_000f);
        for (number, &call) in (FIRST..).zip(Call::ALL) {
            assert_eq!(call.function(), u64::from(number));
            assert_eq!(Call::of(number), Some(call));
        }
        for function in [0, FIRST - 1, FIRST + Call::COUNT as u32, u32::MAX] {
            assert_eq!(Call::of(function), None);
        }
    }
}
