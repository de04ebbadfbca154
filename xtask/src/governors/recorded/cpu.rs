// SPDX-License-Identifier: MIT OR Apache-2.0
//! One CPU of a recording: from its events to its idle intervals.
//!
//! What ended an interval is the first event on the CPU after the exit that tells, before the next
//! entry:
//!
//! | event | taken for |
//! |---|---|
//! | `hrtimer_expire_entry`, `timer_expire_entry` | a timer; due when the CPU left its state |
//! | the first with a `function=tick_...` | the tick, which does not end an interval |
//! | `ipi_entry`, `reschedule_entry`, `call_function_entry`, `call_function_single_entry` | a request |
//! | `irq_handler_entry` with `name=IPI` | a request |
//! | any other, but of a timer | an interrupt |
//! | `sched_switch` to a task, before any of these | a request: a CPU that polled needs no interrupt |
//! | none | an interrupt: what it was is not known |

use cpuidle::{FOREVER, Wake};

use super::super::trace::{Interval, LONGEST_NS};
use super::line::{Event, What};

/// A CPU.
#[derive(Debug, Default)]
pub struct Cpu {
    now: Now,
    /// When it last did anything.
    last_ns: u64,
    /// How long it ran before the interval that is under way.
    busy_ns: u64,
    done: Vec<Interval>,
}

/// What it does.
#[derive(Clone, Copy, Debug, Default)]
enum Now {
    /// The recording has not said yet.
    #[default]
    Unknown,
    /// It is idle since then, and entered a state in that line.
    Idle { since_ns: u64, line: usize },
    /// It has left the state.
    Left {
        /// When it began to idle; not known if that was before the recording.
        since_ns: Option<u64>,
        at_ns: u64,
        line: usize,
        ended: Option<Ended>,
    },
}

/// What ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    By(Wake),
    /// Nothing that matters; the governor is asked again.
    Tick,
}

impl Cpu {
    /// Takes an event of this CPU, which is in that line.
    ///
    /// # Errors
    /// It can't have happened after what has happened before.
    pub fn take(&mut self, event: &Event<'_>, line: usize) -> Result<(), String> {
        let (cpu, time_ns) = (event.cpu(), event.time_ns);
        if time_ns < self.last_ns {
            return Err(format!(
                "time goes back on CPU {cpu}; sort the lines by time, or record with a clock of one kind: mono into \
                 tracing/trace_clock, perf record -k mono"
            ));
        }
        self.last_ns = time_ns;
        self.now = match (event.what, self.now) {
            (What::Enter(_), Now::Idle { line, .. }) => {
                return Err(format!(
                    "CPU {cpu} enters an idle state, and is in one since line {line}: an exit is missing; {MISSING}"
                ));
            }
            (What::Exit, Now::Left { line, .. }) => {
                return Err(format!(
                    "CPU {cpu} leaves an idle state, and has left one in line {line}: an entry is missing; {MISSING}"
                ));
            }
            (What::Enter(_), before) => Now::Idle {
                since_ns: self.begin(before, time_ns)?,
                line,
            },
            (What::Exit, before) => Now::Left {
                since_ns: match before {
                    Now::Idle { since_ns, .. } => Some(since_ns),
                    Now::Unknown | Now::Left { .. } => None,
                },
                at_ns: time_ns,
                line,
                ended: None,
            },
            (What::Else(name, text), mut now) => {
                if let Now::Left { ended, .. } = &mut now {
                    *ended = later(*ended, told(name, text));
                }
                now
            }
        };
        Ok(())
    }

    /// The CPU enters a state: when it began to idle, which is earlier if only the tick has
    /// come meanwhile.
    fn begin(&mut self, before: Now, time_ns: u64) -> Result<u64, String> {
        let Now::Left {
            since_ns,
            at_ns,
            ended,
            ..
        } = before
        else {
            return Ok(time_ns);
        };
        if let (Some(since_ns), Some(Ended::Tick)) = (since_ns, ended) {
            return Ok(since_ns);
        }
        self.end(since_ns, at_ns, ended)?;
        self.busy_ns = time_ns - at_ns;
        Ok(time_ns)
    }

    /// The interval is over.
    fn end(
        &mut self,
        since_ns: Option<u64>,
        at_ns: u64,
        ended: Option<Ended>,
    ) -> Result<(), String> {
        let Some(since_ns) = since_ns else {
            return Ok(());
        };
        // Time stamps of microseconds make nothing of what is shorter.
        let duration_ns = (at_ns - since_ns).max(1);
        if duration_ns > LONGEST_NS || self.busy_ns > LONGEST_NS {
            return Err(format!(
                "a CPU is in one state for more than {} s; cut the recording there",
                LONGEST_NS / 1_000_000_000
            ));
        }
        let wake = match ended {
            Some(Ended::By(wake)) => wake,
            Some(Ended::Tick) | None => Wake::Interrupt,
        };
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

    /// All intervals that the recording has from begin to end.
    pub fn intervals(mut self) -> Vec<Interval> {
        if let Now::Left {
            since_ns,
            at_ns,
            ended,
            ..
        } = self.now
            && ended != Some(Ended::Tick)
        {
            // One that is too long is left out, like one that has no end.
            let _ = self.end(since_ns, at_ns, ended);
        }
        self.done
    }
}

/// Why an event may be missing that was not said to be lost.
const MISSING: &str =
    "record all CPUs (-a) without a filter, and all lines of one recording, in their order";

/// What ended an interval, if one thing says this and a later one that. The tick does not keep another
/// from being the reason.
fn later(before: Option<Ended>, now: Option<Ended>) -> Option<Ended> {
    match before {
        None | Some(Ended::Tick) => now.or(before),
        Some(Ended::By(_)) => before,
    }
}

/// What an event tells of the end.
fn told(name: &str, text: &str) -> Option<Ended> {
    let by = |wake| Some(Ended::By(wake));
    match name {
        "hrtimer_expire_entry" if text.contains("function=tick_") => Some(Ended::Tick),
        "hrtimer_expire_entry" | "timer_expire_entry" => by(Wake::Timer),
        "ipi_entry" | "reschedule_entry" | "call_function_entry" | "call_function_single_entry" => {
            by(Wake::Request)
        }
        // arm64 says this first of an interrupt between CPUs.
        "irq_handler_entry" if text.ends_with("name=IPI") => by(Wake::Request),
        // What expires is said by the timer itself.
        "irq_handler_entry" if text.contains("timer") => None,
        "irq_handler_entry" => by(Wake::Interrupt),
        "sched_switch"
            if !text.contains("next_comm=swapper/") && !text.contains("==> swapper/") =>
        {
            by(Wake::Request)
        }
        _ => None,
    }
}
