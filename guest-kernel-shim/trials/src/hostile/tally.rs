// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases of a class: how many there were and which came out wrong.

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

/// Wrong cases that are shown; the others are counted.
const SHOWN: u32 = 12;

/// Cases between two turns of the others.
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

    /// Which side owns the hostile CPU's interrupts.
    pub const fn deliver(&self) -> Deliver {
        self.deliver
    }

    /// Counts a case: whether it had the expected outcome, and its description.
    pub fn case(&mut self, good: bool, what: fmt::Arguments<'_>) {
        self.cases += 1;
        if self.cases.is_multiple_of(TURN) {
            // An emulator with one thread lets the others go on.
            arch::insn::yield_now();
        }
        if good {
            return;
        }
        self.wrong += 1;
        if self.wrong <= SHOWN {
            output::line(format_args!("hostile {}: WRONG: {what}", self.class));
        }
    }

    /// A look that is part of a case that is counted elsewhere.
    pub fn race(&mut self, good: bool, what: fmt::Arguments<'_>) {
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
        output::line(format_args!(
            "hostile {class} {}: {cases} cases survived, {wrong} wrong",
            deliver.name()
        ));
        *wrong
    }
}
