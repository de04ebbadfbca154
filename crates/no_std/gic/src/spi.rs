// SPDX-License-Identifier: MIT OR Apache-2.0
//! Controls one SPI through the registers of the distributor (IHI 0069H, 12.9).

use arch::gicv2::REGISTERS;
use platform::Gic;

use crate::PATIENCE;
use crate::mmio::{load_32, store_8, store_32, store_64};

/// Registers with a bit per INTID: GICD_IGROUPR, ISENABLER, ICENABLER, ISPENDR, ICPENDR, ISACTIVER.
const IGROUPR: u64 = 0x080;
const ISENABLER: u64 = 0x100;
const ICENABLER: u64 = 0x180;
const ISPENDR: u64 = 0x200;
const ICPENDR: u64 = 0x280;
const ISACTIVER: u64 = 0x300;
/// GICD_IPRIORITYR: a byte per INTID.
const IPRIORITYR: u64 = 0x400;
/// GICD_ITARGETSR of a GICv2 (IHI 0048B, 4.3.12): a byte per INTID, with a bit for each CPU interface.
const ITARGETSR: u64 = 0x800;
/// GICD_IROUTER: a doubleword per INTID.
const IROUTER: u64 = 0x6000;

/// GICD_ICFGR: two bits per INTID.
const ICFGR: u64 = 0xc00;

/// GICD_CTLR, and its bit RWP: a write of GICD_CTLR or GICD_ICENABLER has not yet taken effect.
const CTLR: u64 = 0;
const RWP: u32 = 1 << 31;
/// GICD_CTLR.ARE and EnableGrp1, which have the same positions with one security state and with two; and the bits that
/// enable groups, of which bit 0 enables Group 0 if there is one security state.
const ARE: u32 = 1 << 4;
const ENABLE_GROUP_1: u32 = 1 << 1;
const ENABLE_GROUPS: u32 = ENABLE_GROUP_1 | 1;
/// GICD_TYPER. ITLinesNumber, bits 4:0, is the number of 32-INTID registers after the first.
const TYPER: u64 = 4;
const ICACTIVER: u64 = 0x380;

/// GICD_TYPER.ESPI; ESPI_range (31:27), the number of registers for 32 extended SPIs each, less 1.
const TYPER_ESPI: u32 = 1 << 8;
const ESPI_RANGE: u32 = 27;
/// INTID of the first extended SPI.
const EXTENDED: u32 = 4096;

/// Registers to set for every SPI: the first register, the number of registers for 32 SPIs, and the value.
const AT_START: [(u64, u64, u32); 6] = [
    (ICENABLER, 1, u32::MAX),
    (ICPENDR, 1, u32::MAX),
    (ICACTIVER, 1, u32::MAX),
    // Group 1, priority 0x80, and level-triggered.
    (IGROUPR, 1, u32::MAX),
    (IPRIORITYR, 8, 0x8080_8080),
    (ICFGR, 2, 0),
];

/// Returns the counterpart of `register` for extended SPIs. GICD_IGROUPR0E is at 0x1000, and those with a bit per INTID
/// follow in the same order, with space for four times as many INTIDs (IHI 0069H, 12.8).
const fn extended_register(register: u64) -> u64 {
    match register {
        IPRIORITYR => 0x2000,
        ICFGR => 0x3000,
        _ => 0x1000 + 4 * (register - IGROUPR),
    }
}

/// Counts the enabled SPIs. Use this for a physical distributor only: a hypervisor may be unable to
/// emulate the loads that the compiler generates.
///
/// # Safety
/// The description must be true and mapped as device memory.
#[must_use]
pub unsafe fn enabled_spis(gic: &Gic) -> u32 {
    // SAFETY: the caller vouches for the frame; reading these registers changes nothing.
    let read = |offset| unsafe { load_32(gic.distributor.base + offset) };
    let registers = u64::from(read(TYPER) & 0x1f);
    let enabled = (1..=registers).map(|n| read(ISENABLER + 4 * n).count_ones());
    enabled.sum()
}

