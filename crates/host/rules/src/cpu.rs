// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU: tells the rules what it has executed.

use crate::decode::Operation;
use crate::finding::Place;
use crate::gic::Mapped;
use crate::lines::LINE;
use crate::register::*;
use crate::rule::Now;
use crate::rules::{Rules, root};
use crate::shared::Shared;

/// An instruction that a rule may look at, about to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub place: Place,
    /// Its operation.
    pub operation: Operation,
}

/// An access to memory that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The instruction.
    pub place: Place,
    /// The address that it was made to.
    pub address: u64,
    /// The address in memory, which is none for a device.
    pub physical: Option<u64>,
    /// The register of the interrupt controller, if it is one.
    pub gic: Option<Mapped>,
    /// The logarithm of how many bytes it is of.
    pub size: u8,
    /// It wrote.
    pub store: bool,
    /// The logarithm of what it has to be aligned to on Device memory.
    pub alignment: u8,
    /// It is exclusive or atomic.
    pub exclusive: bool,
    /// It is DC ZVA: it writes the whole line.
    pub whole: bool,
}

impl Access {
    /// Its bytes within their line, a bit for each. Bytes of the next line are left out.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let many = 1u32.checked_shl(self.size.into()).unwrap_or(u32::MAX);
        if self.whole || many >= u64::BITS {
            return u64::MAX;
        }
        ((1 << many) - 1) << (self.address % LINE)
    }
}

/// Registers that control others, as the CPU wrote them, 0 from reset on: what matters of
/// them is 0 then, or has to be written first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controls {
    /// SCTLR_ELx by level, 0 for EL0.
    sctlr: [u64; 4],
    /// HCR_EL2.
    pub hcr: u64,
    /// SCR_EL3.
    pub scr: u64,
    /// CNTHCTL_EL2 and CNTKCTL_EL1.
    pub streams: [u64; 2],
    /// TTBR0_ELx and TCR_ELx by level, VTTBR_EL2 and VTCR_EL2 at 0.
    tables: [(u64, u64); 3],
    /// MAIR_ELx by level.
    memory: [u64; 3],
}

impl Controls {
    /// Whether the MMU is on for what runs at `level`: SCTLR_ELx.M.
    #[must_use]
    #[inline]
    pub fn translates(&self, level: u8) -> bool {
        self.sctlr(level) & 1 != 0
    }

    /// Whether what runs at `level` has memory in caches: SCTLR_ELx.M and C. With M clear data
    /// is Device memory, unless HCR_EL2.DC makes it Normal for EL1 (DDI 0487K.a, D8.2.12).
    #[must_use]
    #[inline]
    pub fn caches(&self, level: u8) -> bool {
        const DC: u64 = 1 << 12;
        self.sctlr(level) & 5 == 5 || level < 2 && self.hcr & DC != 0
    }

    /// SCTLR_ELx of what runs at `level`.
    #[must_use]
    #[inline]
    pub fn sctlr(&self, level: u8) -> u64 {
        self.sctlr[usize::from(level.clamp(1, 3))]
    }

    /// The table at which the lookups of EL1 or EL2 begin, and its level.
    #[must_use]
    pub fn root(&self, level: u8) -> Option<(u64, u8)> {
        let (base, control) = self.tables[usize::from(level)];
        root(base, control)
    }

    /// Likewise if TTBR0_ELx were `base`.
    #[must_use]
    pub fn root_from(&self, level: u8, base: u64) -> Option<(u64, u8)> {
        root(base, self.tables[usize::from(level)].1)
    }

    /// Bits of the addresses that TTBR0_EL1 or TTBR0_EL2 translates.
    #[must_use]
    pub fn bits(&self, level: u8) -> u64 {
        64 - (self.tables[usize::from(level)].1 & 0x3f).clamp(16, 39)
    }

    /// MAIR_EL1 or MAIR_EL2.
    #[must_use]
    pub fn memory(&self, level: u8) -> u64 {
        self.memory[usize::from(level)]
    }

    /// The table at which the lookups of stage 2 begin, and its level.
    #[must_use]
    pub fn guest_root(&self) -> Option<(u64, u8)> {
        self.root(0)
    }

    fn wrote(&mut self, register: Register, value: u64) {
        match register {
            SCTLR_EL1 => self.sctlr[1] = value,
            SCTLR_EL2 => self.sctlr[2] = value,
            SCTLR_EL3 => self.sctlr[3] = value,
            HCR_EL2 => self.hcr = value,
            SCR_EL3 => self.scr = value,
            TTBR0_EL1 => self.tables[1].0 = value,
            TCR_EL1 => self.tables[1].1 = value,
            TTBR0_EL2 => self.tables[2].0 = value,
            TCR_EL2 => self.tables[2].1 = value,
            MAIR_EL1 => self.memory[1] = value,
            MAIR_EL2 => self.memory[2] = value,
            VTTBR_EL2 => self.tables[0].0 = value,
            VTCR_EL2 => self.tables[0].1 = value,
            CNTHCTL_EL2 => self.streams[0] = value,
            CNTKCTL_EL1 => self.streams[1] = value,
            _ => {}
        }
    }
}

