// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the atomic instructions that this image uses, and records whether the CPUs have them.
//!
//! Two images are built from one source: one with load-exclusive and store-exclusive instructions, and one
//! with the instructions of FEAT_LSE. The compiler chooses the instructions, so no branch at run
//! time is needed. On a CPU without FEAT_LSE, the second image must not reach an atomic operation.

use core::fmt;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use plan::{Arguments, Atomics, OtherImage, Program, SkipReason};
use platform::Platform;

use crate::{hypervisor, output};

/// The atomic instructions that this image uses.
pub const OWN: Atomics = if cfg!(target_feature = "lse") {
    Atomics::Lse
} else {
    Atomics::Llsc
};

/// Whether every CPU that has come up has FEAT_LSE.
static LSE: AtomicBool = AtomicBool::new(true);

/// Records the features of this CPU; returns whether it can run this image. Uses no atomic operation.
#[must_use]
pub fn fits_cpu() -> bool {
    let has = arch::id::has_lse();
    if !has {
        LSE.store(false, Relaxed);
    }
    has || OWN == Atomics::Llsc
}

/// Whether every CPU that has come up has FEAT_LSE.
pub fn all_cpus_have_lse() -> bool {
    LSE.load(Relaxed)
}

/// Ends the machine if the first CPU can't run this image. The hypervisor never chooses such an image, but a loader
/// may.
///
/// # Safety
/// Like [`output::open_alone`].
pub unsafe fn check_first_cpu(platform: &Platform<'_>) {
    if fits_cpu() {
        return;
    }
    if let Some(uart) = platform.uart {
        // SAFETY: as the caller promises.
        unsafe { output::open_alone(uart) };
    }
    output::print_unlocked(format_args!("rouse: refused: {}", SkipReason::NoLse));
    hypervisor::end_early(platform.psci, 2)
}

/// Why this image can't run the request.
#[derive(Clone, Copy, Debug)]
pub enum Unfit {
    /// Only the guest's other image can run the cell.
    Other(OtherImage),
    /// No image can run the cell on this machine.
    Never(SkipReason),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(why) => why.fmt(f),
            Self::Never(why) => why.fmt(f),
        }
    }
}

/// Makes this image run the request in `arguments`.
///
/// # Errors
/// Returns [`Unfit`] if the image can't run the request. Measurements skip cells instead, but a trial has no cells.
pub fn check_request(arguments: &mut Arguments<'_>) -> Result<(), Unfit> {
    let runs = arguments.plan.runs_on(OWN, all_cpus_have_lse());
    runs.map_err(Unfit::Other)?;
    let has_all = arguments.plan.atomics().all(|asked| asked == OWN);
    match arguments.program() {
        Program::Trials if !has_all => Err(Unfit::Never(SkipReason::NoLse)),
        Program::Trials | Program::Measuring => Ok(()),
    }
}
