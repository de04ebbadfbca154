// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line needs maintenance by address between an access without caches and an access through caches.
//!
//! A CPU whose caches are off (SCTLR_ELx.M or C is 0) accesses memory directly. A cache may hold an older copy of a
//! line that the CPU writes, because another level or PE has read it speculatively, or because the line was in use
//! before. A later read through a cache may find that copy. Conversely, if a line was written through a cache, the data
//! may not have reached memory when it is read without caches. DC by address moves a line between cache and memory:
//! code invalidates the line after writes without caches, and cleans it after writes through caches.
//!
//! The rule tracks for each byte whether a CPU without caches has written it and its line has not been invalidated
//! since. The first read of such a byte through caches breaks the rule. A write through caches ends this state for the
//! written bytes, and DC ZVA ends it for all bytes of the line: a PE reads its own writes back (DDI 0487K.a, B2.3.1,
//! coherence of one location), whatever the cache held before. So memory that is filled before it is read needs no
//! maintenance. The rule also tracks for each line whether it was written through caches and not cleaned since. The
//! first access without caches to such a line breaks the rule. If the reader's own level wrote the line without caches,
//! the finding names the instruction that turned the reader's caches on, which is the same for all lines.
//!
//! A DC is completed by a DSB for all accesses. Before that DSB, the CPU must not turn its caches on, return from an
//! exception, or call firmware or a hypervisor, because these may start other CPUs.
//!
//! Not seen: writes by a loader, firmware or a device; stale copies of code; a DC that is not complete when a store
//! lets another CPU continue; attributes of Normal memory other than write-back while caches are on.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU64};

use crate::access::Access;
use crate::decode::{Operation, msr};
use crate::finding::Place;
use crate::lines::{LINE, Lines};
use crate::register::*;
use crate::rule::{About, Now, Rule};
use crate::shared_state::lock;
#[cfg(test)]
use crate::testing::Examples;

/// Bit for a line with bytes that were written without caches, and not invalidated since.
const BESIDE: u8 = 1;
/// Bit for a line that was written through caches, and not cleaned since.
const DIRTY: u8 = 2;
/// Bit for a line that is part of a translation table in use: see the module `tables`.
pub const TABLE_IN_USE: u8 = 4;
/// Number of lines whose writer is recorded. Violations on other lines are reported without the writer.
const WRITERS: usize = 1 << 16;

