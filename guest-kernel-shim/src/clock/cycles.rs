// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how many core cycles one tick of the counter takes, to convert elapsed time to cycles (`rouse.cycles`).
//!
//! The PMU can't time a wake-up itself. The PMU's cycle counter belongs to one CPU, counts active cycles, and may stop
//! while the CPU waits in WFI or WFE (DDI 0487K.a, PMCCNTR_EL0), so it would omit exactly the part of a wake-up in
//! which all CPUs wait. So a sample is taken with the counter that all CPUs share. Only the unit of the sample is
//! changed, by the ratio of two clocks that are compared while this CPU is busy.
//!
//! A value is then elapsed time, in cycles of a core that runs as fast as this core ran at boot. Where the
//! counter is slower than the core, a value is exact only to one tick, which is as many cycles as the ratio
//! says. Cores differ, so each CPU that measures compares its own clocks. If a core changes its frequency
//! during the comparison, it has no ratio; a later change is noticed around the passes ([`super::watch`]).
//!
//! The cycle counter and the counter are read at the counter's edges, when it ticks, because hundreds of cycles
//! may pass between two edges. An edge lies somewhere between two readings, so the error of each part of the
//! comparison is at most one reading in [`READINGS`]. The loop consists of readings, each after a barrier: on a
//! core that executes out of order, a reading takes far more cycles than it has instructions, while the time
//! that a simulator needs depends on the instructions. All parts together execute about 30 000 instructions.

use core::fmt;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use arch::insn;
use hist::{Ratio, Unusable};

use crate::{clock, pmu};

/// Number of parts of the comparison; they must agree.
const PARTS: usize = 4;
/// Readings in each part, in addition to the readings that search for the edge.
const READINGS: u32 = 1000;
/// Number of parts of a quick measurement. Only the middle part is used.
const GLANCE: usize = 3;
/// Readings in each part of a quick measurement.
const GLANCE_READINGS: u32 = 200;
/// Number of readings within which the counter has to tick: its frequency is at least 1 MHz, and a
/// reading takes some cycles.
const PATIENCE: u32 = 10_000;

/// Why there is no ratio of the two clocks.
#[derive(Clone, Copy, Debug)]
pub enum Unknown {
    /// There is no PMU as the architecture describes it.
    NoPmu,
    /// The counter does not tick.
    NoTick,
    /// The cycle counter stands still, or the ratio is not steady.
    Clocks(Unusable),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPmu => f.write_str("no PMU"),
            Self::NoTick => f.write_str("CNTVCT does not tick"),
            Self::Clocks(Unusable::Stands) => f.write_str("PMCCNTR_EL0 does not count"),
            Self::Clocks(Unusable::Varies(low, high)) => {
                write!(f, "a tick has {low} to {high} cycles, which is not steady")
            }
        }
    }
}

/// The clock of a simulator's cores, in MHz, which stands in for the PMU that the guest lacks: 0 if not given.
static SIMULATED_MHZ: AtomicU64 = AtomicU64::new(0);

/// Records the clock of a simulator's cores.
pub fn record_simulated_clock(mhz: u64) {
    SIMULATED_MHZ.store(mhz, Relaxed);
}

fn simulated_ratio() -> Option<Ratio> {
    let wanted = SIMULATED_MHZ.load(Relaxed).checked_mul(1_000_000)?;
    (wanted != 0).then(|| Ratio {
        wanted,
        read: clock::frequency(),
    })
}

/// Cycles of a core per tick, over all parts, or the reason why there is no such number.
pub type PerTick = Result<Ratio, Unknown>;

/// Measures the cycles of this core per tick.
///
/// # Errors
/// Returns the reason why there is no such number.
pub fn per_tick() -> PerTick {
    if !pmu::is_present() {
        return simulated_ratio().ok_or(Unknown::NoPmu);
    }
    insn::mask_irq();
    let parts = measure_parts::<PARTS>(READINGS);
    insn::unmask_irq();
    Ratio::steady(&parts.ok_or(Unknown::NoTick)?).map_err(Unknown::Clocks)
}

/// Quickly measures the current clock of this core, in Hz, exact to about 1 in [`GLANCE_READINGS`].
/// Returns `None` if a clock stands still. The CPU must have a PMU.
pub fn core_hz() -> Option<u64> {
    insn::mask_irq();
    let parts = measure_parts::<GLANCE>(GLANCE_READINGS);
    insn::unmask_irq();
    Ratio::middle(parts?, clock::frequency())
}

/// Returns how far the two clocks advanced, from edge to edge, in each of `N` parts of `readings`
/// readings.
fn measure_parts<const N: usize>(readings: u32) -> Option<[Ratio; N]> {
    let mut parts = [Ratio { wanted: 0, read: 0 }; N];
    let mut from = find_tick_edge()?;
    for part in &mut parts {
        for _ in 0..readings {
            core::hint::black_box(Moment::now());
        }
        let to = find_tick_edge()?;
        *part = Ratio {
            wanted: to.cycles.wrapping_sub(from.cycles),
            read: to.ticks.wrapping_sub(from.ticks),
        };
        from = to;
    }
    Some(parts)
}

/// Values of the two clocks, read together.
#[derive(Clone, Copy)]
struct Moment {
    ticks: u64,
    cycles: u64,
}

impl Moment {
    #[inline(always)]
    fn now() -> Self {
        Self {
            ticks: clock::now(),
            cycles: pmu::cycles(),
        }
    }
}

/// Finds the next tick, and places it halfway between the readings before and after it.
fn find_tick_edge() -> Option<Moment> {
    let mut before = Moment::now();
    for _ in 0..PATIENCE {
        let now = Moment::now();
        if now.ticks != before.ticks {
            let between = now.cycles.wrapping_sub(before.cycles) / 2;
            return Some(Moment {
                ticks: now.ticks,
                cycles: before.cycles.wrapping_add(between),
            });
        }
        before = now;
    }
    None
}
