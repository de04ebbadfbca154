// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs of 32-bit encodings, and the machine that executes them for the tests of rules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::decode::{self, Operation, decode, decode_before};
use crate::gic::Mapped;
use crate::register::{ELR_EL2, Register};
use crate::{Access, CheckedCpu, ExecutedOperation, Finding, Machine, Place, Shared};

/// Instructions without operands, or with x0 to x2.
const INSTRUCTIONS: &[(&str, u32)] = &[
    ("isb", 0xd503_3fdf),
    ("dsb sy", 0xd503_3f9f),
    ("dsb ish", 0xd503_3b9f),
    ("dsb ishst", 0xd503_3a9f),
    ("dsb ishld", 0xd503_399f),
    ("dsb nsh", 0xd503_379f),
    ("dmb ish", 0xd503_3bbf),
    ("dmb ishst", 0xd503_3abf),
    ("dmb ishld", 0xd503_39bf),
    ("dmb nsh", 0xd503_37bf),
    ("wfi", 0xd503_207f),
    ("wfe", 0xd503_205f),
    ("wfit", 0xd503_1020),
    ("sev", 0xd503_209f),
    ("sevl", 0xd503_20bf),
    ("hvc", 0xd400_0002),
    ("eret", 0xd69f_03e0),
    ("tlbi alle2", 0xd50c_871f),
    ("tlbi alle1is", 0xd50c_839f),
    ("tlbi vmalle1", 0xd508_871f),
    ("tlbi vmalls12e1", 0xd50c_87df),
    ("at", 0xd50c_7800),
    ("ldr", 0xf940_0020),
    ("str", 0xf900_0020),
    ("stp", 0xa900_0440),
    ("ldaxr", 0xc85f_fc20),
    ("stxr", 0xc802_7c20),
    ("ldadd", 0xf8e0_0022),
    ("dc civac", 0xd50b_7e20),
    ("dc cvac", 0xd50b_7a20),
    ("dc cvau", 0xd50b_7b20),
    ("dc zva", 0xd50b_7420),
    ("ic ivau", 0xd50b_7520),
    ("ic iallu", 0xd508_751f),
    ("fadd", 0x1e60_2820),
    // AND and ORR of x0 with 1.
    ("and", 0x9240_0000),
    ("orr", 0xb240_0000),
];

/// Returns the instruction called `name`.
pub fn word(name: &str) -> u32 {
    let found = INSTRUCTIONS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no instruction `{name}`")).1
}

/// The instructions that CPUs execute, one after another. CPU 0 executes the instructions at EL2, until the program
/// selects another CPU or level.
#[derive(Clone, Debug)]
pub struct Program {
    events: Vec<(u16, u8, Event)>,
    pub cpu: u16,
    pub level: u8,
    /// Whether every CPU begins with invalidated TLBs.
    pub invalidated: bool,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            cpu: 0,
            level: 2,
            invalidated: true,
        }
    }
}

/// A step of a CPU.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Execute(u32, Option<u64>),
    Read(Register, Option<u64>),
    ReadBefore(Register, u32),
    Measure,
    Access {
        word: u32,
        address: u64,
        device: bool,
    },
    /// An access to a register of the interrupt controller.
    Gic(u32, Mapped),
    /// A fetch of the instructions at an address.
    Fetch(u64),
    /// A write of a value to memory, by a loader or a store.
    Memory(u64, u64),
    /// An access to an address that takes an exception to EL2.
    Failed(u64),
    /// EL2 sets ELR_EL2 to the address after the access that failed last.
    Skip,
    /// The last instruction traps, to this level.
    Traps(u8),
    Interrupt(u8),
    InterruptOfLoop(u8),
}

impl Event {
    pub fn access(name: &str, address: u64, device: bool) -> Self {
        let word = word(name);
        Self::Access {
            word,
            address,
            device,
        }
    }
}

impl Program {
    pub fn add(&mut self, event: Event) {
        self.events.push((self.cpu, self.level, event));
    }

