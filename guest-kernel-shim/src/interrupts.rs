// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets up the interrupts of this kernel, which are three SGIs. A check may enable other interrupts, which are
//! recorded in the CPU's [`Journal`] and passed to the listener. [`crate::dispatch`] handles every interrupt.

use abi::Info;
use arch::gic_cpu;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};
use gic::Redistributor;
use platform::Platform;

use crate::hypervisor;
use crate::journal::Journal;
use crate::percpu::PerCpu;

/// Asks the target to read its request word: a task is ready to run.
pub const RESCHED: u32 = 0;
/// Requests a function call.
pub const CALL: u32 = 1;
/// Requests function calls through [`crate::kernel`].
pub const FUNCTION: u32 = 2;

/// Sets up the interrupt controller of this CPU.
///
/// # Safety
/// The description must be true, and its devices mapped.
pub unsafe fn enable_interrupts(cpu: &PerCpu, platform: &Platform<'_>) {
    // SAFETY: as the caller promises; this CPU is the only one that uses its
    // redistributor.
    let redistributor = unsafe {
        let found = Redistributor::find(&platform.gic, cpu.mpidr);
        let redistributor = found.unwrap_or_else(|error| panic!("{error}"));
        redistributor.set_up();
        redistributor
    };
    cpu.redistributor.call_once(|| {
        redistributor.quieten();
        redistributor
    });
    redistributor.enable_all(1 << RESCHED | 1 << CALL);
    if platform.gic.version2.is_some() {
        let enabled = gic::version2::enable_interface(cpu.mpidr);
        enabled.unwrap_or_else(|error| panic!("{error}"));
    } else {
        gic_cpu::enable(false);
    }
}

/// Returns the SGIs that EL2 and hardware can deliver, for a trial: all but the SGIs of the secure
/// world.
#[must_use]
pub fn usable_sgis() -> u32 {
    match hypervisor::exists() {
        true => 0xffff & !hypervisor::info(Info::SecureSgis) as u32,
        false => 0xffff,
    }
}

/// Returns the number of SGIs, counted from SGI 0, that EL2 and hardware can deliver.
#[must_use]
pub fn usable_sgi_count() -> u32 {
    usable_sgis().trailing_ones()
}

/// Returns the journal of `cpu`.
pub fn journal(cpu: &PerCpu) -> &Journal {
    &cpu.journal
}

/// Returns the redistributor of `cpu`.
pub fn redistributor(cpu: &PerCpu) -> &Redistributor {
    cpu.redistributor
        .get()
        .expect("a CPU sets up its redistributor before it is online")
}

/// A function that receives interrupts expected by no other code.
pub type Listener = fn(&PerCpu, u32);

/// The current listener, or null.
static LISTENER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
/// The listener that the alarm has replaced, or null.
static BEHIND: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Makes every CPU pass unexpected interrupts to `listener` from now on; `None` ends this. Must not
/// be called while there is an alarm.
pub fn set_listener(listener: Option<Listener>) {
    LISTENER.store(listener_pointer(listener), Release);
}

/// Like [`set_listener`] until [`end_first_listener`]; `listener` passes on interrupts that it does not
/// expect through [`call_second`].
pub fn set_first_listener(listener: Listener) {
    let behind = LISTENER.load(Acquire);
    BEHIND.store(behind, Release);
    LISTENER.store(listener_pointer(Some(listener)), Release);
}

/// Undoes [`set_first_listener`]. The second listener stays recorded: another CPU may be in the handler,
/// between the first listener and the second, and must still find the second one.
pub fn end_first_listener() {
    LISTENER.store(BEHIND.load(Acquire), Release);
}

/// Passes `intid`, which `cpu` has taken, to the listener. Without a listener, this costs one load.
#[inline(always)]
pub fn call_listener(cpu: &PerCpu, intid: u32) {
    call_in_slot(&LISTENER, cpu, intid);
}

/// Passes `intid` to the second listener, if there is one.
pub fn call_second(cpu: &PerCpu, intid: u32) {
    call_in_slot(&BEHIND, cpu, intid);
}

fn listener_pointer(listener: Option<Listener>) -> *mut () {
    listener.map_or(ptr::null_mut(), |listener| listener as *mut ())
}

#[inline(always)]
fn call_in_slot(slot: &AtomicPtr<()>, cpu: &PerCpu, intid: u32) {
    let listener = slot.load(Acquire);
    if !listener.is_null() {
        call_pointer(listener, cpu, intid);
    }
}

#[cold]
#[inline(never)]
fn call_pointer(listener: *mut (), cpu: &PerCpu, intid: u32) {
    // SAFETY: the values of the slots come only from `listener_pointer`, which makes them from functions of this type.
    let listener = unsafe { core::mem::transmute::<*mut (), Listener>(listener) };
    listener(cpu, intid);
}
