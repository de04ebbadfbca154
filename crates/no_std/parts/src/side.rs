// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows one CPU through its two logs.

use abi::{TimeLog, TimeNote, Traced, event_of};

use crate::{CAUSES, Part, Window};

/// A note of the guest: the CPU's activity from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Guest {
    /// The guest runs.
    Run,
    /// The guest polls.
    Poll,
    /// The guest executes WFI, or requests a similar state.
    Wfi,
}

/// The activity of EL2 in an exit.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Work,
    Poll,
    Halt,
}

#[derive(Clone, Copy, Debug)]
struct Exit {
    /// Index in [`CAUSES`].
    cause: usize,
    doing: Doing,
}

/// Indices of the guest's log and of EL2's log.
const GUEST: usize = 0;
const EL2: usize = 1;

/// The state of one CPU.
#[derive(Debug)]
pub struct Side<'l> {
    logs: [&'l TimeLog; 2],
    /// Number of the next note of each log.
    next: [u64; 2],
    /// Whether notes of each log were lost, so that the activity is unknown.
    unknown: [bool; 2],
    halts: bool,
    guest: Guest,
    exit: Option<Exit>,
    /// The time up to which the CPU was followed.
    since: u64,
}

impl<'l> Side<'l> {
    /// Creates a CPU that runs the guest, and whose notes were not yet read.
    pub fn new(logs: [&'l TimeLog; 2], halts: bool) -> Self {
        Self {
            logs,
            next: [0; 2],
            unknown: [false; 2],
            halts,
            guest: Guest::Run,
            exit: None,
            since: 0,
        }
    }

    /// Whether the CPU was followed up to `time`.
    pub fn has_passed(&self, time: u64) -> bool {
        self.since >= time
    }

    /// Returns the time of the newest note that certainly exists. A CPU writes its notes in order, so
    /// all earlier notes of EL2 exist; so do those of the guest, if they are read afterwards.
    pub fn noted_until(&self) -> u64 {
        let newest = self.logs[EL2].count().checked_sub(1);
        let newest = newest.and_then(|number| self.logs[EL2].get(number));
        newest.map_or(0, |note| note.time)
    }

    /// Follows the CPU; see [`crate::Account::follow`].
    pub fn follow(&mut self, until: u64, windows: &mut [Window]) {
        while let Some((log, note)) = self.earliest_note(windows) {
            if note.time > until {
                break;
            }
            if note.time < self.since {
                // The clock went back.
                windows.iter_mut().for_each(|window| window.lost = true);
            } else {
                self.count_time(note.time, windows);
            }
            self.next[log] += 1;
            self.apply_note(log, note.word);
        }
        if until > self.since {
            self.count_time(until, windows);
        }
    }

    /// Returns the next note: the earlier one of the two logs' next notes.
    fn earliest_note(&mut self, windows: &mut [Window]) -> Option<(usize, TimeNote)> {
        let [guest, el2] = [GUEST, EL2].map(|log| self.peek_note(log, windows));
        match (guest, el2) {
            (Some(guest), Some(el2)) if guest.time < el2.time => Some((GUEST, guest)),
            (_, Some(el2)) => Some((EL2, el2)),
            (guest, None) => guest.map(|note| (GUEST, note)),
        }
    }

    /// Returns the next note of `log`. If that note was overwritten, the samples to which it may
    /// belong are lost, and reading continues with a note that is not about to be overwritten.
    fn peek_note(&mut self, log: usize, windows: &mut [Window]) -> Option<TimeNote> {
        loop {
            let count = self.logs[log].count();
            if self.next[log] >= count {
                return None;
            }
            if let Some(note) = self.logs[log].get(self.next[log]) {
                return Some(note);
            }
            windows.iter_mut().for_each(|window| window.lost = true);
            self.unknown[log] = true;
            self.next[log] = self.next[log].max(self.logs[log].count() - TimeLog::KEPT / 2);
        }
    }

    /// Counts the time until `to` as the CPU's current activity.
    fn count_time(&mut self, to: u64, windows: &mut [Window]) {
        let part = self.current_part().index();
        for window in windows {
            let (from, to) = (window.start.max(self.since), window.end.min(to));
            if from < to {
                window.parts[part] += to - from;
                window.lost |= self.unknown != [false; 2];
            }
        }
        self.since = to;
    }

    fn current_part(&self) -> Part {
        match (self.exit, self.guest) {
            (Some(exit), _) => match exit.doing {
                Doing::Work => Part::El2(exit.cause),
                Doing::Poll => Part::Poll,
                Doing::Halt => Part::Wfi,
            },
            (None, Guest::Poll) => Part::Poll,
            (None, Guest::Wfi) if self.halts => Part::Wfi,
            (None, Guest::Wfi | Guest::Run) => Part::Run,
        }
    }

    /// Updates the activity according to the note `word` of `log`.
    fn apply_note(&mut self, log: usize, word: u64) {
        if log == GUEST {
            self.unknown[GUEST] = false;
            self.guest = match word {
                word if word == Guest::Poll as u64 => Guest::Poll,
                word if word == Guest::Wfi as u64 => Guest::Wfi,
                _ => Guest::Run,
            };
            return;
        }
        let (what, data) = event_of(word);
        let begun = |cause| {
            let doing = Doing::Work;
            Some(Exit { cause, doing })
        };
        let exit = match Traced::ALL.get(what as usize) {
            Some(Traced::Synchronous) => begun(cause(data)),
            Some(Traced::Interrupt) => begun(cause_index("irq")),
            Some(Traced::Resume) => None,
            Some(Traced::Poll) => return self.set_activity(Doing::Poll),
            Some(Traced::Halt) => return self.set_activity(Doing::Halt),
            Some(Traced::Awake) => return self.set_activity(Doing::Work),
            Some(Traced::Sent | Traced::Nothing) | None => return,
        };
        self.unknown[EL2] = false;
        self.exit = exit;
    }

    fn set_activity(&mut self, doing: Doing) {
        if let Some(exit) = &mut self.exit {
            exit.doing = doing;
        }
    }
}

/// Returns the index of the cause called `name`.
fn cause_index(name: &str) -> usize {
    let place = CAUSES.iter().position(|cause| *cause == name);
    place.unwrap_or(CAUSES.len() - 1)
}

/// Returns the index in [`CAUSES`] of a synchronous exit with this ESR_EL2 (DDI 0487K.a, D23.2.39).
#[must_use]
pub fn cause(esr: u64) -> usize {
    /// The ISS of a write of ICC_SGI1R_EL1, except for the general register Rt.
    const SGI: u64 = 0x3a_3016;
    const RT: u64 = 0x1f << 5;
    let iss = esr & 0x1ff_ffff;
    cause_index(match esr >> 26 & 0x3f {
        // Bit 0 of TI means WFE or WFET.
        0x01 if iss & 1 != 0 => "wfe",
        0x01 => "wfi",
        0x16 => "hvc",
        0x17 => "smc",
        0x18 if iss & !RT == SGI => "sgi",
        0x18 => "sysreg",
        0x24 => "mmio",
        _ => "other",
    })
}
