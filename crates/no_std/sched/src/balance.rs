// SPDX-License-Identifier: MIT OR Apache-2.0
//! Searches for work before a CPU idles ("newidle balance"), as in Linux 6.7: in one domain after another,
//! each twice as large as the last, until a task waits in one; picks its CPU with the most waiting tasks.
//! Three conditions end the search early:
//!
//! | end | condition |
//! |---|---|
//! | nothing to find | no CPU has more than one task ([`Newidle::is_worth`]; the caller keeps one flag for that, like Linux's `overload`) |
//! | not worth it | the CPU's average idle time is shorter than a search of the first domain |
//! | not worth continuing | the CPU's average idle time is shorter than the searches so far and the next domain's together |
//!
//! The cost of a search is measured: it is the longest search of each domain so far, and decays by
//! 3/256 once a second. (Until 5.15, Linux used a fixed limit, `sysctl_sched_migration_cost`, for
//! the second condition. Twice this limit is still the lowest bound on the average.)

/// Assumed cost of moving a task in ns: Linux's `sysctl_sched_migration_cost`. An average of idle
/// times is limited to twice this cost, or to twice the time of the searches if that is more.
pub const MIGRATION_NS: u64 = 500_000;
/// Time without a longer search after which a domain's cost decays, in ns.
const DECAY_NS: u64 = 1_000_000_000;
/// Number of domains, which have 2, 4, ... up to 64 CPUs.
const DOMAINS: usize = 6;

/// State of a CPU's run queue, as seen by other CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Number of tasks that run or wait to run.
    pub tasks: u32,
    /// Average load, 0 to [`crate::load::FULL`].
    pub load: u32,
}

impl Queue {
    /// Whether a task waits besides the running task, which can't be moved.
    const fn is_overloaded(self) -> bool {
        self.tasks > 1
    }
}

/// The result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// Number of run queues that were checked.
    pub looked: u32,
    /// A CPU with a waiting task, if any: the CPU with the most waiting tasks, and among equal ones
    /// the CPU with the highest load.
    pub busiest: Option<usize>,
    /// Whether any CPU has a waiting task; `None` if not all CPUs were checked.
    pub overloaded: Option<bool>,
}

/// The cost of searching a domain.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// The longest search, in ns.
    max_ns: u64,
    /// Time at which `max_ns` was last set or decayed, in ns.
    at_ns: u64,
}

impl Cost {
    /// Records a search that took `ns` and ended at `now_ns`; returns whether the cost decayed.
    fn note_cost(&mut self, ns: u64, now_ns: u64) -> bool {
        let decays = ns <= self.max_ns && now_ns.saturating_sub(self.at_ns) > DECAY_NS;
        if ns > self.max_ns {
            (self.max_ns, self.at_ns) = (ns, now_ns);
        } else if decays {
            (self.max_ns, self.at_ns) = (self.max_ns * 253 / 256, now_ns);
        }
        decays
    }
}

/// Decides whether a CPU searches, and how far.
#[derive(Clone, Debug)]
pub struct Newidle {
    /// The average time for which the CPU idles before it gets a task, in ns.
    idle_ns: u64,
    /// Half the bound of `idle_ns`: the longest search, in ns.
    max_ns: u64,
    domains: [Cost; DOMAINS],
}

impl Default for Newidle {
    fn default() -> Self {
        Self::new()
    }
}

