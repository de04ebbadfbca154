// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs for the tests of rules: instructions as words, decoded like the emulator's.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::decode::{self, Operation, decode, decode_before};
use crate::gic::{Frame, Mapped};
use crate::register::Register;
use crate::{Access, CheckedCpu, ExecutedOperation, Finding, Machine, Place, Shared};

pub const ISB: u32 = 0xd503_3fdf;
pub const DSB_SY: u32 = 0xd503_3f9f;
pub const DSB_ISH: u32 = 0xd503_3b9f;
pub const DSB_ISHST: u32 = 0xd503_3a9f;
pub const DSB_NSH: u32 = 0xd503_379f;
pub const WFI: u32 = 0xd503_207f;
pub const WFE: u32 = 0xd503_205f;
pub const WFIT: u32 = 0xd503_1020;
pub const SEV: u32 = 0xd503_209f;
pub const SEVL: u32 = 0xd503_20bf;
pub const HVC: u32 = 0xd400_0002;
pub const ERET: u32 = 0xd69f_03e0;
pub const TLBI_ALLE2: u32 = 0xd50c_871f;
pub const TLBI_ALLE1IS: u32 = 0xd50c_839f;
pub const AT: u32 = 0xd50c_7800;
pub const LDR: u32 = 0xf940_0020;
pub const STR: u32 = 0xf900_0020;
pub const STP: u32 = 0xa900_0440;
pub const LDAXR: u32 = 0xc85f_fc20;
pub const STXR: u32 = 0xc802_7c20;
pub const LDADD: u32 = 0xf8e0_0022;
pub const DC_CIVAC: u32 = 0xd50b_7e20;
pub const DC_CVAC: u32 = 0xd50b_7a20;
pub const DC_CVAU: u32 = 0xd50b_7b20;
pub const IC_IVAU: u32 = 0xd50b_7520;
pub const IC_IALLU: u32 = 0xd508_751f;
pub const TLBI_VMALLE1: u32 = 0xd508_871f;
pub const TLBI_VMALLS12E1: u32 = 0xd50c_87df;
pub const DC_ZVA: u32 = 0xd50b_7420;
pub const FADD: u32 = 0x1e60_2820;
/// `and x0, x0, #1` and `orr x0, x0, #1`.
pub const AND_1: u32 = 0x9240_0000;
pub const ORR_1: u32 = 0xb240_0000;

/// Frames of the interrupt controller.
pub const DISTRIBUTOR: Frame = Frame::Distributor;
pub const REDISTRIBUTOR: Frame = Frame::Redistributor(0x080a_0000);

/// Entry of [`mapped`], and its possible values.
pub const LEAF: u64 = 0x5040;
pub const DEVICE: u64 = 0x8403 | SHAREABLE;
pub const UNCACHED: u64 = DEVICE | 2 << 2;
pub const CACHED: u64 = DEVICE | 1 << 2;
pub const SHAREABLE: u64 = 3 << 8;

/// EL2 with its MMU on, and the page at 0x8000 mapped to itself by `descriptor`.
pub fn mapped(descriptor: u64) -> Program {
    use crate::register::*;
    Program::new()
        .memory(0x2000, 0x3003)
        .memory(0x3000, 0x4003)
        .memory(0x4000, 0x5003)
        .memory(LEAF, descriptor)
        .write(MAIR_EL2, 0x44_ff_04)
        .write(TTBR0_EL2, 0x2000)
        .write(TCR_EL2, 16)
        .then(ISB)
        .write(SCTLR_EL2, 5)
        .then(ISB)
}

