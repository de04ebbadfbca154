// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs work on several threads, and passes on the results in the order of the items, so that the outcome does not
//! depend on the number of threads.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use crate::processor_time::Account;

/// Memory that an emulator takes in addition to the RAM of its machine, in bytes: the program, and its translated code.
const BESIDES: u64 = 512 << 20;

/// Returns how many emulators this computer has CPUs and memory for at a time, if each machine has `ram` bytes of RAM.
pub fn emulators_that_fit(ram: u64) -> NonZeroUsize {
    let fit = available_memory().map_or(usize::MAX, |bytes| {
        usize::try_from(bytes / (ram + BESIDES)).unwrap_or(usize::MAX)
    });
    let cpus = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    NonZeroUsize::new(fit).map_or(NonZeroUsize::MIN, |fit| fit.min(cpus))
}

/// Returns the bytes of memory that a program can use without displacing others, if the system reports them
/// (proc_meminfo(5), MemAvailable).
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kib << 10)
}

/// Does `work` on each of `items` in order, `jobs` at a time, and passes the results to `take` in the same order.
/// Requests an item only when its work begins. If `take` breaks off, begins no more items, but still passes on the
/// results of those already begun.
pub fn in_order<I: Send, T: Send>(
    items: impl IntoIterator<Item = I, IntoIter: Send>,
    jobs: NonZeroUsize,
    work: impl Fn(usize, I) -> T + Sync,
    mut take: impl FnMut(T) -> ControlFlow<()>,
) {
    if jobs.get() == 1 {
        for (number, item) in items.into_iter().enumerate() {
            if take(work(number, item)).is_break() {
                return;
            }
        }
        return;
    }
    let items = items.into_iter().enumerate();
    let threads = items.size_hint().1.unwrap_or(usize::MAX).min(jobs.get());
    let queue = Mutex::new(items);
    let over = AtomicBool::new(false);
    let account = Account::of_this_thread();
    // Taking the next item is a separate closure, so that the queue is unlocked during the work.
    let next = || match over.load(Ordering::Relaxed) {
        true => None,
        false => queue.lock().unwrap_or_else(PoisonError::into_inner).next(),
    };
    thread::scope(|scope| {
        let (done, results) = mpsc::channel();
        for _ in 0..threads {
            let done = done.clone();
            let (account, next, work) = (&account, &next, &work);
            scope.spawn(move || {
                account.charge(|| {
                    while let Some((number, item)) = next() {
                        let result = work(number, item);
                        if done.send((number, result)).is_err() {
                            break;
                        }
                    }
                });
            });
        }
        drop(done);
        let mut early = BTreeMap::new();
        let mut turn = 0;
        for (number, result) in results {
            early.insert(number, result);
            while let Some(result) = early.remove(&turn) {
                turn += 1;
                if take(result).is_break() {
                    over.store(true, Ordering::Relaxed);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Barrier, Condvar};

    use super::*;

    /// Returns which of the results 0 to 5 were taken if `take` breaks off at `stop`.
    fn taken(jobs: usize, stop: usize, work: impl Fn(usize) + Sync) -> Vec<usize> {
        let mut taken = Vec::new();
        in_order(
            0..6,
            NonZeroUsize::new(jobs).unwrap(),
            |number, item: usize| {
                assert_eq!(number, item);
                work(item);
                item
            },
            |item| {
                taken.push(item);
                match item == stop {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        );
        taken
    }

    #[test]
    fn what_ends_early_is_taken_in_its_turn() {
        // The first item ends only after the second has.
        let (ended, second) = (Mutex::new(false), Condvar::new());
        let work = |item| match item {
            0 => {
                let guard = ended.lock().unwrap();
                let _second = second.wait_while(guard, |ended| !*ended).unwrap();
            }
            1 => {
                *ended.lock().unwrap() = true;
                second.notify_all();
            }
            _ => {}
        };
        assert_eq!(taken(2, 9, work), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn as_many_run_at_a_time_as_are_asked_for() {
        // Each item waits for two other items. With fewer than three threads, none would end.
        let three = Barrier::new(3);
        let work = |_| {
            three.wait();
        };
        assert_eq!(taken(3, 9, work), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn after_a_break_nothing_is_begun() {
        assert_eq!(taken(1, 2, |_| {}), [0, 1, 2]);
        // Items 0 and 1 are begun before the first result is taken, so both results are taken.
        let two = Barrier::new(2);
        let begun = Mutex::new(Vec::new());
        let taken = taken(2, 0, |item| {
            begun.lock().unwrap().push(item);
            if item < 2 {
                two.wait();
            }
        });
        let mut begun = begun.into_inner().unwrap();
        begun.sort_unstable();
        assert_eq!(taken, begun);
        assert!(taken.starts_with(&[0, 1]));
    }

    #[test]
    fn there_is_always_one() {
        assert_eq!(emulators_that_fit(u64::MAX >> 1), NonZeroUsize::MIN);
    }
}
