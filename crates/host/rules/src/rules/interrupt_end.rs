// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acknowledged interrupts must be ended, in the reverse order of their acknowledgement, and no other interrupts may be
//! ended.
//!
//! A read of ICC_IAR1_EL1 that returns an interrupt raises the running priority. A write of the interrupt's number to
//! ICC_EOIR1_EL1 drops this priority. If the write is missing, other interrupts of the same or a lower priority are
//! blocked for ever. An extra write, or the write of another number, is UNPREDICTABLE. The level that acknowledged an
//! interrupt must end it before it returns from the exception. With EOImode 1, a write of ICC_DIR_EL1 deactivates the
//! interrupt after its end. If this write comes before the end, the priority stays active although the interrupt is
//! not.
//!
//! The rule counts separately for each level, because each level has its own interface, or uses one that the other
//! level does not use. At EL1, it counts separately for each guest, which it identifies by its stage 2 table. If EL2
//! writes SCTLR_EL1, a vCPU restarts, and has no acknowledged interrupts. An exception may hide from the emulator which
//! value a read of ICC_IAR1_EL1 returned. If an interrupt then ends that is not known to be active, it is taken for the
//! hidden interrupt. An interrupt stays hidden until the return from the exception in which the read was executed. The
//! read may also have returned no interrupt. The rule stops checking a guest once one of the guest's accesses has
//! trapped, because EL2's answer is unknown.
//!
//! Not seen: interrupts of Group 0, an interrupt that is never deactivated, and deactivation through registers in
//! memory.

use std::collections::BTreeMap;

use crate::decode::{Operation, mrs, msr};
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// The first INTID that means no interrupt.
const SPECIAL: u64 = 1020;
/// The first INTID that an LPI can have.
const LPI: u64 = 8192;
/// Registers with which a guest handles interrupts. If accesses to them trap, EL2 answers, and the interrupts are
/// unknown.
const ACKNOWLEDGE_AND_END: [Register; 3] = [ICC_IAR1_EL1, ICC_EOIR1_EL1, ICC_DIR_EL1];
/// Number of group priorities, which have at most 7 bits (IHI 0069H, 4.8.2). Each priority can be active only once.
const MOST: usize = 128;

/// An acknowledged interrupt.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    intid: u64,
    place: Place,
    /// The number of exceptions from which the level had not yet returned when it acknowledged the interrupt.
    depth: u32,
}

/// The CPU interface that a level uses.
#[derive(Debug, Default)]
struct Interface {
    active: Vec<Acknowledged>,
    /// For each read of ICC_IAR1_EL1 whose result is unknown, the depth of exceptions at the read. The result may be no
    /// interrupt.
    lost: Vec<u32>,
    /// Whether a higher level has acknowledged or ended interrupts for this level. The interface's state is then
    /// unknown.
    emulated: bool,
    /// Number of exceptions from which the level has not yet returned.
    depth: u32,
}

/// See the module.
#[derive(Debug, Default)]
pub struct InterruptEnded {
    levels: [Interface; 4],
    /// The interfaces of EL1, by the address of the stage 2 table.
    guests: BTreeMap<u64, Interface>,
}

impl InterruptEnded {
    fn interface(&mut self, now: &Now<'_>, level: u8) -> &mut Interface {
        match level & 3 {
            1 => {
                let map = now.controls.guest_root().map_or(0, |(base, _)| base);
                self.guests.entry(map).or_default()
            }
            level => &mut self.levels[usize::from(level)],
        }
    }
}