impl Newidle {
    /// Creates the state of a CPU that has long been idle and has never searched.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            idle_ns: 2 * MIGRATION_NS,
            max_ns: MIGRATION_NS,
            domains: [Cost {
                max_ns: 0,
                at_ns: 0,
            }; DOMAINS],
        }
    }

    /// Returns the average time for which the CPU idles, in ns.
    #[must_use]
    pub const fn idle_ns(&self) -> u64 {
        self.idle_ns
    }

    /// Records that the CPU got a task after it had idled for `ns`, which enters the average with a
    /// weight of an eighth.
    pub fn idled(&mut self, ns: u64) {
        let average = self.idle_ns - self.idle_ns / 8 + ns / 8;
        self.idle_ns = average.min(2 * self.max_ns);
    }

    /// Whether it is worth searching at all. `overloaded` means that some CPU has a waiting task.
    #[must_use]
    pub const fn is_worth(&self, overloaded: bool) -> bool {
        overloaded && self.idle_ns >= self.domains[0].max_ns
    }

    /// Searches on behalf of CPU `me`, one of `cpus` CPUs (up to 64); `queue` returns the state of
    /// a CPU's queue, and `now` returns the time in ns.
    ///
    /// If no CPU of a domain has a waiting task, the search continues in the next larger domain.
    pub fn search(
        &mut self,
        me: usize,
        cpus: usize,
        now: impl Fn() -> u64,
        queue: impl Fn(usize) -> Queue,
    ) -> SearchResult {
        let mut found = SearchResult::default();
        let mut decayed = false;
        let (begin, mut last) = (now(), None);
        for (level, domain) in self.domains.iter_mut().enumerate() {
            let before = last.unwrap_or(begin);
            if self.idle_ns < before - begin + domain.max_ns {
                break;
            }
            let size = 2 << level;
            search_domain(me, size, cpus, &queue, &mut found);
            let after = now();
            decayed |= domain.note_cost(after.saturating_sub(before), after);
            last = Some(after.max(before));
            if size >= cpus {
                found.overloaded = Some(found.busiest.is_some() || queue(me).is_overloaded());
                break;
            }
            if found.busiest.is_some() {
                break;
            }
        }
        if decayed {
            let sum = self.domains.iter().map(|domain| domain.max_ns).sum();
            self.max_ns = MIGRATION_NS.max(sum);
        }
        self.max_ns = self.max_ns.max(last.unwrap_or(begin) - begin);
        found
    }
}

