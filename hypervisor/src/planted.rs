// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the functions in which an image for tests acts on boot arguments, mostly by causing a fault.
//!
//! In an image for measurements, the functions are empty (`without`) and compile to nothing. The
//! functions of an image for tests (`with`) come with Cargo's feature `planted`. `cargo xtask`
//! builds an image for tests if a boot needs it ([`plan::Arguments::planted`]), and `cargo xtask
//! cost` checks that the two images execute the same instructions on each path.
//!
//! Every floor may call these functions, so in an image for measurements they call no floor. In an
//! image for tests, they may call every floor.

#[cfg(feature = "planted")]
mod with;
#[cfg(not(feature = "planted"))]
mod without;

#[cfg(feature = "planted")]
pub use with::*;
#[cfg(not(feature = "planted"))]
pub use without::*;
