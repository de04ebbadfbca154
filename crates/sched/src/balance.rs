// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search for work that a CPU makes before it idles ("newidle balance"):
//! domain by domain, each twice as large as the one before, it adds up what
//! every CPU has to do and picks the one with the most that waits.

/// What is known of a CPU's run queue from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Tasks that run or wait to.
    pub tasks: u32,
    /// Average load, 0 to [`crate::load::FULL`].
    pub load: u32,
}

/// What a search found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Run queues that were looked at.
    pub looked: u32,
    /// The CPU that has a task waiting, if any; of several the one with the
    /// most, and of those the one with the highest load.
    pub busiest: Option<usize>,
}

/// Searches for `me`, one of `cpus`; `queue` answers what a CPU has.
///
/// If no CPU of a domain has a task waiting, the next larger domain follows.
pub fn search(me: usize, cpus: usize, queue: impl Fn(usize) -> Queue) -> Found {
    let mut found = Found::default();
    let mut size = 2;
    loop {
        let first = me & !(size - 1);
        let mut most = Queue::default();
        for cpu in (first..cpus.min(first + size)).filter(|&cpu| cpu != me) {
            let queue = queue(cpu);
            found.looked += 1;
            // A running task can't be moved: another must wait behind it.
            if queue.tasks > 1 && (queue.tasks, queue.load) > (most.tasks, most.load) {
                most = queue;
                found.busiest = Some(cpu);
            }
        }
        if found.busiest.is_some() || size >= cpus {
            return found;
        }
        size *= 2;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn queues(tasks: &[u32]) -> impl Fn(usize) -> Queue + '_ {
        |cpu| Queue {
            tasks: tasks[cpu],
            load: 100 + cpu as u32,
        }
    }

    #[test]
    fn where_no_task_waits_every_domain_is_searched() {
        // Domains of 2, 4 and 8 without the searcher: 1 + 3 + 7.
        let found = search(5, 8, queues(&[1; 8]));
        assert_eq!((found.looked, found.busiest), (11, None));
        assert_eq!(search(0, 1, queues(&[1])).looked, 0);
        assert_eq!(search(2, 3, queues(&[1; 3])).looked, 2);
    }

    #[test]
    fn the_nearest_domain_with_work_wins_and_in_it_the_busiest() {
        let found = search(0, 4, queues(&[0, 2, 9, 9]));
        assert_eq!((found.looked, found.busiest), (1, Some(1)));
        let found = search(0, 4, queues(&[0, 1, 3, 3]));
        assert_eq!(found.busiest, Some(3));
    }
}
