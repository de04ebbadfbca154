// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's own log of what it executes (`-d exec,nochain,int`, one instruction per block),
//! counted sample by sample.
//!
//! A line `Trace CPU: ...` names an instruction that is about to be executed; it was not if
//! `Stopped execution` follows, where another CPU gets its turn, and comes again later.
//! Lines of exceptions tell at which level a CPU is.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};

use super::marks::Marks;

/// Exits by cause.
pub type Exits = BTreeMap<&'static str, u64>;

/// What was executed between the two reads of the clock that a sample is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Instructions of all CPUs at EL1.
    pub el1: u64,
    /// The same at EL2.
    pub el2: u64,
    /// Exceptions taken from EL1 to EL2.
    pub exits: Exits,
}

impl Sample {
    /// Instructions of all CPUs.
    pub fn total(&self) -> u64 {
        self.el1 + self.el2
    }
}

/// An exception that is being taken.
#[derive(Debug)]
struct Taking {
    cpu: u32,
    interrupt: bool,
    exit: bool,
}

/// Reads a log line by line.
#[derive(Debug)]
pub struct Reader<'m> {
    marks: &'m Marks,
    /// Where each CPU is, once something has told.
    levels: BTreeMap<u32, u8>,
    /// An instruction that was not executed if the next line says so.
    next: Option<(u32, u64)>,
    /// The CPU that executed one last.
    last: u32,
    taking: Option<Taking>,
    /// The CPU that measures, and its sample so far.
    open: Option<(u32, Sample)>,
    /// Those that are complete.
    pub samples: Vec<Sample>,
}

impl<'m> Reader<'m> {
    /// Nothing read yet; the CPU that measures is number 0 and at EL1.
    pub fn new(marks: &'m Marks) -> Self {
        Self {
            marks,
            levels: BTreeMap::from([(0, 1)]),
            next: None,
            last: 0,
            taking: None,
            open: None,
            samples: Vec::new(),
        }
    }

    /// Reads a line.
    pub fn feed(&mut self, line: &str) -> Result<()> {
        let damaged = || format!("QEMU's log can't be read: `{line}`");
        if line.starts_with("Stopped execution") {
            self.next = None;
            return Ok(());
        }
        if let Some(instruction) = self.next.take() {
            self.execute(instruction)?;
        }
        if line.starts_with("Trace ") {
            self.next = Some(instruction(line).with_context(damaged)?);
        } else if let Some(rest) = line.strip_prefix("Taking exception ") {
            let (name, cpu) = rest.rsplit_once(" on CPU ").with_context(damaged)?;
            self.taking = Some(Taking {
                cpu: cpu.parse().with_context(damaged)?,
                interrupt: name.ends_with("[IRQ]"),
                exit: false,
            });
        } else if let Some(levels) = line.strip_prefix("...from EL") {
            let taking = self.taking.as_mut().with_context(damaged)?;
            let (from, to) = levels.split_once(" to EL").with_context(damaged)?;
            let [from, to]: [u8; 2] = [
                from.parse().with_context(damaged)?,
                to.parse().with_context(damaged)?,
            ];
            taking.exit = from < 2 && to == 2;
            self.levels.insert(taking.cpu, to);
        } else if let Some(syndrome) = line.strip_prefix("...with ESR ") {
            let taking = self.taking.take().with_context(damaged)?;
            if taking.exit {
                let cause = match taking.interrupt {
                    true => "irq",
                    false => cause(number(syndrome.rsplit('/').next()).with_context(damaged)?),
                };
                if let Some((_, sample)) = &mut self.open {
                    *sample.exits.entry(cause).or_default() += 1;
                }
            }
        } else if line.starts_with("Exception return from ") {
            let (_, to) = line.rsplit_once(" to AArch64 EL").with_context(damaged)?;
            let level = to.get(..1).and_then(|level| level.parse().ok());
            self.levels.insert(self.last, level.with_context(damaged)?);
        }
        Ok(())
    }

    /// Counts an instruction. A sample is from the first read of the clock, included, to
    /// the second, which is not.
    fn execute(&mut self, (cpu, address): (u32, u64)) -> Result<()> {
        self.last = cpu;
        let level = self.levels.get(&cpu).copied();
        let measures = level == Some(1);
        if measures && self.marks.begins(address) {
            ensure!(self.open.is_none(), "a sample begins within another");
            self.open = Some((cpu, Sample::default()));
        } else if measures && self.marks.ends(address) {
            let (owner, sample) = self.open.take().context("a sample ends that never began")?;
            ensure!(
                owner == cpu,
                "a sample began on CPU {owner} and ends on CPU {cpu}"
            );
            self.samples.push(sample);
        }
        if let Some((_, sample)) = &mut self.open {
            match level {
                Some(1) => sample.el1 += 1,
                Some(2) => sample.el2 += 1,
                Some(level) => bail!("CPU {cpu} executes at EL{level}"),
                None => bail!("where CPU {cpu} is was not said before a sample began"),
            }
        }
        Ok(())
    }
}

/// CPU and address of a line `Trace 0: 0x7f... [cs_base/address/flags/cflags] ...`.
fn instruction(line: &str) -> Option<(u32, u64)> {
    let (cpu, rest) = line.strip_prefix("Trace ")?.split_once(':')?;
    let address = rest.split('/').nth(1)?;
    Some((cpu.parse().ok()?, u64::from_str_radix(address, 16).ok()?))
}

fn number(text: Option<&str>) -> Option<u64> {
    u64::from_str_radix(text?.strip_prefix("0x")?, 16).ok()
}

