// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the counts of this CPU's exits to the hypervisor or the VMM, by cause, if these counts are reported: by Rouse
//! through a call, by a VMM under KVM through a page of registers ([`abi::monitor`]).

use abi::Counter;
use abi::monitor::REGISTERS;
use platform::Region;
use spin::once::Once;

use crate::hypervisor;

/// The page of the monitor's registers.
static PAGE: Once<Region> = Once::new();

/// Uses the monitor at `page` from now on.
///
/// # Safety
/// The address must be that of the page of [`abi::monitor`], mapped as a device.
pub unsafe fn use_monitor(page: Region) {
    PAGE.call_once(|| page);
}

/// Whether the hypervisor or the VMM counts `counter`.
pub fn is_counted(counter: Counter) -> bool {
    hypervisor::exists() || (PAGE.is_completed() && REGISTERS.contains(&counter))
}

/// Returns the exits of this CPU so far; 0 for a counter that is not reported.
pub fn read_counts() -> [u64; Counter::COUNT] {
    if hypervisor::exists() {
        return hypervisor::read_counters();
    }
    let mut all = [0; Counter::COUNT];
    let Some(page) = PAGE.get() else { return all };
    for (n, counter) in REGISTERS.into_iter().enumerate() {
        let register = page.base + 8 * n as u64;
        // SAFETY: by the contract of `use_monitor`, the page has this many registers. Reading them
        // has no effect other than returning values of this CPU.
        all[counter as usize] = unsafe { gic::mmio::load_64(register) };
    }
    all
}
