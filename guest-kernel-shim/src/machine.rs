// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps the machine's description, for the modules on higher floors.

use pages::PAGE;
use platform::{Platform, Region};
use spin::once::Once;

static PLATFORM: Once<Platform<'static>> = Once::new();

/// Returns the machine.
///
/// # Panics
/// Panics if [`set_platform`] has not been called.
pub fn platform() -> &'static Platform<'static> {
    PLATFORM
        .get()
        .expect("the machine is described before anything asks")
}

/// Sets the machine's description. The function is called once, before any code reads the description.
pub fn set_platform(platform: Platform<'static>) -> &'static Platform<'static> {
    PLATFORM.call_once(|| platform)
}

/// Addresses at which Rouse and QEMU's `virt` have no device or memory; they are mapped so that a check can access them.
pub const HOLE: Region = Region {
    base: 0x0f00_0000,
    size: PAGE,
};
