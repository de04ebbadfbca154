// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the samples of a cell, and the memory for samples of tasks.

use hist::Histogram;
use pages::Pool;
use plan::Workload;
use spin::mutex::SpinMutex;

use super::stages;
use crate::clock;

/// Reads the clock at the beginning of a sample; [`sample_ends`] reads it at the end. The two are separate functions so
/// that a plugin can find samples by their names: crate `critical`.
#[inline(always)]
pub fn sample_begins() -> u64 {
    clock::now()
}

/// See [`sample_begins`].
#[inline(always)]
pub fn sample_ends() -> u64 {
    clock::now()
}

/// Tells a plugin that samples from now on belong to cell `id`, or to no cell if `id` is `u64::MAX`.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn samples_of_cell(id: u64) {
    core::hint::black_box(id);
}

/// The samples of one cell.
#[repr(C)]
pub struct Samples {
    /// Times from the beginning of a wake-up to its end, as the workload defines them.
    pub total: Histogram,
    /// Times from the beginning to the first instruction of the called function, for workloads that
    /// call one.
    pub handler: Histogram,
    /// The stages of samples, while they are measured.
    pub stamped: Option<&'static mut stages::Stamped>,
    /// If raw values were asked for: the first values of `total`, in order, as many as
    /// fit.
    pub raw: Option<&'static mut [u64]>,
    /// Number of values in `raw`.
    pub kept: usize,
}

impl Samples {
    /// Returns empty samples in memory of `pool`, with memory for `raw` single values; 0 keeps none.
    pub fn place_in(pool: &mut Pool, raw: u32) -> &'static mut Self {
        let place = pool.take(size_of::<Self>() as u64) as *mut Self;
        // SAFETY: this is fresh zeroed memory of that size, which is never taken back. All zeroes mean empty
        // histograms and no memory for values. The samples are not built by value, because they do not fit on a
        // stack.
        let samples = unsafe { &mut *place };
        samples.raw = (raw != 0).then(|| pool.fill((0..raw as usize).map(|_| 0)));
        samples
    }

    /// Returns an empty histogram in memory of `pool`.
    pub fn histogram(pool: &mut Pool) -> &'static mut Histogram {
        let place = pool.take(size_of::<Histogram>() as u64) as *mut Histogram;
        // SAFETY: for the same reasons as in `place_in`; a histogram that is all zeroes is empty.
        unsafe { &mut *place }
    }

    /// Records the value of a sample from end to end.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.total.record(value);
        if let Some(place) = self.raw.as_mut().and_then(|raw| raw.get_mut(self.kept)) {
            *place = value;
            self.kept += 1;
        }
    }
}

/// Returns, for each round of a block of `count` samples, whether the round is a sample. Governors
/// learn in the rounds before the samples, and the rounds after the samples make all samples alike.
/// Without later rounds, the other CPU would leave the loop within the last sample.
#[inline(always)]
pub fn rounds(workload: Workload, count: u32) -> impl Iterator<Item = bool> {
    let first = workload.learning();
    (0..round_count(workload, count)).map(move |n| n >= first && n - first < count)
}

/// Returns how many rounds a block of `count` samples has.
#[inline(always)]
pub fn round_count(workload: Workload, count: u32) -> u32 {
    count + workload.unrecorded()
}

/// The memory for the samples of tasks, to which several CPUs contribute.
static SINK: SpinMutex<Option<&'static mut Samples>> = SpinMutex::new(None);

/// Sets the memory for samples, and returns the previous memory.
pub fn set_place(place: Option<&'static mut Samples>) -> Option<&'static mut Samples> {
    core::mem::replace(&mut *SINK.lock(), place)
}

/// Records a sample of a task.
pub fn record(value: u64) {
    with_sink(|samples| samples.record(value));
}

/// Records the time until a called function began.
pub fn record_handler(value: u64) {
    with_sink(|samples| samples.handler.record(value));
}

fn with_sink(work: impl FnOnce(&mut Samples)) {
    let mut sink = loop {
        if let Some(sink) = SINK.try_lock() {
            break sink;
        }
        // Under an emulator with one thread, the lock's holder needs a turn to run.
        arch::insn::yield_now();
    };
    if let Some(samples) = sink.as_deref_mut() {
        work(samples);
    }
}
