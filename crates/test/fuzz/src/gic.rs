// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the virtual GIC with the specification. Runs the same operations on a machine, which is crate `vgic` on a
//! model of the hardware's virtual CPU interface, and on a naive model of IHI 0069H, the reference. The guest must see
//! equal values on the machine and the reference, except for the differences that [`World`]'s module lists.

mod interface;
pub(crate) mod machine;
mod spec;
mod world;

pub use spec::{Bits, CPUS};
pub use world::{GuestAction, World};
