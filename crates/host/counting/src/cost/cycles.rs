// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the ticks of a stay at EL2 from the times in a trace.
//!
//! A stay is measured from the commit of the guest's last instruction before it to the commit of the guest's first
//! instruction after it. A stay includes the entry, the return, and the refilling of the guest's pipeline. The time for
//! which the core waits in WFI is excluded. If an interrupt causes the stay, the guest's code before it is unrelated,
//! so the measurement begins with the stay's own first instruction.

use cost::Level;

use super::instruction_kind::{InstructionKind, kind};
use super::trace::{Executed, Window};

/// Returns the ticks of the stays at EL2 in `window`. Returns `None` if there are no stays, or if the guest's
/// instruction before or after a stay is missing.
pub fn el2_ticks(window: &Window) -> Option<u64> {
    let steps = window.steps.as_slice();
    let at_el2 = |step: &Executed| step.level == Level::El2;
    let (mut rest, mut ticks, mut stays) = (0, 0, 0);
    while let Some(from) = steps[rest..].iter().position(at_el2).map(|at| rest + at) {
        let to = from + steps[from..].iter().take_while(|step| at_el2(step)).count();
        let (before, behind) = (steps.get(from.checked_sub(1)?)?, steps.get(to)?);
        let since = match tarmac::is_interrupt(steps[from].pc) {
            true => steps[from].tick,
            false => before.tick,
        };
        ticks += behind.tick.checked_sub(since)? - halted_ticks(&steps[from..=to]);
        (rest, stays) = (to, stays + 1);
    }
    (stays > 0).then_some(ticks)
}

/// Returns the ticks spent waiting in WFIs. The wait of each WFI is the longest pause between two instructions near
/// it.
fn halted_ticks(steps: &[Executed]) -> u64 {
    let waits =
        |(at, step): (usize, &Executed)| (kind(step.word) == InstructionKind::Wfi).then_some(at);
    let halts = steps.iter().enumerate().filter_map(waits);
    let tick = |n: usize| steps[n].tick;
    let resumed = halts.filter_map(|at| critical::resume_index(at, steps.len(), tick));
    resumed.map(|n| tick(n) - tick(n - 1)).sum()
}

/// Returns the median over the passes, or `None` if there are no passes.
pub fn median_ticks(mut ticks: Vec<u64>) -> Option<u64> {
    ticks.sort_unstable();
    hist::of_sorted(&ticks, 500).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cost::Path;

    const NOP: u32 = 0xd503_201f;
    const WFI: u32 = 0xd503_207f;

    fn ticks(steps: &[(Level, u32, u64)]) -> Option<u64> {
        ticks_at(0x400, steps)
    }

    /// Returns the ticks for steps whose instructions are all at address `pc`.
    fn ticks_at(pc: u64, steps: &[(Level, u32, u64)]) -> Option<u64> {
        let steps = steps
            .iter()
            .map(|&(level, word, tick)| Executed::new(level, word, pc, tick));
        el2_ticks(&Window {
            path: Path::Hypercall,
            cpu: 0,
            steps: steps.collect(),
            spun: false,
        })
    }

    #[test]
    fn a_stay_is_from_the_guest_to_the_guest_without_what_it_waits() {
        use Level::{El1, El2};
        let stay = [
            (El1, NOP, 100),
            (El2, NOP, 150),
            (El2, NOP, 160),
            (El1, NOP, 200),
        ];
        assert_eq!(ticks(&stay), Some(100));
        // If an interrupt causes the stay, it is measured from the vector on.
        assert_eq!(ticks_at(0x8020_2480, &stay), Some(50));
        let waits = [
            (El1, NOP, 100),
            (El2, WFI, 150),
            (El2, NOP, 5150),
            (El1, NOP, 5200),
        ];
        assert_eq!(ticks(&waits), Some(100));
        let late = [
            (El1, NOP, 100),
            (El2, WFI, 150),
            (El2, NOP, 152),
            (El2, NOP, 5152),
            (El1, NOP, 5200),
        ];
        assert_eq!(ticks(&late), Some(100));
        let early = [
            (El1, NOP, 100),
            (El2, NOP, 150),
            (El2, WFI, 5150),
            (El2, NOP, 5160),
            (El1, NOP, 5200),
        ];
        assert_eq!(ticks(&early), Some(100));
        let two = [
            (El1, NOP, 0),
            (El2, NOP, 9),
            (El1, NOP, 10),
            (El2, NOP, 15),
            (El1, NOP, 40),
        ];
        assert_eq!(ticks(&two), Some(40));
        // A stay whose beginning or end is missing is not measured.
        assert_eq!(ticks(&stay[1..]), None);
        assert_eq!(ticks(&stay[..3]), None);
        assert_eq!(ticks(&[(El1, NOP, 1)]), None);
    }
}
