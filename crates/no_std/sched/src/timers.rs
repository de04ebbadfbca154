// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the deadlines of one CPU in a binary heap of fixed size (J. W. J. Williams, "Algorithm
//! 232: Heapsort", CACM 7, 1964): the next deadline is known without a search, and the cost of
//! adding and taking is logarithmic.

/// Up to `N` deadlines, each with the number of its waiter.
#[derive(Debug)]
pub struct Timers<const N: usize> {
    entries: [(u64, u32); N],
    used: usize,
}

impl<const N: usize> Default for Timers<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Timers<N> {
    /// Creates a heap without deadlines.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            entries: [(0, 0); N],
            used: 0,
        }
    }

    /// Returns the earliest deadline.
    #[must_use]
    pub const fn next(&self) -> Option<u64> {
        if self.used == 0 {
            None
        } else {
            Some(self.entries[0].0)
        }
    }

    /// Adds `deadline` of `waiter`; returns `false` if there is no room.
    #[must_use]
    pub fn add(&mut self, deadline: u64, waiter: u32) -> bool {
        if self.used == N {
            return false;
        }
        let mut at = self.used;
        self.entries[at] = (deadline, waiter);
        self.used += 1;
        while at != 0 && self.entries[at] < self.entries[(at - 1) / 2] {
            self.entries.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        true
    }

    /// Takes the earliest deadline that is not after `now` and returns its waiter; among equal
    /// deadlines, the waiter with the smallest number.
    pub fn expire(&mut self, now: u64) -> Option<u32> {
        let (deadline, waiter) = *self.entries[..self.used].first()?;
        if deadline > now {
            return None;
        }
        self.used -= 1;
        self.entries[0] = self.entries[self.used];
        let mut at = 0;
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.used && self.entries[child] < self.entries[least] {
                    least = child;
                }
            }
            if least == at {
                return Some(waiter);
            }
            self.entries.swap(at, least);
            at = least;
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_heap_says_so() {
        let mut timers = Timers::<2>::new();
        assert!(timers.add(5, 0) && timers.add(3, 1));
        assert!(!timers.add(1, 2));
        assert_eq!(timers.next(), Some(3));
        assert_eq!(timers.expire(2), None);
        assert_eq!([timers.expire(9), timers.expire(9)], [Some(1), Some(0)]);
        assert_eq!((timers.next(), timers.expire(9)), (None, None));
    }

    proptest! {
        #[test]
        fn deadlines_come_in_order(mut deadlines in proptest::collection::vec(0u64..50, 0..40)) {
            let mut timers = Timers::<40>::new();
            for (waiter, &deadline) in deadlines.iter().enumerate() {
                prop_assert!(timers.add(deadline, waiter as u32));
            }
            let mut expired = Vec::new();
            for now in 0..50 {
                while let Some(waiter) = timers.expire(now) {
                    prop_assert_eq!(deadlines[waiter as usize], now);
                    expired.push(now);
                }
            }
            deadlines.sort_unstable();
            prop_assert_eq!(expired, deadlines);
        }
    }
}
