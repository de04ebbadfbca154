// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plugin's state, and the conversion of the emulator's events to steps of a [`Cutter`].

use std::ffi::c_int;
use std::ptr::null_mut;

use critical::{Cause, Chart, Charted, Counts, Cutter, Identity, Reasons, Tpidr, sgi_of_version2};

use super::counting::{self, executed_without};
use super::tracing::Tracing;
use crate::api;
use crate::registers::{self, Value, find};

/// Offset in EL2's vector table at which the vectors for exceptions from lower levels begin (DDI 0487K.a, D1.3.1.5).
const FROM_BELOW: u64 = 0x400;

/// The state of the plugin.
pub struct State {
    pub code: Charted,
    /// The file of the samples.
    pub out: String,
    pub cutter: Cutter,
    /// The blocks of samples, if a trace is wanted.
    pub tracing: Option<Tracing>,
    pub registers: Option<Registers>,
    /// The CPU to which the next memory callbacks belong, and the numbers of instructions that all CPUs had executed
    /// before them.
    pub last: (Tpidr, Counts),
}

// SAFETY: the objects to which the pointers point belong to the emulator, which allows its functions to be called from
// each of its threads.
unsafe impl Send for State {}

/// Registers of a CPU, and a buffer for a value. Handles are the same for all CPUs, since all CPUs are of one model.
pub struct Registers {
    value: Value,
    pstate: *mut api::Handle,
    tpidr: *mut api::Handle,
    /// Null if there is no EL2.
    tpidr_el2: *mut api::Handle,
    /// Null if there is no EL2.
    affinity: *mut api::Handle,
    syndrome: *mut api::Handle,
    syndrome_el1: *mut api::Handle,
    general: [*mut api::Handle; 31],
}

/// An instruction that needs an action before it is executed.
pub struct WatchedInstruction {
    pub kind: Reasons,
    pub word: u32,
    /// The register that the previous instruction wrote, if the kind includes [`Reasons::VALUE`].
    pub value: u8,
    /// Counts of the rest of the instruction's block.
    pub rest: Counts,
}

impl State {
    /// Returns the state before the machine runs.
    pub fn new(chart: Chart, out: &str, traces: Option<&str>) -> Self {
        Self {
            code: Charted::new(chart),
            out: out.into(),
            cutter: match traces {
                Some(_) => Cutter::with_stretches(),
                None => Cutter::new(),
            },
            tracing: traces.map(Tracing::new),
            registers: None,
            last: (0, Counts::default()),
        }
    }

    /// Returns the TPIDR that identifies the current CPU, and reports the affinity of a new CPU. A hypervisor other
    /// than Rouse changes TPIDR_EL1, and the affinity that EL1 reads, when it switches vCPUs, but EL2's own registers
    /// stay those of the CPU. The emulator's own CPU number does not help: in code that is translated for one CPU at a
    /// time, this number is that of the CPU that ran the code first.
    fn tpidr(&mut self) -> Option<Tpidr> {
        let registers = self.registers.as_ref()?;
        let identity = match self.code.identity {
            Identity::Tpidr => registers.tpidr_el2,
            Identity::Vmpidr => registers.affinity,
        };
        if self.code.foreign
            && let Some(tpidr) = registers.read(identity).filter(|&tpidr| tpidr != 0)
        {
            return Some(tpidr);
        }
        let tpidr = registers.read(registers.tpidr)?;
        if !self.code.foreign
            && !self.cutter.knows_cpu(tpidr)
            && let Some(affinity) = registers.read(registers.affinity)
            // The affinity register reads as zero if it does not exist; otherwise, bit 31 is one.
            && affinity >> 31 & 1 != 0
        {
            self.cutter.set_affinity(tpidr, affinity & 0xffff);
        }
        Some(tpidr)
    }

    /// Handles the mark of a cell.
    pub fn handle_cell(&mut self) {
        if let Some(id) = self.general_register(0) {
            self.cutter.set_cell(id);
        }
    }

