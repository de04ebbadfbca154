// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual GICv3 of a guest, as pure logic.
//!
//! A virtual interrupt is in one of three places. Software has made it pending
//! and it can't be delivered yet: a bit in [`Private`] (SGIs and PPIs of one
//! vCPU) or [`Distributor`] (SPIs). It can be delivered: in a list register, or
//! in the queue for them, both in [`List`]. The guest handles it: active, in either.
//! [`List::sync`] moves interrupts between the first two when
//! a register changed; the CPU interface does the rest by itself. [`Delivery`] puts the
//! parts together, on any CPU. [`switch`] has hardware deliver in its place, and back.
//!
//! The guest sees a GIC with one security state (GICD_CTLR.DS = 1) and
//! affinity routing always on. There is no Group 0: IGROUPR reads as ones, GICD_CTLR.EnableGrp0
//! and ICC_IGRPEN0_EL1 as zero. A machine with two security states has it for secure software
//! alone, so where hardware delivers, no guest could get one of its interrupts. A guest that
//! writes no IGROUPR, whose reset value is UNKNOWN (12.9), gets its interrupts nevertheless.
//!
//! Numbers of sections are those of IHI 0069H.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod audit;
mod bits;
mod delivery;
mod distributor;
mod list;
mod lr;
mod lr_cache;
mod private;
mod redistributor;
mod requests;
mod spi;
pub mod switch;
mod sync;
mod trapped;

pub use audit::Fault;
pub use bits::ones;
pub use delivery::{Delivery, Interface, Maintenance, Shared};
pub use distributor::{Distributor, Vcpu};
pub use list::{List, State};
pub use lr::{Asked, Bank, ListRegister};
pub use private::Private;
pub use redistributor::Redistributor;
pub use trapped::{Due, Registers};

/// SGIs and PPIs: the INTIDs that each vCPU has of its own.
pub const PRIVATE: u32 = 32;
/// All INTIDs that there are.
pub const INTIDS: u32 = PRIVATE + distributor::SPIS as u32;

/// Implementer of GICD_IIDR and GICR_IIDR: not one that Arm has assigned.
const IIDR: u64 = 0;
/// GICD_PIDR2 and GICR_PIDR2: GICv3.
const PIDR2: u64 = 0x3b;
/// Offset of PIDR2 in either frame.
const PIDR2_OFFSET: u64 = 0xffe8;

/// A guest's access to a device register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Bytes from the start of the device's frames.
    pub offset: u64,
    /// Bytes: 1, 2, 4 or 8.
    pub size: u32,
    /// The value to write; `None` reads.
    pub write: Option<u64>,
}
