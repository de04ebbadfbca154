// SPDX-License-Identifier: MIT OR Apache-2.0
//! The state of a neighbour, and of the CPU's vCPU while the neighbour has the CPU.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU64};

use abi::{Neighbour, Shared};
use arch::el1::{Auxiliary, Effective, Fp, Stage1, Untrapped};
use arch::el2::{Changing, Fixed};
use platform::Region;

use crate::cpu::local::Local;

/// A neighbour. Only the neighbour's own CPU accesses this state, except for the counters.
#[repr(C)]
pub struct Tenant {
    /// State of the neighbour, and state of the vCPU that is saved during a turn.
    pub worlds: Local<Worlds>,
    /// Length of a slice in ticks; 0 if there are no slices.
    pub slice: AtomicU64,
    counts: [AtomicU64; Shared::COUNT],
    /// The neighbour's work, as [`Neighbour::encode`] encodes it.
    does: AtomicU64,
    /// Whether a trapped WFE of the vCPU gives the neighbour the CPU.
    pub yield_on_wfe: AtomicBool,
    /// The neighbour's memory, which is all that it can access.
    pub memory: Region,
    /// VTTBR_EL2 and VTCR_EL2 of the neighbour's map.
    pub stage2: (u64, u64),
}

/// State that a CPU can hold for only one of its two guests at a time. A switch uses the fields up to `general`.
#[repr(C)]
pub struct Worlds {
    pub own: Registers,
    pub vcpu: Registers,
    /// PC and PSTATE of the vCPU.
    pub vcpu_return: (u64, u64),
    /// CNTV_CTL_EL0 of the vCPU.
    pub vcpu_timer: u64,
    /// CNTV_CVAL_EL0 of the vCPU, if it is exchanged.
    pub vcpu_timer_end: u64,
    /// When the turn began, in ticks of the physical count.
    pub begin: u64,
    /// PMCR_EL0 of the vCPU.
    pub vcpu_counting: u64,
    /// The additional registers that a turn exchanges: a sum of constants of [`more`].
    pub more: u64,
    /// General registers, PC and PSTATE of the neighbour. The vCPU's are on EL2's stack, as in any
    /// exit.
    pub general: General,
    pub own_auxiliary: Auxiliary,
    pub vcpu_auxiliary: Auxiliary,
    pub own_stage1: Stage1,
    /// Stage-1 registers of the vCPU, if the neighbour has turned its stage 1 on.
    pub vcpu_stage1: Stage1,
    pub own_fp: Fp,
    /// Floating-point registers of the vCPU, if the neighbour has used floating point in its turn.
    pub vcpu_fp: Fp,
}

/// Registers that each turn exchanges.
#[derive(Clone)]
#[repr(C)]
pub struct Registers {
    pub untrapped: Untrapped,
    pub effective: Effective,
    pub changing: Changing,
    pub fixed: Fixed,
    /// VTTBR_EL2.
    pub map: u64,
    /// VDISR_EL2, with FEAT_RAS ([`arch::el1::has_ras`]).
    pub errors: u64,
}

impl Registers {
    /// Returns registers that are all zero.
    pub const fn zero() -> Self {
        Self {
            untrapped: Untrapped::zero(),
            effective: Effective::zero(),
            changing: Changing::zero(),
            fixed: Fixed::zero(),
            map: 0,
            errors: 0,
        }
    }
}

/// Registers that only some turns exchange, as bits of one word, which a switch reads once.
pub mod more {
    /// PMCR_EL0, if there is a PMU.
    pub const PMU: u64 = 1 << 0;
    /// VDISR_EL2, with FEAT_RAS.
    pub const ERRORS: u64 = 1 << 1;
    /// [`arch::el1::Auxiliary`], if it exists.
    pub const AUXILIARY: u64 = 1 << 2;
    /// [`arch::el1::Stage1`]: the neighbour has turned its stage 1 on since it began its program.
    pub const STAGE1: u64 = 1 << 3;
    /// CNTV_CVAL_EL0, if EL2 can't trap the neighbour's accesses to the virtual timer.
    pub const TIMER: u64 = 1 << 4;
    /// Floating point: the neighbour has used it in this turn.
    pub const FP: u64 = 1 << 5;

    /// Registers that are exchanged out of line: see `neighbour::world`.
    pub const RARE: u64 = AUXILIARY | STAGE1 | TIMER;
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
    /// Creates an idle neighbour with `memory` and the stage-2 map of that memory.
    pub const fn new(memory: Region, stage2: (u64, u64)) -> Self {
        Self {
            worlds: Local::new(Worlds {
                own: Registers::zero(),
                vcpu: Registers::zero(),
                vcpu_return: (0, 0),
                vcpu_timer: 0,
                vcpu_timer_end: 0,
                begin: 0,
                vcpu_counting: 0,
                more: 0,
                general: General {
                    x: [0; 31],
                    pc: 0,
                    pstate: 0,
                },
                own_auxiliary: Auxiliary::zero(),
                vcpu_auxiliary: Auxiliary::zero(),
                own_stage1: Stage1::zero(),
                vcpu_stage1: Stage1::zero(),
                own_fp: Fp::zero(),
                vcpu_fp: Fp::zero(),
            }),
            slice: AtomicU64::new(0),
            counts: [const { AtomicU64::new(0) }; Shared::COUNT],
            does: AtomicU64::new(Neighbour::None.encode()),
            yield_on_wfe: AtomicBool::new(false),
            memory,
            stage2,
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
