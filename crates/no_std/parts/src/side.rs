// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU, followed through its two logs.

use abi::{TimeLog, TimeNote, Traced, event_of};

use crate::{CAUSES, Part, Window};

/// Notes of the guest: its activity from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Guest {
    /// It runs.
    Run,
    /// It polls.
    Poll,
    /// It executes WFI, or requests a similar state.
    Wfi,
}

/// Activity of EL2 in an exit.
#[derive(Clone, Copy, Debug)]
enum Doing {
    Work,
    Poll,
    Halt,
}

#[derive(Clone, Copy, Debug)]
struct Exit {
    /// Of [`CAUSES`].
    cause: usize,
    doing: Doing,
}

/// The guest's log, and EL2's.
const GUEST: usize = 0;
const EL2: usize = 1;

/// One CPU.
#[derive(Debug)]
pub struct Side<'l> {
    logs: [&'l TimeLog; 2],
    /// The next note of each log.
    next: [u64; 2],
    /// Notes were lost, so the activity is not known.
    unknown: [bool; 2],
    halts: bool,
    guest: Guest,
    exit: Option<Exit>,
    /// The time up to which it was followed.
    since: u64,
}

impl<'l> Side<'l> {
    /// A CPU that runs the guest, with no notes read yet.
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

    /// Whether it was followed to `time`.
    pub fn has_passed(&self, time: u64) -> bool {
        self.since >= time
    }

    /// The time of the newest note that certainly exists. A CPU makes its notes in order, so EL2's
    /// notes before its newest one exist, and so do the guest's, if they are read later.
    pub fn noted_until(&self) -> u64 {
        let newest = self.logs[EL2].count().checked_sub(1);
        let newest = newest.and_then(|number| self.logs[EL2].get(number));
        newest.map_or(0, |note| note.time)
    }

    /// Follows it; see [`crate::Account::follow`].
    pub fn follow(&mut self, until: u64, windows: &mut [Window]) {
        while let Some((log, note)) = self.earliest(windows) {
            if note.time > until {
                break;
            }
            if note.time < self.since {
                // A clock that went back.
                windows.iter_mut().for_each(|window| window.lost = true);
            } else {
                self.spend(note.time, windows);
            }
            self.next[log] += 1;
            self.turn(log, note.word);
        }
        if until > self.since {
            self.spend(until, windows);
        }
    }

    /// The next note: the earlier one of both logs.
    fn earliest(&mut self, windows: &mut [Window]) -> Option<(usize, TimeNote)> {
        let [guest, el2] = [GUEST, EL2].map(|log| self.peek(log, windows));
        match (guest, el2) {
            (Some(guest), Some(el2)) if guest.time < el2.time => Some((GUEST, guest)),
            (_, Some(el2)) => Some((EL2, el2)),
            (guest, None) => guest.map(|note| (GUEST, note)),
        }
    }

    /// The next note of `log`. If that was overwritten, the samples that it may belong to are lost,
    /// and reading goes on with a note that is not about to be overwritten.
    fn peek(&mut self, log: usize, windows: &mut [Window]) -> Option<TimeNote> {
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

    /// Counts the time until `to` as its current activity.
    fn spend(&mut self, to: u64, windows: &mut [Window]) {
        let part = self.part().index();
        for window in windows {
            let (from, to) = (window.start.max(self.since), window.end.min(to));
            if from < to {
                window.parts[part] += to - from;
                window.lost |= self.unknown != [false; 2];
            }
        }
        self.since = to;
    }

    fn part(&self) -> Part {
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
    fn turn(&mut self, log: usize, word: u64) {
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
            Some(Traced::Interrupt) => begun(named("irq")),
            Some(Traced::Resume) => None,
            Some(Traced::Poll) => return self.turn_to(Doing::Poll),
            Some(Traced::Halt) => return self.turn_to(Doing::Halt),
            Some(Traced::Awake) => return self.turn_to(Doing::Work),
            Some(Traced::Sent | Traced::Nothing) | None => return,
        };
        self.unknown[EL2] = false;
        self.exit = exit;
    }

    fn turn_to(&mut self, doing: Doing) {
        if let Some(exit) = &mut self.exit {
            exit.doing = doing;
        }
    }
}

/// The place of the cause with this name.
fn named(name: &str) -> usize {
    let place = CAUSES.iter().position(|cause| *cause == name);
    place.unwrap_or(CAUSES.len() - 1)
}

/// The cause of a synchronous exit with this ESR_EL2 (DDI 0487K.a, D23.2.39), of [`CAUSES`].
#[must_use]
pub fn cause(esr: u64) -> usize {
    /// The ISS of a write of ICC_SGI1R_EL1, but for the register that is written, Rt.
    const SGI: u64 = 0x3a_3016;
    const RT: u64 = 0x1f << 5;
    let iss = esr & 0x1ff_ffff;
    named(match esr >> 26 & 0x3f {
        // TI, bit 0: WFE or WFET.
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
