// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text programs for the tests of rules. The programs' instructions are 32-bit encodings, and are decoded like the
//! emulator's instructions.

mod program;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::gic::{Block, Frame, Mapped};
use crate::register::Register;
use crate::rules::unknown::{OF_EL1, OF_INTERFACE, OF_STAGE_2};
use program::{Event, Program, word};

/// Words that all rules share: a page at 0x8000, which EL2's tables map to itself with the entry LEAF, and values of
/// that entry.
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
    /// Words, each with the text that replaces it. `$1` in the text stands for the next word of the step, and so on.
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
            // EL2 writes 0 to all registers but one, in a set of registers that act on a guest.
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
            // The CPU takes an interrupt and then executes the last instruction, the first of a loop, again.
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
            // EL2 emulates the guest's access that failed last, and moves the guest past it.
            ["skip"] => Event::Skip,
            ["failed", at] => Event::Failed(number(at)),
            [
                frame @ ("gicd" | "gicr" | "gicd2" | "gicc" | "gich" | "gicv"),
                name,
                offset,
                value,
            ] => {
                let frame = match frame {
                    "gicd" => Frame::Distributor,
                    "gicr" => Frame::Redistributor(0x080a_0000),
                    "gicd2" => Frame::Version2(Block::Distributor),
                    "gicc" => Frame::Version2(Block::Interface),
                    "gich" => Frame::Version2(Block::Control),
                    _ => Frame::Version2(Block::GuestInterface),
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

fn register(name: &str) -> Register {
    static ALL: LazyLock<BTreeMap<String, Register>> = LazyLock::new(|| {
        let all = (0..1 << 15).map(|n| Register::of_word(n << 5));
        all.map(|one| (one.to_string(), one)).collect()
    });
    *ALL.get(name)
        .unwrap_or_else(|| panic!("no register `{name}`"))
}
