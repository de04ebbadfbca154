// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the state of one CPU, found through TPIDR_EL1.

use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use aarch64_cpu::registers::{Readable, TPIDR_EL1, Writeable};
use gic::Redistributor;
use pages::{PAGE, Pool};
use platform::Region;
use spin::mutex::SpinMutex;
use spin::once::Once;
use wait::request::Request;

use crate::bell::Bell;
use crate::clock::cycles::PerTick;
use crate::counts::Counts;
use crate::journal::Journal;
use crate::tally::Tally;

/// Bytes of stack per CPU.
const STACK_SIZE: u64 = 0x8000;

/// A cache line of 64 bytes.
#[repr(align(64))]
struct Line;

/// The state of one CPU.
#[repr(C, align(64))]
pub struct PerCpu {
    /// Top of the CPU's stack.
    pub stack_top: u64,
    /// Affinity, as in MPIDR_EL1.
    pub mpidr: u64,
    /// The CPU's position in [`all`].
    pub index: usize,
    /// The CPU reads the cache line of the fields above before its caches are on, so nothing in that
    /// line may change later: a write by another CPU need not be in memory yet (DDI 0487K.a, B2.11).
    _next_line: [Line; 0],
    online: AtomicBool,
    /// Whether the CPU was turned off in the middle of a task, which it has to begin again.
    pub unfinished: AtomicBool,
    /// Set by the interrupt handler, read by a CPU that is busy.
    pub interrupted: AtomicBool,
    time: AtomicU64,
    /// When the last IRQ reached its vector, in ticks, if that is traced.
    pub vector_at: AtomicU64,
    /// Number of function calls that the CPU has served in this block.
    pub served: AtomicU32,
    /// Counts of the CPU's events so far.
    pub tally: Tally,
    /// The CPU's redistributor, once the CPU has set it up.
    pub redistributor: Once<Redistributor>,
    /// Interrupts that a check waits for.
    pub journal: Journal,
    /// The CPU's counts in the last job in which it took part.
    pub counts: SpinMutex<Counts>,
    /// When the CPU's alarm first fired.
    pub bell: Bell,
    /// Requests of other CPUs to leave the idle loop.
    pub request: Request,
    /// Cycles of the CPU's core per tick at the start, once they are measured.
    pub per_tick: Once<PerTick>,
    /// With a GICv2: which CPU sent the last SGI of each INTID; see [`crate::gicv2`].
    pub senders: [AtomicU32; 16],
}

static ALL: Once<&'static [&'static PerCpu]> = Once::new();

/// Bytes of the pool that [`create`] takes for each CPU: its stack, its state, and less than a page
/// for the pointer to its state.
pub const NEEDS: u64 = STACK_SIZE + (size_of::<PerCpu>() as u64).next_multiple_of(PAGE) + PAGE;

/// Allocates the state of every CPU with an affinity in `mpidrs`; the first CPU is the caller.
pub fn create(pool: &mut Pool, mpidrs: impl ExactSizeIterator<Item = u64>) {
    let stacks = pool.take(mpidrs.len() as u64 * STACK_SIZE);
    let build = |(index, mpidr)| PerCpu {
        stack_top: stacks + (index as u64 + 1) * STACK_SIZE,
        mpidr,
        index,
        _next_line: [],
        online: AtomicBool::new(false),
        unfinished: AtomicBool::new(false),
        interrupted: AtomicBool::new(false),
        tally: Tally::new(),
        redistributor: Once::new(),
        journal: Journal::new(),
        counts: SpinMutex::new(Counts::ZERO),
        bell: Bell::new(),
        time: AtomicU64::new(0),
        vector_at: AtomicU64::new(0),
        served: AtomicU32::new(0),
        request: Request::new(),
        per_tick: Once::new(),
        senders: [const { AtomicU32::new(0) }; 16],
    };
    let cpus: &'static [PerCpu] = pool.fill(mpidrs.enumerate().map(build));
    let first = ALL.call_once(|| pool.fill(cpus.iter()))[0];
    TPIDR_EL1.set(core::ptr::from_ref(first) as u64);
}

/// Returns every CPU that was described.
///
/// # Panics
/// Panics if [`create`] has not been called.
pub fn all() -> &'static [&'static PerCpu] {
    ALL.get()
        .copied()
        .expect("CPUs are created before they are used")
}

/// Returns every CPU that runs.
pub fn online() -> impl Iterator<Item = &'static PerCpu> + Clone {
    all().iter().copied().filter(|cpu| cpu.is_online())
}

impl PerCpu {
    /// Returns the state of the running CPU.
    #[inline(always)]
    pub fn this() -> &'static Self {
        // SAFETY: TPIDR_EL1 holds the address of this CPU's `PerCpu` before interrupts are enabled
        // and before any other code calls this (`create` and `el1_secondary` see to this), and that
        // memory is never given back.
        unsafe { &*(TPIDR_EL1.get() as *const Self) }
    }

    /// Returns the CPU's stack and its state.
    pub fn memory(&'static self) -> [Region; 2] {
        let stack = Region {
            base: self.stack_top - STACK_SIZE,
            size: STACK_SIZE,
        };
        let state = Region {
            base: core::ptr::from_ref(self) as u64,
            size: size_of::<Self>() as u64,
        };
        [stack, state]
    }

    /// Notes that the CPU runs.
    pub fn set_online(&self) {
        self.online.store(true, Release);
    }

    /// Notes a reading of the clock, which [`Self::noted_time`] returns.
    pub fn note_time(&self, ticks: u64) {
        self.time.store(ticks, Release);
    }

    /// Returns the CPU's last noted reading of the clock.
    pub fn noted_time(&self) -> u64 {
        self.time.load(Acquire)
    }

    /// Notes that the CPU is about to be turned off.
    pub fn set_offline(&self) {
        self.online.store(false, Release);
    }

    /// Whether the CPU runs.
    pub fn is_online(&self) -> bool {
        self.online.load(Acquire)
    }
}
