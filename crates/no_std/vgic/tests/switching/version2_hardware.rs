// SPDX-License-Identifier: MIT OR Apache-2.0
//! List registers and settings of a GICv2's virtual interface, which EL2 emulates.

use vgic::{Asked, Bank, Interface, ListRegister, Registers, Vcpu};

/// The registers of one CPU.
pub struct Hardware {
    number: usize,
    registers: [ListRegister; 4],
    asked: Asked,
    settings: u64,
    running: u32,
}

impl Hardware {
    /// Returns an interface that signals Group 0 and masks nothing.
    pub fn new(number: usize) -> Self {
        Self {
            number,
            registers: [ListRegister::EMPTY; 4],
            asked: Asked::default(),
            settings: 1 | 0xf8 << 24,
            running: 0,
        }
    }

    fn bits(&self, of: impl Fn(&ListRegister) -> bool) -> u32 {
        let registers = self.registers.iter().enumerate();
        registers.fold(0, |bits, (n, one)| bits | u32::from(of(one)) << n)
    }
}

impl Bank for Hardware {
    fn count(&self) -> usize {
        self.registers.len()
    }

    fn empty(&self) -> u32 {
        self.bits(|one| !one.is_pending() && !one.is_active() && !one.has_ended())
    }

    fn read(&self, n: usize) -> ListRegister {
        self.registers[n]
    }

    fn write(&mut self, n: usize, value: ListRegister) {
        self.registers[n] = value;
    }

    fn ask(&mut self, asked: Asked) {
        self.asked = asked;
    }
}

impl Interface for Hardware {
    const SGIS: u32 = 0;

    fn ended(&self) -> u32 {
        self.bits(|one| one.has_ended())
    }

    fn asked(&self) -> Asked {
        self.asked
    }

    fn timers(&self) -> u32 {
        0
    }

    fn lines(&self) -> u32 {
        0
    }

    fn vcpu(&self) -> Vcpu {
        Vcpu {
            number: self.number,
            affinity: self.number as u64,
        }
    }

    fn enable(&mut self, _: u32, _: u32) {}

    fn clear_active(&mut self, _: u32) {}

    fn deactivate(&mut self, _: u32) {}

    fn active(&self) -> u32 {
        0
    }
}

impl Registers for Hardware {
    fn kind(&self) -> u64 {
        4 << 29 | 4 << 26
    }

    fn ranges(&self) -> u64 {
        0
    }

    fn settings(&self) -> u64 {
        self.settings
    }

    fn set_settings(&mut self, settings: u64) {
        self.settings = settings;
    }

    fn active_priorities(&self, _: usize) -> u32 {
        self.running
    }

    fn set_active_priorities(&mut self, _: usize, bits: u32) {
        self.running = bits;
    }
}
