// SPDX-License-Identifier: MIT OR Apache-2.0
//! A vCPU; each physical CPU has one, pinned to it. The vCPU's EL1 state stays in the EL1 registers, so only the state
//! that EL2 emulates is kept here.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use abi::Counter;
use vgic::Private;
use vgic::switch::Switch;

use crate::cpu::counters::Counters;
use crate::cpu::fast_state::{FastPaths, Waits};
use crate::cpu::halt::Halt;
use crate::cpu::local::{CacheLine, Local};
use crate::cpu::ring::Ring;

/// Number of vCPUs that are on or about to be on. Only a vCPU that is on turns another one on, so
/// once the number is 0, it stays 0.
static ON: AtomicU32 = AtomicU32::new(0);

/// Counts another vCPU as on, before it can run, and so before it can turn itself off. The caller's vCPU is on
/// meanwhile, so the count can't have reached zero before this.
#[inline(always)]
pub fn count_as_on() {
    ON.fetch_add(1, Relaxed);
}

/// Power states of a vCPU.
pub mod power {
    pub const OFF: u32 = 0;
    /// Another CPU is turning the vCPU on, and is writing its entry and context.
    pub const CLAIMED: u32 = 1;
    pub const ON_PENDING: u32 = 2;
    pub const ON: u32 = 3;
}

/// Why a vCPU was not turned on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOff {
    /// The vCPU runs.
    On,
    /// The vCPU is about to run.
    Pending,
}

/// One vCPU. State accessed only by its own CPU comes first, beginning with the state that every
/// exit uses. State that other CPUs write follows on separate cache lines, so that these writes do
/// not take away a line that this CPU is about to use.
#[repr(C, align(64))]
pub struct Vcpu {
    /// State of the fast paths in assembly.
    pub fast_paths: FastPaths,
    /// Counts of exits and events.
    pub counters: Counters,
    /// The vCPU's list registers, and the interrupts that wait for one.
    pub list: Local<vgic::List>,
    /// Further state that the fast path of a trapped WFI reads.
    pub waits: Waits,
    /// How EL2 waits in a trapped WFI of the vCPU.
    pub halt: Local<Halt>,
    /// The vCPU's last events, if they are traced.
    pub trace: Ring,
    /// Number of accesses to addresses at which there is no device.
    pub refused: AtomicU64,
    /// Who delivers the vCPU's interrupts (see `interrupts::deliver`), and the virtual interrupts and requests that
    /// other CPUs have left here (see [`crate::cpu::pending_word`]).
    pub switch: CacheLine<Switch>,
    /// The registers of the vCPU's redistributor.
    pub private: Private,
    /// Whether a timer is checked again when the guest acknowledges its interrupt; see
    /// [`crate::cpu::traps::set_recheck_timers`].
    pub recheck_timers: AtomicBool,
    pub power: AtomicU32,
    pub entry: AtomicU64,
    /// Must follow the entry: an image for tests stores both at once.
    pub context: AtomicU64,
}

// The measured exits find the fields that they need on a vCPU's first lines, and the fields that
// other CPUs write begin on another line.
const _: () = assert!(offset_of!(Vcpu, list) <= 4 * 64);
const _: () = assert!(offset_of!(Vcpu, switch).is_multiple_of(64));
const _: () = assert!(align_of::<Vcpu>() == 64);

impl Vcpu {
    /// Creates a vCPU that is off.
    pub fn new() -> Self {
        Self {
            fast_paths: FastPaths::new(),
            counters: Counters::new(),
            list: Local::new(vgic::List::new()),
            waits: Waits::new(),
            halt: Local::new(Halt::new()),
            trace: Ring::new(),
            refused: AtomicU64::new(0),
            switch: CacheLine(Switch::new()),
            private: Private::new(),
            recheck_timers: AtomicBool::new(true),
            power: AtomicU32::new(power::OFF),
            entry: AtomicU64::new(0),
            context: AtomicU64::new(0),
        }
    }

    /// Returns the count of `counter`, which assembly or Rust code increments.
    pub fn count(&self, counter: Counter) -> u64 {
        // Each exit in `interrupts` listed an interrupt. An interrupt that ended a wait is not an
        // exit, and is counted with the other listed interrupts.
        let [interrupts, waited, halted] = [
            &self.fast_paths.interrupts,
            &self.fast_paths.waited,
            &self.waits.halted,
        ]
        .map(|count| count.load(Relaxed));
        let fast = match counter {
            Counter::Irq => interrupts,
            Counter::Wfi | Counter::Halt => waited + halted,
            Counter::Listed => interrupts + waited,
            _ => 0,
        };
        let slow = match counter {
            Counter::SlowHalt => Counter::Halt,
            counter => counter,
        };
        self.counters.get(slow) + fast
    }

    /// Turns the vCPU on at `entry` with x0 = `context`.
    pub fn turn_on(&self, entry: u64, context: u64) -> Result<(), NotOff> {
        let claim = self
            .power
            .compare_exchange(power::OFF, power::CLAIMED, AcqRel, Acquire);
        match claim {
            Ok(_) => {
                count_as_on();
                self.entry.store(entry, Relaxed);
                self.context.store(context, Relaxed);
                self.power.store(power::ON_PENDING, Release);
                Ok(())
            }
            Err(power::ON) => Err(NotOff::On),
            Err(_) => Err(NotOff::Pending),
        }
    }

    /// Whether the vCPU is on; `None` while it is being turned on.
    pub fn is_on(&self) -> Option<bool> {
        match self.power.load(Acquire) {
            power::OFF => Some(false),
            power::ON => Some(true),
            _ => None,
        }
    }

    /// Counts the vCPU as off, and returns whether it was the last vCPU that was on. The vCPU's own CPU must call
    /// this, before [`Self::set_off`].
    pub fn count_as_off(&self) -> bool {
        ON.fetch_sub(1, AcqRel) == 1
    }

    /// Marks the vCPU as off: from here on, another vCPU may turn it on.
    pub fn set_off(&self) {
        self.power.store(power::OFF, Release);
    }

    /// Whether the vCPU was turned on but does not run yet.
    pub fn is_turned_on(&self) -> bool {
        self.power.load(Acquire) == power::ON_PENDING
    }

    /// Returns the address at which the vCPU begins.
    pub fn entry(&self) -> u64 {
        self.entry.load(Relaxed)
    }

    /// Returns the value of x0 with which the vCPU begins.
    pub fn context(&self) -> u64 {
        self.context.load(Relaxed)
    }

    /// Marks the vCPU as running.
    pub fn set_on(&self) {
        self.power.store(power::ON, Release);
    }
}
