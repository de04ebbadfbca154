// SPDX-License-Identifier: MIT OR Apache-2.0
//! Written instructions must be made visible by maintenance before they are fetched.
//!
//! Data and instructions have separate caches. After a write, code cleans the line to the point of unification (DC
//! CVAU, or a DC with a wider effect), executes a DSB, invalidates the line for fetching (IC), and executes another
//! DSB. After that, the CPU that fetches needs a context synchronization event. A line that is written without caches
//! needs the DSB, but no DC. The CPU that executed a DC or IC must also execute the DSB that completes it. If another
//! CPU fetches, its context synchronization event must come after that DSB. The finding names the store, or the IC.
//!
//! An emulator reports a fetch only when it translates the instructions. So the rule sees only the first fetch after a
//! write, by whichever CPU makes it.
//!
//! Not seen: writes by a loader or a device; the shareability of IC and DSB, so the rule accepts an IC that affects
//! only another CPU; a second CPU that fetches the line; and CPUs that need less maintenance (CTR_EL0.IDC and DIC).

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::access::Access;
use crate::barriers::{Barriers, Begun, Seen};
use crate::decode::Operation;
use crate::finding::Place;
use crate::lines::{LINE, Lines};
use crate::rule::{About, Now, Rule, synchronises};
#[cfg(test)]
use crate::testing::Examples;

/// The stage of maintenance that a written line has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Stored,
    /// The line is at the point of unification once a DSB has completed the DC.
    Cleaned,
    /// The line is invalidated once a DSB has completed the IC.
    Invalidated,
}

/// The state of a line of memory.
#[derive(Debug, Default)]
struct CodeLine {
    /// The address of the store, or of the IC that invalidated the line, combined with the stage. 0 means that the line
    /// was not written. The stage and the level are in the upper byte of the address, whose bits would only repeat bit
    /// 55.
    state: AtomicU64,
    /// When the operation on which the line depends began: a DC, an IC, or a store without caches.
    begun: Begun,
    /// When an equivalent operation of another CPU began, if it was still incomplete when `begun` began. Otherwise
    /// equal to `begun`.
    earlier: Begun,
}

impl CodeLine {
    fn have_completed(&self, barriers: &Barriers) -> bool {
        barriers.have_completed(&self.begun) || barriers.have_completed(&self.earlier)
    }

    fn seen_by(&self, seen: &Seen) -> bool {
        seen.has_completed(&self.begun) || seen.has_completed(&self.earlier)
    }
}

/// The lines that were written.
#[derive(Debug)]
pub struct Written {
    lines: Lines<CodeLine>,
    /// Numbers of the cleaned lines, which an IC of all lines invalidates. The set exists because memory has too many
    /// lines to visit them all. The number of an invalidated line stays in the set until a DSB has completed the IC.
    cleaned: Mutex<HashSet<u64>>,
    barriers: Barriers,
}

const SHIFT: u32 = 56;

fn encode_state(place: Place, stage: Stage) -> u64 {
    let upper = 1 << 7 | (stage as u64) << 2 | u64::from(place.level & 3);
    place.pc << 8 >> 8 | upper << SHIFT
}

