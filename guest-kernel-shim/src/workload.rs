// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is run, over and over: one module per workload. A workload has a part
//! for the CPU that measures and one for each CPU that takes part.

pub mod call;
pub mod ipi;
pub mod pingpong;
pub mod stages;

use hist::Histogram;
use pages::Pool;

/// Samples of one cell.
#[repr(C)]
pub struct Samples {
    /// From the beginning of a wake-up to its end, as the workload defines it.
    pub total: Histogram,
    /// From the beginning to the first instruction of the function called, for
    /// workloads that have one.
    pub handler: Histogram,
    /// Where the time goes, by [`stages::STAGES`].
    pub stages: [Histogram; stages::STAGES.len()],
    /// `total` of the wake-ups that the stages were taken from: more than
    /// `total` by what the time stamps cost.
    pub traced: Histogram,
    /// Every value of `total`, if they were asked for, in the order in which
    /// they came; as many as fit.
    pub raw: Option<&'static mut [u64]>,
    /// Values in `raw`.
    pub kept: usize,
}

impl Samples {
    /// Empty samples in memory of `pool`, with room for `raw` values as they
    /// come; 0 keeps none.
    pub fn place(pool: &mut Pool, raw: u32) -> &'static mut Self {
        let place = pool.take(size_of::<Self>() as u64) as *mut Self;
        // SAFETY: fresh zeroed memory of that size, which is never taken back;
        // all zeroes is empty histograms and no room for values. It is not built
        // by value because it does not fit a stack.
        let samples = unsafe { &mut *place };
        samples.raw = (raw != 0).then(|| pool.fill((0..raw as usize).map(|_| 0)));
        samples
    }

    /// Counts a sample from end to end.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.total.record(value);
        if let Some(place) = self.raw.as_mut().and_then(|raw| raw.get_mut(self.kept)) {
            *place = value;
            self.kept += 1;
        }
    }
}
