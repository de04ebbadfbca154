// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts that are acknowledged are ended, the last one first, and no others are.
//!
//! A read of ICC_IAR1_EL1 that brings an interrupt raises the running priority; a write of
//! ICC_EOIR1_EL1 with its number drops it. One that is left out keeps others of the same or
//! a lower priority away for ever; one too many, or for another interrupt, is
//! UNPREDICTABLE. The end has to come before the level that acknowledged returns from the
//! exception in which it did. With EOImode 1 a write of ICC_DIR_EL1 deactivates it, after its
//! end: one that comes first leaves the priority active without the interrupt.
//!
//! Per level, each of which has an interface of its own or uses the one that the other does
//! not. Where EL2 gives EL1 a new SCTLR_EL1 a vCPU begins anew, and has acknowledged
//! nothing. What was read has to be known, so the rule gives up on a level for a while where
//! the emulator does not show it.
//!
//! Not seen: Group 0, an interrupt that is never deactivated, and deactivation by register.

use crate::decode::Operation;
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// The first number that is no interrupt.
const SPECIAL: u64 = 1020;
/// LPIs.
const LPI: u64 = 8192;
/// Group priorities, of which each can be active once: 7 bits at most (IHI 0069H, 4.8.2).
const MOST: usize = 128;

/// An interrupt that was acknowledged.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    intid: u64,
    place: Place,
    /// How many exceptions of the level it came in.
    depth: u32,
}

/// A level.
#[derive(Debug, Default)]
struct Interface {
    active: Vec<Acknowledged>,
    /// Something was acknowledged, and it is not known what.
    lost: bool,
    /// Exceptions that the level has not returned from.
    depth: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub struct InterruptEnded {
    levels: [Interface; 4],
}

impl Rule for InterruptEnded {
    const ABOUT: About = About {
        name: "interrupt-ended",
        says: "an interrupt that is acknowledged is ended before the return, the last one first, no other is, and it is deactivated after that only",
        cites: "IHI 0069H, 4.6.2, 4.8 and 12.2 (ICC_IAR1_EL1, ICC_EOIR1_EL1, ICC_DIR_EL1)",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        let level = &mut self.levels[usize::from(now.place.level & 3)];
        match (operation, value) {
            (
                Operation::Read {
                    register: ICC_IAR1_EL1,
                    ..
                },
                None,
            ) => level.lost = true,
            (
                Operation::Read {
                    register: ICC_IAR1_EL1,
                    ..
                },
                Some(intid),
            ) if is_interrupt(intid) => {
                if level.active.len() == MOST {
                    let first = level.active.remove(0);
                    now.report_at::<Self>(
                        first.place,
                        Some(now.place),
                        format!(
                            "interrupt {} is acknowledged, and not ended while all priorities are",
                            first.intid
                        ),
                    );
                }
                let depth = level.depth;
                level.active.push(Acknowledged {
                    intid,
                    place: now.place,
                    depth,
                });
            }
            (
                Operation::Write {
                    register: ICC_EOIR1_EL1,
                    ..
                },
                Some(intid),
            ) if is_interrupt(intid) => {
                level.ended(now, intid);
            }
            (
                Operation::Write {
                    register: ICC_DIR_EL1,
                    ..
                },
                Some(intid),
            ) => level.deactivated(now, intid),
            (
                Operation::Write {
                    register: SCTLR_EL1,
                    ..
                },
                _,
            ) if now.place.level == 2 => {
                self.levels[1] = Interface::default();
            }
            (Operation::Return, _) => level.returns(now),
            _ => {}
        }
    }

