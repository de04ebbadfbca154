// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the idle intervals of one CPU in the events of a recording. The first event after an interval's entry that is
//! evidence of a reason for its end, and that precedes the next entry, gives the reason ([`super::evidence`]).

use cpuidle::{FOREVER, Wake};

use super::super::trace::{Interval, LONGEST_NS};
use super::evidence::{self, Evidence};
use super::line::{Event, What};

/// A CPU of the recording, and its intervals so far.
#[derive(Debug, Default)]
pub struct RecordedCpu {
    /// Whether the recording has all events that may end an interval.
    all: bool,
    now: Now,
    /// Time of the CPU's last event.
    last_ns: u64,
    /// How long the CPU ran before the current interval.
    busy_ns: u64,
    done: Vec<Interval>,
    /// The first contradiction in the events; later events are unreliable.
    flaw: Option<String>,
}

/// State of the CPU.
#[derive(Clone, Copy, Debug, Default)]
enum Now {
    /// The CPU has had no event yet, or none since events were lost.
    #[default]
    Unknown,
    /// The CPU is in a state.
    Idle(Stay),
    /// The CPU has left the state at this time.
    Left(Stay, u64),
}

/// A stay in a state.
#[derive(Clone, Copy, Debug)]
struct Stay {
    /// When the CPU began to idle; `None` if it began before the recording.
    since_ns: Option<u64>,
    /// The state; `None` if it was entered before the recording.
    state: Option<u32>,
    /// Number of the last line about the stay.
    line: usize,
    /// Evidence of why the CPU may have left the state.
    seen: Option<Evidence>,
}

impl Stay {
    /// Whether the CPU continues to idle after the stay, because only the tick came or a poll timed out. `all` tells
    /// whether the recording has all other events that may have ended the stay.
    fn continues_idling(&self, all: bool) -> bool {
        // Only the first state can be a polling state.
        let timed_out = all && self.state == Some(0) && self.seen.is_none();
        self.seen == Some(Evidence::Tick) || timed_out
    }

    fn wake_cause(&self) -> Wake {
        match self.seen {
            Some(Evidence::By(wake)) => wake,
            Some(Evidence::TimerIrq) => Wake::Timer,
            Some(Evidence::Ipi) => Wake::Request,
            _ => Wake::Interrupt,
        }
    }
}

impl RecordedCpu {
    /// Creates a CPU; `all` tells whether the recording has all events that may end an interval.
    pub fn new(all: bool) -> Self {
        Self {
            all,
            ..Self::default()
        }
    }

    /// Handles an event of this CPU, which is in line number `line`.
    pub fn handle(&mut self, event: &Event, line: usize) {
        if self.flaw.is_none()
            && let Err(why) = self.update(event, line)
        {
            self.flaw = Some(format!("line {line}: {why}"));
        }
    }

    fn update(&mut self, event: &Event, line: usize) -> Result<(), String> {
        let (cpu, time_ns) = (event.cpu, event.time_ns);
        if time_ns < self.last_ns {
            return Err(format!(
                "time goes back on CPU {cpu}; sort the lines by time, or record with a clock of one kind: mono into \
                 tracing/trace_clock, perf record -k mono"
            ));
        }
        self.last_ns = time_ns;
        self.now = match (event.what, self.now) {
            (What::Enter(_), Now::Idle(Stay { line, .. })) => {
                return Err(format!(
                    "CPU {cpu} enters an idle state, and is in one since line {line}: an exit is missing; {MISSING}"
                ));
            }
            (What::Exit, Now::Left(Stay { line, .. }, _)) => {
                return Err(format!(
                    "CPU {cpu} leaves an idle state, and has left one in line {line}: an entry is missing; {MISSING}"
                ));
            }
            (What::Enter(state), before) => Now::Idle(Stay {
                since_ns: Some(self.begin_stay(before, time_ns)?),
                state: Some(state),
                line,
                seen: None,
            }),
            (What::Exit, Now::Idle(stay)) => Now::Left(Stay { line, ..stay }, time_ns),
            (What::Exit, Now::Unknown) => {
                let stay = Stay {
                    since_ns: None,
                    state: None,
                    line,
                    seen: None,
                };
                Now::Left(stay, time_ns)
            }
            (What::Saw(evidence), mut now) => {
                if let Now::Idle(stay) | Now::Left(stay, _) = &mut now {
                    stay.seen = evidence::combine(stay.seen, evidence);
                }
                now
            }
        };
        Ok(())
    }

    /// Handles a loss of this CPU's events. Forgets its current state, and also the previous interval if the reason for
    /// its end was not yet certain.
    pub fn lose_events(&mut self) {
        if let Now::Left(stay, at_ns) = self.now
            && let Some(Evidence::By(_) | Evidence::Ipi) = stay.seen
        {
            // An interval that is too long is left out.
            let _ = self.end_interval(&stay, at_ns);
        }
        self.now = Now::Unknown;
        self.busy_ns = 0;
    }

    /// Handles the entry into a state. Returns the time at which the CPU began to idle, which is before this entry if
    /// the CPU only continues to idle.
    fn begin_stay(&mut self, before: Now, time_ns: u64) -> Result<u64, String> {
        let Now::Left(stay, at_ns) = before else {
            return Ok(time_ns);
        };
        if let (Some(since_ns), true) = (stay.since_ns, stay.continues_idling(self.all)) {
            return Ok(since_ns);
        }
        self.end_interval(&stay, at_ns)?;
        self.busy_ns = time_ns - at_ns;
        Ok(time_ns)
    }

    /// Adds the finished interval.
    fn end_interval(&mut self, stay: &Stay, at_ns: u64) -> Result<(), String> {
        let Some(since_ns) = stay.since_ns else {
            return Ok(());
        };
        // If time stamps are in microseconds, the difference for a shorter interval is 0.
        let duration_ns = (at_ns - since_ns).max(1);
        if duration_ns > LONGEST_NS || self.busy_ns > LONGEST_NS {
            return Err(format!(
                "a CPU is in one state for more than {} s; cut the recording there",
                LONGEST_NS / 1_000_000_000
            ));
        }
        let wake = stay.wake_cause();
        self.done.push(Interval {
            duration_ns,
            next_timer_ns: match wake {
                Wake::Timer => duration_ns,
                _ => FOREVER,
            },
            wake,
            busy_ns: self.busy_ns,
            utilisation: None,
            io: false,
        });
        Ok(())
    }

    /// Returns all complete intervals of the recording, and the flaw after them.
    pub fn intervals(mut self) -> (Vec<Interval>, Option<String>) {
        if let (Now::Left(stay, at_ns), None) = (self.now, &self.flaw)
            && !stay.continues_idling(self.all)
        {
            // An interval that is too long is left out, like an interval without an end.
            let _ = self.end_interval(&stay, at_ns);
        }
        (self.done, self.flaw)
    }
}

/// Remedy if events are missing although no loss was reported.
const MISSING: &str = "record all CPUs (-a) without a filter, and all lines of one recording, in their order; with perf \
                       script --show-lost-events it says where events were lost";
