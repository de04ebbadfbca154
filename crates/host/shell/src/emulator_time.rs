// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's own time: a clock that other load on the host does not advance.
//!
//! Samples of the states of the emulator's threads advance the clock. For the time between two samples, the clock
//! adds
//!
//! - while the emulator works: the least time in which an otherwise idle host could have done that work. This is the
//!   larger of the time of the busiest thread and the time of all threads divided by the host's cores. A thread that
//!   waits for a core adds nothing;
//! - while all threads of the emulator sleep, like those of a machine whose CPUs wait for a timer or for ever: the
//!   time by the wall clock;
//! - while the emulator is stopped (SIGSTOP, a tracer): only the work before the stop.
//!
//! So the clock never runs ahead of the wall clock by more than the resolution of the host's
//! accounting. A limit in this time ends a machine that spins or sleeps for ever, but not a machine that merely gets no
//! processor time.

use std::collections::BTreeMap;
use std::time::Duration;

/// The longest time that a sample covers. A sample that comes later shows that the host is busy or was suspended, and
/// shows nothing about the emulator.
pub const SPAN: Duration = Duration::from_secs(1);

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The thread waits for an event, or has ended.
    Asleep,
    /// The thread runs, or waits for a core or for the host's disk.
    Busy,
    /// A signal or a tracer has stopped the thread.
    Stopped,
}

/// A thread at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    pub state: State,
    /// The processor time that the thread has used.
    pub ran: Duration,
}

/// All threads of the emulator at one moment, by number.
pub type Sample = BTreeMap<u64, Thread>;

/// The clock of an emulator's own time.
#[derive(Debug)]
pub struct OwnTime {
    cores: u32,
    now: Duration,
    last: Sample,
}

impl OwnTime {
    /// Creates a clock at 0, for an emulator that has not worked yet, on a host with `cores` cores.
    pub fn new(cores: usize) -> Self {
        Self {
            cores: u32::try_from(cores).unwrap_or(u32::MAX).max(1),
            now: Duration::ZERO,
            last: Sample::new(),
        }
    }

    /// Returns the emulator's own time so far.
    pub const fn now(&self) -> Duration {
        self.now
    }

    /// Advances by a sample that was taken `elapsed` after the previous sample. `None` means that the host does not
    /// report threads, so that only the wall clock is left.
    pub fn advance(&mut self, elapsed: Duration, sample: Option<Sample>) {
        let elapsed = elapsed.min(SPAN);
        let Some(sample) = sample else {
            self.now += elapsed;
            return;
        };
        let worked = self.least_time_of_work(&sample);
        let is = |state| sample.values().any(|thread| thread.state == state);
        self.now += match is(State::Busy) || is(State::Stopped) {
            true => worked,
            false => worked.max(elapsed),
        };
        self.last = sample;
    }

    /// Returns the least time that the work since the last sample takes.
    fn least_time_of_work(&self, sample: &Sample) -> Duration {
        let mut busiest = Duration::ZERO;
        let mut all = Duration::ZERO;
        for (number, thread) in sample {
            let before = self.last.get(number).map_or(Duration::ZERO, |t| t.ran);
            let new = thread.ran.saturating_sub(before);
            busiest = busiest.max(new);
            all += new;
        }
        busiest.max(all / self.cores)
    }
}

/// Whether all threads of a sample sleep.
pub fn all_asleep(sample: &Sample) -> bool {
    let mut threads = sample.values();
    threads.all(|thread| thread.state == State::Asleep)
}

#[cfg(test)]
mod tests {
    use super::State::{Asleep, Busy, Stopped};
    use super::*;
    use proptest::prelude::*;

    const TICK: Duration = Duration::from_millis(200);
    const MINUTE: u32 = 300;

    /// An emulator whose threads all behave alike in every tick.
    struct Emulator {
        clock: OwnTime,
        threads: Sample,
    }

    impl Emulator {
        fn new(threads: u64, cores: usize) -> Self {
            let idle = Thread {
                state: Asleep,
                ran: Duration::ZERO,
            };
            Self {
                clock: OwnTime::new(cores),
                threads: (0..threads).map(|number| (number, idle)).collect(),
            }
        }

        /// Advances by `ticks`. Returns by how much the clock advanced.
        fn go(&mut self, ticks: u32, state: State, ran: Duration) -> Duration {
            let before = self.clock.now();
            for _ in 0..ticks {
                for thread in self.threads.values_mut() {
                    thread.state = state;
                    thread.ran += ran;
                }
                self.clock.advance(TICK, Some(self.threads.clone()));
            }
            self.clock.now() - before
        }
    }

