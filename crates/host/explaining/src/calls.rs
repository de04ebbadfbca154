// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows the calls of a CPU, as far as a sample shows them: a call adds a frame, and a return to the frame's return
//! address removes the frame.

use crate::step::Caller;

/// Number of exception levels.
const LEVELS: usize = 4;
/// Distance between exception vectors (DDI 0487K.a, D1.3.1.5).
const VECTOR: u64 = 0x80;

/// Functions that return to the same address, but in another task: Linux's and Xen's.
const SWITCHES: [&str; 2] = ["cpu_switch_to", "__context_switch"];

/// A function that has been entered and has not returned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    symbol: String,
    /// The function's return address; `None` if the function handles an exception that interrupted the frame below, or
    /// if the address is not known.
    back: Option<u64>,
}

/// The call stacks of a CPU, by exception level.
#[derive(Debug, Default)]
pub struct Stacks {
    /// The frames of each level, the outermost one first. The last frame is the running function.
    levels: [Vec<Frame>; LEVELS],
    level: usize,
    last: Option<(u64, Jump)>,
}

/// How the CPU continues after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Jump {
    /// The CPU continues with the next instruction.
    No,
    /// A branch.
    Branch,
    Call,
    Return,
    ExceptionReturn,
}

impl Jump {
    /// Decodes an instruction, including the variants with pointer authentication (DDI 0487K.a, C4.1.94).
    const fn decode(word: u32) -> Self {
        match word {
            0xd69f_03e0 | 0xd69f_0bff | 0xd69f_0fff => Self::ExceptionReturn,
            _ if word & 0xfc00_0000 == 0x9400_0000 => Self::Call,
            _ if word & 0xfeff_f000 == 0xd63f_0000 => Self::Call,
            _ if word & 0xfeff_f000 == 0xd65f_0000 => Self::Return,
            // B; B.cond, CBZ, TBZ; BR.
            _ if word & 0xfc00_0000 == 0x1400_0000 => Self::Branch,
            _ if word & 0x7e00_0000 == 0x3400_0000 => Self::Branch,
            _ if word & 0x7e00_0000 == 0x3600_0000 => Self::Branch,
            _ if word & 0xfe00_0000 == 0x5400_0000 => Self::Branch,
            _ if word & 0xfeff_f000 == 0xd61f_0000 => Self::Branch,
            _ => Self::No,
        }
    }
}

impl Stacks {
    /// Updates the stacks when the CPU reaches the instruction at `pc`, in the function `symbol`. Returns the callers
    /// of this function, and the functions that exceptions interrupted.
    pub fn callers(&mut self, level: u8, pc: u64, symbol: &str) -> impl Iterator<Item = Caller> {
        let level = usize::from(level).min(LEVELS - 1);
        let before = std::mem::replace(&mut self.level, level);
        if level > before {
            // The CPU took an exception to a higher level. The exception interrupted no function at that level, so the
            // frames there are old.
            self.levels[before + 1..=level]
                .iter_mut()
                .for_each(Vec::clear);
        }
        let last = self.last.filter(|_| level == before);
        let (below, from) = self.levels.split_at_mut(level);
        let stack = &mut from[0];
        let unknown = |symbol: &str| Frame {
            symbol: symbol.into(),
            back: None,
        };
        match last {
            Some((from, Jump::Call)) => stack.push(Frame {
                symbol: symbol.into(),
                back: Some(from + 4),
            }),
            Some((_, Jump::Return)) => match returned_to(stack, pc) {
                Some(place) => stack.truncate(place),
                // The CPU returned to another task, or from a call that was made before the sample. The functions at
                // lower levels do not belong to the other task.
                None => {
                    stack.clear();
                    below.iter_mut().for_each(Vec::clear);
                }
            },
            // The CPU took an exception to the level at which it already was. The next case is the return from such an
            // exception.
            Some((from, Jump::No)) if pc != from + 4 && pc.is_multiple_of(VECTOR) => {
                stack.push(unknown(symbol));
            }
            Some((_, Jump::ExceptionReturn)) => {
                let place = stack.iter().rposition(|one| one.back.is_none());
                stack.truncate(place.unwrap_or(0));
            }
            _ => {}
        }
        match stack.last_mut() {
            // A function that is reached by a jump inherits the return address. If the CPU comes from another level to
            // a function other than the one in this level's last frame, it runs another task.
            Some(top) if last.is_some() || top.symbol == symbol => top.symbol = symbol.into(),
            _ => {
                stack.clear();
                stack.push(unknown(symbol));
            }
        }
        let levels = (0_u8..).zip(&self.levels[..=level]);
        let frames = levels.flat_map(|(level, stack)| stack.iter().map(move |one| (level, one)));
        let mut callers: Vec<Caller> = frames
            .map(|(level, frame)| Caller {
                level,
                function: frame.symbol.clone(),
            })
            .collect();
        callers.pop();
        callers.into_iter()
    }

