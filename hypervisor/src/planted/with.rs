// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image for tests has `rouse.fault=NAME`, which causes a failure, to show what it looks like and that tests
//! notice it. The image also has `rouse.floor` and the hostile neighbour of trials. The guest can't influence these.

mod asked;
mod audit;
mod broken_rules;
mod failing;
mod firmware;
mod floor;
mod hostile;
mod serrors;

use plan::{Arguments, Error, MachineFault, Names};
use platform::Region;

use crate::boot::entry;
use crate::console::log;

pub use audit::{at_audit, at_look_at_word};
pub use failing::{at_watch, before_guest};
pub use floor::enter_floor;
pub(crate) use floor::vectors;
pub use hostile::hostile_program;
pub use serrors::at_cell;

/// Notes the requests in `arguments`. Faults of firmware are caused at once, while firmware is in
/// charge.
pub fn read_arguments(arguments: &Arguments<'_, Names>) -> Option<Error<'static>> {
    asked::note_fault(arguments.fault);
    floor::allow_vectors(arguments.floor);
    if log::firmware().is_some() {
        firmware::cause_fault();
    }
    None
}

/// Returns the number of list registers, in place of the machine's number.
pub fn list_registers() -> Option<usize> {
    asked::is_asked(MachineFault::OneListRegister).then_some(1)
}

/// Returns the value of the counter at EL2's start, in place of the machine's counter.
pub fn counter_at_start() -> Option<u64> {
    asked::is_asked(MachineFault::CounterStands).then_some(0)
}

/// Returns the address at which a CPU begins when it is turned on: code that holds the CPU and never releases it.
pub fn secondary_entry() -> Option<u64> {
    asked::is_asked(MachineFault::SecondarySilent).then(entry::held_cpu_entry)
}

/// Returns the value of DISR_EL1 before firmware's pending SErrors are deferred.
pub fn disr_at_start() -> Option<u64> {
    asked::is_asked(MachineFault::SerrorLeft).then_some(serrors::DEFERRED)
}

/// Returns firmware's answer to a request to turn the machine off.
pub fn power_off_answer() -> Option<i64> {
    /// PSCI's INTERNAL_FAILURE (DEN0022F.b, 5.2.2).
    const INTERNAL_FAILURE: i64 = -6;
    asked::is_asked(MachineFault::PowerOffFails).then_some(INTERNAL_FAILURE)
}

/// Fills the guest's RAM, which is cleared next, with another guest's data.
pub fn before_scrub(ram: Region) {
    if asked::is_asked(MachineFault::RamDirty) {
        for page in (ram.base..ram.end()).step_by(pages::PAGE as usize) {
            // SAFETY: nothing but the guest uses its RAM, which is mapped.
            unsafe { (page as *mut u64).write(u64::from_ne_bytes(*b"neighbor")) };
        }
    }
}
