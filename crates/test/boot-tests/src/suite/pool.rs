// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs tests in parallel, up to a given number at a time: as soon as one ends, the next one starts.

use std::iter::repeat_with;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use super::timings::Took;
use shell::interrupt;
use shell::processor_time::Account;
use shell::terminal::{print_lines, say};

pub struct Task<'a> {
    name: &'a str,
    /// Returns the tool that the task needs but this computer lacks.
    lacks: Box<dyn FnOnce() -> Option<String> + Send + 'a>,
    run: Box<dyn FnOnce() -> Result<String> + Send + 'a>,
}

impl<'a> Task<'a> {
    /// Creates a task that runs `run`, and prints the text that `run` returns. The task is skipped if it `lacks`
    /// something. If the tool can be provided, this happens when the task's turn comes, while other tasks run.
    pub fn new(
        name: &'a str,
        lacks: impl FnOnce() -> Option<String> + Send + 'a,
        run: impl FnOnce() -> Result<String> + Send + 'a,
    ) -> Self {
        let (lacks, run) = (Box::new(lacks), Box::new(run));
        Self { name, lacks, run }
    }
}

/// Returns the number of CPUs of this computer that can run at the same time.
pub fn all_cpus() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

#[derive(Debug, Default)]
pub struct Outcomes {
    tests: usize,
    skipped: Vec<String>,
    failed: Vec<String>,
    took: Vec<Took>,
}

enum Outcome {
    Ok(String),
    Skipped(String),
    Failed(String),
}

impl Outcomes {
    /// Runs `tasks` in order, `jobs` at a time.
    pub fn run(&mut self, tasks: Vec<Task<'_>>, jobs: NonZeroUsize) -> Result<()> {
        let queue = Mutex::new(tasks.into_iter());
        let tally = Mutex::new(self);
        // The closure unlocks the queue before the test runs.
        let next = || locked(&queue).next();
        let work = || {
            while !interrupt::requested()
                && let Some(task) = next()
            {
                let (begun, account) = (Instant::now(), Account::default());
                let (name, outcome) = account.charge(|| task.run());
                let took = Took::new(name, begun.elapsed(), account.total());
                locked(&tally).add(name, outcome, took);
            }
        };
        thread::scope(|scope| {
            repeat_with(|| scope.spawn(work))
                .take(jobs.get())
                .for_each(drop)
        });
        if interrupt::requested() {
            let left = locked(&queue).len();
            bail!("interrupted, {left} tests were not begun");
        }
        Ok(())
    }

    /// Returns the time of each test that ran.
    pub fn took(&self) -> &[Took] {
        &self.took
    }

    fn add(&mut self, name: &str, outcome: Outcome, took: Took) {
        self.tests += 1;
        if !matches!(outcome, Outcome::Skipped(_)) {
            self.took.push(took);
        }
        match outcome {
            Outcome::Ok(more) => print_lines(format!("{name}: ok{more}").lines()),
            Outcome::Skipped(why) => {
                say!("{name}: skipped, {why}");
                self.skipped.push(name.into());
            }
            Outcome::Failed(why) => {
                print_lines(format!("{name}: FAILED, {why}").lines());
                self.failed.push(name.into());
            }
        }
    }

    /// Returns the number of tests for each outcome, as text.
    fn totals(&self) -> String {
        let (failed, skipped) = (self.failed.len(), self.skipped.len());
        let tests = if self.tests == 1 { "test" } else { "tests" };
        let ok = self.tests - failed - skipped;
        format!(
            "{} {tests}: {ok} ok, {failed} failed, {skipped} skipped",
            self.tests
        )
    }

    /// Prints the skipped tests, and the number of tests for each outcome. Fails if a test failed.
    pub fn judge(mut self) -> Result<()> {
        // The tests can end in any order, so sort the list.
        self.skipped.sort_unstable();
        self.failed.sort_unstable();
        if !self.skipped.is_empty() {
            say!("skipped: {}", self.skipped.join(", "));
        }
        say!("{}", self.totals());
        ensure!(
            self.failed.is_empty(),
            "{} of {} tests failed: {}",
            self.failed.len(),
            self.tests,
            self.failed.join(", ")
        );
        Ok(())
    }
}

impl<'a> Task<'a> {
    fn run(self) -> (&'a str, Outcome) {
        let outcome = match (self.lacks)() {
            Some(why) => Outcome::Skipped(why),
            None => match (self.run)() {
                Ok(more) => Outcome::Ok(more),
                Err(error) => Outcome::Failed(format!("{error:#}")),
            },
        };
        (self.name, outcome)
    }
}

/// Locks `mutex`, even after a panic: when a test panics, the program ends as soon as the other tests have ended, so
/// nothing uses the state that the panic left.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use anyhow::anyhow;

    use super::*;

    #[test]
    fn as_many_run_at_once_as_are_asked_for() {
        let jobs = NonZeroUsize::new(3).unwrap();
        // Each task waits for two other tasks.
        let barrier = Barrier::new(jobs.get());
        let tasks = (0..6).map(|_| {
            let run = || {
                barrier.wait();
                Ok(String::new())
            };
            Task::new("waits", || None, run)
        });
        let mut tally = Outcomes::default();
        tally.run(tasks.collect(), jobs).unwrap();
        assert_eq!(tally.tests, 6);
        tally.judge().unwrap();
    }

    #[test]
    fn what_failed_and_what_was_skipped_is_named() {
        let mut tally = Outcomes::default();
        let none = || Ok(String::new());
        let tasks = vec![
            Task::new("b", || None, || Err(anyhow!("wrong"))),
            Task::new("c", || Some("no emulator".into()), none),
            Task::new("a", || None, || Err(anyhow!("wrong"))),
            Task::new("d", || None, none),
        ];
        tally.run(tasks, all_cpus()).unwrap();
        assert_eq!(tally.skipped, ["c"]);
        assert_eq!(tally.totals(), "4 tests: 1 ok, 2 failed, 1 skipped");
        let failed = tally.judge().unwrap_err().to_string();
        assert_eq!(failed, "2 of 4 tests failed: a, b");
    }
}