/// What an exception is by its syndrome (DDI 0487K.a, D24.2.40, ESR_EL2), in the words of
/// the results.
fn cause(syndrome: u64) -> &'static str {
    /// ICC_SGI0R_EL1, ICC_SGI1R_EL1 and ICC_ASGI1R_EL1 are op0 3, CRn 12, CRm 11 and op1 or
    /// op2 of their own: what they have in common, of a write.
    const SGI_MASK: u64 = 3 << 20 | 0xf << 10 | 0xf << 1 | 1;
    const SGI: u64 = 3 << 20 | 12 << 10 | 11 << 1;
    let specific = syndrome & ((1 << 25) - 1);
    match syndrome >> 26 & 0x3f {
        // TI: WFI, WFE, WFIT, WFET.
        0x01 if specific & 1 == 0 => "wfi",
        0x01 => "wfe",
        0x16 => "hvc",
        0x17 => "smc",
        0x18 if specific & SGI_MASK == SGI && matches!(specific >> 17 & 7, 5..=7) => "sgi",
        0x18 => "sysreg",
        0x24 => "mmio",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 0x4024_a3d4;
    const END: u64 = 0x4024_a4e4;

    fn read(lines: &[String]) -> Result<Vec<Sample>> {
        let marks = Marks::of_addresses(&[BEGIN], &[END]);
        let mut reader = Reader::new(&marks);
        lines.iter().try_for_each(|line| reader.feed(line))?;
        reader.feed("")?;
        Ok(reader.samples)
    }

    fn trace(cpu: u32, address: u64) -> String {
        format!("Trace {cpu}: 0x7fc6883142c0 [480000104004/{address:016x}/00001121/ff022201] ")
    }

    fn exception(name: &str, cpu: u32, levels: &str, syndrome: u64) -> Vec<String> {
        let class = syndrome >> 26;
        vec![
            format!("Taking exception 1 [{name}] on CPU {cpu}"),
            format!("...from {levels}"),
            format!("...with ESR {class:#x}/{syndrome:#x}"),
            "...with SPSR 0x80000345".into(),
        ]
    }

    fn back(from: u8, to: u8) -> String {
        format!("Exception return from AArch64 EL{from} to AArch64 EL{to} PC 0x402336f0")
    }

    /// A sample in which CPU 0 sends an SGI, and CPU 1 takes its interrupt.
    fn sample() -> Vec<String> {
        let mut lines = vec![trace(0, BEGIN), trace(0, BEGIN + 4), trace(0, BEGIN + 8)];
        lines.extend(exception(
            "Undefined Instruction",
            0,
            "EL1 to EL2",
            0x623a_3036,
        ));
        lines.extend([trace(0, 0x4020_2400), trace(0, 0x4020_2404), back(2, 1)]);
        lines.extend(exception("IRQ", 1, "EL1 to EL2", 0));
        lines.push(trace(1, 0x4020_2480));
        lines
            .push("Stopped execution of TB chain before 0x7fc688368280 [0000000040202480] ".into());
        lines.extend([trace(1, 0x4020_2480), back(2, 1)]);
        lines.extend(exception("Virtual IRQ", 1, "EL1 to EL1", 0));
        lines.extend([trace(1, 0x4020_0280), back(1, 1), trace(0, END)]);
        lines
    }

    #[test]
    fn a_sample_is_counted_by_level_and_cause() {
        let exits = Exits::from([("irq", 1), ("sgi", 1)]);
        let expected = Sample {
            el1: 4,
            el2: 3,
            exits,
        };
        let twice = [sample(), sample()].concat();
        assert_eq!(read(&twice).unwrap(), [expected.clone(), expected]);
    }

    #[test]
    fn an_end_that_was_not_executed_is_none() {
        let mut lines = sample();
        lines.push("Stopped execution of TB chain before 0x7f [000000004024a4e4] ".into());
        lines.extend([trace(1, 0x4020_0284), trace(0, END)]);
        assert_eq!(read(&lines).unwrap()[0].el1, 5);
    }

    #[test]
    fn the_same_address_at_el2_is_no_mark() {
        let mut lines = exception("IRQ", 0, "EL1 to EL2", 0);
        lines.extend([trace(0, BEGIN), back(2, 1)]);
        lines.extend(sample());
        assert_eq!(read(&lines).unwrap().len(), 1);
    }

    #[test]
    fn what_can_not_be_counted_is_an_error() {
        let unknown = [trace(0, BEGIN), trace(1, 0x4020_0000)];
        let unended = [trace(0, BEGIN), trace(0, BEGIN)];
        let unbegun = [trace(0, END)];
        let cut = ["Trace 0: 0x7f".to_owned()];
        for lines in [&unknown[..], &unended, &unbegun, &cut] {
            assert!(read(lines).is_err(), "{lines:?}");
        }
    }

    #[test]
    fn causes_are_those_of_the_architecture() {
        for (syndrome, name) in [
            (0x623a_3036, "sgi"),
            (0x0600_0000 | 1 << 24, "wfi"),
            (0x07e0_0001, "wfe"),
            (0x07e0_0003, "wfe"),
            (0x5e00_0000, "smc"),
            (0x5a00_0000, "hvc"),
            // A read of CNTVCT_EL0: op1 3, CRn 14.
            (
                0x6200_0000 | 3 << 20 | 2 << 17 | 3 << 14 | 14 << 10 | 1,
                "sysreg",
            ),
            // A write of ICC_DIR_EL1: op2 1.
            (
                0x6200_0000 | 3 << 20 | 1 << 17 | 12 << 10 | 11 << 1,
                "sysreg",
            ),
            (0x9200_0007, "mmio"),
            (0x8600_0007, "other"),
        ] {
            assert_eq!(cause(syndrome), name, "{syndrome:#x}");
        }
    }
}