    /// Handles a watched instruction, which is about to be executed.
    pub fn handle_instruction(&mut self, step: &WatchedInstruction) {
        let kind = step.kind;
        if kind.has(Reasons::CELL) {
            self.handle_cell();
        }
        let Some(tpidr) = self.tpidr() else { return };
        let now = executed_without(step.rest);
        if kind.has(Reasons::VALUE)
            && let Some(ticks) = self.general_register(step.value)
        {
            self.cutter.record_clock(tpidr, ticks);
        }
        if kind.has(Reasons::RECORD) && self.cutter.has_ended() {
            let recorded = self.cutter.record_counted(tpidr);
            if let (Some(tracing), Some(recorded)) = (&mut self.tracing, recorded) {
                tracing.keep_sample(&recorded);
                if let Some(oldest) = self
                    .cutter
                    .oldest_begin()
                    .filter(|_| !self.cutter.has_ended())
                {
                    tracing.forget(oldest);
                }
            }
        }
        if kind.has(Reasons::BEGIN) {
            if let Some(tracing) = self
                .tracing
                .as_mut()
                .filter(|_| !self.cutter.is_open() && !self.cutter.has_ended())
            {
                tracing.restart(counting::running_block());
            }
            self.cutter.record_begin(tpidr, now);
        }
        if !self.cutter.is_open() {
            return;
        }
        self.cutter
            .record_run(tpidr, now, kind.has(Reasons::RESUME));
        self.last = (tpidr, now);
        if kind.has(Reasons::ACKNOWLEDGE) {
            self.cutter.record_acknowledge(tpidr, now);
        }
        if kind.has(Reasons::SEND)
            && let Some(value) = self.general_register(Reasons::sgi_register(step.word))
            && let Some(value) = match Reasons::sends_by_store(step.word) {
                true => sgi_of_version2(value),
                false => Some(value),
            }
        {
            self.cutter.record_send(tpidr, now, value);
        }
        if kind.has(Reasons::END) {
            self.cutter.record_end(tpidr, now);
        }
        if kind.has(Reasons::PAUSE) {
            self.cutter
                .record_pause(tpidr, now, kind.has(Reasons::HALT));
        }
    }

    /// Whether the exception that was just taken is a failed access to memory (DDI 0487K.a, ESR_EL1, EC).
    pub fn is_data_abort(&self) -> bool {
        let syndrome = self.registers.as_ref().and_then(|registers| {
            let handle = match registers.current_level()? {
                1 => registers.syndrome_el1,
                2 => registers.syndrome,
                _ => return None,
            };
            registers.read(handle)
        });
        syndrome.is_some_and(|syndrome| matches!(syndrome >> 26 & 0x3f, 0x24 | 0x25))
    }

    /// Handles an exception or an interrupt that the current CPU has taken, from `from` to `vector`.
    pub fn handle_exception(&mut self, kind: c_int, from: u64, vector: u64) {
        let Some(tpidr) = self.tpidr() else { return };
        let now = executed_without(Counts::default());
        let after_pause = self.cutter.has_not_run(tpidr) && self.code.is_after_pause(from);
        self.cutter.record_run(tpidr, now, after_pause);
        if kind == api::INTERRUPT {
            self.cutter.record_interrupt(tpidr, now);
        }
        let Some(registers) = &self.registers else {
            return;
        };
        if registers.current_level() != Some(2) || vector & FROM_BELOW == 0 {
            return;
        }
        let cause = match kind {
            api::INTERRUPT => Cause::Irq,
            _ => Cause::of_syndrome(registers.read(registers.syndrome).unwrap_or(0)),
        };
        self.cutter.record_exit(cause);
    }

    /// Returns the value of a general register; register 31 is zero.
    fn general_register(&self, number: u8) -> Option<u64> {
        let registers = self.registers.as_ref()?;
        match registers.general.get(usize::from(number)) {
            Some(&handle) => registers.read(handle),
            None => Some(0),
        }
    }
}

impl Registers {
    /// Finds the registers by name; `None` if a mandatory register is missing.
    pub fn find() -> Option<Self> {
        Some(Self {
            value: Value::new(),
            pstate: find("cpsr")?,
            tpidr: find("TPIDR_EL1")?,
            tpidr_el2: find("TPIDR_EL2").unwrap_or(null_mut()),
            affinity: find("VMPIDR_EL2").unwrap_or(null_mut()),
            syndrome: find("ESR_EL2").unwrap_or(null_mut()),
            syndrome_el1: find("ESR_EL1").unwrap_or(null_mut()),
            general: registers::find_general()?,
        })
    }

    /// Reads a register of the emulator's current CPU.
    fn read(&self, handle: *mut api::Handle) -> Option<u64> {
        self.value.read(handle)
    }

    /// Returns the current CPU's exception level.
    pub fn current_level(&self) -> Option<u8> {
        self.read(self.pstate).map(registers::level_in_pstate)
    }
}
