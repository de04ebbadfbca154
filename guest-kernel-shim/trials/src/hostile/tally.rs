// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the cases of a class, and shows which were wrong.

use core::fmt;

use plan::{Deliver, Word};

use guest_kernel_shim::output;

/// The cases so far.
pub struct Tally {
    class: &'static str,
    deliver: Deliver,
    cases: u32,
    wrong: u32,
}

/// Number of wrong cases to print; later ones are only counted.
const SHOWN: u32 = 12;

/// Number of cases after which other CPUs get a turn.
const TURN: u32 = 8;

impl Tally {
    /// Returns a tally without cases.
    pub const fn new(class: &'static str, deliver: Deliver) -> Self {
        Self {
            class,
            deliver,
            cases: 0,
            wrong: 0,
        }
    }

    /// Returns how interrupts of the hostile CPU are delivered.
    pub const fn deliver(&self) -> Deliver {
        self.deliver
    }

    /// Counts a case: `good` says whether it had the expected outcome, and `what` describes it.
    pub fn case(&mut self, good: bool, what: fmt::Arguments<'_>) {
        self.cases += 1;
        if self.cases.is_multiple_of(TURN) {
            // YIELD lets an emulator with one thread run the other CPUs.
            arch::insn::yield_now();
        }
        if good {
            return;
        }
        self.wrong += 1;
        if self.wrong <= SHOWN {
            output::print(format_args!("hostile {}: WRONG: {what}", self.class));
        }
    }

    /// Checks a part of a case that is counted elsewhere.
    pub fn check_part(&mut self, good: bool, what: fmt::Arguments<'_>) {
        if !good {
            self.case(false, what);
        }
    }

    /// Reports the outcome; returns how many cases were wrong.
    pub fn finish(&self) -> u32 {
        let Self {
            class,
            cases,
            wrong,
            deliver,
        } = self;
        output::print(format_args!(
            "hostile {class} {}: {cases} cases survived, {wrong} wrong",
            deliver.name()
        ));
        *wrong
    }
}
