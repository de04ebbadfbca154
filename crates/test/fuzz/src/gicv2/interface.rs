// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of one CPU's GICH and GICV (IHI 0048B, chapter 5): the actions of the hardware between two exits. List
//! registers have the format of a GICv3, into which `gic::gich` translates them; bit 0 of a priority is the group.

use vgic::{Asked, Bank, ListRegister};

const PENDING: u64 = 1 << 62;
const ACTIVE: u64 = 1 << 63;
/// LR.HW, and LR.EOI, which has a meaning only if HW is 0.
const HW: u64 = 1 << 61;
const EOI: u64 = 1 << 41;
/// Priority bits that a GICH_LR lacks: in the field 55:48, bits 55:51 are the priority, and bit 48 is the group.
const NOT_IMPLEMENTED: u64 = 3 << 49;

/// GICV_CTLR: EnableGrp0 (0), EnableGrp1 (1), AckCtl (2), EOImode (9).
const ACK_CTL: u64 = 1 << 2;
const SPLIT: u64 = 1 << 9;
/// GICH_VMCR: VMABP and VMBP, with the smallest values for five bits of priority.
const BINARY_POINTS: u64 = 3 << 18 | 2 << 21;
const MASK: u32 = 24;

/// Interrupt IDs that stand for no interrupt (IHI 0048B, 2.2.1).
pub const NONE: u32 = 1023;
pub const OTHER_GROUP: u32 = 1022;

/// The virtual CPU interface of a CPU.
#[derive(Clone, Debug)]
pub struct Interface {
    registers: Vec<ListRegister>,
    /// Whether EL2 requests a maintenance interrupt (NPIE), and whether the interface is closed.
    asked: Asked,
    /// Physical INTIDs that the interface deactivated, one bit each.
    ended_physically: u32,
    /// GICH_APR: one bit per active priority.
    pub running: u32,
    /// GICH_VMCR, in the form of ICH_VMCR_EL2.
    pub settings: u64,
}

impl Interface {
    /// Creates an interface that has `registers` empty list registers, masks nothing, and has both groups enabled.
    pub fn new(registers: usize) -> Self {
        Self {
            registers: vec![ListRegister::EMPTY; registers],
            asked: Asked::default(),
            ended_physically: 0,
            running: 0,
            settings: BINARY_POINTS | 0xf8 << MASK | 0b111,
        }
    }

    /// Reads GICV_IAR or, if `aliased`, GICV_AIAR (5.5).
    pub fn acknowledge(&mut self, aliased: bool) -> u32 {
        let settings = self.settings;
        let enabled = |one: &ListRegister| settings >> (one.priority() & 1) & 1 != 0;
        let mut waiting = self.registers.iter_mut();
        let Some(one) = waiting
            .by_ref()
            .filter(|one| one.0 & (PENDING | ACTIVE) == PENDING && enabled(one))
            .min_by_key(|one| one.priority() >> 3)
        else {
            return NONE;
        };
        let level = u32::from(one.priority() >> 3);
        let masked = u64::from(one.priority() & 0xf8) >= settings >> MASK & 0xf8;
        if masked || level >= self.running.trailing_zeros() {
            return NONE;
        }
        match (one.priority() & 1 != 0, aliased) {
            (true, false) if settings & ACK_CTL == 0 => return OTHER_GROUP,
            (false, true) => return NONE,
            _ => {}
        }
        one.0 = one.0 & !PENDING | ACTIVE;
        self.running |= 1 << level;
        let sender = if one.intid() < 16 { one.sender() } else { 0 };
        one.intid() | sender << 10
    }

    /// Writes GICV_EOIR or GICV_AEOIR.
    pub fn end(&mut self, value: u32) {
        self.running &= self.running.wrapping_sub(1);
        if self.settings & SPLIT == 0 {
            self.deactivate(value);
        }
    }

    /// Writes GICV_DIR. If no list register has the interrupt, hardware only increments GICH_HCR.EOICount.
    pub fn deactivate(&mut self, value: u32) {
        let intid = value & 0x3ff;
        let mut registers = self.registers.iter_mut();
        if let Some(one) = registers.find(|one| one.0 & ACTIVE != 0 && one.intid() == intid) {
            one.0 &= !ACTIVE;
            self.ended_physically |= one.hw().map_or(0, |physical| 1 << physical);
        }
    }

    /// Returns the physical INTIDs that the interface deactivated since the last call, one bit each.
    pub fn take_ended_physically(&mut self) -> u32 {
        core::mem::take(&mut self.ended_physically)
    }

    /// Reads GICH_EISR.
    pub fn ended(&self) -> u32 {
        self.bits(|one| one.0 & (PENDING | ACTIVE | HW | EOI) == EOI)
    }

    pub const fn asked(&self) -> Asked {
        self.asked
    }

    /// Returns whether the maintenance interrupt is asserted (GICH_MISR.EOI, NP).
    pub fn maintenance(&self) -> bool {
        let pending = |one: &ListRegister| one.0 & (PENDING | ACTIVE) == PENDING;
        self.ended() != 0 || self.asked.refill && !self.used().any(pending)
    }

    /// Returns the list registers in use.
    pub fn used(&self) -> impl Iterator<Item = &ListRegister> + Clone {
        let used = |one: &&ListRegister| one.0 & (PENDING | ACTIVE) != 0;
        self.registers.iter().filter(used)
    }

    fn bits(&self, of: impl Fn(&ListRegister) -> bool) -> u32 {
        let registers = self.registers.iter().enumerate();
        registers.fold(0, |bits, (n, one)| bits | u32::from(of(one)) << n)
    }
}

impl Bank for Interface {
    fn count(&self) -> usize {
        self.registers.len()
    }

    /// Reads GICH_ELRSR.
    fn empty(&self) -> u32 {
        self.bits(|one| one.0 & (PENDING | ACTIVE) == 0) & !self.ended()
    }

    fn read(&self, n: usize) -> ListRegister {
        self.registers[n]
    }

    fn write(&mut self, n: usize, value: ListRegister) {
        let both = PENDING | ACTIVE | HW;
        assert!(value.0 & both != both, "hardware, active and pending");
        self.registers[n] = ListRegister(value.0 & !NOT_IMPLEMENTED);
    }

    fn ask(&mut self, asked: Asked) {
        self.asked = asked;
    }
}