/// A program and its name.
pub type Example = (&'static str, Program);

/// Instructions that CPUs execute, one after another.
#[derive(Clone, Debug, Default)]
pub struct Program(Vec<(u16, u8, Event)>, u16, u8, bool);

#[derive(Clone, Copy, Debug)]
enum Event {
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
    /// A fetch of the instructions there.
    Fetch(u64),
    /// A loader or a store wrote this to memory.
    Memory(u64, u64),
    /// The last instruction traps.
    Traps(u8),
    Interrupt(u8),
}

impl Program {
    /// Creates a program of CPU 0 at EL2. Each CPU has invalidated its TLBs.
    pub fn new() -> Self {
        Self(Vec::new(), 0, 2, true)
    }

    /// Creates a program of CPU 0 at EL2. TLBs are as after reset.
    pub fn found() -> Self {
        Self(Vec::new(), 0, 2, false)
    }

    fn with(mut self, event: Event) -> Self {
        self.0.push((self.1, self.2, event));
        self
    }

    /// Sets the level of the following instructions.
    pub fn level(self, level: u8) -> Self {
        Self(self.0, self.1, level, self.3)
    }

    /// Sets the CPU of the following instructions.
    pub fn cpu(self, cpu: u16) -> Self {
        Self(self.0, cpu, self.2, self.3)
    }

    /// An instruction.
    pub fn then(self, word: u32) -> Self {
        self.with(Event::Execute(word, None))
    }

    /// An instruction with an address.
    pub fn of(self, word: u32, address: u64) -> Self {
        self.with(Event::Execute(word, Some(address)))
    }

    /// MSR.
    pub fn write(self, register: Register, value: u64) -> Self {
        self.with(Event::Execute(
            0xd510_0000 | register.to_word(),
            Some(value),
        ))
    }

    /// MRS.
    pub fn read(self, register: Register) -> Self {
        self.with(Event::Read(register, None))
    }

    /// MRS into x0, before the instruction `next`.
    pub fn read_before(self, register: Register, next: u32) -> Self {
        self.with(Event::ReadBefore(register, next))
    }

    /// MRS that returns a value.
    pub fn reads(self, register: Register, value: u64) -> Self {
        self.with(Event::Read(register, Some(value)))
    }

    /// MRS of CNTVCT_EL0 whose value is stored.
    pub fn measure(self) -> Self {
        self.with(Event::Measure)
    }

    /// A load or store of memory.
    pub fn access(self, word: u32, address: u64) -> Self {
        self.with(Event::Access {
            word,
            address,
            device: false,
        })
    }

    /// A word in memory from the start.
    pub fn memory(self, address: u64, value: u64) -> Self {
        self.with(Event::Memory(address, value))
    }

    /// A store of this value.
    pub fn entry(self, address: u64, value: u64) -> Self {
        self.with(Event::Memory(address, value))
            .access(STR, address)
    }

    /// A load or store of a device.
    pub fn device(self, word: u32, address: u64) -> Self {
        self.with(Event::Access {
            word,
            address,
            device: true,
        })
    }

    /// A load or store of the interrupt controller.
    pub fn gic(self, word: u32, frame: Frame, offset: u64, value: u64) -> Self {
        let register = Mapped {
            frame,
            offset,
            value,
        };
        // Of 32 bits.
        self.with(Event::Gic(word & !(1 << 30), register))
    }

    /// The CPU fetches instructions at `address`.
    pub fn fetches(self, address: u64) -> Self {
        self.with(Event::Fetch(address))
    }

    /// Traps the last instruction to `level`.
    pub fn traps(self, level: u8) -> Self {
        self.with(Event::Traps(level))
    }

    /// An interrupt is taken to `level`.
    pub fn interrupt(self, level: u8) -> Self {
        self.with(Event::Interrupt(level))
    }

    /// Returns the findings. The instructions lie one after another.
    pub fn run(&self) -> Vec<Finding> {
        let machine = Emulated::default();
        let shared = Shared::new(machine.clone());
        let mut cpus: BTreeMap<u16, CheckedCpu> = BTreeMap::new();
        let mut pc = 0x1000;
        for &(number, level, event) in &self.0 {
            let cpu = cpus.entry(number).or_insert_with(|| {
                let mut cpu = CheckedCpu::new(number);
                let first = [TLBI_ALLE2, TLBI_ALLE1IS, DSB_SY];
                for operation in first.into_iter().filter_map(decode).filter(|_| self.3) {
                    let place = Place { level: 2, pc: 0 };
                    cpu.executes(&shared, ExecutedOperation { place, operation }, None);
                }
                cpu
            });
            pc += 4;
            let place = Place { level, pc };
            let mut execute = |operation: Option<Operation>, value| {
                if let Some(operation) = operation {
                    cpu.executes(&shared, ExecutedOperation { place, operation }, value);
                }
            };
            match event {
                Event::Execute(word, value) => execute(decode(word), value),
                Event::Read(register, value) => {
                    execute(decode(0xd530_0000 | register.to_word()), None);
                    if let Some(value) = value {
                        cpu.reads(&shared, value);
                    }
                }
                Event::ReadBefore(register, next) => {
                    execute(
                        decode_before(0xd530_0000 | register.to_word(), [next]),
                        None,
                    );
                }
                Event::Measure => execute(decode_before(0xd53b_e040, [STR - 0x20]), None),
                Event::Access {
                    word,
                    address,
                    device,
                } => {
                    execute(decode(word), None);
                    let to = (!device).then_some(address);
                    cpu.accesses(&shared, &access(place, word, address, to, None));
                }
                Event::Gic(word, register) => {
                    let device = access(place, word, register.offset, None, Some(register));
                    cpu.accesses(&shared, &device);
                }
                Event::Fetch(address) => cpu.fetches(&shared, place, address, 4),
                Event::Memory(address, value) => {
                    machine.0.lock().unwrap().memory.insert(address, value);
                }
                Event::Traps(to) => {
                    pc -= 4;
                    cpu.excepts(&shared, pc, to);
                }
                Event::Interrupt(to) => cpu.excepts(&shared, pc, to),
            }
        }
        for cpu in cpus.values_mut() {
            cpu.settle(&shared);
        }
        let known = machine.0.lock().unwrap();
        known.findings.clone()
    }
}

/// The access that the instruction `word` makes.
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
            _ => decode::alignment(word),
        },
        exclusive: operation.is_some_and(|one| one != Operation::Zero),
        whole: operation == Some(Operation::Zero),
    }
}

/// Findings and memory, by physical addresses.
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
