// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model of one CPU's virtual CPU interface with its list registers (IHI 0069H, chapter 6 and 12.4). The model does
//! everything that the hardware does between two exits.

use vgic::{Asked, Bank, ListRegister};

const PENDING: u64 = 1 << 62;
const ACTIVE: u64 = 1 << 63;
/// LR.HW, and LR.EOI, which has a meaning only if HW is 0.
const HW: u64 = 1 << 61;
const EOI: u64 = 1 << 41;
/// Unimplemented priority bits: of the field 55:48, only 55:51 are implemented.
const NOT_IMPLEMENTED: u64 = 7 << 48;

/// The virtual CPU interface of a CPU.
#[derive(Clone, Debug)]
pub struct Interface {
    registers: Vec<ListRegister>,
    /// ICH_HCR_EL2.NPIE, TALL1 and TC.
    asked: Asked,
    /// Physical INTIDs that the interface deactivated, one bit each.
    ended_physically: u32,
    /// ICH_AP1R0_EL2: one bit per active priority.
    pub running: u32,
    /// ICH_VMCR_EL2.VPMR.
    pub mask: u8,
    /// ICH_VMCR_EL2.VEOIM.
    pub split: bool,
    /// ICH_VMCR_EL2.VENG1.
    pub on: bool,
}

impl Interface {
    /// Creates an interface that has `registers` empty list registers and masks nothing.
    pub fn new(registers: usize) -> Self {
        Self {
            registers: vec![ListRegister::EMPTY; registers],
            asked: Asked::default(),
            ended_physically: 0,
            running: 0,
            mask: 0xf8,
            split: false,
            on: true,
        }
    }

    /// Reads ICV_IAR1_EL1.
    pub fn acknowledge(&mut self) -> Option<u32> {
        let level = |one: &ListRegister| u32::from(one.priority() >> 3);
        let eligible = self.registers.iter_mut().filter(|one| {
            self.on
                && one.0 & (PENDING | ACTIVE) == PENDING
                && one.priority() < self.mask & 0xf8
                && level(one) < self.running.trailing_zeros()
        });
        let one = eligible.min_by_key(|one| level(one))?;
        one.0 = one.0 & !PENDING | ACTIVE;
        self.running |= 1 << level(one);
        Some(one.intid())
    }

    /// Writes ICV_EOIR1_EL1. With EOImode 0, deactivates the interrupt only if its priority is the one dropped.
    pub fn end(&mut self, intid: u32) {
        let dropped = self.running.trailing_zeros();
        self.running &= self.running.wrapping_sub(1);
        if !self.split {
            self.deactivate_if(intid, |one| u32::from(one.priority() >> 3) == dropped);
        }
    }

    /// Writes ICV_DIR_EL1.
    pub fn deactivate(&mut self, intid: u32) {
        self.deactivate_if(intid, |_| true);
    }

    /// Deactivates `intid` if `is_it` accepts its list register. If no list register has the INTID, hardware only
    /// increments ICH_HCR_EL2.EOIcount.
    fn deactivate_if(&mut self, intid: u32, is_it: impl Fn(&ListRegister) -> bool) {
        let mut registers = self.registers.iter_mut();
        let active = registers.find(|one| one.0 & ACTIVE != 0 && one.intid() == intid);
        // Only the state changes; the list register keeps all other fields. The end of a hardware interrupt also ends
        // the physical interrupt.
        if let Some(one) = active.filter(|one| is_it(one)) {
            one.0 &= !ACTIVE;
            self.ended_physically |= one.hw().map_or(0, |physical| 1 << physical);
        }
    }

    /// Returns ICH_VMCR_EL2.
    pub fn settings(&self) -> u64 {
        /// VBPR1 and VBPR0: the smallest values with five preemption bits.
        const BINARY_POINTS: u64 = 3 << 18 | 2 << 21;
        let mask = u64::from(self.mask & 0xf8) << 24;
        BINARY_POINTS | mask | u64::from(self.split) << 9 | u64::from(self.on) << 1
    }

    /// Writes ICH_VMCR_EL2.
    pub fn set_settings(&mut self, settings: u64) {
        self.mask = (settings >> 24) as u8;
        self.split = settings & 1 << 9 != 0;
        self.on = settings & 1 << 1 != 0;
    }

    /// Returns the physical INTIDs that the interface deactivated since the last call, one bit each.
    pub fn take_ended_physically(&mut self) -> u32 {
        core::mem::take(&mut self.ended_physically)
    }

    /// Reads ICH_EISR_EL2: list registers whose interrupt has ended, and which therefore request a maintenance
    /// interrupt.
    pub fn ended(&self) -> u32 {
        self.bits(|one| one.0 & (PENDING | ACTIVE | HW | EOI) == EOI)
    }

    /// Returns EL2's last request to the interface.
    pub const fn asked(&self) -> Asked {
        self.asked
    }

    /// Returns whether the maintenance interrupt is asserted (ICH_MISR_EL2.EOI, NP).
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

    /// Reads ICH_ELRSR_EL2: list registers that are neither pending nor active, and that EL2 may overwrite without
    /// reading them.
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
