// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hypervisor's deadlines: how long a boot, or one pass of a cell, may take on the machine. A disk has deadlines by
//! default, because a machine that hangs costs money.

use std::fmt;
use std::time::Duration;

use plan::{Arguments, CELL_DEADLINE, DEADLINE, Deliver, KEEP_CPU, Limits, Machine, PREFIX, Plan};

use super::Load;
use crate::options::DeadlineArgs;

/// A run counts as hung if it takes four times as long as expected.
const FACTOR: u32 = 4;
/// Time before the first cell, for clearing RAM, starting CPUs, and probing.
const START: Duration = Duration::from_secs(300);
/// Time of a cell in addition to its wake-ups: for its records, 2.6 KiB on average and 16 KiB at most, on a console at
/// 115200 baud.
const RECORDS: Duration = Duration::from_secs(2);
/// Assumed time of a slow wake-up, for cells whose time has no bound.
const WAKE_UP: Duration = Duration::from_millis(1);
/// Shortest deadline for a pass of a cell.
const LEAST: Duration = Duration::from_secs(60);
/// Deadline for a run of unknown length: a check, a soak.
const UNKNOWN: Duration = Duration::from_secs(3600);

/// Deadlines as boot arguments. 0 seconds means no deadline; it becomes an argument only if it was requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deadlines {
    pub run: Option<u64>,
    pub cell: Option<u64>,
    /// Whether the hypervisor keeps a CPU for itself, so that deadlines hold regardless of what the guest does.
    pub keep: bool,
}

impl Deadlines {
    /// Returns the requested deadlines.
    pub fn asked(args: &DeadlineArgs) -> Self {
        Self {
            run: args.deadline,
            cell: args.cell_deadline,
            keep: args.keep_cpu.unwrap_or(false),
        }
    }

    /// Returns the deadlines of a disk for a machine like `machine`. If neither an option nor `append` sets a deadline,
    /// it is derived from the plan. Another kernel has no deadlines by default.
    pub fn of_disk(args: &DeadlineArgs, load: &Load, append: &str, machine: &Machine) -> Self {
        let asked = Self::asked(args);
        let told = Arguments::parse(append).unwrap_or_default();
        if load.guest.is_some() {
            return asked;
        }
        let plan = load.measures.then_some(&load.plan);
        let run = plan.map_or(UNKNOWN, |plan| run_deadline(plan, machine));
        let cell = plan.map(|plan| pass_deadline(plan, machine));
        // A guest that owns its interrupts can keep the hypervisor's interrupts from all its CPUs.
        let direct = load.plan.lists.deliver.values.contains(&Deliver::Direct);
        let this = Self {
            run: asked
                .run
                .or(told.deadline.is_none().then_some(run.as_secs())),
            cell: asked.cell.or(told
                .cell_deadline
                .is_none()
                .then(|| cell.map(|cell| cell.as_secs()))
                .flatten()),
            keep: false,
        };
        let any = this
            .run
            .or(told.deadline)
            .is_some_and(|seconds| seconds > 0);
        Self {
            keep: !told.keep_cpu && args.keep_cpu.unwrap_or(any && direct),
            ..this
        }
    }

    /// Describes the deadlines for people, if there are any.
    pub fn describe(&self) -> Option<String> {
        let run = self.run.filter(|seconds| *seconds > 0)?;
        let mut said = format!("It turns the machine off after {run} s at the latest");
        if let Some(cell) = self.cell.filter(|seconds| *seconds > 0) {
            said += &format!(", or when a pass of a cell takes {cell} s");
        }
        said += &format!(" ({PREFIX}{DEADLINE}, {PREFIX}{CELL_DEADLINE}).");
        if self.keep {
            said += &format!(
                " One CPU sees to that and is not measured ({PREFIX}{KEEP_CPU}; --keep-cpu off)."
            );
        }
        Some(said)
    }
}

impl fmt::Display for Deadlines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = [(DEADLINE, self.run), (CELL_DEADLINE, self.cell)];
        let seconds = seconds
            .into_iter()
            .filter_map(|(key, seconds)| Some((key, seconds?)));
        let mut space = "";
        for (key, seconds) in seconds {
            write!(f, "{space}{PREFIX}{key}={seconds}")?;
            space = " ";
        }
        match self.keep {
            true => write!(f, "{space}{PREFIX}{KEEP_CPU}"),
            false => Ok(()),
        }
    }
}

/// Returns the deadline for a whole run of `plan`.
fn run_deadline(plan: &Plan, machine: &Machine) -> Duration {
    let cells = plan.cells(machine);
    START + cells.map(|cell| cell_time(plan, &cell)).sum::<Duration>() * FACTOR
}

/// Returns the deadline for each pass of a cell, derived from the longest cell's total time.
fn pass_deadline(plan: &Plan, machine: &Machine) -> Duration {
    let cells = plan.cells(machine);
    let longest = cells.map(|cell| cell_time(plan, &cell)).max();
    (longest.unwrap_or_default() * FACTOR).max(LEAST)
}

/// Returns the longest expected time of a cell whose values are times.
fn cell_time(plan: &Plan, cell: &plan::Cell) -> Duration {
    const NANOSECONDS: u64 = 1_000_000_000;
    let limits = Limits::of(plan, cell, NANOSECONDS, false);
    let wake_ups = match limits.budget {
        0 => WAKE_UP * limits.iterations,
        budget => Duration::from_nanos(budget),
    };
    // Iterations with time stamps repeat some of the pauses: a quarter of them, in this estimate.
    let pauses = Duration::from_nanos(limits.pause) * limits.iterations;
    wake_ups + pauses + pauses / 4 + RECORDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Plan {
        Arguments::parse(text).unwrap().plan
    }

    const MACHINE: Machine = Machine {
        cpus: 8,
        ..Machine::COMPLETE
    };

    #[test]
    fn the_time_follows_from_the_plan() {
        let one = plan("rouse.workload=ipi rouse.shape=dry rouse.cell-ms=500");
        let cells = u32::try_from(one.cells(&MACHINE).count()).unwrap();
        let cell = Duration::from_millis(2500);
        assert_eq!(run_deadline(&one, &MACHINE), START + cell * cells * FACTOR);
        assert_eq!(pass_deadline(&one, &MACHINE), LEAST);
        // A pause of one second before each wake-up must not count as a hang.
        let slow = plan(
            "rouse.workload=pingpong rouse.wait=wfi rouse.gap-us=1000000 rouse.iterations=100",
        );
        assert!(pass_deadline(&slow, &MACHINE) > Duration::from_secs(FACTOR as u64 * 100));
        let free = plan("rouse.workload=pingpong rouse.cell-ms=0 rouse.iterations=100000");
        assert!(pass_deadline(&free, &MACHINE) >= Duration::from_secs(FACTOR as u64 * 100));
    }

    #[test]
    fn only_what_was_asked_for_is_said() {
        assert_eq!(Deadlines::default().to_string(), "");
        let all = Deadlines {
            run: Some(9),
            cell: Some(0),
            keep: true,
        };
        let text = all.to_string();
        assert_eq!(
            text,
            "rouse.deadline=9 rouse.cell-deadline=0 rouse.keep-cpu"
        );
        let read = Arguments::parse(&text).unwrap();
        assert_eq!(
            (read.deadline, read.cell_deadline, read.keep_cpu),
            (Some(9), Some(0), true)
        );
    }
}
