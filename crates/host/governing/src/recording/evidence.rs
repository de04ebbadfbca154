// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds evidence, in the events of a CPU, of why it left an idle state (docs/governors.md, "What Linux recorded").

use cpuidle::Wake;

/// Evidence that an event gives about the end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// This event ended the interval.
    By(Wake),
    /// A timer's interrupt. If another event shows that the tick has expired, this is the tick's interrupt; otherwise,
    /// it is another timer's.
    TimerIrq,
    /// An inter-processor interrupt.
    Ipi,
    /// Interrupt with which a CPU tells other CPUs that their timers have expired.
    Broadcast,
    /// The tick, which does not end an interval.
    Tick,
    /// The CPU switches to a task.
    Switch,
}

/// Substrings of the names of timers' interrupts.
const TIMERS: [&str; 5] = ["timer", "tick", "hpet", "twd", "clockevent"];

/// Returns the evidence in event `name`, whose text is `text`, if any.
pub fn evidence_in_event(name: &str, text: &str) -> Option<Evidence> {
    use Evidence::{Broadcast, By, Ipi, Switch, Tick, TimerIrq};
    match name {
        "hrtimer_expire_entry" if text.contains("function=tick_") => Some(Tick),
        "hrtimer_expire_entry" | "timer_expire_entry" => Some(By(Wake::Timer)),
        "local_timer_entry" => Some(TimerIrq),
        "softirq_entry" if text.contains("TIMER") => Some(TimerIrq),
        "ipi_entry" | "ipi_exit" if text.contains("(Timer broadcast") => Some(Broadcast),
        "ipi_entry"
        | "ipi_exit"
        | "reschedule_entry"
        | "call_function_entry"
        | "call_function_single_entry" => Some(By(Wake::Request)),
        "irq_work_entry" | "x86_platform_ipi_entry" | "thermal_apic_entry" => {
            Some(By(Wake::Interrupt))
        }
        "irq_handler_entry" => {
            let name = text.split_once("name=").map_or("", |(_, name)| name);
            let name = name.trim().to_ascii_lowercase();
            Some(match &name {
                name if name.starts_with("ipi") => Ipi,
                name if TIMERS.iter().any(|timer| name.contains(timer)) => TimerIrq,
                _ => By(Wake::Interrupt),
            })
        }
        "sched_switch" => next_pid(text).filter(|&pid| pid != 0).map(|_| Switch),
        "PERF_RECORD_SWITCH_CPU_WIDE" => {
            // `OUT  next pid/tid: 100/100` for the leaving task, and `IN  prev pid/tid: 0/0` for the next task.
            let (way, pid) = text.split_once("pid/tid:")?;
            let to_task = way.trim_start().starts_with("OUT") == (leading_number(pid)? != 0);
            to_task.then_some(Switch)
        }
        _ => None,
    }
}

/// Returns the task in `==> next_comm=x next_pid=7 next_prio=120`, or in trace-cmd's form `==> x:7 [120]`. Since a
/// task's name can contain any of this, the last match counts.
fn next_pid(text: &str) -> Option<u32> {
    let key = ["next_pid=", ":"];
    let (_, next) = text.rsplit_once("==>")?;
    key.iter()
        .find_map(|key| leading_number(next.rsplit_once(key)?.1))
}

/// Returns the number at the beginning of a text.
fn leading_number(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Combines `now` with the earlier `before`. The first event that ended the interval counts, with two exceptions: later
/// events of the same interrupt are more precise, and the tick does not exclude another reason.
pub fn combine(before: Option<Evidence>, now: Evidence) -> Option<Evidence> {
    use Evidence::{Broadcast, By, Ipi, Switch, Tick, TimerIrq};
    Some(match (before, now) {
        (None, Switch) => By(Wake::Request),
        // The tick's interrupt has woken a task: a timer that is not an hrtimer has expired.
        (Some(Tick), Switch) => By(Wake::Timer),
        (Some(Tick), TimerIrq | Broadcast) => Tick,
        (Some(TimerIrq), Tick) => Tick,
        (Some(Ipi), Broadcast) | (None, Broadcast) => TimerIrq,
        (None | Some(Tick), now) => now,
        (Some(before), _) => before,
    })
}