    /// Runs the program, and returns the findings. The instructions are at consecutive addresses.
    pub fn run(&self) -> Vec<Finding> {
        let machine = Emulated::default();
        let shared = Shared::new(machine.clone());
        let mut cpus: BTreeMap<u16, CheckedCpu> = BTreeMap::new();
        let mut pc = 0x1000;
        let mut failed = 0;
        for &(number, level, event) in &self.events {
            let cpu = cpus.entry(number).or_insert_with(|| {
                let mut cpu = CheckedCpu::new(number);
                let first = ["tlbi alle2", "tlbi alle1is", "dsb sy"];
                for operation in first
                    .map(word)
                    .into_iter()
                    .filter_map(decode)
                    .filter(|_| self.invalidated)
                {
                    let place = Place { level: 2, pc: 0 };
                    cpu.note_instruction(&shared, ExecutedOperation { place, operation }, None);
                }
                cpu
            });
            pc += 4;
            let place = Place { level, pc };
            let mut execute = |operation: Option<Operation>, value| {
                if let Some(operation) = operation {
                    cpu.note_instruction(&shared, ExecutedOperation { place, operation }, value);
                }
            };
            match event {
                Event::Execute(word, value) => execute(decode(word), value),
                Event::Read(register, value) => {
                    execute(decode(0xd530_0000 | register.to_word()), None);
                    if let Some(value) = value {
                        cpu.note_read_value(&shared, value);
                    }
                }
                Event::ReadBefore(register, next) => {
                    execute(
                        decode_before(0xd530_0000 | register.to_word(), [next]),
                        None,
                    );
                }
                Event::Measure => execute(decode_before(0xd53b_e040, [word("str") - 0x20]), None),
                Event::Access {
                    word,
                    address,
                    device,
                } => {
                    execute(decode(word), None);
                    let to = (!device).then_some(address);
                    cpu.note_access(&shared, &access(place, word, address, to, None));
                }
                Event::Gic(word, register) => {
                    let device = access(place, word, register.offset, None, Some(register));
                    cpu.note_access(&shared, &device);
                }
                Event::Fetch(address) => cpu.note_fetch(&shared, place, address, 4),
                Event::Memory(address, value) => {
                    machine.0.lock().unwrap().memory.insert(address, value);
                }
                Event::Failed(address) => {
                    failed = pc;
                    cpu.note_failed_access(&shared, pc, address);
                    cpu.note_exception(&shared, pc, 2);
                }
                Event::Skip => execute(decode(0xd510_0000 | ELR_EL2.to_word()), Some(failed + 4)),
                Event::Traps(to) => {
                    pc -= 4;
                    cpu.note_exception(&shared, pc, to);
                }
                Event::Interrupt(to) => cpu.note_interrupt(&shared, pc, to),
                Event::InterruptOfLoop(to) => cpu.note_interrupt(&shared, pc - 4, to),
            }
        }
        for cpu in cpus.values_mut() {
            cpu.settle_instruction(&shared);
        }
        let known = machine.0.lock().unwrap();
        known.findings.clone()
    }
}

/// Returns the access to memory that the instruction `word` makes.
fn access(
    place: Place,
    word: u32,
    address: u64,
    physical: Option<u64>,
    gic: Option<Mapped>,
) -> Access {
    let operation = decode(word);
    Access {
        place,
        address,
        physical,
        gic,
        size: (word >> 30) as u8,
        store: word >> 22 & 1 == 0 || operation == Some(Operation::Atomic),
        alignment: match operation {
            Some(Operation::Zero) => 0,
            _ => decode::access_alignment(word),
        },
        exclusive: operation.is_some_and(|one| one != Operation::Zero),
        whole: operation == Some(Operation::Zero),
    }
}

/// Findings, and the contents of memory by physical address.
#[derive(Clone, Default)]
struct Emulated(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    findings: Vec<Finding>,
    memory: BTreeMap<u64, u64>,
}

impl Machine for Emulated {
    fn read(&self, physical: u64) -> Option<u64> {
        let known = self.0.lock().unwrap();
        Some(known.memory.get(&physical).copied().unwrap_or(0))
    }

    fn locate(&self, address: u64) -> Option<u64> {
        Some(address)
    }

    fn find(&self, finding: &Finding) {
        self.0.lock().unwrap().findings.push(finding.clone());
    }
}