impl Rule for InterruptEnded {
    const ABOUT: About = About {
        name: "interrupt-ended",
        says: "an interrupt that is acknowledged is ended before the return, the last one first, no other is, and it is deactivated after that only",
        cites: "IHI 0069H, 4.6.2, 4.8 and 12.2 (ICC_IAR1_EL1, ICC_EOIR1_EL1, ICC_DIR_EL1)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        let level = self.interface(now, now.place.level);
        match (operation, value) {
            (Operation::Read { register, .. } | Operation::Write { register, .. }, _)
                if level.emulated && ACKNOWLEDGE_AND_END.contains(&register) => {}
            (mrs!(ICC_IAR1_EL1), None) if level.lost.len() < MOST => level.lost.push(level.depth),
            (mrs!(ICC_IAR1_EL1), Some(intid)) if is_interrupt(intid) => {
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
            (msr!(ICC_EOIR1_EL1), Some(intid)) if is_interrupt(intid) => {
                level.note_end(now, intid);
            }
            (msr!(ICC_DIR_EL1), Some(intid)) => level.note_deactivation(now, intid),
            (msr!(SCTLR_EL1), _) if now.place.level == 2 => {
                *self.interface(now, 1) = Interface::default();
            }
            (Operation::Return, _) => level.note_return(now),
            _ => {}
        }
    }

    fn on_trap(&mut self, now: &Now<'_>, operation: Operation) {
        let (Operation::Read { register, .. } | Operation::Write { register, .. }) = operation
        else {
            return;
        };
        if ACKNOWLEDGE_AND_END.contains(&register) {
            let level = self.interface(now, now.place.level);
            *level = Interface {
                emulated: true,
                depth: level.depth,
                ..Interface::default()
            };
        }
    }

    fn on_level_entry(&mut self, now: &Now<'_>, level: u8) {
        self.interface(now, level).depth += 1;
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("acknowledge", "mrs ICC_IAR1_EL1 = $1"),
            ("end", "msr ICC_EOIR1_EL1 $1"),
            ("deactivate", "msr ICC_DIR_EL1 $1"),
            ("enter", "irq 2; el 2; msr VTTBR_EL2 $1; eret; el 1"),
            ("taken", "irq 2; acknowledge 27"),
        ],
        breaks: "
            never ended: taken; eret
            ended twice: taken; end 27; end 27
            another one is ended: taken; end 30
            deactivated first: taken; deactivate 27; end 27
            more than there are priorities: irq 2; 200 * acknowledge #
            not acknowledged: end 27
            of EL2, which has answered a guest's access: el 1; mrs ICC_IAR1_EL1; traps 2; el 2; eret; irq 2; acknowledge 27; eret
            after one that is unknown, which was spurious: irq 2; mrs ICC_IAR1_EL1; eret; irq 2; acknowledge 27; eret
            not acknowledged, after one that is unknown, which was spurious: irq 2; mrs ICC_IAR1_EL1; eret; irq 2; end 27
            besides one that is unknown: taken; mrs ICC_IAR1_EL1; end 30; eret
            an LPI: irq 2; acknowledge 8192; eret
            the first one first: taken; irq 2; acknowledge 30; end 27
        ",
        keeps: "
            ended: taken; end 27; eret
            deactivated after its end, or by somebody else: taken; end 27; deactivate 27; deactivate 30; eret
            spurious: irq 2; acknowledge 1023; eret
            nested: taken; irq 2; acknowledge 30; end 30; eret; end 27; eret
            a guest's EOI that traps: el 1; end 27; traps 2
            an acknowledge that traps, ended by itself: el 1; irq 1; mrs ICC_IAR1_EL1; traps 2; el 2; eret; el 1; end 27; eret
            a guest that has a turn between: el 1; irq 1; acknowledge 27; enter 0x80000000; eret; enter 0; end 27; eret
            unknown what: irq 2; mrs ICC_IAR1_EL1; end 27; eret
            unknown what, and an exception besides: irq 2; mrs ICC_IAR1_EL1; irq 2; acknowledge 30; end 30; eret; end 27; eret
            a vCPU that starts again: el 1; irq 1; acknowledge 27; irq 2; el 2; msr SCTLR_EL1 0; eret; el 1; irq 1; eret
        ",
    };
}

impl Interface {
    fn note_end(&mut self, now: &Now<'_>, intid: u64) {
        match self.active.iter().rposition(|one| one.intid == intid) {
            Some(last) if last + 1 == self.active.len() => drop(self.active.pop()),
            Some(place) => {
                let first = self.active[place];
                self.active.truncate(place);
                now.report::<InterruptEnded>(
                    Some(first.place),
                    format!("interrupt {intid} is ended before one that was acknowledged after it"),
                );
            }
            None if self.lost.pop().is_some() => {}
            None => now.report::<InterruptEnded>(
                None,
                format!("interrupt {intid} is ended, and was not acknowledged"),
            ),
        }
    }

    fn note_deactivation(&self, now: &Now<'_>, intid: u64) {
        if let Some(active) = self.active.iter().rfind(|one| one.intid == intid) {
            now.report::<InterruptEnded>(
                Some(active.place),
                format!("interrupt {intid} is deactivated before its priority is dropped"),
            );
        }
    }

    fn note_return(&mut self, now: &Now<'_>) {
        while let Some(last) = self.active.pop_if(|last| last.depth >= self.depth) {
            now.report_at::<InterruptEnded>(
                last.place,
                Some(now.place),
                format!(
                    "interrupt {} is acknowledged, and not ended before the return",
                    last.intid
                ),
            );
        }
        // If no end has matched a read of this exception, the read returned no interrupt.
        self.lost.retain(|depth| *depth < self.depth);
        self.depth = self.depth.saturating_sub(1);
    }
}

fn is_interrupt(intid: u64) -> bool {
    let intid = intid & 0xff_ffff;
    !(SPECIAL..LPI).contains(&intid)
}
