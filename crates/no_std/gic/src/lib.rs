// SPDX-License-Identifier: MIT OR Apache-2.0
//! The memory-mapped parts of the physical GICv3, distributor and redistributors (the CPU interface
//! uses system registers: `arch::gic_cpu`), and all of a GICv2: [`version2`].
//!
//! Redistributors of real machines are neither contiguous nor ordered: see [`locate`].

#![cfg_attr(not(test), no_std)]

pub mod gich;
pub mod locate;
pub mod mmio;
mod spi;
pub mod version2;

use core::fmt;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};
use platform::Gic;

pub use spi::{Spi, enabled_spis};

/// Offsets of GICD_TYPER2 and GICD_PIDR2 (IHI 0069H, 12.9).
const GICD_TYPER2: u64 = 0xc;
const GICD_PIDR2: u64 = 0xffe8;
/// Offset of GICR_CTLR in a redistributor frame, and its bit RWP: a write of GICR_ICENABLER0 has
/// not yet taken effect (IHI 0069H, 12.11).
const GICR_CTLR: u64 = 0x0;
const GICR_CTLR_RWP: u32 = 1 << 3;
/// Offset of GICR_TYPER in a redistributor frame (IHI 0069H, 12.11).
const GICR_TYPER: u64 = 0x8;
/// Offset of GICR_WAKER, and its bits: software asks for sleep, and the interface sleeps (IHI 0069H, 12.11).
const GICR_WAKER: u64 = 0x14;
const PROCESSOR_SLEEP: u32 = 1 << 1;
const CHILDREN_ASLEEP: u32 = 1 << 2;
/// GICR_TYPER.PPInum: the number of registers with 32 extended PPIs each.
const PPI_NUM: u32 = 27;
/// INTID of the first extended PPI.
const EXTENDED: u32 = 1056;
/// GICD_CTLR.DS: there is one security state.
const GICD_CTLR_DS: u32 = 1 << 6;
/// Number of reads before giving up on an expected value: more than any implementation takes.
const PATIENCE: u32 = 1_000_000;
/// Offset of GICR_IGROUPR0 from the start of the redistributor.
const GICR_IGROUPR0: u64 = 0x1_0080;
/// Offset of GICR_ICFGR0 from the start of the redistributor.
const GICR_ICFGR0: u64 = 0x1_0c00;
/// Offset of GICR_ISPENDR0 from the start of the redistributor: 0x200 in the SGI frame.
const GICR_ISPENDR0: u64 = 0x1_0200;
/// Offset of GICR_ICPENDR0 from the start of the redistributor.
const GICR_ICPENDR0: u64 = 0x1_0280;
/// Offset of GICR_ISACTIVER0 from the start of the redistributor.
const GICR_ISACTIVER0: u64 = 0x1_0300;
/// Offset of GICR_ICACTIVER0 from the start of the redistributor.
const GICR_ICACTIVER0: u64 = 0x1_0380;
/// Offset of GICR_IPRIORITYR0 from the start of the redistributor.
const GICR_IPRIORITYR0: u64 = 0x1_0400;
/// Offset of GICR_ISENABLER0 from the start of the redistributor.
const GICR_ISENABLER0: u64 = 0x1_0100;
/// Offset of GICR_ICENABLER0 from the start of the redistributor.
const GICR_ICENABLER0: u64 = 0x1_0180;

/// The redistributor that was found last, at which the next search begins. Any value gives the correct result.
static FOUND: AtomicU64 = AtomicU64::new(0);

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

/// The redistributor of one CPU. A GICv2 has the registers of its SGIs and PPIs in the distributor,
/// which shows each CPU its own registers, at the offsets of a redistributor's second frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redistributor {
    base: u64,
    is_version2: bool,
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
        self.address
            .store(redistributor.base.wrapping_add(GICR_ISPENDR0), Relaxed);
        self.value.store(1 << intid, Relaxed);
    }

    /// Makes SGI `intid` the doorbell of a CPU with a GICv2, where no CPU can write the registers of
    /// another one's PPIs, which are banked (IHI 0048B, 4.3.7). The CPU has interface `number`.
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

    /// Rings. The caller's stores for the other CPU have to be visible first.
    #[inline(always)]
    pub fn ring(&self) {
        let (address, value) = self.store();
        // SAFETY: `set` and `set_version2` took the address from a description that is true and
        // mapped, and the store makes one interrupt pending.
        unsafe { mmio::store_32(address, value) }
    }
}

