// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides an injected IPI into parts, by the times in the sender's and the receiver's traces. The parts extend from
//! the sender's trapped write to the point at which the running or waiting receiver continues.

use cost::{Level, Path};

use super::instruction_kind::{InstructionKind, kind};
use super::trace::{Executed, Window};
use super::visit;

/// Names of the parts of a wake-up, in order.
pub const PARTS: [&str; 9] = [
    // From the guest's write of ICC_SGI1R_EL1, which traps, to EL2's own write.
    "send",
    // To the receiver's first instruction at EL2 after this write.
    "deliver",
    // To EL2's return, after it has acknowledged the interrupt, ended it, and written it to a list register.
    "list",
    // To the guest's vector.
    "take",
    // To the guest's read of ICC_IAR1_EL1.
    "acknowledge",
    // To the guest's write of ICC_EOIR1_EL1.
    "handle",
    // To the return of the guest's handler.
    "end",
    // To the interrupted code.
    "return",
    // To the point at which the idle loop has found work.
    "idle exit",
];

/// The state of the CPU that receives the IPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The CPU runs other code, so it does not have to leave an idle loop.
    Runs,
    /// The CPU waits in a WFI that traps.
    Waits,
}

impl Target {
    pub const ALL: [Self; 2] = [Self::Runs, Self::Waits];

    /// Returns the name of the state in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Waits => "waits",
        }
    }

    /// Returns the path that the sender takes, and the path that the receiver takes.
    pub const fn paths(self) -> [Path; 2] {
        match self {
            Self::Runs => [Path::SgiSend, Path::SgiReceive],
            Self::Waits => [Path::WfiSend, Path::Wfi],
        }
    }

    /// Returns how many of the [`PARTS`] the wake-up has.
    pub const fn part_count(self) -> usize {
        match self {
            Self::Runs => PARTS.len() - 1,
            Self::Waits => PARTS.len(),
        }
    }
}

/// MRS of ICC_IAR1_EL1 and MSR of ICC_EOIR1_EL1, without the general register (IHI 0069H, 12.2).
const ACKNOWLEDGE: u32 = 0xd538_cc00;
const END: u32 = 0xd518_cc20;
const GENERAL: u32 = 0x1f;

/// Returns the ticks that each part of a wake-up takes; `sender` and `receiver` are the two sides. Returns `None` if
/// the two sides do not belong to the same wake-up.
pub fn parts(target: Target, sender: &Window, receiver: &Window) -> Option<Vec<u64>> {
    let (traps, sends) = send_times(&sender.steps)?;
    let mut steps = receiver.steps.iter();
    // Each of the following steps is searched for after the previous one.
    let mut next =
        |wanted: &dyn Fn(&Executed) -> bool| steps.find(|step| wanted(step)).map(|step| step.tick);
    let at_el1 = |step: &Executed| step.level == Level::El1;
    let at_el2 = |step: &Executed| step.level == Level::El2;
    let register = |word: u32| move |step: &Executed| at_el1(step) && step.word & !GENERAL == word;
    let returns = |step: &Executed| kind(step.word) == InstructionKind::Return;
    // A waiting receiver was also at EL2 before the write, so only later steps are considered.
    let comes = next(&|step| at_el2(step) && step.tick > sends)?;
    let leaves = next(&|step| at_el2(step) && returns(step))?;
    // A waiting receiver unmasks interrupts first, so its next step at EL1 may not be the vector.
    let handlers = visit::handlers(receiver);
    let vector: &Executed = handlers.first()?.first()?;
    let times = [
        traps,
        sends,
        comes,
        leaves,
        next(&|step| std::ptr::eq(step, vector))?,
        next(&register(ACKNOWLEDGE))?,
        next(&register(END))?,
        next(&|step| at_el1(step) && returns(step))?,
        next(&at_el1)?,
        receiver.steps.last()?.tick,
    ];
    let pairs = times.windows(2).take(target.part_count());
    // If the windows are from different passes, a step may be earlier than the previous one.
    pairs.map(|pair| pair[1].checked_sub(pair[0])).collect()
}

