// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports the soak's progress.

use core::sync::atomic::Ordering::Acquire;

use super::operation::Operation;
use super::state::{EPOCH, EPOCHS, STEPS};
use super::tokens;
use crate::records;

/// Number of progress reports.
pub const REPORTS: u64 = 40;

/// Returns the total number of steps, over all CPUs.
pub fn steps() -> u64 {
    STEPS.iter().map(|steps| steps.load(Acquire)).sum()
}

/// Returns a number that is equal for two runs with equal operations.
pub fn operation_digest() -> u64 {
    let steps = STEPS.iter().map(|steps| steps.load(Acquire));
    steps.fold(tokens::sent_count(), |sum, steps| {
        sum.wrapping_mul(0x0100_0000_01b3) ^ steps
    })
}

/// Reports the progress of the soak.
pub fn report_progress() {
    let (done, of) = (tokens::sent_count(), EPOCHS.load(Acquire) * EPOCH);
    let (switches, off) = (Operation::Deliver.times_done(), Operation::Off.times_done());
    records::report_soak("steps", steps());
    records::report_soak("wake-ups", done);
    records::report_soak(Operation::Deliver.name(), switches);
    records::report_soak(Operation::Off.name(), off);
    records::report_progress(
        done,
        of,
        format_args!("{} steps, {switches} switches, {off} off and on", steps()),
    );
}

/// Reports how often each operation was performed.
pub fn report_operations() {
    for &(operation, name, _) in Operation::ALL {
        records::report_soak(name, operation.times_done());
    }
}
