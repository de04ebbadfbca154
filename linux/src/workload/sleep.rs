// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that sleeps until a deadline, repeatedly: `linux-timer` with a short period, and `linux-idle` with a long
//! one, to count what the machine does in the meantime. A sample is the time by which the thread wakes up too late.

use std::io;
use std::num::NonZeroU64;

use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::clock_gettime;

use super::SampleBlock;
use crate::{clock, cpus};

/// Sleeps before the first sample.
const WARM_UP: u32 = 2;
/// Time by which the kernel may delay timers to coalesce them, in nanoseconds. The default of
/// 50,000 would be in every sample.
const SLACK: NonZeroU64 = NonZeroU64::MIN;

/// Takes the samples of a block.
pub fn run(block: &mut SampleBlock<'_>, period_us: u32) -> io::Result<u64> {
    let [_, cpu] = block.cpu_pair();
    cpus::pin(cpu)?;
    set_current_timer_slack(Some(SLACK))?;
    let clocks = Clocks::read()?;
    let period = u64::from(period_us) * 1000;
    let mut deadline = clocks.ns + period;
    for round in 0..WARM_UP + block.count {
        if round == WARM_UP {
            block.begin_block()?;
            // The time spent on reading the counters is not lateness.
            deadline = nanoseconds(clock_gettime(ClockId::Monotonic)) + period;
        }
        let until = Timespec {
            tv_sec: (deadline / SECOND) as i64,
            tv_nsec: (deadline % SECOND) as i64,
        };
        while let Err(error) = clock_nanosleep_absolute(ClockId::Monotonic, &until) {
            if error != rustix::io::Errno::INTR {
                return Err(error.into());
            }
        }
        let now = clock::now();
        if round >= WARM_UP {
            block.record(now.saturating_sub(clocks.ticks_at(deadline)));
        }
        // A deadline in the past is skipped, since its sample would repeat the lateness of the sample before.
        deadline += period;
        if clocks.ticks_at(deadline) <= now {
            deadline = nanoseconds(clock_gettime(ClockId::Monotonic)) + period;
        }
    }
    block.end_block()
}

const SECOND: u64 = 1_000_000_000;

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}

/// The kernel's clock and the counter at one moment.
struct Clocks {
    ns: u64,
    ticks: u64,
}

impl Clocks {
    /// Reads the clock between two reads of the counter.
    fn read() -> io::Result<Self> {
        let before = clock::now();
        let ns = nanoseconds(clock_gettime(ClockId::Monotonic));
        let after = clock::now();
        Ok(Self {
            ns,
            ticks: before + (after - before) / 2,
        })
    }

    /// Returns the count when the kernel's clock is at `ns`, which is not before `self.ns`.
    fn ticks_at(&self, ns: u64) -> u64 {
        let since = u128::from(ns - self.ns) * u128::from(clock::frequency()) / u128::from(SECOND);
        self.ticks + since as u64
    }
}