fn decode_state(line: u64) -> Option<(Place, Stage)> {
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
        Self {
            lines: Lines::new(),
            cleaned: Mutex::default(),
            barriers: Barriers::new(),
        }
    }

    /// Handles a DC of `address`, executed by `cpu`.
    fn note_clean(&self, cpu: u16, address: u64) {
        let Some(line) = self.lines.value_of_line(address) else {
            return;
        };
        let before = line.state.load(Relaxed);
        match decode_state(before) {
            Some((store, Stage::Stored)) => {
                self.set_stage(cpu, line, before, encode_state(store, Stage::Cleaned));
                self.lock_cleaned().insert(address / LINE);
            }
            Some((_, Stage::Cleaned)) => self.note_repeat(cpu, line),
            _ => {}
        }
    }

    /// Handles an IC, executed by the instruction at `place`.
    fn note_invalidate(&self, cpu: u16, line: &CodeLine, place: Place) {
        let before = line.state.load(Relaxed);
        match decode_state(before) {
            Some((_, Stage::Cleaned)) if line.have_completed(&self.barriers) => {
                self.set_stage(cpu, line, before, encode_state(place, Stage::Invalidated));
            }
            Some((_, Stage::Invalidated)) => self.note_repeat(cpu, line),
            _ => {}
        }
    }

    /// Handles an IC of all lines, executed by the instruction at `place`.
    fn invalidates_all(&self, cpu: u16, place: Place) {
        self.lock_cleaned().retain(|number| {
            let Some(line) = self.lines.value_of_line(number * LINE) else {
                return false;
            };
            self.note_invalidate(cpu, line, place);
            match decode_state(line.state.load(Relaxed)) {
                Some((_, Stage::Cleaned)) => true,
                Some((_, Stage::Invalidated)) => !line.have_completed(&self.barriers),
                Some((_, Stage::Stored)) | None => false,
            }
        });
    }

    fn lock_cleaned(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.cleaned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves a line from stage `from` to stage `to`, unless the line has been written meanwhile.
    fn set_stage(&self, cpu: u16, line: &CodeLine, from: u64, to: u64) {
        self.begins(cpu, line);
        let _ = line.state.compare_exchange(from, to, Relaxed, Relaxed);
    }

    fn begins(&self, cpu: u16, line: &CodeLine) {
        self.barriers.begin_operation(cpu, &line.begun);
        line.earlier.copy_from(&line.begun);
    }

    /// Handles the operation if another CPU executes it, too. The DSB of either CPU completes that CPU's operation, and
    /// one completed operation is enough.
    fn note_repeat(&self, cpu: u16, line: &CodeLine) {
        if !line.have_completed(&self.barriers) {
            line.earlier.copy_from(&line.begun);
            self.barriers.begin_operation(cpu, &line.begun);
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub struct CodeFetched {
    /// The counts of DSBs at the CPU's last context synchronization event. Coming out of reset is such an event.
    seen: Option<Seen>,
}

impl CodeFetched {
    fn begins(&mut self, now: &Now<'_>) -> &Seen {
        self.seen
            .get_or_insert_with(|| now.shared.written.barriers.dsb_counts())
    }
}

impl Rule for CodeFetched {
    const ABOUT: About = About {
        name: "code-fetched",
        says: "DC and DSB of what was written, IC and DSB, and a context synchronization event of the CPU that fetches it as instructions",
        cites: "DDI 0487K.a, B2.2.5 (concurrent modification and execution of instructions) and D7.5 (cache support)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        let written = &now.shared.written;
        self.begins(now);
        match operation {
            Operation::Clean(_) => {
                if let Some(address) = value {
                    written.note_clean(now.cpu, address);
                }
            }
            Operation::InvalidateCode { all: true } => written.invalidates_all(now.cpu, now.place),
            Operation::InvalidateCode { all: false } => {
                if let Some(line) = value.and_then(|address| written.lines.value_of_line(address)) {
                    written.note_invalidate(now.cpu, line, now.place);
                }
            }
            Operation::Dsb(barrier) if barrier.stores && barrier.loads => {
                written.barriers.count_dsb(now.cpu);
            }
            _ if synchronises(operation) => self.seen = Some(written.barriers.dsb_counts()),
            _ => {}
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        self.begins(now);
        let written = &now.shared.written;
        if access.store
            && let Some(address) = access.physical
            && let Some(line) = written.lines.value_of_line(address)
        {
            let stage = match now.controls.uses_caches(now.place.level) {
                true => Stage::Stored,
                false => {
                    written.begins(now.cpu, line);
                    Stage::Cleaned
                }
            };
            let before = line.state.swap(encode_state(access.place, stage), Relaxed);
            let is_known = matches!(decode_state(before), Some((_, Stage::Cleaned)));
            if stage == Stage::Cleaned && !is_known {
                written.lock_cleaned().insert(address / LINE);
            }
        }
    }

    fn on_fetch(&mut self, now: &Now<'_>, line: u64) {
        let seen = self.begins(now);
        let Written {
            lines, barriers, ..
        } = &now.shared.written;
        let Some(state) = lines.value_of_line(line) else {
            return;
        };
        let Some((at, stage)) = decode_state(state.state.swap(0, Relaxed)) else {
            return;
        };
        let lacks = match stage {
            Stage::Stored => "DC, DSB and IC are",
            Stage::Cleaned if !state.have_completed(barriers) => "a DSB and IC after it are",
            Stage::Cleaned => "IC after the DSB is",
            Stage::Invalidated if !state.have_completed(barriers) => "a DSB after IC is",
            Stage::Invalidated if !state.seen_by(seen) => "a synchronization after IC is",
            Stage::Invalidated => return,
        };
        now.report_at::<Self>(
            at,
            Some(now.place),
            format!("{line:#x} was written and is fetched as instructions, and {lacks} missing"),
        );
    }

    fn on_level_entry(&mut self, now: &Now<'_>, _: u8) {
        self.seen = Some(now.shared.written.barriers.dsb_counts());
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("stored", "on; str A"),
            ("maintained", "dc cvau A; dsb ish; ic ivau A; dsb ish; isb"),
            ("NEXT", "0x40000040"),
        ],
        breaks: "
            at once: stored; fetch A
            cleaned only: stored; dc cvau A; dsb ish; fetch A
            invalidated before it is clean: stored; ic ivau A; dc cvau A; dsb ish; isb; fetch A
            no DSB: stored; dc cvau A; dsb ish; ic ivau A; isb; fetch A
            no synchronization: stored; dc cvau A; dsb ish; ic iallu; dsb ish; fetch A
            written again: stored; maintained; str A; fetch A
            written again after an IC of all lines: stored; dc cvau A; dsb ish; ic iallu; dsb ish; isb; str A; ic iallu; dsb ish; isb; fetch A
            another line: stored; str NEXT; maintained; fetch NEXT
            no DSB between DC and IC: stored; dc cvau A; ic ivau A; dsb ish; isb; fetch A
            a DSB of another CPU between them: stored; dc cvau A; cpu 1; dsb ish; ic iallu; dsb ish; isb; fetch A
            without caches, no IC: str A; fetch A
            without caches, no DSB before IC: str A; ic iallu; dsb ish; isb; fetch A
            synchronised before the DSB: stored; dc cvau A; dsb ish; ic ivau A; isb; dsb ish; fetch A
            invalidated by two CPUs without DSB: stored; dc cvau A; dsb ish; cpu 1; ic iallu; cpu 0; ic ivau A; isb; fetch A
            cleaned again after the DSB of another CPU: stored; dc cvau A; cpu 1; dsb ish; dc cvau A; ic iallu; dsb ish; isb; fetch A
            by another CPU, which does not synchronise: stored; cpu 1; isb; cpu 0; maintained; cpu 1; fetch A
            by another CPU, which synchronises before the DSB: stored; dc cvau A; dsb ish; ic ivau A; cpu 1; dsb ish; isb; cpu 0; dsb ish; cpu 1; fetch A
        ",
        keeps: "
            maintained: stored; maintained; fetch A
            never written: on; fetch A
            without caches, all at once: str A; dsb sy; ic iallu; dsb ish; isb; fetch A
            by another CPU, which returns: stored; cpu 1; isb; cpu 0; maintained; cpu 1; eret; fetch A
            by another CPU, which takes an exception: stored; cpu 1; isb; cpu 0; maintained; cpu 1; irq 2; fetch A
            by another CPU, which begins: stored; maintained; cpu 1; fetch A
            another CPU invalidates all lines meanwhile: stored; dc cvau A; dsb ish; cpu 1; ic iallu; cpu 0; ic ivau A; dsb ish; isb; fetch A
            another CPU invalidates all lines just after: stored; dc cvau A; dsb ish; ic ivau A; cpu 1; ic iallu; cpu 0; dsb ish; isb; fetch A
            all lines invalidated before the DC, and after it: stored; ic iallu; maintained; dc cvau NEXT; ic iallu; dsb ish; isb; fetch A
            written without caches, and then cleaned: str A; dsb ish; on; str A; dc cvau A; dsb ish; ic iallu; dsb ish; isb; fetch A
            another CPU cleans it meanwhile: stored; cpu 1; dc cvau A; cpu 0; dc cvau A; dsb ish; ic ivau A; dsb ish; isb; fetch A
            invalidated by the CPU that fetches it: stored; dc cvau A; dsb ish; cpu 1; ic ivau A; dsb ish; isb; fetch A
        ",
    };
}
