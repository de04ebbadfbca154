// SPDX-License-Identifier: MIT OR Apache-2.0
//! The core's frequency, looked at before and behind each pass of a cell, so that a
//! reader can tell a change of the code from a change of the clock.
//!
//! It is that of the CPU that measures: the first one, or the sender of a pair. The look is outside of samples, and
//! busy: the cycle counter may stop while a CPU waits in WFI or WFE (DDI 0487K.a,
//! PMCCNTR_EL0; `pmu` enables it by PMCR_EL0.E, PMCNTENSET_EL0.C and
//! PMCCFILTR_EL0).

use arrayvec::ArrayVec;
use plan::PASSES;

use super::cycles;
use crate::{clock, planted, pmu};

/// Frequencies at the passes of a cell, Hz: at the begin and at the end of each, 0 if a clock
/// stood.
pub type Seen = ArrayVec<[u64; 2], { PASSES as usize }>;

/// Whether there is something to see: a tick is time, and the PMU a core's. An emulator that counts
/// instructions has no frequency, and one whose PMU has no instructions to count has no core's
/// cycles either.
pub fn tells() -> bool {
    pmu::counts_instructions() && !clock::counts_instructions()
}

/// Looks at the core's clock around passes.
pub struct Watch {
    /// There is something to see.
    tells: bool,
}

impl Watch {
    /// Looks where it [`tells`] something.
    pub fn begin() -> Self {
        Self {
            tells: tells() || planted::looks(),
        }
    }

    /// Runs a pass, the number of which is how many were `seen`, between two looks.
    pub fn around(&self, seen: &mut Seen, pass: impl FnOnce()) {
        if !self.tells || seen.is_full() {
            return pass();
        }
        let times = planted::times(seen.len());
        let look = || cycles::core_hz().map_or(0, |hz| hz * times);
        let begin = look();
        pass();
        seen.push([begin, look()]);
    }
}
