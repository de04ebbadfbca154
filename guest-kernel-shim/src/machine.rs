// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine's description, for the modules above.

use pages::PAGE;
use platform::{Platform, Region};
use spin::once::Once;

static PLATFORM: Once<Platform<'static>> = Once::new();

/// Returns the machine.
///
/// # Panics
/// Panics before [`describe`].
pub fn platform() -> &'static Platform<'static> {
    PLATFORM
        .get()
        .expect("the machine is described before anything asks")
}

/// Sets the machine's description: once, before anything reads it.
pub fn describe(platform: Platform<'static>) -> &'static Platform<'static> {
    PLATFORM.call_once(|| platform)
}

/// Addresses where neither Rouse nor QEMU's `virt` has anything, mapped for the check of this.
pub const HOLE: Region = Region {
    base: 0x0f00_0000,
    size: PAGE,
};
