// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches the CPUs that keep measuring while another CPU is hostile.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Acquire;

use guest_kernel_shim::clock;

/// Number of round trips of the measuring CPUs.
pub static TRIPS: AtomicU32 = AtomicU32::new(0);

/// Waits until the measuring CPUs have made `count` more round trips; returns whether they did
/// within a time limit that suffices on any machine.
pub fn others_go_on(count: u32) -> bool {
    let goal = TRIPS.load(Acquire) + count;
    let end = clock::now() + 60 * clock::frequency();
    while TRIPS.load(Acquire) < goal {
        if clock::now() > end {
            return false;
        }
        arch::insn::yield_now();
    }
    true
}
