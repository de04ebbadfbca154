// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places where an image for tests makes a fault that boot arguments ask for, which a reader of the results has to
//! notice.
//!
//! An image for measurements does nothing in any of them (`without`): they are empty, and compile to nothing. The
//! functions of an image for tests (`with`) come with Cargo's feature `planted`. `cargo xtask` builds that image
//! if a boot needs it ([`plan::Arguments::planted`]). The trials have faults of their own.

#[cfg(feature = "planted")]
mod with;
#[cfg(not(feature = "planted"))]
mod without;

#[cfg(feature = "planted")]
pub use with::*;
#[cfg(not(feature = "planted"))]
pub use without::*;