/// Offset of a redistributor's second frame.
const SGI_FRAME: u64 = 0x1_0000;

impl Redistributor {
    /// Finds the redistributor of the CPU with affinity `mpidr`.
    ///
    /// # Errors
    /// Returns [`Error::NoRedistributor`] if no frame matches.
    ///
    /// # Safety
    /// The description must be true and mapped as device memory.
    pub unsafe fn find(gic: &Gic<'_>, mpidr: u64) -> Result<Self, Error> {
        if gic.version2.is_some() {
            return Ok(Self {
                base: gic.distributor.base.wrapping_sub(SGI_FRAME),
                is_version2: true,
            });
        }
        let typer = |frame: u64| {
            // SAFETY: the caller vouches for the frames; `locate` stays inside them. The read
            // covers the whole register, because not every implementation supports a separate
            // access to its upper half.
            unsafe { mmio::load_64(frame + GICR_TYPER) }
        };
        let base = locate::locate(gic, mpidr, FOUND.load(Relaxed), typer);
        let base = base.ok_or(Error::NoRedistributor { mpidr })?;
        FOUND.store(base, Relaxed);
        Ok(Self {
            base,
            is_version2: false,
        })
    }

    /// Returns the physical address of the redistributor's first frame.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Wakes the redistributor and sets every SGI and PPI to Group 1, disabled, highest non-secure
    /// priority; PPIs are level-triggered.
    ///
    /// # Safety
    /// No other code may use this redistributor during the call.
    pub unsafe fn set_up(&self) {
        if self.is_version2 {
            return version2::set_up_private();
        }
        self.wake();
        self.disable_all(u32::MAX);
        self.disable_extended();
        // There are 32 SGIs and PPIs, and as many extended PPIs for each further register.
        let registers = self.extended_registers() + 1;
        (0..registers).for_each(|n| self.write(GICR_IGROUPR0 + 4 * n, u32::MAX));
        (0..8 * registers).for_each(|n| self.write(GICR_IPRIORITYR0 + 4 * n, 0x8080_8080));
        // SGIs stay edge-triggered (IHI 0069H, 12.11, GICR_ICFGR0).
        (1..2 * registers).for_each(|n| self.write(GICR_ICFGR0 + 4 * n, 0));
    }

    /// Wakes the redistributor (IHI 0069H, 12.11, GICR_WAKER). Some firmware leaves it awake.
    fn wake(&self) {
        let waker = self.read(GICR_WAKER);
        if waker & CHILDREN_ASLEEP == 0 {
            return;
        }
        self.write(GICR_WAKER, waker & !PROCESSOR_SLEEP);
        let awake = (0..PATIENCE).any(|_| self.read(GICR_WAKER) & CHILDREN_ASLEEP == 0);
        assert!(awake, "GIC: GICR_WAKER of {:#x} stays asleep", self.base);
    }

    /// Returns the number of registers that have extended PPIs, of each kind with a bit per INTID.
    fn extended_registers(&self) -> u64 {
        u64::from(self.read(GICR_TYPER) >> PPI_NUM).min(2)
    }

    /// Disables the extended PPIs.
    fn disable_extended(&self) {
        for n in 1..=self.extended_registers() {
            self.write(GICR_ICENABLER0 + 4 * n, u32::MAX);
            self.await_disabled();
        }
    }

    /// Clears firmware's state: no SGI or PPI stays enabled, pending or active. An interrupt that
    /// was left active would never be signalled again. Call this at a CPU's first start only: if a CPU
    /// starts again, its pending and active interrupts are its own.
    ///
    /// # Panics
    /// Panics like [`Self::disable_all`].
    pub fn quieten(&self) {
        self.disable_all(u32::MAX);
        self.clear_pending(u32::MAX);
        self.clear_active(u32::MAX);
        if self.is_version2 {
            return;
        }
        self.disable_extended();
        for n in 1..=self.extended_registers() {
            self.write(GICR_ICPENDR0 + 4 * n, u32::MAX);
            self.write(GICR_ICACTIVER0 + 4 * n, u32::MAX);
        }
    }

    /// Disables PPI `intid`, which may be an extended PPI (1056 to 1119).
    ///
    /// # Panics
    /// Panics like [`Self::disable_all`].
    pub fn disable(&self, intid: u32) {
        if let Some(number) = intid.checked_sub(EXTENDED) {
            let register = GICR_ICENABLER0 + 4 * u64::from(number / 32 + 1);
            self.write(register, 1 << (number % 32));
            return self.await_disabled();
        }
        self.disable_all(1 << intid);
    }

