// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adapts the time to poll before halting to the needs of the last waits.
//!
//! [`Guest`] is the `haltpoll` governor of Linux and [`Host`] is the halt polling of KVM,
//! with their published rules and defaults (Linux,
//! `Documentation/virt/guest-halt-polling.rst` and `Documentation/virt/kvm/halt-polling.rst`).
//! Both governors raise the limit if a slightly longer poll would have
//! caught the wake-up, and lower it if the wait was longer than any poll may be. The published
//! times are in nanoseconds; [`Tunables::scaled`] converts them to the unit of the caller's
//! clock.

/// Tunables; the fields have the names of the Linux parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Largest limit.
    pub max: u64,
    /// Factor of growth.
    pub grow: u64,
    /// Smallest limit after growth.
    pub grow_start: u64,
    /// Divisor for shrinking; 0 shrinks to 0 at once.
    pub shrink: u64,
}

impl Tunables {
    /// Defaults of `/sys/module/haltpoll/parameters`.
    pub const GUEST: Self = Self {
        max: 200_000,
        grow: 2,
        grow_start: 50_000,
        shrink: 2,
    };
    /// Defaults of `/sys/module/kvm/parameters` on arm64 (since Linux 6.11).
    pub const HOST: Self = Self {
        max: 500_000,
        grow: 2,
        grow_start: 10_000,
        shrink: 2,
    };

    /// Converts the times to another unit.
    #[must_use]
    pub fn scaled(self, convert: impl Fn(u64) -> u64) -> Self {
        Self {
            max: convert(self.max),
            grow_start: convert(self.grow_start),
            ..self
        }
    }

    /// Replaces the largest limit with `max`, unless that is 0.
    #[must_use]
    pub fn with_max(self, max: u64) -> Self {
        if max == 0 {
            return self;
        }
        Self {
            max,
            grow_start: self.grow_start.min(max),
            ..self
        }
    }

    const fn grow_limit(&self, limit: u64) -> u64 {
        let grown = limit.saturating_mul(self.grow);
        let grown = if grown < self.grow_start {
            self.grow_start
        } else {
            grown
        };
        if grown < self.max { grown } else { self.max }
    }

    /// Shrinks `limit`. A result below `grow_start` becomes 0, because such short polls don't pay.
    const fn shrink_limit(&self, limit: u64) -> u64 {
        let shrunk = match limit.checked_div(self.shrink) {
            Some(shrunk) => shrunk,
            None => 0,
        };
        if shrunk < self.grow_start { 0 } else { shrunk }
    }
}

/// The governor that runs in the guest.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    tunables: Tunables,
    limit: u64,
    /// Whether the previous wait polled without success; the next wait then halts at once.
    missed: bool,
}

impl Guest {
    /// Starts with limit 0, so that the first wait halts.
    #[must_use]
    pub const fn new(tunables: Tunables) -> Self {
        Self {
            tunables,
            limit: 0,
            missed: false,
        }
    }

    /// Returns how long to poll now; 0 means to halt at once.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        if self.missed { 0 } else { self.limit }
    }

    /// Returns the stored limit, even if this wait halts at once.
    #[must_use]
    pub const fn kept_limit(&self) -> u64 {
        self.limit
    }

    /// Sets the stored limit to `limit` if the stored limit is 0.
    pub const fn begin_at(&mut self, limit: u64) {
        if self.limit == 0 {
            self.limit = limit;
        }
    }

    /// Records a poll that ended with (`hit`) or without a request.
    pub const fn polled(&mut self, hit: bool) {
        self.missed = !hit;
    }

    /// Adapts the limit after a halt that lasted `blocked`.
    pub const fn halted(&mut self, blocked: u64) {
        self.missed = false;
        if blocked > self.limit && blocked <= self.tunables.max {
            self.limit = self.tunables.grow_limit(self.limit);
        } else if blocked > self.tunables.max {
            self.limit = self.tunables.shrink_limit(self.limit);
        }
    }
}

