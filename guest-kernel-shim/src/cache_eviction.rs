// SPDX-License-Identifier: MIT OR Apache-2.0
//! Empties the caches of everything that a wake-up uses.

use arch::layout;
use platform::Region;

use crate::percpu::{self, PerCpu};
use crate::{clock, hypervisor, memory};

/// Time for a CPU to get back to its wait after the previous wake-up, in microseconds: the lines
/// that it uses on the way must not return to a cache after the eviction.
const SETTLE_US: u32 = 20;

/// Removes from the caches of all CPUs everything that the first `cpus` CPUs use for a wake-up:
/// code, constants and variables of this image, the CPUs' stacks and states, and the same parts of
/// EL2 if Rouse is there. Before that, gives the CPUs time to begin their waits.
///
/// # Panics
/// Panics if the hypervisor refuses.
pub fn evict_wake_path(cpus: usize) {
    clock::pause(clock::us_to_ticks(SETTLE_US));
    if hypervisor::exists() {
        let vcpus = percpu::online().take(cpus).map(|cpu| cpu.index as u64);
        for what in vcpus.chain([abi::EVICT_IMAGE]) {
            assert!(
                hypervisor::evict(what),
                "hypervisor: nothing to evict at {what}"
            );
        }
    }
    let code = [layout::text(), layout::rodata()].map(Region::from);
    let states = percpu::online().take(cpus).flat_map(PerCpu::memory);
    pages::evict(states.chain(code).chain(memory::data_regions()));
}
