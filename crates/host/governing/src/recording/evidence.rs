// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evidence, in the events of a CPU, of why it left an idle state (docs/governors.md, "What Linux recorded").

use cpuidle::Wake;

/// Meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// This ended it.
    By(Wake),
    /// The interrupt of a timer: the tick, if that is what expired, else a timer.
    TimerIrq,
    /// The interrupt by which CPUs tell each other something.
    Ipi,
    /// By which one CPU tells others that their timers have expired.
    Broadcast,
    /// The tick, which does not end an interval.
    Tick,
    /// A task goes on.
    Switch,
}

/// Names of interrupts of timers have one of these in them.
const TIMERS: [&str; 5] = ["timer", "tick", "hpet", "twd", "clockevent"];

/// Evidence of the event `name` with this text, if it is any.
pub fn of(name: &str, text: &str) -> Option<Evidence> {
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
            // `OUT  next pid/tid: 100/100` of who leaves, `IN  prev pid/tid: 0/0` of who comes.
            let (way, pid) = text.split_once("pid/tid:")?;
            let to_task = way.trim_start().starts_with("OUT") == (leading(pid)? != 0);
            to_task.then_some(Switch)
        }
        _ => None,
    }
}

/// The task of `==> next_comm=x next_pid=7 next_prio=120`, or in the words of trace-cmd
/// `==> x:7 [120]`. A task's name can have any of this in it, so the last counts.
fn next_pid(text: &str) -> Option<u32> {
    let key = ["next_pid=", ":"];
    let (_, next) = text.rsplit_once("==>")?;
    key.iter().find_map(|key| leading(next.rsplit_once(key)?.1))
}

/// The number that a text begins with.
fn leading(text: &str) -> Option<u32> {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

/// Combines `now` with `before`, after which it comes: the first that ended it counts. Events of the same interrupt say
/// more precisely what it was, and the tick keeps nothing else from being the reason.
pub fn later(before: Option<Evidence>, now: Evidence) -> Option<Evidence> {
    use Evidence::{Broadcast, By, Ipi, Switch, Tick, TimerIrq};
    Some(match (before, now) {
        (None, Switch) => By(Wake::Request),
        // The tick's interrupt has woken a task: a timer that is no hrtimer.
        (Some(Tick), Switch) => By(Wake::Timer),
        (Some(Tick), TimerIrq | Broadcast) => Tick,
        (Some(TimerIrq), Tick) => Tick,
        (Some(Ipi), Broadcast) | (None, Broadcast) => TimerIrq,
        (None | Some(Tick), now) => now,
        (Some(before), _) => before,
    })
}