/// Checks the other CPUs in the domain that contains `me` and has `size` CPUs.
fn search_domain(
    me: usize,
    size: usize,
    cpus: usize,
    queue: impl Fn(usize) -> Queue,
    found: &mut SearchResult,
) {
    let first = me & !(size - 1);
    let mut most = Queue::default();
    for cpu in (first..cpus.min(first + size)).filter(|&cpu| cpu != me) {
        let queue = queue(cpu);
        found.looked += 1;
        if queue.is_overloaded() && (queue.tasks, queue.load) > (most.tasks, most.load) {
            most = queue;
            found.busiest = Some(cpu);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    fn queues(tasks: &[u32]) -> impl Fn(usize) -> Queue + '_ {
        |cpu| Queue {
            tasks: tasks[cpu],
            load: 100 + cpu as u32,
        }
    }

    /// Searches with a clock that does not advance.
    fn search(me: usize, tasks: &[u32]) -> SearchResult {
        Newidle::new().search(me, tasks.len(), || 0, queues(tasks))
    }

    /// A clock, and the time in ns that each check of a queue takes.
    struct Slow(Cell<u64>, u64);

    impl Slow {
        fn search(&self, newidle: &mut Newidle, cpus: usize) -> SearchResult {
            let queue = |_| {
                self.0.set(self.0.get() + self.1);
                Queue::default()
            };
            newidle.search(0, cpus, || self.0.get(), queue)
        }
    }

    #[test]
    fn where_no_task_waits_every_domain_is_searched() {
        // The domains have 2, 4 and 8 CPUs, including the searcher: it checks 1 + 3 + 7 queues.
        let found = search(5, &[1; 8]);
        assert_eq!((found.looked, found.busiest), (11, None));
        assert_eq!(found.overloaded, Some(false));
        assert_eq!(search(0, &[1]).looked, 0);
        assert_eq!(search(2, &[1; 3]).looked, 2);
        assert_eq!(search(63, &[1; 64]).looked, 1 + 3 + 7 + 15 + 31 + 63);
    }

    #[test]
    fn the_nearest_domain_with_work_wins_and_in_it_the_busiest() {
        let found = search(0, &[0, 2, 9, 9]);
        assert_eq!((found.looked, found.busiest), (1, Some(1)));
        // Not all CPUs were checked, so it is unknown whether any is overloaded.
        assert_eq!(found.overloaded, None);
        let found = search(0, &[0, 1, 3, 3]);
        assert_eq!((found.busiest, found.overloaded), (Some(3), Some(true)));
        assert_eq!(search(0, &[2, 0]).overloaded, Some(true));
    }

    #[test]
    fn where_no_cpu_has_two_tasks_it_is_not_begun() {
        let newidle = Newidle::new();
        assert!(newidle.is_worth(true) && !newidle.is_worth(false));
    }

    #[test]
    fn a_cpu_that_idles_shorter_than_the_first_domain_takes_does_not_begin() {
        let mut newidle = Newidle::new();
        Slow(Cell::new(0), 3000).search(&mut newidle, 2);
        for _ in 0..100 {
            newidle.idled(3100);
        }
        // The average uses eighths that are rounded down, so it ends a little above 3100.
        assert!(newidle.idle_ns() >= 3100 && newidle.is_worth(true));
        for _ in 0..100 {
            newidle.idled(2900);
        }
        assert!(newidle.idle_ns() < 3000 && !newidle.is_worth(true));
        // Linux 5.15 also required an average of half a millisecond; this code does not.
        assert!(newidle.idle_ns() < MIGRATION_NS);
    }

    #[test]
    fn a_search_ends_before_the_domain_that_would_take_too_long() {
        let slow = Slow(Cell::new(0), 1000);
        let mut newidle = Newidle::new();
        assert_eq!(slow.search(&mut newidle, 8).looked, 11);
        // The domains take 1, 3 and 7 us: after two, 4 us have passed, and 7 more are too long.
        newidle.idle_ns = 10_900;
        let found = slow.search(&mut newidle, 8);
        assert_eq!((found.looked, found.overloaded), (4, None));
        newidle.idle_ns = 11_000;
        assert_eq!(slow.search(&mut newidle, 8).looked, 11);
        newidle.idle_ns = 3_900;
        assert_eq!(slow.search(&mut newidle, 8).looked, 1);
    }

    #[test]
    fn a_cost_is_the_longest_and_decays_once_a_second() {
        let mut cost = Cost::default();
        assert!(!cost.note_cost(256_000, 10));
        assert!(!cost.note_cost(1000, 10 + DECAY_NS));
        assert_eq!(cost.max_ns, 256_000);
        assert!(cost.note_cost(1000, 11 + DECAY_NS));
        assert_eq!(cost.max_ns, 253_000);
        assert!(!cost.note_cost(1000, 12 + DECAY_NS));
        assert!(!cost.note_cost(300_000, 12 + DECAY_NS));
        assert_eq!(cost.max_ns, 300_000);
    }

    #[test]
    fn the_average_is_bounded_by_twice_the_longest_search() {
        let mut newidle = Newidle::new();
        newidle.idled(100_000_000);
        assert_eq!(newidle.idle_ns(), 2 * MIGRATION_NS);
        newidle.idled(0);
        assert_eq!(newidle.idle_ns(), 2 * MIGRATION_NS * 7 / 8);
        // A search of 600 us raises the bound, and decay lowers the bound again.
        newidle.idle_ns = 2 * MIGRATION_NS;
        let slow = Slow(Cell::new(0), 600_000);
        slow.search(&mut newidle, 2);
        newidle.idled(100_000_000);
        assert_eq!(newidle.idle_ns(), 1_200_000);
        let quick = Slow(Cell::new(2 * DECAY_NS), 0);
        quick.search(&mut newidle, 2);
        newidle.idled(100_000_000);
        assert_eq!(newidle.idle_ns(), 2 * (600_000 * 253 / 256));
    }
}
