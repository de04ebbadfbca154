// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of an injected IPI to a CPU that runs, by the times of both CPUs' traces: from the sender's write that traps to the
//! receiver's return from its handler.

use cost::Level;

use super::trace::{Step, Window};
use super::word::{Kind, kind};

/// What a wake-up consists of, in its order.
pub const PARTS: [&str; 8] = [
    // From the guest's write of ICC_SGI1R_EL1, which traps, to EL2's.
    "send",
    // To the receiver's first instruction at EL2.
    "deliver",
    // To EL2's return: acknowledged, ended, listed.
    "list",
    // To the guest's vector.
    "take",
    // To the guest's read of ICC_IAR1_EL1.
    "acknowledge",
    // To its write of ICC_EOIR1_EL1.
    "handle",
    // To the return of its handler.
    "end",
    // To what it interrupted.
    "return",
];

/// MRS of ICC_IAR1_EL1 and MSR of ICC_EOIR1_EL1, without the general register (IHI 0069H, 12.2).
const ACKNOWLEDGE: u32 = 0xd538_cc00;
const END: u32 = 0xd518_cc20;
const GENERAL: u32 = 0x1f;

/// Ticks of each part of the wake-up that `sender` and `receiver` are the two sides of; `None` if they are not.
pub fn parts(sender: &Window, receiver: &Window) -> Option<[u64; PARTS.len()]> {
    let (traps, sends) = sent(&sender.steps)?;
    let mut steps = receiver.steps.iter();
    // Each is behind the one before.
    let mut next =
        |wanted: &dyn Fn(&Step) -> bool| steps.find(|step| wanted(step)).map(|step| step.tick);
    let at_el1 = |step: &Step| step.level == Level::El1;
    let register = |word: u32| move |step: &Step| at_el1(step) && step.word & !GENERAL == word;
    let returns = |step: &Step| kind(step.word) == Kind::Return;
    let times = [
        traps,
        sends,
        next(&|step| step.level == Level::El2)?,
        next(&|step| step.level == Level::El2 && returns(step))?,
        next(&at_el1)?,
        next(&register(ACKNOWLEDGE))?,
        next(&register(END))?,
        next(&|step| at_el1(step) && returns(step))?,
        next(&at_el1)?,
    ];
    let mut parts = [0; PARTS.len()];
    for (part, pair) in parts.iter_mut().zip(times.windows(2)) {
        // A sender of another pass would be before or behind.
        *part = pair[1].checked_sub(pair[0])?;
    }
    Some(parts)
}

/// When the guest's write of ICC_SGI1R_EL1 trapped, and when EL2's was done.
fn sent(steps: &[Step]) -> Option<(u64, u64)> {
    let writes = |level| {
        let mut steps = steps.iter();
        steps.find(move |step| step.level == level && kind(step.word) == Kind::SendSgi)
    };
    Some((writes(Level::El1)?.tick, writes(Level::El2)?.tick))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cost::Path;

    const NOP: u32 = 0xd503_201f;
    const ERET: u32 = 0xd69f_03e0;
    const SGI: u32 = 0xd518_cba1;

    fn window(path: Path, steps: &[(Level, u32, u64)]) -> Window {
        let steps = steps.iter().map(|&(level, word, tick)| Step {
            level,
            word,
            pc: 0,
            accesses: Vec::new(),
            tick,
        });
        Window {
            path,
            cpu: 0,
            steps: steps.collect(),
            spun: false,
        }
    }

    #[test]
    fn a_wake_up_is_taken_apart_where_both_sides_are_of_one() {
        use Level::{El1, El2};
        let sender = window(
            Path::SgiSend,
            &[
                (El1, SGI, 10),
                (El2, NOP, 15),
                (El2, SGI, 30),
                (El2, ERET, 40),
            ],
        );
        let receiver = [
            (El1, NOP, 29),
            (El2, NOP, 50),
            (El2, ERET, 90),
            (El1, NOP, 100),
            (El1, ACKNOWLEDGE | 3, 120),
            (El1, NOP, 130),
            (El1, END | 3, 150),
            (El1, ERET, 160),
            (El1, NOP, 165),
        ];
        let whole = window(Path::SgiReceive, &receiver);
        assert_eq!(
            parts(&sender, &whole),
            Some([20, 20, 40, 10, 20, 30, 10, 5])
        );
        // One that came before it was sent, and one that was not ended.
        let late = window(Path::SgiSend, &[(El1, SGI, 60), (El2, SGI, 70)]);
        assert_eq!(parts(&late, &whole), None);
        assert_eq!(
            parts(&sender, &window(Path::SgiReceive, &receiver[..6])),
            None
        );
    }
}