    /// Enables the SGIs and PPIs of `bits`.
    pub fn enable_all(&self, bits: u32) {
        self.write(GICR_ISENABLER0, bits);
    }

    /// Disables the SGIs and PPIs of `bits`, and waits until the write takes effect: until then,
    /// they may still arrive (IHI 0069H, 12.11, GICR_CTLR.RWP).
    ///
    /// # Panics
    /// Panics if the register never shows that the write took effect.
    pub fn disable_all(&self, bits: u32) {
        self.write(GICR_ICENABLER0, bits);
        self.await_disabled();
    }

    /// Waits until interrupts are disabled; a GICv2 does not report that (IHI 0048B, 4.3.6).
    fn await_disabled(&self) {
        if self.is_version2 {
            return;
        }
        let done = (0..PATIENCE).any(|_| self.read(GICR_CTLR) & GICR_CTLR_RWP == 0);
        assert!(done, "GIC: GICR_CTLR.RWP of {:#x} stays set", self.base);
    }

    /// Makes the SGIs and PPIs of `bits` pending.
    pub fn set_pending(&self, bits: u32) {
        if self.is_version2 {
            version2::set_pending_sgis(bits);
        }
        self.write(GICR_ISPENDR0, bits);
    }

    /// Clears the pending state of the SGIs and PPIs of `bits`.
    pub fn clear_pending(&self, bits: u32) {
        if self.is_version2 {
            version2::clear_pending_sgis(bits);
        }
        self.write(GICR_ICPENDR0, bits);
    }

    /// Makes the SGIs and PPIs of `bits` active.
    pub fn set_active(&self, bits: u32) {
        self.write(GICR_ISACTIVER0, bits);
    }

    /// Clears the active state of the SGIs and PPIs of `bits`.
    pub fn clear_active(&self, bits: u32) {
        self.write(GICR_ICACTIVER0, bits);
    }

    /// Returns the SGIs and PPIs that are pending.
    #[must_use]
    pub fn pending(&self) -> u32 {
        self.read(GICR_ISPENDR0)
    }

    /// Returns the SGIs and PPIs that are enabled.
    #[must_use]
    pub fn enabled(&self) -> u32 {
        self.read(GICR_ISENABLER0)
    }

    /// Returns which priority bits are implemented for SGI or PPI `intid` (0 to 31).
    #[must_use]
    pub fn priority(&self, intid: u32) -> u8 {
        let word = self.read(GICR_IPRIORITYR0 + u64::from(intid & !3));
        (word >> (8 * (intid & 3))) as u8
    }

    /// Returns the SGIs and PPIs that are active.
    #[must_use]
    pub fn active(&self) -> u32 {
        self.read(GICR_ISACTIVER0)
    }

    /// Returns which of `bits` stay active. A deactivation through the CPU interface takes effect
    /// here only some time later (IHI 0069H, 12.1.6), so this function reads more than once before
    /// it reports an interrupt as active.
    #[must_use]
    pub fn still_active(&self, bits: u32) -> u32 {
        /// Number of reads of a device register, which take some microseconds.
        const LOOKS: u32 = 100;
        let mut active = self.active() & bits;
        for _ in 1..LOOKS {
            if active == 0 {
                break;
            }
            active = self.active() & bits;
        }
        active
    }

    /// Sets the priority of SGI or PPI `intid` (0 to 31); lower is more urgent.
    ///
    /// # Safety
    /// No other code may use this redistributor during the call.
    pub unsafe fn set_priority(&self, intid: u32, priority: u8) {
        let register = self.base.wrapping_add(GICR_IPRIORITYR0 + u64::from(intid));
        // SAFETY: the caller of `find` promised that the frames are mapped; this byte belongs to one interrupt.
        unsafe { mmio::store_8(register, priority) }
    }

    fn read(&self, offset: u64) -> u32 {
        // SAFETY: the caller of `find` promised that the frames are mapped; reading these registers
        // changes nothing.
        unsafe { mmio::load_32(self.base.wrapping_add(offset)) }
    }

    /// Writes a register in which only ones have an effect, so no exclusive access is needed, or one that only this CPU
    /// uses, at its start.
    fn write(&self, offset: u64, value: u32) {
        // SAFETY: the caller of `find` promised that the frames are mapped, and no two CPUs change one bit at once.
        unsafe { mmio::store_32(self.base.wrapping_add(offset), value) }
    }
}