/// Returns when the guest's write of ICC_SGI1R_EL1 trapped, and when EL2 wrote the register itself.
fn send_times(steps: &[Executed]) -> Option<(u64, u64)> {
    let writes = |level| {
        let mut steps = steps.iter();
        steps.find(move |step| step.level == level && kind(step.word) == InstructionKind::SendSgi)
    };
    Some((writes(Level::El1)?.tick, writes(Level::El2)?.tick))
}

#[cfg(test)]
mod tests {
    use super::*;
    use Level::{El1, El2};

    const NOP: u32 = 0xd503_201f;
    const WFI: u32 = 0xd503_207f;
    const ERET: u32 = 0xd69f_03e0;
    const SGI: u32 = 0xd518_cba1;
    /// Address of the guest's interrupt vector, in a table that contains nothing else.
    const VECTOR: u64 = 0x4020_0280;

    /// Returns a window of steps. Each step has a level, an instruction and a time. The step at tick `vector` is at
    /// address `VECTOR`. Every other step is at the address that follows the previous step's address.
    fn window(target: Target, side: usize, steps: &[(Level, u32, u64)], vector: u64) -> Window {
        let mut pc = 0x4000_0000;
        let steps = steps.iter().map(|&(level, word, tick)| {
            pc = if tick == vector { VECTOR } else { pc + 4 };
            Executed::new(level, word, pc, tick)
        });
        Window {
            path: target.paths()[side],
            cpu: 0,
            steps: steps.collect(),
            spun: false,
        }
    }

    /// The guest's handler, which begins at tick 100, and the steps after it.
    const HANDLER: [(Level, u32, u64); 6] = [
        (El1, NOP, 100),
        (El1, ACKNOWLEDGE | 3, 120),
        (El1, NOP, 130),
        (El1, END | 3, 150),
        (El1, ERET, 160),
        (El1, NOP, 165),
    ];

    fn sender(target: Target, at: u64) -> Window {
        let steps = [(El1, SGI, at), (El2, NOP, at + 5), (El2, SGI, at + 20)];
        window(target, 0, &steps, 0)
    }

    #[test]
    fn a_wake_up_is_taken_apart_where_both_sides_are_of_one() {
        let before = [(El1, NOP, 29), (El2, NOP, 50), (El2, ERET, 90)];
        let receiver = [&before[..], &HANDLER].concat();
        let is = |at, receiver: &[_]| {
            let receiver = window(Target::Runs, 1, receiver, 100);
            parts(Target::Runs, &sender(Target::Runs, at), &receiver)
        };
        let whole = [20, 20, 40, 10, 20, 30, 10, 5];
        assert_eq!(is(10, &receiver), Some(whole.to_vec()));
        // The first receiver was interrupted before the SGI was sent. The second one never ends its interrupt.
        assert_eq!(is(60, &receiver), None);
        assert_eq!(is(10, &receiver[..6]), None);
    }

    #[test]
    fn one_that_waits_is_at_el2_before_and_leaves_its_idle_loop_behind() {
        let waits = [
            (El1, WFI, 1),
            (El2, NOP, 3),
            (El2, WFI, 5),
            (El2, NOP, 50),
            (El2, ERET, 80),
            (El1, NOP, 84),
        ];
        let behind = [(El1, NOP, 170), (El1, NOP, 181)];
        let receiver = [&waits[..], &HANDLER, &behind].concat();
        let is = |receiver: &[_]| {
            let receiver = window(Target::Waits, 1, receiver, 100);
            parts(Target::Waits, &sender(Target::Waits, 10), &receiver)
        };
        let whole = [20, 20, 30, 20, 20, 30, 10, 5, 16];
        assert_eq!(is(&receiver), Some(whole.to_vec()));
        // The receiver woke before the SGI was sent, so it took another interrupt.
        let mut early = receiver.clone();
        (early[3].2, early[4].2) = (20, 28);
        assert_eq!(is(&early), None);
    }
}