/// The known state of all lines of memory.
#[derive(Debug)]
pub struct Coherence {
    lines: Lines<AtomicU8>,
    /// The bytes of a line that were written without caches, and not invalidated since.
    bytes: Lines<AtomicU64>,
    /// For each line, the last instruction that wrote to it without caches.
    writers: Mutex<HashMap<u64, Place>>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct CachesAgree {
    /// The instruction that turned on the caches, for each level.
    enabled: [Option<Place>; 4],
    /// The last DC, if no DSB has completed it.
    begun: Option<Place>,
}

impl Rule for CachesAgree {
    const ABOUT: About = About {
        name: "caches-agree",
        says: "maintenance by address between an access to memory without caches and one through them, per line",
        cites: "DDI 0487K.a, B2.11 (mismatched memory attributes) and D7.5 (cache support)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        self.check_dc_done(now, operation, value);
        match (operation, value) {
            (Operation::Clean(how), Some(address)) => {
                if let Some(line) = now.shared.coherence.line_state(address) {
                    let cleaned = if how.cleans || how.invalidates {
                        DIRTY
                    } else {
                        0
                    };
                    let invalidated = if how.invalidates { BESIDE } else { 0 };
                    line.fetch_and(!(cleaned | invalidated), Relaxed);
                }
            }
            (msr!(register @ (SCTLR_EL1 | SCTLR_EL2)), Some(value)) => {
                let level = register.level();
                let (was, is) = (now.controls.uses_caches(level), value & 5 == 5);
                // If a hypervisor turns on the caches of a lower level, it does so before that level runs.
                if level == now.place.level && is && !was {
                    self.enabled[usize::from(level)] = Some(now.place);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let Some(address) = access.physical else {
            return;
        };
        let coherence = &now.shared.coherence;
        let Some(line) = coherence.line_state(address) else {
            return;
        };
        let state = line.load(Relaxed);
        match now.controls.uses_caches(now.place.level) {
            true => {
                if state & BESIDE != 0 {
                    self.check_cached(now, access, address, line);
                }
                if access.store && state & DIRTY == 0 {
                    line.fetch_or(DIRTY, Relaxed);
                }
            }
            false => check_uncached(now, access, address, line, state),
        }
    }

    fn on_level_entry(&mut self, _: &Now<'_>, _: u8) {
        // The exception handler and its return do not rely on the DC of the interrupted code.
        self.begun = None;
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[("off", "str A")],
        breaks: "
            written before the caches are on: off; on; ldr A
            its neighbour is written, and it is read: off; on; str 0x40000038; ldr A
            only cleaned: off; dc cvac A; on; ldr A
            invalidated before it was written: dc civac A; str A; on; ldr A
            not finished when caches are on: off; dc civac A; on
            not finished when firmware is called: dc civac A; hvc
            another line: off; dc civac 0x40000040; on; ldr A
            by another CPU: off; cpu 1; on; ldr A
            not cleaned for one without: on; str A; cpu 1; ldr A
            dirty beneath what is written without: on; str A; cpu 1; str A
            a guest without caches, EL2 with: on; eret; el 1; str A; irq 2; el 2; ldr A
        ",
        keeps: "
            invalidated: off; dc civac 0x40000020; dsb sy; on; ldr A
            invalidated afterwards: off; on; dc civac A; ldr A
            finished: dc civac A; dsb sy; hvc
            interrupted: dc civac A; irq 2; eret; dsb sy; hvc
            interrupted where its loop begins again: el 1; str A; dc civac A; loop-irq 2; el 2; eret; el 1; dsb sy; msr SCTLR_EL1 5; isb; ldr A
            zeroed as a whole: off; on; zero A; ldr A
            written over before it is read: off; str 0x40000008; on; str A; ldr A; str 0x40000008; ldr 0x40000008
            its neighbour is used: off; on; str 0x40000038; ldr 0x40000038
            read without: off; cpu 1; ldr A
            cleaned: on; str A; dc cvac A; cpu 1; ldr A
            another line: off; on; ldr 0x40000040
            read by both: ldr A; on; ldr A
            a device: device str 0x9000000; on; device ldr 0x9000000
        ",
    };
}

impl Coherence {
    pub fn new() -> Self {
        Self {
            lines: Lines::new(),
            bytes: Lines::new(),
            writers: Mutex::default(),
        }
    }

    /// Returns the known state of the line with physical address `address`.
    #[inline]
    pub fn line_state(&self, address: u64) -> Option<&AtomicU8> {
        self.lines.value_of_line(address)
    }
}

impl CachesAgree {
    /// Checks that a DSB has completed the last DC, if `operation` relies on it.
    fn check_dc_done(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        let relies = match operation {
            Operation::Call | Operation::Return => true,
            msr!(SCTLR_EL1 | SCTLR_EL2) => value.is_some_and(|value| value & 5 == 5),
            _ => false,
        };
        match operation {
            Operation::Clean(_) => self.begun = Some(now.place),
            Operation::Dsb(barrier) if barrier.stores && barrier.loads => self.begun = None,
            _ if relies => {
                if let Some(begun) = self.begun.take() {
                    now.report_at::<Self>(
                        begun,
                        Some(now.place),
                        "DC, and no DSB before what relies on it",
                    );
                }
            }
            _ => {}
        }
    }

    /// Handles an access through a cache to a line with bytes that were written without caches.
    #[cold]
    fn check_cached(&mut self, now: &Now<'_>, access: &Access, address: u64, line: &AtomicU8) {
        let Some(bytes) = now.shared.coherence.bytes.value_of_line(address) else {
            return;
        };
        let touched = access.byte_mask();
        if !access.store {
            if bytes.load(Relaxed) & touched != 0 {
                self.report_stale(now, address, line);
            }
        } else if bytes.fetch_and(!touched, Relaxed) & !touched == 0 {
            line.fetch_and(!BESIDE, Relaxed);
        }
    }

    /// Reports a read through a cache of data that was written without one.
    #[cold]
    fn report_stale(&mut self, now: &Now<'_>, address: u64, line: &AtomicU8) {
        line.fetch_and(!BESIDE, Relaxed);
        let writer = lock(&now.shared.coherence.writers).remove(&(address / LINE));
        let enabled = self.enabled[usize::from(now.place.level)];
        let same_level = writer.is_none_or(|writer| writer.level == now.place.level);
        match enabled.filter(|_| same_level) {
            Some(enabled) => now.report_at::<Self>(
                enabled,
                writer,
                format!(
                    "caches are turned on, and {address:#x}, written without them and not invalidated, is read \
                     through them at {:#x}",
                    now.place.pc
                ),
            ),
            None => now.report::<Self>(
                writer,
                format!("{address:#x}, written without caches and not invalidated, is read through them"),
            ),
        }
    }
}

/// Handles an access without caches.
#[cold]
fn check_uncached(now: &Now<'_>, access: &Access, address: u64, line: &AtomicU8, state: u8) {
    if state & DIRTY != 0 {
        line.fetch_and(!DIRTY, Relaxed);
        let how = if access.store { "written" } else { "read" };
        now.report::<CachesAgree>(
            None,
            format!("{address:#x}, written through caches and not cleaned, is {how} without them"),
        );
    }
    if access.store {
        if let Some(bytes) = now.shared.coherence.bytes.value_of_line(address) {
            // Writes before the invalidation no longer count.
            let before = if state & BESIDE != 0 {
                bytes.load(Relaxed)
            } else {
                0
            };
            bytes.store(before | access.byte_mask(), Relaxed);
        }
        line.fetch_or(BESIDE, Relaxed);
        let mut writers = lock(&now.shared.coherence.writers);
        if writers.len() < WRITERS {
            writers.insert(address / LINE, access.place);
        }
    }
}
