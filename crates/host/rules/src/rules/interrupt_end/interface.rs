// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts that a level has acknowledged but not ended, through a CPU interface of either version.

use crate::finding::Place;
use crate::gic::{Interrupt, Step};
use crate::rule::Now;

use super::InterruptEnded;

/// Number of group priorities, which have at most 7 bits (IHI 0069H, 4.8.2; IHI 0048B, 3.3). Each priority can be
/// active only once.
const MOST: usize = 128;

/// An acknowledged interrupt.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    interrupt: Interrupt,
    place: Place,
    /// The number of exceptions from which the level had not yet returned when it acknowledged the interrupt.
    depth: u32,
}

/// The CPU interface that a level uses.
#[derive(Debug, Default)]
pub struct Interface {
    active: Vec<Acknowledged>,
    /// For each acknowledgement whose result is unknown, the depth of exceptions at that time. The acknowledgement may
    /// have returned no interrupt.
    lost: Vec<u32>,
    /// Whether a higher level has acknowledged or ended interrupts for this level. The interface's state is then
    /// unknown.
    emulated: bool,
    /// Number of exceptions from which the level has not yet returned.
    depth: u32,
}

impl Interface {
    /// Handles an access to the interface. If `interrupt` is `None`, the value of the access is unknown.
    pub fn note_step(&mut self, now: &Now<'_>, step: Step, interrupt: Option<Interrupt>) {
        if self.emulated {
            return;
        }
        match (step, interrupt) {
            (_, Some(interrupt)) if interrupt.is_none() => {}
            (Step::Acknowledge, None) if self.lost.len() < MOST => self.lost.push(self.depth),
            (Step::Acknowledge, Some(interrupt)) => self.note_acknowledge(now, interrupt),
            (Step::End, Some(interrupt)) => self.note_end(now, interrupt),
            (Step::Deactivate, Some(interrupt)) => self.note_deactivation(now, interrupt),
            (_, None) => {}
        }
    }

    /// Notes that a higher level emulates an access to the interface.
    pub fn note_emulation(&mut self) {
        *self = Self {
            emulated: true,
            depth: self.depth,
            ..Self::default()
        };
    }

    /// Notes an exception to the level.
    pub fn note_entry(&mut self) {
        self.depth += 1;
    }

    fn note_acknowledge(&mut self, now: &Now<'_>, interrupt: Interrupt) {
        if self.active.len() == MOST {
            let first = self.active.remove(0);
            let what = format!(
                "{} is acknowledged, and not ended while all priorities are",
                first.interrupt
            );
            now.report_at::<InterruptEnded>(first.place, Some(now.place), what);
        }
        self.active.push(Acknowledged {
            interrupt,
            place: now.place,
            depth: self.depth,
        });
    }

    fn note_end(&mut self, now: &Now<'_>, interrupt: Interrupt) {
        let mut active = self.active.iter();
        match active.rposition(|one| one.interrupt == interrupt) {
            Some(last) if last + 1 == self.active.len() => drop(self.active.pop()),
            Some(place) => {
                let first = self.active[place];
                self.active.truncate(place);
                let what =
                    format!("{interrupt} is ended before one that was acknowledged after it");
                now.report::<InterruptEnded>(Some(first.place), what);
            }
            None if self.lost.pop().is_some() => {}
            None => {
                let what = format!("{interrupt} is ended, and was not acknowledged");
                now.report::<InterruptEnded>(None, what);
            }
        }
    }

    fn note_deactivation(&self, now: &Now<'_>, interrupt: Interrupt) {
        let mut active = self.active.iter();
        if let Some(active) = active.rfind(|one| one.interrupt == interrupt) {
            let what = format!("{interrupt} is deactivated before its priority is dropped");
            now.report::<InterruptEnded>(Some(active.place), what);
        }
    }

    /// Handles a return from an exception that the level took.
    pub fn note_return(&mut self, now: &Now<'_>) {
        while let Some(last) = self.active.pop_if(|last| last.depth >= self.depth) {
            let what = format!(
                "{} is acknowledged, and not ended before the return",
                last.interrupt
            );
            now.report_at::<InterruptEnded>(last.place, Some(now.place), what);
        }
        // If no end of an interrupt has matched a read in this exception, the read returned no interrupt.
        self.lost.retain(|depth| *depth < self.depth);
        self.depth = self.depth.saturating_sub(1);
    }
}