    #[test]
    fn who_gets_no_core_spends_none() {
        let mut starved = Emulator::new(4, 2);
        let spent = starved.go(60 * MINUTE, Busy, Duration::ZERO);
        assert_eq!(spent, Duration::ZERO);
        // Each thread gets a fiftieth of a core.
        let spent = starved.go(60 * MINUTE, Busy, TICK / 50);
        assert_eq!(spent, TICK * 60 * MINUTE / 25);
    }

    #[test]
    fn who_sleeps_for_ever_spends_the_wall_clocks_time() {
        let spent = Emulator::new(4, 2).go(4 * MINUTE, Asleep, Duration::ZERO);
        assert_eq!(spent, Duration::from_secs(240));
    }

    #[test]
    fn who_spins_spends_what_it_gets() {
        // A thread for each core; more threads than cores; one thread.
        for (threads, cores, ran) in [(2, 2, TICK), (8, 2, TICK / 4), (1, 64, TICK)] {
            let spent = Emulator::new(threads, cores).go(MINUTE, Busy, ran);
            assert_eq!(spent, Duration::from_secs(60), "{threads} on {cores}");
        }
    }

    #[test]
    fn who_takes_a_nap_between_ticks_sleeps() {
        // The guest here waits for ever with a timer that has no effect.
        let spent = Emulator::new(2, 2).go(4 * MINUTE, Asleep, TICK / 100);
        assert_eq!(spent, Duration::from_secs(240));
    }

    #[test]
    fn who_is_stopped_spends_none() {
        let mut stopped = Emulator::new(3, 2);
        stopped.go(MINUTE, Busy, TICK / 10);
        let spent = stopped.go(60 * MINUTE, Stopped, Duration::ZERO);
        assert_eq!(spent, Duration::ZERO);
        assert!(stopped.go(MINUTE, Asleep, Duration::ZERO) > Duration::ZERO);
    }

    #[test]
    fn one_thread_that_waits_for_a_core_is_enough() {
        let mut one = Emulator::new(3, 2);
        one.go(1, Asleep, Duration::ZERO);
        one.threads.get_mut(&1).unwrap().state = Busy;
        let before = one.clock.now();
        one.clock.advance(TICK, Some(one.threads.clone()));
        assert_eq!(one.clock.now(), before);
    }

    #[test]
    fn a_late_sample_vouches_for_little() {
        let mut clock = OwnTime::new(2);
        let asleep = Emulator::new(2, 2).threads;
        clock.advance(Duration::from_secs(3600), Some(asleep));
        assert_eq!(clock.now(), SPAN);
        clock.advance(Duration::from_secs(3600), None);
        assert_eq!(clock.now(), 2 * SPAN);
    }

    #[test]
    fn where_nothing_is_told_it_is_the_wall_clock() {
        let mut clock = OwnTime::new(2);
        (0..MINUTE).for_each(|_| clock.advance(TICK, None));
        assert_eq!(clock.now(), Duration::from_secs(60));
    }

    #[test]
    fn threads_come_and_go() {
        let mut clock = OwnTime::new(1);
        let busy = |ran| Thread { state: Busy, ran };
        clock.advance(TICK, Some([(1, busy(TICK))].into()));
        clock.advance(TICK, Some([(2, busy(TICK / 2))].into()));
        assert_eq!(clock.now(), TICK * 3 / 2);
    }

    proptest! {
        /// Whatever the threads do on a host with enough cores, the clock neither
        /// goes back nor runs ahead of the wall clock.
        #[test]
        fn it_never_overtakes_the_wall_clock(
            steps in prop::collection::vec(prop::collection::vec((0_u8..3, 0_u32..=200), 3), 0..50)
        ) {
            let mut clock = OwnTime::new(3);
            let mut ran = [Duration::ZERO; 3];
            let mut wall = Duration::ZERO;
            for step in steps {
                let threads = step.iter().zip(&mut ran).enumerate();
                let sample = threads.map(|(number, (&(state, ms), ran))| {
                    *ran += Duration::from_millis(ms.into());
                    let state = [Asleep, Busy, Stopped][usize::from(state)];
                    (number as u64, Thread { state, ran: *ran })
                });
                let before = clock.now();
                clock.advance(TICK, Some(sample.collect()));
                wall += TICK;
                prop_assert!(before <= clock.now() && clock.now() <= wall);
            }
        }
    }
}
