// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was written is fetched as instructions only after maintenance.
//!
//! Data and instructions have caches of their own. A line that was written is cleaned to the point of
//! unification (DC CVAU, or one of those that go further), DSB, and invalidated for fetching (IC), DSB,
//! and the CPU that fetches has a context synchronization event after that. A line that is written
//! without caches needs no DC. The place of a break is the store, or the IC.
//!
//! When instructions are fetched an emulator says when it translates them: for the first time since
//! they were written.
//!
//! Not seen: what a loader or a device wrote, IC of another CPU that is for that CPU alone, and CPUs
//! that need less (CTR_EL0.IDC and DIC).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::cpu::Access;
use crate::decode::Operation;
use crate::finding::Place;
use crate::lines::Lines;
use crate::rule::{About, Now, Rule, synchronises};
#[cfg(test)]
use crate::testing::*;

/// How far a line is that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Stored,
    Cleaned,
    Invalidated,
}

/// Lines that were written, by what, and how far they are: 0 is none. The upper byte of an
/// address, which repeats its bit 55, has stage and level.
#[derive(Debug)]
pub struct Written(Lines<AtomicU64>);

const SHIFT: u32 = 56;

fn coded(place: Place, stage: Stage) -> u64 {
    let upper = 1 << 7 | (stage as u64) << 2 | u64::from(place.level & 3);
    place.pc << 8 >> 8 | upper << SHIFT
}

fn decoded(line: u64) -> Option<(Place, Stage)> {
    let stage = match line >> (SHIFT + 2) & 3 {
        0 => Stage::Stored,
        1 => Stage::Cleaned,
        _ => Stage::Invalidated,
    };
    let place = Place {
        level: (line >> SHIFT & 3) as u8,
        pc: ((line << 8) as i64 >> 8) as u64,
    };
    (line != 0).then_some((place, stage))
}

impl Written {
    pub fn new() -> Self {
        Self(Lines::new())
    }

    /// Takes a line from one stage to the next.
    fn moves(line: &AtomicU64, from: Stage, to: Stage) {
        let before = line.load(Relaxed);
        if let Some((place, stage)) = decoded(before)
            && stage == from
        {
            let _ = line.compare_exchange(before, coded(place, to), Relaxed, Relaxed);
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct CodeFetched {
    /// The last IC that is not in force here, and whether a DSB has completed it.
    begun: Option<(Place, bool)>,
}

impl Rule for CodeFetched {
    const ABOUT: About = About {
        name: "code-fetched",
        says: "DC and IC of what was written, DSB and a context synchronization event before it is fetched as instructions",
        cites: "DDI 0487K.a, B2.2.5 (concurrent modification and execution of instructions) and D7.5 (cache support)",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        let lines = &now.shared.written.0;
        match operation {
            Operation::Clean(_) => {
                if let Some(line) = value.and_then(|address| lines.of(address)) {
                    Written::moves(line, Stage::Stored, Stage::Cleaned);
                }
            }
            Operation::InvalidateCode { all } => {
                let one = value.filter(|_| !all).and_then(|address| lines.of(address));
                let every = all.then(|| lines.made()).into_iter().flatten();
                for line in one.into_iter().chain(every) {
                    Written::moves(line, Stage::Cleaned, Stage::Invalidated);
                }
                self.begun = Some((now.place, false));
            }
            Operation::Dsb(barrier) if barrier.stores && barrier.loads => {
                self.begun = self.begun.map(|(at, _)| (at, true));
            }
            _ if synchronises(operation) => {
                self.begun.take_if(|(_, completed)| *completed);
            }
            _ => {}
        }
    }

    #[inline]
    fn accessed(&mut self, now: &Now<'_>, access: &Access) {
        if access.store
            && let Some(address) = access.physical
            && let Some(line) = now.shared.written.0.of(address)
        {
            let stage = match now.controls.caches(now.place.level) {
                true => Stage::Stored,
                false => Stage::Cleaned,
            };
            line.store(coded(access.place, stage), Relaxed);
        }
    }

    fn fetched(&mut self, now: &Now<'_>, line: u64) {
        let Some(state) = now.shared.written.0.of(line) else {
            return;
        };
        let Some((store, stage)) = decoded(state.swap(0, Relaxed)) else {
            return;
        };
        let (at, lacks) = match (stage, self.begun) {
            (Stage::Stored, _) => (store, "DC and IC are"),
            (Stage::Cleaned, _) => (store, "IC is"),
            (Stage::Invalidated, Some((ic, false))) => (ic, "a DSB after IC is"),
            (Stage::Invalidated, Some((ic, true))) => (ic, "a synchronization after IC is"),
            (Stage::Invalidated, None) => return,
        };
        now.report_at::<Self>(
            at,
            Some(now.place),
            format!("{line:#x} was written and is fetched as instructions, and {lacks} missing"),
        );
    }

    fn entered(&mut self, _: &Now<'_>, _: u8) {
        self.begun.take_if(|(_, completed)| *completed);
    }

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        let stored = || on().access(STR, CODE);
        vec![
            ("at once", stored().fetches(CODE)),
            (
                "cleaned only",
                stored().of(DC_CVAU, CODE).then(DSB_ISH).fetches(CODE),
            ),
            (
                "invalidated before it is clean",
                stored()
                    .of(IC_IVAU, CODE)
                    .of(DC_CVAU, CODE)
                    .then(DSB_ISH)
                    .then(ISB)
                    .fetches(CODE),
            ),
            (
                "no DSB",
                stored()
                    .of(DC_CVAU, CODE)
                    .then(DSB_ISH)
                    .of(IC_IVAU, CODE)
                    .then(ISB)
                    .fetches(CODE),
            ),
            (
                "no synchronization",
                stored()
                    .of(DC_CVAU, CODE)
                    .then(DSB_ISH)
                    .then(IC_IALLU)
                    .then(DSB_ISH)
                    .fetches(CODE),
            ),
            (
                "written again",
                maintained(stored()).access(STR, CODE).fetches(CODE),
            ),
            (
                "another line",
                maintained(stored().access(STR, CODE + 64)).fetches(CODE + 64),
            ),
            (
                "without caches, no IC",
                Program::new().access(STR, CODE).fetches(CODE),
            ),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        let stored = || on().access(STR, CODE);
        vec![
            ("maintained", maintained(stored()).fetches(CODE)),
            ("never written", on().fetches(CODE)),
            (
                "without caches, all at once",
                Program::new()
                    .access(STR, CODE)
                    .then(IC_IALLU)
                    .then(DSB_ISH)
                    .then(ISB)
                    .fetches(CODE),
            ),
            (
                "by another CPU, which returns",
                stored()
                    .of(DC_CVAU, CODE)
                    .then(DSB_ISH)
                    .of(IC_IVAU, CODE)
                    .then(DSB_ISH)
                    .cpu(1)
                    .then(ERET)
                    .fetches(CODE),
            ),
        ]
    }
}

#[cfg(test)]
const CODE: u64 = 0x4000_0000;

/// EL2 with its caches on.
#[cfg(test)]
fn on() -> Program {
    Program::new()
        .write(crate::register::SCTLR_EL2, 5)
        .then(ISB)
}

#[cfg(test)]
fn maintained(program: Program) -> Program {
    program
        .of(DC_CVAU, CODE)
        .then(DSB_ISH)
        .of(IC_IVAU, CODE)
        .then(DSB_ISH)
        .then(ISB)
}
