// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the functions in which an image for tests causes a fault that the boot arguments ask for; a reader of the
//! results has to notice the fault.
//!
//! In an image for measurements, the functions do nothing (`without`): they are empty, and compile to nothing.
//! The functions of an image for tests (`with`) come with Cargo's feature `planted`. `cargo xtask` builds an
//! image for tests if a boot needs it ([`plan::Arguments::planted`]). The trials have their own faults.

#[cfg(feature = "planted")]
mod with;
#[cfg(not(feature = "planted"))]
mod without;

#[cfg(feature = "planted")]
pub use with::*;
#[cfg(not(feature = "planted"))]
pub use without::*;
