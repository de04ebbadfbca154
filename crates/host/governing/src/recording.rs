// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses traces that Linux recorded: the event `power:cpu_idle` as text from `perf script`, from ftrace's file
//! `trace`, or from `trace-cmd report`.
//!
//! The event contains the number of the state that a CPU enters, or 4294967295 when the CPU leaves a state (Linux,
//! Documentation/trace/events-power.rst). The time from the entry to the exit is an idle interval; [`cpu`] finds the
//! reason for the interval's end if other events in the recording show the reason.
//!
//! Where events were lost, the current interval of their CPU is left out: otherwise, two intervals could become a
//! single long one. A recording is refused if events were lost at an unknown place, or if the order of its events is
//! impossible.

mod cpu;
mod evidence;
mod line;

use std::collections::BTreeMap;

use cpuidle::Wake;

use super::text::quote_shortened;
use super::trace::Interval;
use cpu::RecordedCpu;
use evidence::Evidence;
use line::{Event, Line, What};

/// The part of a recording that is about one CPU.
#[derive(Debug, PartialEq, Eq)]
pub struct Recorded {
    pub cpu: u32,
    /// Number of CPUs with intervals.
    pub cpus: usize,
    /// Idle intervals of the CPU, in order.
    pub intervals: Vec<Interval>,
    /// Number of losses of events, on all CPUs.
    pub losses: usize,
}

/// Possible beginnings of the first line in ftrace's and trace-cmd's texts.
const HEADS: [&str; 3] = ["# tracer:", "cpus=", "version = "];

/// Parses the intervals of CPU `wanted`, or of the CPU with the most intervals; an error describes the mistake and its
/// place.
pub fn parse(text: &str, wanted: Option<u32>) -> Result<Recorded, String> {
    let mut found = Contents::default();
    let mut events = Vec::new();
    for (number, line) in line::lines(text) {
        let line = Line::parse(line);
        found.add_line(&line, number)?;
        if matches!(line, Line::Event(_) | Line::Lost(_)) {
            events.push((number, line));
        }
    }
    found.check_intervals(text)?;
    let mut cpus: BTreeMap<u32, RecordedCpu> = BTreeMap::new();
    for (number, line) in events {
        match line {
            Line::Event(event) => {
                let cpu = cpus.entry(event.cpu);
                cpu.or_insert_with(|| RecordedCpu::new(found.has_all_causes()))
                    .handle(&event, number);
            }
            Line::Lost(at) => {
                let lost = cpus
                    .iter_mut()
                    .filter(|(cpu, _)| at.is_none_or(|at| at == **cpu));
                lost.for_each(|(_, cpu)| cpu.lose_events());
            }
            _ => {}
        }
    }
    let mut cpus: BTreeMap<_, _> = cpus
        .into_iter()
        .map(|(number, cpu)| (number, cpu.intervals()))
        .collect();
    cpus.retain(|_, (intervals, flaw)| !intervals.is_empty() || flaw.is_some());
    let (cpu, count, intervals) = choose_cpu(cpus, wanted)?;
    Ok(Recorded {
        cpu,
        cpus: count,
        intervals,
        losses: found.losses,
    })
}

/// Kinds of contents that were found in a recording.
#[derive(Default)]
struct Contents {
    /// Whether any line is from Linux.
    any: bool,
    idle: bool,
    timers: bool,
    requests: bool,
    losses: usize,
    /// The number of the line that reports a loss of events at an unknown place.
    somewhere: Option<usize>,
}

impl Contents {
    fn add_line(&mut self, line: &Line, number: usize) -> Result<(), String> {
        self.any |= !matches!(line, Line::Other);
        match line {
            Line::Broken(why) => return Err(format!("line {number}: {why}")),
            Line::Lost(_) => self.losses += 1,
            Line::LostSomewhere => self.somewhere = Some(number),
            Line::Event(Event { what, .. }) => match what {
                What::Enter(_) | What::Exit => self.idle = true,
                What::Saw(Evidence::TimerIrq | Evidence::Tick | Evidence::By(Wake::Timer)) => {
                    self.timers = true
                }
                What::Saw(Evidence::Ipi | Evidence::By(Wake::Request)) => self.requests = true,
                What::Saw(_) => {}
            },
            Line::Unrelated | Line::Other => {}
        }
        Ok(())
    }

    /// Whether the recording has all events that may end an interval: a recording with both kinds of interrupts also
    /// has the other events.
    const fn has_all_causes(&self) -> bool {
        self.timers && self.requests
    }

    /// Refuses a recording that has no idle intervals, or whose intervals would be wrong.
    fn check_intervals(&self, text: &str) -> Result<(), String> {
        let headed = |line: &str| HEADS.iter().any(|head| line.starts_with(head));
        let of_linux = self.any || text.lines().any(headed);
        match (self.idle, self.somewhere) {
            (true, Some(number)) if self.losses == 0 => Err(format!(
                "line {number}: events were lost, and it does not say where, so intervals would be wrong; perf script --show-lost-events shows where, and a larger buffer loses fewer: perf record -m 16M"
            )),
            (true, _) => Ok(()),
            (false, _) if of_linux => Err(
                "there is no event cpu_idle in it; record it: perf record -a -e power:cpu_idle -- sleep 10".into(),
            ),
            (false, _) => Err(format!(
                "it is neither a trace, whose first line names duration_ns,next_timer_ns,wake, nor text of perf script, trace-cmd report or ftrace with the event cpu_idle; it begins with {}",
                quote_shortened(text)
            )),
        }
    }
}

/// Intervals of each CPU in the recording, and the first contradiction in the events after them.
type Cpus = BTreeMap<u32, (Vec<Interval>, Option<String>)>;

/// Returns the wanted CPU, or else the first CPU with the most intervals. Also returns the number of CPUs, and the
/// intervals of the returned CPU.
fn choose_cpu(mut cpus: Cpus, wanted: Option<u32>) -> Result<(u32, usize, Vec<Interval>), String> {
    let most = cpus
        .iter()
        .max_by_key(|(number, (intervals, _))| (intervals.len(), u32::MAX - **number));
    let Some((&most, _)) = most else {
        return Err(
            "no CPU is idle from an entry to an exit (state=4294967295) in it; record for longer"
                .into(),
        );
    };
    let count = cpus.len();
    let cpu = wanted.unwrap_or(most);
    let taken = cpus.remove(&cpu);
    let sound = cpus.iter().filter(|(_, (_, flaw))| flaw.is_none());
    let names = sound.map(|(number, (intervals, _))| format!("{number} ({})", intervals.len()));
    let names = names.collect::<Vec<_>>().join(", ");
    let others = match &names[..] {
        "" => "no other CPU has any".into(),
        names => format!(
            "with --trace-cpu name one of these, each with the number of its intervals: {names}"
        ),
    };
    match taken {
        Some((intervals, None)) => Ok((cpu, count, intervals)),
        Some((_, Some(flaw))) => Err(format!("{flaw}. Otherwise, {others}")),
        None => Err(format!("CPU {cpu} has no idle interval in it; {others}")),
    }
}

#[cfg(test)]
mod tests;
