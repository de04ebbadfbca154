// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text programs for the tests of rules. The programs' instructions are 32-bit encodings, and are decoded like the
//! emulator's instructions.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use crate::decode::{self, Operation, decode, decode_before};
use crate::gic::{Frame, Mapped};
use crate::register::Register;
use crate::rules::unknown::{OF_EL1, OF_INTERFACE, OF_STAGE_2};
use crate::{Access, CheckedCpu, ExecutedOperation, Finding, Machine, Place, Shared};

/// Instructions without operands, or with x0 to x2.
const INSTRUCTIONS: &[(&str, u32)] = &[
    ("isb", 0xd503_3fdf),
    ("dsb sy", 0xd503_3f9f),
    ("dsb ish", 0xd503_3b9f),
    ("dsb ishst", 0xd503_3a9f),
    ("dsb nsh", 0xd503_379f),
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

/// Words that all rules share: a page at 0x8000 that EL2's tables map to itself by the entry LEAF, and values of that
/// entry.
const COMMON: &[(&str, &str)] = &[
    ("on", "msr SCTLR_EL2 5; isb"),
    (
        "mapped",
        "memory 0x2000 0x3003; memory 0x3000 0x4003; memory 0x4000 0x5003; memory LEAF $1; \
         msr MAIR_EL2 0x44ff04; msr TTBR0_EL2 0x2000; msr TCR_EL2 16; isb; on",
    ),
    ("LEAF", "0x5040"),
    ("DEVICE", "0x8703"),
    ("UNCACHED", "0x870b"),
    ("CACHED", "0x8707"),
    ("A", "0x40000000"),
];

/// Programs that break a rule, and programs that keep it but look as if they broke it. Each line has the name of a
/// program and its steps, which are separated by `; `. [`Examples::step`] parses the steps.
pub struct Examples {
    /// Words, each with the text that replaces it. `$1` in the text is replaced by the first word after it, and so on.
    pub words: &'static [(&'static str, &'static str)],
    pub breaks: &'static str,
    pub keeps: &'static str,
}

impl Examples {
    /// Parses the programs in `text`, which is either `breaks` or `keeps`.
    pub fn programs(&self, text: &'static str) -> impl Iterator<Item = (&'static str, Program)> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(|line| {
            let (name, steps) = line.split_once(": ").expect(line);
            let mut program = Program::default();
            self.steps(&mut program, steps);
            (name, program)
        })
    }

    fn steps(&self, program: &mut Program, steps: &str) {
        steps.split("; ").for_each(|step| self.step(program, step));
    }

    fn meaning(&self, word: &str) -> Option<&'static str> {
        let mut words = self.words.iter().chain(COMMON);
        words
            .find(|(known, _)| *known == word)
            .map(|(_, text)| *text)
    }

    /// Returns the number in `text`, or the bitwise OR of several numbers with `|` between them.
    fn number(&self, text: &str) -> u64 {
        let values = text.split('|').map(|part| match self.meaning(part) {
            Some(text) => self.number(text),
            None => match part.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).expect(part),
                None => part.parse().expect(part),
            },
        });
        values.fold(0, |all, value| all | value)
    }

    fn step(&self, program: &mut Program, step: &str) {
        let words: Vec<&str> = step.split(' ').collect();
        if let Some(text) = self.meaning(words[0]) {
            let given = words[1..].iter().enumerate();
            let replaced = |text: String, (n, word): (usize, &&str)| {
                text.replace(&format!("${}", n + 1), word)
            };
            return self.steps(program, &given.fold(text.to_owned(), replaced));
        }
        let number = |word: &str| self.number(word);
        let event = match *words {
            // The TLBs are in their state after reset.
            ["found"] => return program.invalidated = false,
            ["cpu", n] => return program.cpu = number(n) as u16,
            ["el", n] => return program.level = number(n) as u8,
            // `#` is replaced by the number of the repetition, and `#/8` and `#%8` by its octal digits.
            [times, "*", ..] => {
                let step = &step[times.len() + 3..];
                let each = |n: u64| {
                    let step = step
                        .replace("#/8", &(n / 8).to_string())
                        .replace("#%8", &(n % 8).to_string());
                    self.step(program, &step.replace('#', &n.to_string()));
                };
                return (0..number(times)).for_each(each);
            }
            // EL2 writes 0 to every register of a set that acts on a guest, except one.
            ["clear", set, "but", but] => {
                let registers = match set {
                    "OF_EL1" => OF_EL1,
                    "OF_STAGE_2" => OF_STAGE_2,
                    "OF_INTERFACE" => OF_INTERFACE,
                    other => panic!("no registers {other}"),
                };
                let all = registers.iter().filter(|one| one.to_string() != but);
                return all.for_each(|one| {
                    program.add(Event::Execute(0xd510_0000 | one.to_word(), Some(0)))
                });
            }
            // The CPU stores this value.
            ["entry", at, value] => {
                self.step(program, &format!("memory {at} {value}"));
                return self.step(program, &format!("str {at}"));
            }
            ["memory", at, value] => Event::Memory(number(at), number(value)),
            ["fetch", at] => Event::Fetch(number(at)),
            ["traps", n] => Event::Traps(number(n) as u8),
            ["irq", n] => Event::Interrupt(number(n) as u8),
            // The CPU takes an interrupt and then executes the last instruction again, which is the first of a loop.
            ["loop-irq", n] => Event::InterruptOfLoop(number(n) as u8),
            // MRS of CNTVCT_EL0, whose value is then stored.
            ["measure"] => Event::Measure,
            ["msr", name, value] => {
                Event::Execute(0xd510_0000 | register(name).to_word(), Some(number(value)))
            }
            ["mrs", name] => Event::Read(register(name), None),
            ["mrs", name, "=", value] => Event::Read(register(name), Some(number(value))),
            ["mrs", name, "before", next] => Event::ReadBefore(register(name), word(next)),
            ["zero", at] => Event::access("dc zva", number(at), false),
            ["device", name, at] => Event::access(name, number(at), true),
            [frame @ ("gicd" | "gicr"), name, offset, value] => {
                let frame = match frame {
                    "gicd" => Frame::Distributor,
                    _ => Frame::Redistributor(0x080a_0000),
                };
                let (offset, value) = (number(offset), number(value));
                let register = Mapped {
                    frame,
                    offset,
                    value,
                };
                // The access is a 32-bit access.
                Event::Gic(word(name) & !(1 << 30), register)
            }
            [
                name @ ("ldr" | "str" | "stp" | "ldaxr" | "stxr" | "ldadd"),
                at,
            ] => Event::access(name, number(at), false),
            [first, second, at] => {
                Event::Execute(word(&format!("{first} {second}")), Some(number(at)))
            }
            _ => Event::Execute(word(step), None),
        };
        program.add(event);
    }
}

