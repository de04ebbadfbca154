// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the other CPUs: where they wait, and how they are released.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use aarch64_cpu::registers::{MPIDR_EL1, Readable};
use arch::insn;

use crate::entry::{self, CPUS};
use crate::{boot_data, el3, enter_image};

/// Return values of PSCI.
const INVALID: i64 = -2;
const ALREADY_ON: i64 = -4;

/// The slot of one CPU; `entry` is 0 while the CPU waits, 1 while it runs, or the address at which it has to start.
struct Slot {
    entry: AtomicU64,
    context: AtomicU64,
}

const OFF: u64 = 0;
const ON: u64 = 1;

static SLOTS: [Slot; CPUS] = [const {
    Slot {
        entry: AtomicU64::new(OFF),
        context: AtomicU64::new(0),
    }
}; CPUS];

/// The words of spin tables.
pub static RELEASE: [AtomicU64; CPUS] = [const { AtomicU64::new(0) }; CPUS];

/// Returns the address of the spin tables' words.
pub fn spin_table_base() -> u64 {
    RELEASE.as_ptr() as u64
}

/// Holds CPU `number`, which is not the first one, until it is released.
pub extern "C" fn pen(number: u64) -> ! {
    let number = number as usize;
    let machine = boot_data();
    let mpidr = MPIDR_EL1.get() & platform::AFFINITY;
    let frame = crate::devices::redistributor_frame(&machine.platform.gic, mpidr);
    if el3::is_el3() {
        el3::set_up_cpu(frame, machine.words);
    }
    let (slot, release) = (&SLOTS[number], &RELEASE[number]);
    loop {
        let entry = slot.entry.load(Acquire);
        if entry > ON {
            slot.entry.store(ON, Relaxed);
            enter_image(entry, slot.context.load(Relaxed))
        }
        let entry = release.load(Acquire);
        if machine.words.spin_table && entry != 0 {
            enter_image(entry, 0)
        }
        insn::wfe();
    }
}

/// Serves CPU_ON; this firmware itself uses it too.
pub fn turn_on(mpidr: u64, entry: u64, context: u64) -> i64 {
    let cpus = boot_data().platform.cpus.iter();
    let known = cpus.clone().any(|cpu| cpu.mpidr == mpidr);
    let Some(slot) = SLOTS.get(mpidr as usize).filter(|_| known) else {
        return INVALID;
    };
    if slot.entry.load(Acquire) != OFF {
        return ALREADY_ON;
    }
    slot.context.store(context, Relaxed);
    slot.entry.store(entry, Release);
    insn::dsb_sy();
    insn::sev();
    0
}

/// Serves CPU_OFF.
pub fn turn_off() -> ! {
    let number = MPIDR_EL1.get() & 0xff;
    SLOTS[number as usize].entry.store(OFF, Release);
    // SAFETY: nothing on this stack is needed again.
    unsafe { entry::firmware_wait(number) }
}

/// Serves AFFINITY_INFO: returns whether a CPU is off; `None` if there is no such CPU.
pub fn is_off(mpidr: u64) -> Option<bool> {
    let slot = SLOTS.get(mpidr as usize)?;
    Some(slot.entry.load(Acquire) == OFF)
}

/// Marks this CPU as running. This is the first CPU, which does not wait.
pub fn note_first_cpu() {
    let number = MPIDR_EL1.get() & 0xff;
    SLOTS[number as usize].entry.store(ON, Relaxed);
}
