// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the core's frequency before and after each pass of a cell, so that a reader can tell a
//! change in the code from a change in the clock.
//!
//! This is the core of the CPU that measures: the first CPU or, in a pair, the sender. The frequency is measured
//! outside of samples, and while the CPU is busy: the cycle counter may stop while a CPU waits in WFI or
//! WFE (DDI 0487K.a, PMCCNTR_EL0; `pmu` enables it through PMCR_EL0.E, PMCNTENSET_EL0.C and PMCCFILTR_EL0).

use arrayvec::ArrayVec;
use plan::PASSES;

use super::cycles;
use crate::{clock, planted, pmu};

/// Frequencies in Hz at the start and the end of each pass of a cell; 0 if a clock stood still.
pub type Seen = ArrayVec<[u64; 2], { PASSES as usize }>;

/// Whether the frequency can be measured: a tick is a unit of time, and the PMU counts cycles of a core. An emulator
/// that counts instructions has no frequency; an emulator whose PMU does not count them has no core cycles.
pub fn can_measure() -> bool {
    pmu::counts_instructions() && !clock::counts_instructions()
}

/// Measures the core's frequency before and after passes.
pub struct Watch {
    /// Whether the frequency can be measured.
    tells: bool,
}

impl Watch {
    /// Returns a watch that measures only if this machine's frequency can be measured ([`can_measure`]).
    pub fn if_measurable() -> Self {
        Self {
            tells: can_measure() || planted::measures_always(),
        }
    }

    /// Runs a pass, whose number is the length of `seen`, between two measurements.
    pub fn measure_around(&self, seen: &mut Seen, pass: impl FnOnce()) {
        if !self.tells || seen.is_full() {
            return pass();
        }
        let times = planted::speed_factor(seen.len());
        let look = || cycles::core_hz().map_or(0, |hz| hz * times);
        let begin = look();
        pass();
        seen.push([begin, look()]);
    }
}
