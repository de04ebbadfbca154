// SPDX-License-Identifier: MIT OR Apache-2.0
//! What belongs to one physical CPU, found through TPIDR_EL2.
//!
//! Each CPU has a [`Slot`] of its own: a guard page that is not mapped, the
//! stack that grows towards it, and the [`PerCpu`] on cache lines of its own.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, Ordering};

use aarch64_cpu::registers::{Readable, TPIDR_EL2, Writeable};
use platform::Region;

/// Bytes of EL2 stack per CPU.
pub const STACK_SIZE: usize = 0x4000;

/// State of one physical CPU and of the vCPU on it.
#[repr(C, align(64))]
pub struct PerCpu {
    /// Top of its EL2 stack.
    pub stack_top: u64,
    /// Position in [`crate::start::machine`]'s list of CPUs.
    pub index: usize,
    /// Affinity.
    pub mpidr: u64,
    /// Whether it has arrived in the hypervisor.
    pub online: AtomicBool,
}

/// Memory of one CPU.
#[repr(C, align(4096))]
pub struct Slot {
    /// Left out of the page tables: running over the stack faults.
    guard: [u8; 4096],
    stack: [u8; STACK_SIZE],
    per_cpu: PerCpu,
}

impl Slot {
    /// Initialises the slot at `place` for CPU `index` and returns its state.
    ///
    /// # Safety
    /// `place` must be zeroed memory of a [`Slot`]'s size and alignment that
    /// nothing else uses, ever.
    pub unsafe fn init(place: *mut Self, index: usize, mpidr: u64) -> &'static PerCpu {
        // SAFETY: the caller gives the memory away; all zeroes is a valid Slot.
        let slot = unsafe { &mut *place };
        slot.per_cpu.stack_top = (&raw const slot.per_cpu) as u64 & !15;
        slot.per_cpu.index = index;
        slot.per_cpu.mpidr = mpidr;
        &slot.per_cpu
    }
}

impl PerCpu {
    /// This CPU's state.
    #[inline(always)]
    pub fn this() -> &'static Self {
        // SAFETY: TPIDR_EL2 holds the address of this CPU's `PerCpu` from
        // before the first Rust code that can get here (`start`, and
        // `_el2_secondary`), and the memory is never given back.
        unsafe { &*(TPIDR_EL2.get() as *const Self) }
    }

    /// Makes this the state of the CPU that calls.
    pub fn install(&'static self) {
        TPIDR_EL2.set(core::ptr::from_ref(self) as u64);
    }

    /// The guard page below its stack.
    pub fn guard(&self) -> Region {
        let per_cpu = core::ptr::from_ref(self) as usize;
        let slot = per_cpu - offset_of!(Slot, per_cpu);
        Region {
            base: slot as u64,
            size: size_of::<[u8; 4096]>() as u64,
        }
    }

    /// Notes that the CPU has arrived.
    pub fn set_online(&self) {
        self.online.store(true, Ordering::Release);
    }

    /// Whether the CPU has arrived.
    pub fn is_online(&self) -> bool {
        self.online.load(Ordering::Acquire)
    }
}
