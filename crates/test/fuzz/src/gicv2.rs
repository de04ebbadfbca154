// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares a guest's GICv2 ([`vgic::version2`]) with the specification, as [`crate::gic`] does for a GICv3. One side
//! is crate `vgic` on a model of a GICH and GICV, and the other side is a naive model of IHI 0048B.

pub(crate) mod frames;
mod interface;
mod machine;
mod spec;
pub(crate) mod steps;
mod world;

pub use world::{GuestAction, World};
