// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places where an image for tests acts on boot arguments, mostly by making a fault.
//!
//! An image for measurements does nothing in any of them (`without`): they are empty, and compile to nothing. The
//! functions of an image for tests (`with`) come with Cargo's feature `planted`. `cargo xtask` builds that image if
//! a boot needs it ([`plan::Arguments::planted`]), and `cargo xtask cost` checks that both execute the same
//! instructions on each path.
//!
//! Every floor may call these, so they call no other floor; in an image for tests, they call every
//! floor.

#[cfg(feature = "planted")]
mod with;
#[cfg(not(feature = "planted"))]
mod without;

#[cfg(feature = "planted")]
pub use with::*;
#[cfg(not(feature = "planted"))]
pub use without::*;
