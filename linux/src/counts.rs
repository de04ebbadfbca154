// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's counts, read from /proc: interrupts by kind, and context switches.

use std::collections::BTreeMap;
use std::{fs, io};

/// Values of counters, by the counters' names in records.
pub type Counts = BTreeMap<String, u64>;

/// Counter of interrupts on all CPUs, including IPIs.
const TAKEN: &str = "irq.taken";
/// Counter of IPIs that a CPU sent to another CPU or to itself. The receiver counts them.
const SENT: &str = "ipi.sent";
/// Names of interrupts in /proc/interrupts, each with the additional counter for it.
const KINDS: [(&str, &str); 4] = [
    ("arch_timer", "linux.timer"),
    ("Rescheduling interrupts", "linux.resched"),
    ("Function call interrupts", "linux.call"),
    ("IRQ work interrupts", "linux.irq-work"),
];
/// Counter of context switches, including those to and from the idle task.
const SWITCHES: &str = "linux.switches";
/// Counter of the idle time of all CPUs, in microseconds. The kernel accounts for it in units of 10 ms.
const IDLE_US: &str = "linux.idle-us";
/// The kernel's unit of idle time in microseconds (USER_HZ is 100 on arm64).
const USER_TICK_US: u64 = 10_000;

/// Reads the counts up to now.
///
/// # Errors
/// The message names the file that can't be read.
pub fn now() -> io::Result<Counts> {
    let read = |path| {
        fs::read_to_string(path).map_err(|error| io::Error::other(format!("{path}: {error}")))
    };
    let mut counts = of_interrupts(&read("/proc/interrupts")?);
    counts.extend(of_stat(&read("/proc/stat")?));
    Ok(counts)
}

/// Parses /proc/interrupts, which has a line for each interrupt, with a number for each CPU.
fn of_interrupts(text: &str) -> Counts {
    let mut lines = text.lines();
    let cpus = lines
        .next()
        .map_or(0, |title| title.split_whitespace().count());
    let names = [TAKEN, SENT].into_iter().chain(KINDS.map(|(_, name)| name));
    let mut counts: Counts = names.map(|name| (name.to_owned(), 0)).collect();
    for line in lines {
        let Some((label, rest)) = line.split_once(':') else {
            continue;
        };
        let label = label.trim();
        // This line counts interrupts that the kernel rejected.
        if label == "Err" {
            continue;
        }
        let numbers = rest.split_whitespace().take(cpus);
        let sum: u64 = numbers
            .filter_map(|number| number.parse::<u64>().ok())
            .sum();
        let kind = KINDS
            .iter()
            .find(|(words, _)| rest.trim_end().ends_with(words));
        let more = [
            Some(TAKEN),
            label.starts_with("IPI").then_some(SENT),
            kind.map(|(_, name)| *name),
        ];
        for name in more.into_iter().flatten() {
            *counts.entry(name.to_owned()).or_default() += sum;
        }
    }
    counts
}

/// Parses /proc/stat.
fn of_stat(text: &str) -> Counts {
    let field = |name: &str, n: usize| {
        let mut lines = text.lines().map(str::split_whitespace);
        let mut line = lines.find(|line| line.clone().next() == Some(name))?;
        line.nth(n)?.parse::<u64>().ok()
    };
    // The fields are user, nice, system, idle and iowait, summed over all CPUs.
    let idle = field("cpu", 4).unwrap_or(0) + field("cpu", 5).unwrap_or(0);
    let switches = field("ctxt", 1).unwrap_or(0);
    [(SWITCHES, switches), (IDLE_US, idle * USER_TICK_US)]
        .map(|(name, count)| (name.to_owned(), count))
        .into()
}

/// Adds the differences between `before` and `after` to `counts`.
pub fn add(counts: &mut Counts, before: &Counts, after: &Counts) {
    for (name, after) in after {
        let before = before.get(name).copied().unwrap_or(0);
        *counts.entry(name.clone()).or_default() += after.saturating_sub(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU1
 11:        100         20     GICv3  27 Level     arch_timer
 13:          3          0     GICv3  33 Level     uart-pl011
IPI0:         5          7       Rescheduling interrupts
IPI1:         1          2       Function call interrupts
IPI5:         0          4       IRQ work interrupts
IPI3:         9          0       CPU stop NMIs
Err:          8
";

    #[test]
    fn interrupts_are_summed_by_kind() {
        let counts = of_interrupts(INTERRUPTS);
        let expected = [
            (TAKEN, 151),
            (SENT, 28),
            ("linux.timer", 120),
            ("linux.resched", 12),
            ("linux.call", 3),
            ("linux.irq-work", 4),
        ];
        assert_eq!(
            counts,
            expected
                .map(|(name, count)| (name.to_owned(), count))
                .into()
        );
    }

    #[test]
    fn switches_and_idle_time_are_of_all_cpus() {
        let text =
            "cpu  1 2 3 40 2 0 0 0 0 0\ncpu0 1 2 3 20 1 0 0 0 0 0\nintr 5 0\nctxt 777\nbtime 1\n";
        let counts = of_stat(text);
        assert_eq!((counts[SWITCHES], counts[IDLE_US]), (777, 420_000));
    }

    #[test]
    fn what_is_counted_is_what_came_meanwhile() {
        let of = |count| Counts::from([("a.b".to_owned(), count)]);
        let mut counts = Counts::new();
        add(&mut counts, &of(5), &of(8));
        add(&mut counts, &of(8), &of(9));
        assert_eq!(counts, of(4));
    }
}