fn word(name: &str) -> u32 {
    let found = INSTRUCTIONS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no instruction `{name}`")).1
}

fn register(name: &str) -> Register {
    static ALL: LazyLock<BTreeMap<String, Register>> = LazyLock::new(|| {
        let all = (0..1 << 15).map(|n| Register::of_word(n << 5));
        all.map(|one| (one.to_string(), one)).collect()
    });
    *ALL.get(name)
        .unwrap_or_else(|| panic!("no register `{name}`"))
}

/// The instructions that CPUs execute, one after another. CPU 0 executes the instructions at EL2, until the program
/// selects another CPU or level.
#[derive(Clone, Debug)]
pub struct Program {
    events: Vec<(u16, u8, Event)>,
    cpu: u16,
    level: u8,
    /// Whether every CPU begins with invalidated TLBs.
    invalidated: bool,
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
    /// A fetch of the instructions at an address.
    Fetch(u64),
    /// A write of a value to memory, by a loader or a store.
    Memory(u64, u64),
    /// The last instruction traps, to this level.
    Traps(u8),
    Interrupt(u8),
    InterruptOfLoop(u8),
}

impl Event {
    fn access(name: &str, address: u64, device: bool) -> Self {
        let word = word(name);
        Self::Access {
            word,
            address,
            device,
        }
    }
}

impl Program {
    fn add(&mut self, event: Event) {
        self.events.push((self.cpu, self.level, event));
    }

    /// Runs the program, and returns the findings. The instructions are at consecutive addresses.
    pub fn run(&self) -> Vec<Finding> {
        let machine = Emulated::default();
        let shared = Shared::new(machine.clone());
        let mut cpus: BTreeMap<u16, CheckedCpu> = BTreeMap::new();
        let mut pc = 0x1000;
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
