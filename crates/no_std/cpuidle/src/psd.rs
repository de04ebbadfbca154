// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power-sleep-demotion prevention: after I/O was submitted, the CPU stays
//! in shallow states for a while.
//!
//! C. I. King, "cpuidle: psd: add power sleep demotion prevention for
//! fast I/O devices", March 2025. A submission opens a window of
//! `psd_cpu_lat_timeout_ms`; while it is open, the CPU only uses the shallowest state. Both ends of
//! the window are ticks ("jiffies"), so that neither the submission nor the idle loop reads a finer clock. The
//! window begins with the tick in which it was opened, and its length is rounded up to ticks: 3 ms
//! become 2 to 3 ms at 1000 Hz, and 0 to 10 ms at 100 Hz.
//!
//! In the patch, the window was a line in `menu`. Here, it is a latency limit, as the reviewers
//! requested: it works with every governor, and the governor learns from these stays, too.
//! [`Psd::with_limit`] makes it R. Wysocki's alternative, a limit just above the exit latency of
//! the first halting state.

/// The window of one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Psd {
    timeout_ms: u32,
    tick_ns: u64,
    limit_ns: u64,
    /// The tick at which the window ends.
    deadline: u64,
}

impl Psd {
    /// Default of `psd_cpu_lat_timeout_ms`.
    pub const DEFAULT_MS: u32 = 3;

    /// Returns a closed window with a length of `timeout_ms` (0: off), counted in ticks of `tick_ns`.
    #[must_use]
    pub const fn new(timeout_ms: u32, tick_ns: u64) -> Self {
        Self::with_limit(timeout_ms, tick_ns, 0)
    }

    /// Like [`Psd::new`], with a latency limit of `limit_ns` instead of 0.
    #[must_use]
    pub const fn with_limit(timeout_ms: u32, tick_ns: u64, limit_ns: u64) -> Self {
        Self {
            timeout_ms,
            tick_ns: if tick_ns == 0 { 1 } else { tick_ns },
            limit_ns,
            deadline: 0,
        }
    }

    /// Records that I/O was submitted on this CPU.
    pub const fn submitted(&mut self, now_ns: u64) {
        let timeout = (self.timeout_ms as u64 * 1_000_000).div_ceil(self.tick_ns);
        self.deadline = (now_ns / self.tick_ns).saturating_add(timeout);
    }

    /// Whether the window is open.
    #[must_use]
    pub const fn is_open(&self, now_ns: u64) -> bool {
        self.timeout_ms != 0 && now_ns / self.tick_ns < self.deadline
    }

    /// Returns the latency limit that applies in place of `limit_ns` because of the window.
    #[must_use]
    pub const fn applied_limit(&self, now_ns: u64, limit_ns: u64) -> u64 {
        if self.limit_ns < limit_ns && self.is_open(now_ns) {
            self.limit_ns
        } else {
            limit_ns
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_window_is_counted_in_ticks() {
        // 1000 Hz, submitted in tick 7: open in ticks 7, 8 and 9.
        let mut psd = Psd::new(3, MS);
        assert!(!psd.is_open(0));
        psd.submitted(7 * MS + 999_999);
        assert!(psd.is_open(10 * MS - 1) && !psd.is_open(10 * MS));
        // 250 Hz: 3 ms are rounded up to one tick. The submission is late in tick 1, so the
        // window is open only until the end of tick 1.
        let mut psd = Psd::new(3, 4 * MS);
        psd.submitted(7 * MS);
        assert!(psd.is_open(8 * MS - 1) && !psd.is_open(8 * MS));
    }

    #[test]
    fn zero_is_off() {
        let mut psd = Psd::new(0, MS);
        psd.submitted(0);
        assert_eq!(psd.applied_limit(0, 5), 5);
    }

    #[test]
    fn the_stricter_limit_applies() {
        let mut psd = Psd::with_limit(3, MS, 2_500);
        psd.submitted(0);
        assert_eq!(psd.applied_limit(1, u64::MAX), 2_500);
        assert_eq!(psd.applied_limit(1, 1_000), 1_000);
        assert_eq!(psd.applied_limit(3 * MS, u64::MAX), u64::MAX);
    }
}