    fn entered(&mut self, _: &Now<'_>, level: u8) {
        self.levels[usize::from(level & 3)].depth += 1;
    }

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        let taken = || Program::new().interrupt(2).reads(ICC_IAR1_EL1, 27);
        vec![
            ("never ended", taken().then(ERET)),
            (
                "ended twice",
                taken().write(ICC_EOIR1_EL1, 27).write(ICC_EOIR1_EL1, 27),
            ),
            ("another one is ended", taken().write(ICC_EOIR1_EL1, 30)),
            (
                "deactivated first",
                taken().write(ICC_DIR_EL1, 27).write(ICC_EOIR1_EL1, 27),
            ),
            ("more than there are priorities", {
                (0..200).fold(Program::new().interrupt(2), |program, intid| {
                    program.reads(ICC_IAR1_EL1, intid)
                })
            }),
            ("not acknowledged", Program::new().write(ICC_EOIR1_EL1, 27)),
            (
                "an LPI",
                Program::new()
                    .interrupt(2)
                    .reads(ICC_IAR1_EL1, 8192)
                    .then(ERET),
            ),
            (
                "the first one first",
                taken()
                    .interrupt(2)
                    .reads(ICC_IAR1_EL1, 30)
                    .write(ICC_EOIR1_EL1, 27),
            ),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        let taken = || Program::new().interrupt(2).reads(ICC_IAR1_EL1, 27);
        vec![
            ("ended", taken().write(ICC_EOIR1_EL1, 27).then(ERET)),
            (
                "deactivated after its end, or by somebody else",
                taken()
                    .write(ICC_EOIR1_EL1, 27)
                    .write(ICC_DIR_EL1, 27)
                    .write(ICC_DIR_EL1, 30)
                    .then(ERET),
            ),
            (
                "spurious",
                Program::new()
                    .interrupt(2)
                    .reads(ICC_IAR1_EL1, 1023)
                    .then(ERET),
            ),
            (
                "nested",
                taken()
                    .interrupt(2)
                    .reads(ICC_IAR1_EL1, 30)
                    .write(ICC_EOIR1_EL1, 30)
                    .then(ERET)
                    .write(ICC_EOIR1_EL1, 27)
                    .then(ERET),
            ),
            (
                "a guest's EOI that traps",
                Program::new().level(1).write(ICC_EOIR1_EL1, 27).traps(2),
            ),
            (
                "unknown what",
                Program::new()
                    .interrupt(2)
                    .read(ICC_IAR1_EL1)
                    .write(ICC_EOIR1_EL1, 27)
                    .then(ERET),
            ),
            (
                "a vCPU that begins anew",
                Program::new()
                    .level(1)
                    .interrupt(1)
                    .reads(ICC_IAR1_EL1, 27)
                    .interrupt(2)
                    .level(2)
                    .write(SCTLR_EL1, 0)
                    .then(ERET)
                    .level(1)
                    .interrupt(1)
                    .then(ERET),
            ),
        ]
    }
}

impl Interface {
    fn ended(&mut self, now: &Now<'_>, intid: u64) {
        match self.active.iter().rposition(|one| one.intid == intid) {
            Some(last) if last + 1 == self.active.len() => drop(self.active.pop()),
            _ if self.lost => {
                self.lost = false;
                self.active.clear();
            }
            Some(place) => {
                let first = self.active[place];
                self.active.truncate(place);
                now.report::<InterruptEnded>(
                    Some(first.place),
                    format!("interrupt {intid} is ended before one that was acknowledged after it"),
                );
            }
            None => now.report::<InterruptEnded>(
                None,
                format!("interrupt {intid} is ended, and was not acknowledged"),
            ),
        }
    }

    fn deactivated(&self, now: &Now<'_>, intid: u64) {
        let active = self.active.iter().rfind(|one| one.intid == intid);
        if let Some(active) = active.filter(|_| !self.lost) {
            now.report::<InterruptEnded>(
                Some(active.place),
                format!("interrupt {intid} is deactivated before its priority is dropped"),
            );
        }
    }

    fn returns(&mut self, now: &Now<'_>) {
        while let Some(last) = self.active.pop_if(|last| last.depth >= self.depth) {
            if !self.lost {
                now.report_at::<InterruptEnded>(
                    last.place,
                    Some(now.place),
                    format!(
                        "interrupt {} is acknowledged, and not ended before the return",
                        last.intid
                    ),
                );
            }
        }
        self.lost = false;
        self.depth = self.depth.saturating_sub(1);
    }
}

fn is_interrupt(intid: u64) -> bool {
    let intid = intid & 0xff_ffff;
    !(SPECIAL..LPI).contains(&intid)
}