/// Enables the distributor of a GICv3. See [`crate::enable_distributor`].
///
/// # Safety
/// The description must be true and mapped as device memory, and no other code may
/// use the distributor during the call.
pub(crate) unsafe fn enable_distributor(gic: &Gic<'_>) {
    let base = gic.distributor.base;
    // SAFETY: the caller vouches for the frame, and that only this code uses it.
    let write = |value| unsafe {
        store_32(base + CTLR, value);
        await_done(base);
    };
    // SAFETY: as above; a read changes nothing.
    let control = unsafe { load_32(base + CTLR) } & !RWP;
    if control & ARE == 0 {
        // ARE may change only while no group is enabled (IHI 0069H, 12.9, GICD_CTLR).
        write(control & !ENABLE_GROUPS);
        write(control & !ENABLE_GROUPS | ARE);
    }
    // SAFETY: as above.
    unsafe { set_every_spi(gic) };
    write(control | ARE | ENABLE_GROUP_1);
}

/// Sets every SPI to [`AT_START`].
///
/// # Safety
/// See [`enable_distributor`].
unsafe fn set_every_spi(gic: &Gic<'_>) {
    let word = |offset: u64| gic.distributor.base + offset;
    // SAFETY: the caller vouches for the frame, and that only this code uses it.
    unsafe {
        let typer = load_32(word(TYPER));
        let registers = u64::from(typer & 0x1f);
        let more = match typer & TYPER_ESPI {
            0 => 0,
            _ => u64::from(typer >> ESPI_RANGE) + 1,
        };
        for (register, each, value) in AT_START {
            for n in each..each * (registers + 1) {
                store_32(word(register + 4 * n), value);
            }
            for n in 0..each * more {
                store_32(word(extended_register(register) + 4 * n), value);
            }
            await_done(gic.distributor.base);
        }
    }
}

/// Waits until writes of GICD_CTLR and GICD_ICENABLER take effect: disabled interrupts may still become pending until
/// then (IHI 0069H, 12.9, GICD_CTLR.RWP).
///
/// # Safety
/// A distributor must be mapped at `distributor` as device memory.
unsafe fn await_done(distributor: u64) {
    // SAFETY: the caller promises that the distributor is mapped; a read changes nothing.
    let done = (0..PATIENCE).any(|_| unsafe { load_32(distributor + CTLR) } & RWP == 0);
    assert!(done, "GIC: GICD_CTLR.RWP stays set");
}

/// An SPI, 32 to 1019. An extended SPI, from 4096 on, can only be disabled.
#[derive(Clone, Copy, Debug)]
pub struct Spi {
    distributor: u64,
    intid: u32,
    is_version2: bool,
}

impl Spi {
    /// Returns SPI `intid` of `gic`.
    ///
    /// # Safety
    /// The description must be true and mapped as device memory for as long as the result is used,
    /// and no other code may use that SPI.
    #[must_use]
    pub const unsafe fn new(gic: &Gic<'_>, intid: u32) -> Self {
        Self {
            distributor: gic.distributor.base,
            intid,
            is_version2: gic.version2.is_some(),
        }
    }

    /// Puts the SPI into Group 1. It shares the group register with 31 other SPIs, so no other CPU
    /// may change their groups meanwhile. In a GICv2, the SPI stays in the group of all other interrupts.
    pub fn set_group1(&self) {
        if self.is_version2 {
            return;
        }
        let (word, bit) = (self.register_address(IGROUPR), self.register_bit());
        // SAFETY: the caller of `new` promised that the frame is mapped.
        unsafe { store_32(word, load_32(word) | bit) }
    }

    /// Routes the SPI to the CPU with affinity `mpidr`.
    pub fn route(&self, mpidr: u64) {
        if self.is_version2 {
            return self.route_version2(mpidr);
        }
        let register = self.distributor + IROUTER + 8 * u64::from(self.intid);
        // SAFETY: the caller of `new` promised the mapping; the register belongs to this SPI alone.
        unsafe { store_64(register, mpidr) }
    }

    /// Routes the SPI in a GICv2.
    fn route_version2(&self, mpidr: u64) {
        let Some(interface) = REGISTERS.interface_of(mpidr) else {
            return;
        };
        let register = self.distributor + ITARGETSR + u64::from(self.intid);
        // SAFETY: the caller of `new` promised the mapping; the byte belongs to this SPI alone.
        unsafe { store_8(register, 1 << interface) }
    }

    /// Sets the SPI's priority; lower is more urgent.
    pub fn set_priority(&self, priority: u8) {
        let register = self.distributor + IPRIORITYR + u64::from(self.intid);
        // SAFETY: the caller of `new` promised the mapping; the byte belongs to this SPI alone.
        unsafe { store_8(register, priority) }
    }