/// A CPU.
#[derive(Debug)]
pub struct Cpu {
    number: u16,
    controls: Controls,
    rules: Rules,
    /// Instruction that was begun last and is not known to be done.
    begun: Option<(Step, Option<u64>)>,
}

impl Cpu {
    /// One that was reset; `number` is the emulator's.
    #[must_use]
    pub fn new(number: u16) -> Self {
        Self {
            number,
            controls: Controls::default(),
            rules: Rules::default(),
            begun: None,
        }
    }

    /// It is about to execute an instruction. `value` is that of its general register, if the
    /// instruction writes a system register or names an address.
    pub fn executes(&mut self, shared: &Shared, step: Step, value: Option<u64>) {
        self.settle(shared);
        self.begun = Some((step, value));
        // Nothing traps EL2 here, and a wait may never end.
        let traps = step.place.level < 2 && step.operation != Operation::SendEvent;
        if !traps && !Self::wants_value(step.operation) {
            self.settle(shared);
        }
    }

    /// The read that was told last has brought `value`, if it is one that
    /// [`Self::wants_value`].
    pub fn reads(&mut self, shared: &Shared, value: u64) {
        if let Some((step, read)) = &mut self.begun
            && Self::wants_value(step.operation)
        {
            *read = Some(value);
            self.settle(shared);
        }
    }

    /// It has accessed memory.
    #[inline]
    pub fn accesses(&mut self, shared: &Shared, access: &Access) {
        // An atomic operation is told before and accesses memory itself.
        if self
            .begun
            .is_some_and(|(step, _)| step.place != access.place)
        {
            self.settle(shared);
        }
        let now = Now {
            cpu: self.number,
            place: access.place,
            controls: &self.controls,
            shared,
        };
        self.rules.accessed(&now, access);
    }

    /// Instructions from `place` on are fetched, which lie in memory from `physical` on for
    /// `bytes`, for the first time since they were written.
    pub fn fetches(&mut self, shared: &Shared, place: Place, physical: u64, bytes: u64) {
        self.settle(shared);
        let now = Now {
            cpu: self.number,
            place,
            controls: &self.controls,
            shared,
        };
        let lines = physical & !(LINE - 1)..physical.saturating_add(bytes);
        for line in lines.step_by(LINE as usize) {
            self.rules.fetched(&now, line);
        }
    }

    /// It has taken an exception to `level`, and is to return to `from`. An emulator reports one
    /// that has been taken: the level that it was taken from is that of the instruction that
    /// trapped, if one did, and not known otherwise.
    pub fn excepts(&mut self, shared: &Shared, from: u64, level: u8) {
        // Where the instruction itself is to be done again, it was not done. A call is done:
        // it returns behind itself.
        let trapped = self.begun.take_if(|(step, _)| step.place.pc == from);
        self.settle(shared);
        let now = Now {
            cpu: self.number,
            place: Place { level, pc: from },
            controls: &self.controls,
            shared,
        };
        if let Some((step, _)) = trapped {
            let place = step.place;
            self.rules.trapped(&Now { place, ..now }, step.operation);
        }
        self.rules.entered(&now, level);
    }

    /// Completes the instruction that was begun: nothing else came of it.
    pub fn settle(&mut self, shared: &Shared) {
        let Some((step, value)) = self.begun.take() else {
            return;
        };
        let now = Now {
            cpu: self.number,
            place: step.place,
            controls: &self.controls,
            shared,
        };
        self.rules.executed(&now, step.operation, value);
        if let (Operation::Write { register, .. }, Some(value)) = (step.operation, value) {
            self.controls.wrote(register, value);
        }
    }

    /// Whether it is known what the last read brought: see [`Self::reads`].
    #[must_use]
    pub fn wants_value(operation: Operation) -> bool {
        matches!(
            operation,
            Operation::Read {
                register: ICC_IAR1_EL1 | ICH_ELRSR_EL2,
                ..
            }
        ) || matches!(operation, Operation::Read { register, .. } if register.is_list_register())
    }

    /// Whether `operation` has a value when it begins: see [`Self::executes`].
    #[must_use]
    pub fn has_value(operation: Operation) -> bool {
        matches!(
            operation,
            Operation::Write { .. }
                | Operation::Clean(_)
                | Operation::InvalidateCode { all: false }
        )
    }
}
