// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine, as its description says: what everything above asks.

use pages::PAGE;
use platform::{Platform, Region};
use spin::once::Once;

static PLATFORM: Once<Platform<'static>> = Once::new();

/// The machine.
///
/// # Panics
/// Panics before [`describe`].
pub fn platform() -> &'static Platform<'static> {
    PLATFORM
        .get()
        .expect("the machine is described before anything asks")
}

/// Says what the machine is: once, before anything asks.
pub fn describe(platform: Platform<'static>) -> &'static Platform<'static> {
    PLATFORM.call_once(|| platform)
}

/// Addresses where neither Rouse nor QEMU's `virt` has anything, mapped for the
/// check that says so.
pub const HOLE: Region = Region {
    base: 0x0f00_0000,
    size: PAGE,
};