    /// Records that the CPU executes the instruction `word` at `pc`.
    pub fn record_instruction(&mut self, pc: u64, word: u32) {
        self.last = Some((pc, Jump::decode(word)));
    }
}

/// Returns the index of the frame that returns to `pc`, unless the running function switches tasks.
fn returned_to(stack: &[Frame], pc: u64) -> Option<usize> {
    let top = stack.last()?;
    let place = stack.iter().rposition(|one| one.back == Some(pc));
    place.filter(|_| !SWITCHES.contains(&top.symbol.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0xd503_201f;
    const BL: u32 = 0x9400_0010;
    const B: u32 = 0x1400_0010;
    const RET: u32 = 0xd65f_03c0;
    const ERET: u32 = 0xd69f_03e0;

    /// Executes instructions, and returns the callers of the last instruction.
    fn callers(steps: &[(u8, u64, &str, u32)]) -> String {
        let mut stacks = Stacks::default();
        let mut last = String::new();
        for &(level, pc, symbol, word) in steps {
            let callers: Vec<String> = stacks
                .callers(level, pc, symbol)
                .map(|one| format!("{}{}", one.function, one.level))
                .collect();
            last = callers.join(" ");
            stacks.record_instruction(pc, word);
        }
        last
    }

    #[test]
    fn calls_and_returns_match_by_address() {
        let calls = [
            (1, 0x1000, "a", BL),
            (1, 0x2000, "b", BL),
            (1, 0x3000, "c", NOP),
        ];
        assert_eq!(callers(&calls), "a1 b1");
        // The function b ends with a jump to d, which then returns to b's caller.
        let jumps = [
            (1, 0x1000, "a", BL),
            (1, 0x2000, "b", B),
            (1, 0x4000, "d", NOP),
        ];
        assert_eq!(callers(&jumps), "a1");
        let returns = [
            calls[0],
            calls[1],
            (1, 0x3000, "c", RET),
            (1, 0x2004, "b", RET),
            (1, 0x1004, "a", NOP),
        ];
        assert_eq!(callers(&returns), "");
        // Here, a calls itself.
        let recursive = [
            (1, 0x1000, "a", BL),
            (1, 0x1000, "a", BL),
            (1, 0x1000, "a", RET),
            (1, 0x1004, "a", NOP),
        ];
        assert_eq!(callers(&recursive), "a1");
    }

    #[test]
    fn another_task_has_other_callers() {
        let switch = [
            (1, 0x1000, "read", BL),
            (1, 0x2000, "switch_to", RET),
            (1, 0x9000, "idle", BL),
            (1, 0x9900, "pick", NOP),
        ];
        assert_eq!(callers(&switch), "idle1");
        // Both tasks return to the same address.
        let alike = [
            (1, 0x1000, "read", BL),
            (1, 0x2000, "schedule", BL),
            (1, 0x3000, "cpu_switch_to", RET),
            (1, 0x2004, "schedule", RET),
            (1, 0x9000, "idle", NOP),
        ];
        assert_eq!(callers(&alike[..4]), "");
        assert_eq!(callers(&alike), "");
        // The idle task has not interrupted the program.
        let idle = [
            (0, 0x1000, "main", NOP),
            (1, 0x8400, "vectors", BL),
            switch[1],
            switch[2],
            switch[3],
        ];
        assert_eq!(callers(&idle), "idle1");
        // The exception returns to another program.
        let programs = [
            (0, 0x1000, "one", BL),
            (0, 0x2000, "two", NOP),
            (1, 0x800, "vectors", ERET),
            (0, 0x7000, "three", NOP),
        ];
        assert_eq!(callers(&programs), "");
    }

    #[test]
    fn exceptions_interrupt() {
        let below = [
            (0, 0x1000, "main", BL),
            (0, 0x2000, "write", NOP),
            (1, 0x8400, "vectors", BL),
            (1, 0x9000, "svc", NOP),
        ];
        assert_eq!(callers(&below), "main0 write0 vectors1");
        let back = [
            below[0],
            below[1],
            (1, 0x8400, "vectors", ERET),
            (0, 0x2004, "write", NOP),
        ];
        assert_eq!(callers(&back), "main0");
        let same = [
            (1, 0x1000, "idle", BL),
            (1, 0x2000, "wfi", NOP),
            (1, 0x8280, "vectors", B),
            (1, 0x9000, "irq", NOP),
        ];
        assert_eq!(callers(&same), "idle1 wfi1");
        let returns = [
            same[0],
            same[1],
            same[2],
            (1, 0x9000, "irq", ERET),
            (1, 0x2004, "wfi", NOP),
        ];
        assert_eq!(callers(&returns), "idle1");
    }
}
