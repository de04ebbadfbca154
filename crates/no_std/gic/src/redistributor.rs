// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU's redistributor, with its SGIs and PPIs (IHI 0069H, 12.11).

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use platform::Gic;

use crate::{Error, PATIENCE, locate, mmio, version2};

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
/// Offset of GICR_IGROUPR0 from the start of the redistributor.
const GICR_IGROUPR0: u64 = 0x1_0080;
/// Offset of GICR_ICFGR0 from the start of the redistributor.
const GICR_ICFGR0: u64 = 0x1_0c00;
/// Offset of GICR_ISPENDR0 from the start of the redistributor: 0x200 in the SGI frame.
pub(crate) const GICR_ISPENDR0: u64 = 0x1_0200;
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

/// The redistributor of one CPU. A GICv2 has the registers of its SGIs and PPIs in the distributor,
/// which shows each CPU its own registers, at the offsets of a redistributor's second frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redistributor {
    base: u64,
    is_version2: bool,
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

    /// Wakes the redistributor, disables every SGI and PPI, and gives each Group 1 and priority
    /// 0x80; PPIs become level-triggered.
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

    /// Returns the number of registers for extended PPIs, of each kind of register that has a bit per INTID.
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
    /// was left active would never be signalled again. Call this at a CPU's first start only: if a
    /// CPU starts again, its pending and active interrupts are not firmware's.
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

    /// Enables the SGIs and PPIs in `bits`.
    pub fn enable_all(&self, bits: u32) {
        self.write(GICR_ISENABLER0, bits);
    }

    /// Disables the SGIs and PPIs in `bits`, and waits until the write takes effect: until then,
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

    /// Makes the SGIs and PPIs in `bits` pending.
    pub fn set_pending(&self, bits: u32) {
        if self.is_version2 {
            version2::set_pending_sgis(bits);
        }
        self.write(GICR_ISPENDR0, bits);
    }

    /// Clears the pending state of the SGIs and PPIs in `bits`.
    pub fn clear_pending(&self, bits: u32) {
        if self.is_version2 {
            version2::clear_pending_sgis(bits);
        }
        self.write(GICR_ICPENDR0, bits);
    }

    /// Makes the SGIs and PPIs in `bits` active.
    pub fn set_active(&self, bits: u32) {
        self.write(GICR_ISACTIVER0, bits);
    }

    /// Clears the active state of the SGIs and PPIs in `bits`.
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
        /// Number of reads of a device register, which together take some microseconds.
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

    /// Writes a register that needs no exclusive access, because only ones have an effect in it, or
    /// because only this CPU uses it, while it starts.
    fn write(&self, offset: u64, value: u32) {
        // SAFETY: the caller of `find` promised that the frames are mapped; no two CPUs change the same bit at once.
        unsafe { mmio::store_32(self.base.wrapping_add(offset), value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets up a redistributor whose GICR_TYPER has `typer` in its upper byte. Returns its registers.
    fn registers_after_set_up(typer: u32) -> Vec<u32> {
        let mut registers = vec![0u32; 0x2_0000 / 4];
        registers[GICR_TYPER as usize / 4] = typer << PPI_NUM;
        registers[GICR_ICFGR0 as usize / 4..][..6].fill(u32::MAX);
        let redistributor = Redistributor {
            base: registers.as_mut_ptr() as u64,
            is_version2: false,
        };
        // SAFETY: this memory belongs to the test.
        unsafe { redistributor.set_up() };
        registers
    }

    #[test]
    fn extended_ppis_are_set_up_where_there_are_some() {
        for extended in [0, 1, 2] {
            let registers = registers_after_set_up(extended as u32);
            let with = |first: u64, value: u32| {
                let all = registers[first as usize / 4..].iter();
                all.take_while(|word| **word == value).count()
            };
            let count = extended + 1;
            assert_eq!(with(GICR_IGROUPR0, u32::MAX), count);
            assert_eq!(with(GICR_ICENABLER0, u32::MAX), count);
            assert_eq!(with(GICR_IPRIORITYR0, 0x8080_8080), 8 * count);
            // SGIs keep their trigger, and registers of absent PPIs keep their contents.
            let trigger = &registers[GICR_ICFGR0 as usize / 4..][..6];
            let (sgis, rest) = trigger.split_at(1);
            assert!(sgis == [u32::MAX] && rest[..2 * count - 1].iter().all(|word| *word == 0));
            assert!(rest[2 * count - 1..].iter().all(|word| *word == u32::MAX));
        }
    }

    #[test]
    fn one_byte_has_the_priority_of_an_interrupt() {
        let mut registers = vec![0u32; 0x2_0000 / 4];
        let redistributor = Redistributor {
            base: registers.as_mut_ptr() as u64,
            is_version2: false,
        };
        // SAFETY: this memory belongs to the test.
        unsafe { redistributor.set_priority(27, 0x40) };
        assert_eq!(registers[(GICR_IPRIORITYR0 as usize + 24) / 4], 0x4000_0000);
        assert_eq!(redistributor.priority(27), 0x40);
        assert_eq!(redistributor.priority(26), 0);
    }
}
