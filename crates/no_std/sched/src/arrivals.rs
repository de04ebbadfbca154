// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that arrive on schedule, regardless of the fate of earlier requests: an open loop.
//!
//! The wait of a request is counted from its scheduled time, so it includes delays of the sender
//! and the time for which earlier requests were served.

use core::iter;

/// Returns the scheduled times of requests, each later than the previous one by an `interval`.
pub fn times(mut interval: impl FnMut() -> u64) -> impl Iterator<Item = u64> {
    let mut at = 0u64;
    iter::from_fn(move || {
        at = at.saturating_add(interval());
        Some(at)
    })
}

/// Counts waiting requests, while requests are served one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Number of requests that were due when a request was last taken.
    due: usize,
    /// The largest number of requests that waited at once.
    longest: usize,
}

impl Queue {
    /// Takes request `number`, counted from 0, at the time `now`. `time` returns the scheduled time
    /// of a request, or `None` after the last request.
    #[inline(always)]
    pub fn take(&mut self, number: usize, now: u64, time: impl Fn(usize) -> Option<u64>) {
        self.due = self.due.max(number);
        while time(self.due).is_some_and(|time| time <= now) {
            self.due += 1;
        }
        self.longest = self.longest.max(self.due - number);
    }

    /// Returns the largest number of requests that waited at once, including the request being taken.
    #[must_use]
    pub const fn longest(&self) -> usize {
        self.longest
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::spread;

    const MEAN: u64 = 100_000;

    fn draw_times(seed: u64, of: fn(u64, u64) -> u64, count: usize) -> Vec<u64> {
        let mut random = Random::at(seed, 1, 2);
        times(move || of(MEAN, random.draw())).take(count).collect()
    }

    #[test]
    fn times_have_the_mean_of_their_intervals() {
        for of in [spread::uniform, spread::exponential] {
            for seed in 0..8 {
                let times = draw_times(seed, of, 50_000);
                let mean = times[times.len() - 1] / times.len() as u64;
                // The mean of this test's exponential intervals has a standard deviation of 0.45 %.
                assert!(mean.abs_diff(MEAN) < MEAN / 50, "seed {seed}: {mean}");
                assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            }
        }
        let fixed: Vec<u64> = times(|| 7).take(4).collect();
        assert_eq!(fixed, [7, 14, 21, 28]);
    }

    #[test]
    fn a_seed_gives_the_same_times_again_and_another_one_others() {
        let of = |seed| draw_times(seed, spread::exponential, 1000);
        assert_eq!(of(5), of(5));
        assert_ne!(of(5), of(6));
        let stream = |pair, block| Random::at(1, pair, block).draw();
        assert_eq!(stream(3, 4), stream(3, 4));
        assert!(stream(3, 4) != stream(4, 3) && stream(3, 4) != stream(3, 5));
    }

    #[test]
    fn intervals_that_are_too_long_end_at_the_last_tick() {
        assert_eq!(times(|| u64::MAX).nth(3), Some(u64::MAX));
    }

    /// Returns the longest queue if a request comes every 10 ticks and takes `service` ticks.
    fn longest(service: u64, count: usize) -> usize {
        let come: Vec<u64> = times(|| 10).take(count).collect();
        let (mut queue, mut free) = (Queue::default(), 0);
        for (number, &at) in come.iter().enumerate() {
            let now = free.max(at);
            queue.take(number, now, |other| come.get(other).copied());
            free = now + service;
        }
        queue.longest()
    }

    #[test]
    fn a_queue_grows_where_service_takes_longer_than_the_interval() {
        assert_eq!([longest(0, 100), longest(9, 100)], [1, 1]);
        // Two requests come while one is served: half of all requests wait when the last one comes.
        assert_eq!([longest(20, 10), longest(20, 100)], [5, 50]);
        assert_eq!(longest(1_000_000, 50), 49);
        assert_eq!(Queue::default().longest(), 0);
    }
}
