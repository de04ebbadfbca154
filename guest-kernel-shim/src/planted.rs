// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places where an image for tests does something that boot arguments ask for: a fault that whoever reads the results has to
//! notice.
//!
//! An image for measurements does nothing in any of them (`without`): they are empty, and compile to nothing. The
//! other one's (`with`) come with Cargo's feature `planted`. `cargo xtask` builds that one where a boot asks for
//! something of it ([`plan::Arguments::planted`]). The faults of the trials are theirs.

#[cfg(feature = "planted")]
mod with;
#[cfg(not(feature = "planted"))]
mod without;

#[cfg(feature = "planted")]
pub use with::*;
#[cfg(not(feature = "planted"))]
pub use without::*;