/// The governor that runs in the hypervisor.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    tunables: Tunables,
    limit: u64,
}

impl Host {
    /// Starts with limit 0.
    #[must_use]
    pub const fn new(tunables: Tunables) -> Self {
        Self { tunables, limit: 0 }
    }

    /// Returns how long to poll now.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Adapts the limit after a wait that lasted `total`, poll and halt together.
    pub const fn waited(&mut self, total: u64) {
        if total <= self.limit {
            return;
        }
        // The limit is never above `max`.
        self.limit = if total > self.tunables.max {
            self.tunables.shrink_limit(self.limit)
        } else {
            self.tunables.grow_limit(self.limit)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the limit of the guest's governor after each halt.
    fn guest<const N: usize>(blocked: [u64; N]) -> [u64; N] {
        let mut governor = Guest::new(Tunables::GUEST);
        blocked.map(|blocked| {
            governor.halted(blocked);
            governor.limit()
        })
    }

    /// Returns the limit of the hypervisor's governor after each wait.
    fn host<const N: usize>(tunables: Tunables, total: [u64; N]) -> [u64; N] {
        let mut governor = Host::new(tunables);
        total.map(|total| {
            governor.waited(total);
            governor.limit()
        })
    }

    #[test]
    fn both_grow_and_shrink_as_published() {
        // 150 us is within a limit of 200 us, so the limit stays.
        assert_eq!(guest([150_000; 4]), [50_000, 100_000, 200_000, 200_000]);
        let shrinks = guest([
            150_000, 150_000, 150_000, 300_000, 300_000, 300_000, 300_000,
        ]);
        assert_eq!(shrinks[3..], [100_000, 50_000, 0, 0]);
        let grows = host(
            Tunables::HOST,
            [450, 450, 450, 450, 450, 450, 450, 600].map(|us| us * 1000),
        );
        assert_eq!(
            grows.map(|ns| ns / 1000),
            [10, 20, 40, 80, 160, 320, 500, 250]
        );
    }

    /// A wait exactly as long as the limit is within the limit. This also holds for the largest
    /// limit.
    #[test]
    fn a_wait_as_long_as_a_limit_is_within_it() {
        let blocked = [1, 50_000, 200_000, 200_000, 200_000, 200_001];
        let limits = [50_000, 50_000, 100_000, 200_000, 200_000, 100_000];
        assert_eq!(guest(blocked), limits);
        let total = [0, 1, 10_000, 10_001, 500_000, 500_001];
        let limits = [0, 10_000, 10_000, 20_000, 40_000, 20_000];
        assert_eq!(host(Tunables::HOST, total), limits);
    }

    #[test]
    fn without_a_divisor_a_limit_shrinks_to_nothing_at_once() {
        let tunables = Tunables {
            shrink: 0,
            ..Tunables::HOST
        };
        assert_eq!(
            host(tunables, [400_000, 400_000, 600_000]),
            [10_000, 20_000, 0]
        );
    }

    #[test]
    fn another_maximum_bounds_the_start_too() {
        let given = Tunables::GUEST.with_max(20_000);
        assert_eq!((given.max, given.grow_start), (20_000, 20_000));
        let given = Tunables::GUEST.with_max(1_000_000);
        assert_eq!((given.max, given.grow_start), (1_000_000, 50_000));
        assert_eq!(Tunables::GUEST.with_max(0), Tunables::GUEST);
    }

    #[test]
    fn after_a_miss_the_guest_halts_once() {
        let mut governor = Guest::new(Tunables::GUEST);
        governor.halted(40_000);
        assert_eq!(governor.limit(), 50_000);
        governor.polled(false);
        assert_eq!(governor.limit(), 0);
        governor.halted(40_000);
        assert_eq!(governor.limit(), 50_000);
        governor.polled(true);
        assert_eq!(governor.limit(), 50_000);
    }
}
