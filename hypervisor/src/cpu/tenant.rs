// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a neighbour, and of its vCPU while the neighbour has the CPU.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use abi::{Neighbour, Shared};
use arch::el1::{El1, Fp};
use platform::Region;

use crate::cpu::local::Local;

/// A neighbour. Only the neighbour's own CPU accesses its state, except for the counters.
pub struct Tenant {
    /// The neighbour's memory, which is all that it can access.
    pub memory: Region,
    /// VTTBR_EL2 and VTCR_EL2 of its map.
    pub stage2: (u64, u64),
    /// The neighbour's work, as [`Neighbour::encode`] encodes it.
    does: AtomicU64,
    /// Length of a slice in ticks; 0 if there are no slices.
    pub slice: AtomicU64,
    /// Whether a trapped WFE of the vCPU gives the neighbour the CPU.
    pub yield_on_wfe: AtomicBool,
    /// State of the neighbour, and state of the vCPU that is saved during a turn.
    pub worlds: Local<Worlds>,
    counts: [AtomicU64; Shared::COUNT],
}

/// State that two guests of a CPU can't have at the same time.
pub struct Worlds {
    /// General registers, PC and PSTATE of the neighbour. The vCPU's are on EL2's stack, as in any
    /// exit.
    pub general: General,
    /// EL1 registers of the neighbour.
    pub own: El1,
    /// EL1 registers of the vCPU.
    pub vcpu: El1,
    /// Errors that the neighbour has deferred ([`arch::el1::deferred_errors`]).
    pub own_errors: u64,
    /// Floating-point registers of the neighbour.
    pub own_fp: Fp,
    /// Floating-point registers of the vCPU, if the neighbour has used floating point in its turn.
    pub vcpu_fp: Fp,
    /// Whether the neighbour has used floating point in its turn.
    pub fp_used: bool,
}

/// General registers, PC and PSTATE, as `neighbour::switch` finds them.
#[derive(Clone)]
#[repr(C)]
pub struct General {
    pub x: [u64; 31],
    pub pc: u64,
    pub pstate: u64,
}

impl Tenant {
    /// Creates an idle neighbour with `memory` and the stage-2 map of it.
    pub const fn new(memory: Region, stage2: (u64, u64)) -> Self {
        Self {
            memory,
            stage2,
            does: AtomicU64::new(Neighbour::None.encode()),
            slice: AtomicU64::new(0),
            yield_on_wfe: AtomicBool::new(false),
            worlds: Local::new(Worlds {
                general: General {
                    x: [0; 31],
                    pc: 0,
                    pstate: 0,
                },
                own: El1::zero(),
                vcpu: El1::zero(),
                own_errors: 0,
                own_fp: Fp::zero(),
                vcpu_fp: Fp::zero(),
                fp_used: false,
            }),
            counts: [const { AtomicU64::new(0) }; Shared::COUNT],
        }
    }

    /// Whether the neighbour has work.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.does.load(Relaxed) != Neighbour::None.encode()
    }

    /// Sets the neighbour's work.
    pub fn set_work(&self, does: Neighbour) {
        self.does.store(does.encode(), Relaxed);
    }

    /// Adds `more` to the count `what`. Only the neighbour's own CPU does this.
    pub fn add_count(&self, what: Shared, more: u64) {
        let count = &self.counts[what as usize];
        count.store(count.load(Relaxed) + more, Relaxed);
    }

    /// Returns the count `what`.
    pub fn count(&self, what: Shared) -> u64 {
        self.counts[what as usize].load(Relaxed)
    }
}