    /// Enables the SPI.
    pub fn enable(&self) {
        self.write_bit(ISENABLER);
    }

    /// Disables the SPI, and waits until that takes effect.
    pub fn disable(&self) {
        self.write_bit(ICENABLER);
        // SAFETY: the caller of `new` promised that the frame is mapped.
        unsafe { await_done(self.distributor) };
    }

    /// Makes the SPI pending.
    pub fn set_pending(&self) {
        self.write_bit(ISPENDR);
    }

    /// Clears the SPI's pending state.
    pub fn clear_pending(&self) {
        self.write_bit(ICPENDR);
    }

    /// Makes the SPI active.
    pub fn set_active(&self) {
        self.write_bit(ISACTIVER);
    }

    /// Clears the SPI's active state.
    pub fn clear_active(&self) {
        self.write_bit(ICACTIVER);
    }

    /// Whether the SPI is pending.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.is_bit_set(ISPENDR)
    }

    /// Whether the SPI is active.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.is_bit_set(ISACTIVER)
    }

    const fn register_address(&self, register: u64) -> u64 {
        let (register, number) = match self.intid < EXTENDED {
            true => (register, self.intid),
            false => (extended_register(register), self.intid - EXTENDED),
        };
        self.distributor + register + (number / 32 * 4) as u64
    }

    const fn register_bit(&self) -> u32 {
        1 << (self.intid % 32)
    }

    fn is_bit_set(&self, register: u64) -> bool {
        // SAFETY: the caller of `new` promised the mapping; reading these registers changes nothing.
        unsafe { load_32(self.register_address(register)) & self.register_bit() != 0 }
    }

    /// Writes a register in which only ones have an effect, so no exclusive access is needed.
    fn write_bit(&self, register: u64) {
        // SAFETY: the caller of `new` promised the mapping; only the bit written as one changes.
        unsafe { store_32(self.register_address(register), self.register_bit()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::Region;

    /// Runs `test` on memory in place of a distributor's registers; returns their final values.
    fn with_registers(typer: u32, test: impl FnOnce(&Gic<'_>)) -> Vec<u32> {
        let mut registers = vec![0u32; 0x1_0000 / 4];
        registers[1] = typer;
        let gic = Gic {
            distributor: Region {
                base: registers.as_mut_ptr() as u64,
                size: 0x1_0000,
            },
            version2: None,
            redistributors: &[],
            stride: None,
            maintenance: 25,
        };
        test(&gic);
        registers
    }

    #[test]
    fn every_spi_is_set_and_extended_ones_where_there_are_some() {
        // SAFETY: this memory belongs to the test.
        let quiet = |gic: &Gic<'_>| unsafe { enable_distributor(gic) };
        let one = |registers: &[u32], at: usize| registers[at / 4] == u32::MAX;
        // There are 64 SPIs, and extended SPIs in two registers.
        let registers = with_registers(2 | 1 << 8 | 1 << 27, quiet);
        for first in [0x1400, 0x1800, 0x1c00] {
            assert!(
                one(&registers, first) && one(&registers, first + 4),
                "{first:#x}"
            );
            assert_eq!(registers[first / 4 + 2], 0);
        }
        for first in [0x84, 0x184, 0x284, 0x384] {
            // The first register of each kind belongs to a redistributor.
            assert!(registers[first / 4 - 1] == 0 && one(&registers, first));
            assert!(one(&registers, first + 4) && registers[first / 4 + 2] == 0);
        }
        let are_priorities = |from: usize, to: usize| {
            let inside = registers[from / 4..to / 4].iter();
            inside.clone().all(|word| *word == 0x8080_8080)
                && registers[from / 4 - 1] == 0
                && registers[to / 4] == 0
        };
        assert!(are_priorities(0x420, 0x460) && are_priorities(0x2000, 0x2040));
        assert_eq!(registers[0], 0x12);
        let registers = with_registers(2, quiet);
        assert!(registers[0x1000 / 4..].iter().all(|word| *word == 0));
    }

    #[test]
    fn an_extended_spi_is_disabled_by_its_own_bit() {
        let registers = with_registers(2 | 1 << 8 | 1 << 27, |gic| {
            // SAFETY: this memory belongs to the test.
            unsafe { Spi::new(gic, 4096 + 33) }.disable();
        });
        assert_eq!(registers[0x1404 / 4], 2);
        assert_eq!(registers.iter().filter(|word| **word != 0).count(), 2);
    }
}
