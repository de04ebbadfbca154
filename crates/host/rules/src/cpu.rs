// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes a CPU's executed instructions to the rules.

use crate::access::Access;
use crate::controls::Controls;
use crate::decode::Operation;
use crate::finding::Place;
use crate::lines::LINE;
use crate::register::*;
use crate::rule::Now;
use crate::rules::Rules;
use crate::shared_state::Shared;

/// An instruction that some rule uses. The CPU is about to execute it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutedOperation {
    /// The instruction's place.
    pub place: Place,
    /// Its operation.
    pub operation: Operation,
}

/// A CPU whose instructions are checked.
#[derive(Debug)]
pub struct CheckedCpu {
    number: u16,
    controls: Controls,
    rules: Rules,
    /// The last instruction. It is not yet known whether it was executed or trapped.
    begun: Option<(ExecutedOperation, Option<u64>)>,
}

impl CheckedCpu {
    /// Creates a CPU in its state after reset. `number` is the number that the emulator gives the CPU.
    #[must_use]
    pub fn new(number: u16) -> Self {
        Self {
            number,
            controls: Controls::default(),
            rules: Rules::default(),
            begun: None,
        }
    }

    /// Notes that the CPU is about to execute an instruction. If the instruction writes a system register or names an
    /// address, `value` is the value of its general register.
    pub fn note_instruction(
        &mut self,
        shared: &Shared,
        step: ExecutedOperation,
        value: Option<u64>,
    ) {
        self.settle_instruction(shared);
        self.begun = Some((step, value));
        // Neither SEV nor any instruction at EL2 traps, so these count as executed at once. After a wait, there may
        // never be a later event at which the wait could be counted.
        let traps = step.place.level < 2 && step.operation != Operation::SendEvent;
        if !traps && !Self::wants_value(step.operation) {
            self.settle_instruction(shared);
        }
    }

    /// Notes the value that the last reported read has returned. Only called if [`Self::wants_value`] is true for that
    /// read.
    pub fn note_read_value(&mut self, shared: &Shared, value: u64) {
        if let Some((step, read)) = &mut self.begun
            && Self::wants_value(step.operation)
        {
            *read = Some(value);
            self.settle_instruction(shared);
        }
    }

    /// Notes that the CPU has accessed memory.
    #[inline]
    pub fn note_access(&mut self, shared: &Shared, access: &Access) {
        // An atomic operation is reported before its own access to memory, so this access does not prove that the
        // operation was executed.
        if self
            .begun
            .is_some_and(|(step, _)| step.place != access.place)
        {
            self.settle_instruction(shared);
        }
        let now = Now {
            cpu: self.number,
            place: access.place,
            controls: &self.controls,
            shared,
        };
        self.rules.on_access(&now, access);
    }

    /// Notes that instructions are fetched for the first time since they were written. They begin at `place`, and
    /// occupy `bytes` bytes of memory from physical address `physical` on.
    pub fn note_fetch(&mut self, shared: &Shared, place: Place, physical: u64, bytes: u64) {
        self.settle_instruction(shared);
        let now = Now {
            cpu: self.number,
            place,
            controls: &self.controls,
            shared,
        };
        let lines = physical & !(LINE - 1)..physical.saturating_add(bytes);
        for line in lines.step_by(LINE as usize) {
            self.rules.on_fetch(&now, line);
        }
    }

    /// Notes that the CPU has taken an interrupt to `level`. Its handler will return to address `from`. An interrupt is
    /// taken between two instructions. So the last instruction was executed, even if its own address is `from`, as when
    /// a loop is about to execute it again.
    pub fn note_interrupt(&mut self, shared: &Shared, from: u64, level: u8) {
        self.settle_instruction(shared);
        self.enter_level(shared, from, level);
    }

    /// Notes that the CPU has taken an exception to `level`. Its handler will return to address `from`. The emulator
    /// reports the exception after it has been taken. If an instruction trapped, the exception came from the level of
    /// that instruction. Otherwise, the level from which the exception came is unknown.
    pub fn note_exception(&mut self, shared: &Shared, from: u64, level: u8) {
        // If the handler returns to the last instruction, that instruction was not executed. A call was executed,
        // because its handler returns to the next instruction.
        let trapped = self.begun.take_if(|(step, _)| step.place.pc == from);
        self.settle_instruction(shared);
        if let Some((step, _)) = trapped {
            let now = Now {
                cpu: self.number,
                place: step.place,
                controls: &self.controls,
                shared,
            };
            self.rules.on_trap(&now, step.operation);
        }
        self.enter_level(shared, from, level);
    }

    /// Notes that the instruction at `pc`, below EL2, did not access the virtual address `address`, because it took an
    /// exception to EL2. The exception is noted next.
    pub fn note_failed_access(&mut self, shared: &Shared, pc: u64, address: u64) {
        if self.begun.is_some_and(|(step, _)| step.place.pc != pc) {
            self.settle_instruction(shared);
        }
        let now = Now {
            cpu: self.number,
            place: Place { level: 1, pc },
            controls: &self.controls,
            shared,
        };
        self.rules.on_failed_access(&now, address);
    }

    fn enter_level(&mut self, shared: &Shared, from: u64, level: u8) {
        let now = Now {
            cpu: self.number,
            place: Place { level, pc: from },
            controls: &self.controls,
            shared,
        };
        self.rules.on_level_entry(&now, level);
    }

    /// Passes the last instruction to the rules as executed. It did not trap.
    pub fn settle_instruction(&mut self, shared: &Shared) {
        let Some((step, value)) = self.begun.take() else {
            return;
        };
        let now = Now {
            cpu: self.number,
            place: step.place,
            controls: &self.controls,
            shared,
        };
        self.rules.on_instruction(&now, step.operation, value);
        if let (Operation::Write { register, .. }, Some(value)) = (step.operation, value) {
            self.controls.note_write(register, value);
        }
    }

    /// Whether the emulator has to report the value that `operation` reads: see [`Self::note_read_value`].
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
}
