// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory-mapped parts of a physical GICv3, which are the distributor and the redistributors
//! (the CPU interface has system registers: `arch::gic_cpu`), and all of a GICv2: [`version2`].
//!
//! Redistributors of real machines are neither contiguous nor ordered: see [`locate`].

#![cfg_attr(not(test), no_std)]

pub mod gich;
pub mod locate;
pub mod mmio;
mod redistributor;
mod spi;
pub mod version2;

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use platform::Gic;

pub use redistributor::Redistributor;
pub use spi::{Spi, enabled_spis};

/// Offsets of GICD_TYPER2 and GICD_PIDR2 (IHI 0069H, 12.9).
const GICD_TYPER2: u64 = 0xc;
const GICD_PIDR2: u64 = 0xffe8;
/// GICD_CTLR.DS: there is one security state.
const GICD_CTLR_DS: u32 = 1 << 6;
/// Number of reads before giving up on an expected value: more than any implementation needs.
const PATIENCE: u32 = 1_000_000;
/// The reason why the GIC could not be set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// No redistributor frame carries the CPU's affinity.
    NoRedistributor {
        /// Affinity that was searched for.
        mpidr: u64,
    },
    /// An address in the machine description is zero.
    NullAddress,
    /// In a GICv2, the CPU interfaces of a cluster are not numbered like its CPUs.
    CpuInterface {
        /// Affinity of the CPU.
        mpidr: u64,
        /// Number of its CPU interface.
        number: u8,
    },
    /// In a GICv2, GICD_ITARGETSR0 names one CPU interface for two CPUs.
    SharedInterface {
        /// Affinity of the second CPU.
        mpidr: u64,
        /// Number of the CPU interface.
        number: u8,
    },
    /// There is only one list register. While it is full, a request for a free one would interrupt the guest for ever:
    /// the underflow condition holds with one register in use (IHI 0069H, 12.4, ICH_HCR_EL2.UIE).
    OneListRegister,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRedistributor { mpidr } => {
                write!(f, "GIC: no redistributor has affinity {mpidr:#x}")
            }
            Self::NullAddress => write!(f, "GIC: the description gives address 0"),
            Self::CpuInterface { mpidr, number } => write!(
                f,
                "GIC: CPU {mpidr:#x} has CPU interface {number}, which does not follow from its affinity"
            ),
            Self::SharedInterface { mpidr, number } => write!(
                f,
                "GIC: GICD_ITARGETSR gives CPU {mpidr:#x} the CPU interface {number} of another CPU; Rouse needs one for each"
            ),
            Self::OneListRegister => f.write_str(
                "GIC: there is one list register, and Rouse needs two at EL2; its guest runs there alone (--under none)"
            ),
        }
    }
}

/// Enables the distributor with affinity routing and Group 1. Regardless of firmware's settings,
/// every SPI is disabled, neither pending nor active, level-triggered and in Group 1.
///
/// # Errors
/// Returns [`Error::NullAddress`] if the distributor's address is zero.
///
/// # Safety
/// The description must be true and mapped as device memory, and no other
/// code may use the distributor during the call.
pub unsafe fn enable_distributor(gic: &Gic<'_>) -> Result<(), Error> {
    if gic.distributor.base == 0 {
        return Err(Error::NullAddress);
    }
    if let Some(version2) = &gic.version2 {
        // SAFETY: the caller promises what this needs.
        unsafe { version2::enable_distributor(gic.distributor.base, version2) };
        return Ok(());
    }
    // SAFETY: the caller promises what this needs.
    unsafe { spi::enable_distributor(gic) };
    Ok(())
}

/// Identification registers of the distributor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// GICD_TYPER2: bit 8 (nASSGIcap, GICv4.1) shows that SGIs can be delivered without the
    /// hypervisor.
    pub typer2: u32,
    /// GICD_PIDR2: bits 7:4 are the version of the architecture.
    pub pidr2: u32,
}

/// Reads the distributor's identification.
///
/// # Safety
/// The description must be true and mapped as device memory.
#[must_use]
pub unsafe fn identify(gic: &Gic<'_>) -> Identity {
    // SAFETY: the caller vouches for the frame; reading these registers changes nothing.
    let read = |offset| unsafe { mmio::load_32(gic.distributor.base + offset) };
    if gic.version2.is_some() {
        return Identity {
            typer2: 0,
            pidr2: read(version2::GICD_PIDR2),
        };
    }
    Identity {
        typer2: read(GICD_TYPER2),
        pidr2: read(GICD_PIDR2),
    }
}

/// Whether there are two security states. If so, Non-secure software sees shifted priorities (IHI
/// 0069H, 4.8.1). A GICv2 also shifts the mask (IHI 0048B, 4.4.2), so this returns false there.
///
/// # Safety
/// See [`identify`].
#[must_use]
pub unsafe fn has_two_states(gic: &Gic<'_>) -> bool {
    if gic.version2.is_some() {
        return false;
    }
    // SAFETY: the caller promises what this needs; GICD_CTLR is the first register.
    let control = unsafe { mmio::load_32(gic.distributor.base) };
    control & GICD_CTLR_DS == 0
}

/// The store that makes a CPU's doorbell pending, from any CPU.
#[derive(Debug, Default)]
pub struct Doorbell {
    address: AtomicU64,
    value: AtomicU32,
}

impl Doorbell {
    /// Makes PPI `intid` of `redistributor` the doorbell.
    pub fn set(&self, redistributor: &Redistributor, intid: u32) {
        self.address.store(
            redistributor
                .base()
                .wrapping_add(redistributor::GICR_ISPENDR0),
            Relaxed,
        );
        self.value.store(1 << intid, Relaxed);
    }

    /// Makes SGI `intid` the doorbell of a CPU with a GICv2, where no CPU can write the registers
    /// of another CPU's PPIs, which are banked (IHI 0048B, 4.3.7). The CPU has interface `number`.
    pub fn set_version2(&self, gic: &Gic<'_>, number: u32, intid: u32) {
        let register = gic.distributor.base + version2::GICD_SGIR;
        self.address.store(register, Relaxed);
        self.value.store(1 << (16 + number) | intid, Relaxed);
    }

    /// Returns the address and the value of the store that rings.
    #[inline(always)]
    pub fn store(&self) -> (u64, u32) {
        (self.address.load(Relaxed), self.value.load(Relaxed))
    }

    /// Rings the doorbell. The caller's stores for the other CPU have to be visible first.
    #[inline(always)]
    pub fn ring(&self) {
        let (address, value) = self.store();
        // SAFETY: `set` and `set_version2` took the address from a description that is true and
        // mapped, and the store makes one interrupt pending.
        unsafe { mmio::store_32(address, value) }
    }
}
