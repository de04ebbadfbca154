// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual GICv3 of a guest, as pure logic.
//!
//! A virtual interrupt is in one of three states. If software has made it pending and it can't be
//! delivered yet, it is a bit in [`Private`] (SGIs and PPIs of one vCPU) or [`Distributor`] (SPIs).
//! If it can be delivered, it is in a list register or in the queue for one, both in [`List`].
//! While the guest handles the interrupt, it is active in one of these types. [`List::sync`] moves
//! interrupts between the first two states after a register has changed; the CPU interface does the
//! rest by itself. [`Delivery`] combines these types for one vCPU. [`switch`] hands delivery to the
//! hardware and back.
//!
//! The guest sees a GIC with one security state (GICD_CTLR.DS = 1) and affinity routing always on.
//! There is no Group 0: IGROUPR reads as ones, GICD_CTLR.EnableGrp0 and ICC_IGRPEN0_EL1 as zero. A
//! machine with two security states reserves Group 0 for secure software, so no guest could get a
//! Group 0 interrupt when hardware delivers. A guest that writes no IGROUPR, whose reset value is
//! UNKNOWN (12.9), still gets its interrupts.
//!
//! A guest's GICv2 shows the same state through other registers: [`version2`].
//!
//! Section numbers are those of IHI 0069H, and in [`version2`] those of IHI 0048B.

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
pub mod version2;

pub use audit::Fault;
pub use bits::ones;
pub use delivery::{Delivery, Interface, Maintenance, Shared};
pub use distributor::{Distributor, Vcpu};
pub use list::{List, State};
pub use lr::{Asked, Bank, ListRegister};
pub use private::Private;
pub use redistributor::Redistributor;
pub use trapped::{Due, Registers};

/// Number of SGIs and PPIs: the INTIDs that are private to each vCPU.
pub const PRIVATE: u32 = 32;
/// Number of all INTIDs.
pub const INTIDS: u32 = PRIVATE + distributor::SPIS as u32;

/// Implementer in GICD_IIDR and GICR_IIDR: a value that Arm has not assigned.
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
    /// The value to write; `None` for a read.
    pub write: Option<u64>,
}
