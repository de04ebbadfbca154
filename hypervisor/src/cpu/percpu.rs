// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of one physical CPU, found through TPIDR_EL2.
//!
//! Each CPU has a [`Slot`] of its own. The slot holds the CPU's stacks, each above a guard page
//! that is not mapped, and its [`PerCpu`], on separate cache lines.

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use aarch64_cpu::registers::{Readable, TPIDR_EL2, Writeable};
use gic::{Doorbell, Redistributor};
use pages::PAGE;
use platform::Region;
use spin::once::Once;

use crate::cpu::gicv2::Version2;
use crate::cpu::tenant::Tenant;
use crate::cpu::vcpu::Vcpu;

arch::symbol_addresses! {
    /// The page below the boot stack; `boot::entry` defines it.
    boot_guard = el2_boot_guard;
}

/// Returns the page below the boot stack, which is not mapped.
pub fn boot_stack_guard() -> Region {
    Region {
        base: boot_guard(),
        size: PAGE,
    }
}

/// Bytes of EL2 stack per CPU.
pub const STACK_SIZE: usize = 0x4000;
/// Bytes of the stack for reports of EL2's own failures, such as a stack overflow.
const REPORT_STACK_SIZE: usize = 0x3000;

/// One physical CPU and the vCPU that is pinned to it.
#[repr(C, align(64))]
pub struct PerCpu {
    /// Top of the CPU's EL2 stack.
    pub stack_top: u64,
    /// Top of the stack on which the CPU reports failures of EL2.
    pub report_stack_top: u64,
    /// Affinity, as in MPIDR_EL1.
    pub mpidr: u64,
    /// The CPU's redistributor, once the CPU has set it up.
    pub redistributor: Once<Redistributor>,
    /// Whether the CPU has arrived in the hypervisor.
    pub online: AtomicBool,
    /// Whether the CPU has printed its state, because another CPU requested it or because the guest's memory was
    /// unmapped.
    pub shown: AtomicBool,
    /// When the CPU next checks for failures, in ticks of the physical count; see `dumps::own_timer`.
    pub look: AtomicU64,
    pub vcpu: Vcpu,
    /// The SError that EL2 has allowed to interrupt it; see `dumps::serror`.
    pub serror: AtomicU64,
    /// When the vCPU's slice is over, in ticks of the physical count; see `neighbour::turn`.
    pub slice_end: AtomicU64,
    /// The neighbour; null if no memory was set aside for it.
    tenant: AtomicPtr<Tenant>,
    /// Makes the CPU read its pending word; see `interrupts::kick`.
    pub doorbell: Doorbell,
    /// The state that a CPU with a GICv2 needs.
    pub version2: Version2,
}

/// A page that is not mapped.
type Guard = [u8; 4096];

/// Memory of one CPU.
#[repr(C, align(4096))]
pub struct Slot {
    /// Left out of the page tables, so that a stack overflow faults.
    report_guard: Guard,
    report_stack: [u8; REPORT_STACK_SIZE],
    /// A second guard page, also left out of the page tables.
    guard: Guard,
    stack: [u8; STACK_SIZE],
    per_cpu: PerCpu,
}

impl Slot {
    /// Initialises the slot at `place` for the CPU `mpidr` and returns the CPU's state.
    ///
    /// # Safety
    /// `place` must be memory that has a [`Slot`]'s size and alignment and that nothing else ever
    /// uses.
    pub unsafe fn init(place: *mut Self, mpidr: u64) -> &'static PerCpu {
        // SAFETY: the caller gives the memory away; only the CPU itself accesses guard and
        // stack.
        unsafe {
            let per_cpu = &raw mut (*place).per_cpu;
            per_cpu.write(PerCpu {
                stack_top: per_cpu as u64 & !15,
                report_stack_top: &raw const (*place).guard as u64,
                mpidr,
                redistributor: Once::new(),
                online: AtomicBool::new(false),
                shown: AtomicBool::new(false),
                look: AtomicU64::new(u64::MAX),
                vcpu: Vcpu::new(),
                serror: AtomicU64::new(0),
                slice_end: AtomicU64::new(u64::MAX),
                tenant: AtomicPtr::new(core::ptr::null_mut()),
                doorbell: Doorbell::default(),
                version2: Version2::default(),
            });
            &*per_cpu
        }
    }
}

impl PerCpu {
    /// Returns the state of the running CPU.
    #[inline(always)]
    pub fn this() -> &'static Self {
        // SAFETY: TPIDR_EL2 holds the address of this CPU's `PerCpu` before the first Rust code that can
        // call this runs (`start` and `_el2_secondary` see to this), and that memory is never given
        // back.
        unsafe { &*(TPIDR_EL2.get() as *const Self) }
    }

    /// Makes this the state of the running CPU.
    pub fn make_current(&'static self) {
        TPIDR_EL2.set(core::ptr::from_ref(self) as u64);
    }

    /// Returns the guard pages below the CPU's stacks.
    pub fn guard_pages(&self) -> [Region; 2] {
        let slot = core::ptr::from_ref(self) as usize - offset_of!(Slot, per_cpu);
        let guards = [offset_of!(Slot, report_guard), offset_of!(Slot, guard)];
        guards.map(|offset| Region {
            base: (slot + offset) as u64,
            size: size_of::<Guard>() as u64,
        })
    }

    /// Returns the CPU's stack and its state, which are mapped and adjacent.
    pub fn memory(&self) -> Region {
        let slot = core::ptr::from_ref(self) as usize - offset_of!(Slot, per_cpu);
        let stack = offset_of!(Slot, stack);
        Region {
            base: (slot + stack) as u64,
            size: (size_of::<Slot>() - stack) as u64,
        }
    }

    /// Whether an access to `address` faults because a stack of this CPU has overflowed.
    pub fn is_guard(&self, address: u64) -> bool {
        let boot = boot_stack_guard();
        self.guard_pages()
            .iter()
            .chain([&boot])
            .any(|guard| guard.contains(address))
    }

    /// Returns the CPU's redistributor.
    ///
    /// # Panics
    /// Panics if the CPU has not set it up yet.
    pub fn redistributor(&self) -> &Redistributor {
        self.redistributor
            .get()
            .expect("the CPU sets up its redistributor before it reports in")
    }

    /// Returns the state of the CPU's neighbour, if memory was set aside for one.
    #[inline]
    pub fn tenant(&self) -> Option<&'static Tenant> {
        // SAFETY: the pointer is null or comes from `set_tenant`, whose argument lives for ever.
        unsafe { self.tenant.load(Ordering::Relaxed).as_ref() }
    }

    /// Returns the state of the CPU's neighbour, if that neighbour has work.
    #[inline]
    pub fn neighbour(&self) -> Option<&'static Tenant> {
        self.tenant().filter(|tenant| tenant.has_work())
    }

    /// Gives the CPU the state of a neighbour, before the CPU is started.
    pub fn set_tenant(&self, tenant: &'static Tenant) {
        let tenant = core::ptr::from_ref(tenant).cast_mut();
        self.tenant.store(tenant, Ordering::Relaxed);
    }

    /// Records that the CPU has arrived.
    pub fn set_online(&self) {
        self.online.store(true, Ordering::Release);
    }

    /// Whether the CPU has arrived.
    pub fn is_online(&self) -> bool {
        self.online.load(Ordering::Acquire)
    }
}
