// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a trace of gem5. The TarmacTracer of gem5 writes a line for each instruction that a core commits, with the
//! time of the commit, and further lines for the instruction's results.
//!
//! An instruction's line is `TICK clk CPU IT (COUNT) VIRTUAL:PHYSICAL OPCODE SET LEVEL_SECURITY : TEXT` (gem5's
//! `src/arch/arm/tracers/tarmac_record_v8.cc`, 24.0); all numbers but TICK and COUNT are hexadecimal. If the
//! instruction accessed memory, a line for the access follows: `TICK clk CPU MR BYTES VIRTUAL:PHYSICAL VALUE`, without
//! the blank before BYTES. MW stands for a write, and also for a load of a pair. The physical address may be missing.
//! If the instruction wrote a register, a line for the register follows: `TICK clk CPU R NAME VALUE`. Each core has its
//! own file, which may be a FIFO ([`Fifo`]).

#![forbid(unsafe_code)]

mod fifo;

pub use fifo::Fifo;

use anyhow::{Context, Result, bail};
use cost::Level;

/// A line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'t> {
    /// The core committed an instruction.
    Instruction(Instruction),
    /// The last instruction accessed memory.
    Access(Access),
    /// The last instruction wrote a register.
    Register(&'t str, u64),
}

/// An instruction that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The time, in ticks of the simulator, which are picoseconds.
    pub tick: u64,
    /// The instruction's virtual address.
    pub pc: u64,
    /// The instruction's encoding.
    pub word: u32,
    /// The exception level after the instruction; see [`Levels::executed`].
    after: Level,
}

/// A load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whether the access was a store.
    pub store: bool,
    /// Virtual address.
    pub address: u64,
    /// Physical address, if the trace has it.
    pub physical: Option<u64>,
    /// The access's size, in bytes.
    pub bytes: u64,
}

/// Parses a line of a trace. Returns `None` for a line of any other kind.
pub fn parse(line: &str) -> Result<Option<Line<'_>>> {
    let mut words = line.split_ascii_whitespace();
    let (Some(tick), Some("clk"), Some(_), Some(form)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Ok(None);
    };
    if form == "IT" {
        return instruction(line, tick, words)
            .map(Line::Instruction)
            .map(Some);
    }
    let rest = (words.next(), words.next());
    Ok(access(form, rest.0).or_else(|| match (form, rest) {
        ("R", (Some(name), Some(value))) => {
            let value = u64::from_str_radix(value, 16).ok()?;
            Some(Line::Register(name, value))
        }
        _ => None,
    }))
}

fn instruction<'t>(
    line: &str,
    tick: &str,
    mut words: impl Iterator<Item = &'t str>,
) -> Result<Instruction> {
    let mut next = || words.next();
    let (_, address, word, _, mode) = (next(), next(), next(), next(), next());
    let pc = address.and_then(|address| address.split(':').next());
    let after = match mode.and_then(|mode| mode.get(..3)) {
        Some("EL0") => Level::El0,
        Some("EL1") => Level::El1,
        Some("EL2") => Level::El2,
        Some("EL3") => Level::El3,
        _ => bail!("gem5's trace has a line of another form: {}", line.trim()),
    };
    let hex = |text: Option<&str>| u64::from_str_radix(text.unwrap_or_default(), 16);
    let (Ok(tick), Ok(pc), Ok(word)) = (tick.parse(), hex(pc), hex(word)) else {
        bail!(
            "gem5's trace has a line with a damaged number: {}",
            line.trim()
        );
    };
    let word =
        u32::try_from(word).context("gem5's trace has an instruction of more than 32 bits")?;
    Ok(Instruction {
        tick,
        pc,
        word,
        after,
    })
}

fn access(form: &str, addresses: Option<&str>) -> Option<Line<'static>> {
    let (store, bytes) = match form.strip_prefix("MW") {
        Some(bytes) => (true, bytes),
        None => (false, form.strip_prefix("MR")?),
    };
    let mut addresses = addresses?.split(':');
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Line::Access(Access {
        store,
        address: hex(addresses.next()?)?,
        physical: addresses.next().and_then(hex),
        bytes: bytes.parse().ok()?,
    }))
}

/// Follows the levels of a core.
#[derive(Clone, Copy, Debug)]
pub struct Levels(Level);

impl Default for Levels {
    fn default() -> Self {
        Self(Level::El1)
    }
}

impl Levels {
    /// Returns the level at which `instruction`, the next one, was executed. The line of an ERET or of a trapped
    /// instruction contains the level to which the CPU changes instead. The line of the first instruction after an
    /// interrupt, which is in a vector, contains that instruction's own level.
    pub fn executed(&mut self, instruction: &Instruction) -> Level {
        const ERET: u32 = 0xd69f_03e0;
        let before = std::mem::replace(&mut self.0, instruction.after);
        let traps = instruction.after > before && !is_interrupt(instruction.pc);
        match instruction.word == ERET || traps {
            true => before,
            false => instruction.after,
        }
    }
}

/// Whether an instruction at `pc` is the first one of the vector for interrupts from a lower level (DDI 0487K.a,
/// D1.3.1.5).
#[must_use]
pub fn is_interrupt(pc: u64) -> bool {
    pc & 0x7ff == 0x480
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(text: &str) -> Vec<(u64, Level)> {
        let mut levels = Levels::default();
        let lines = text.lines().map(|line| parse(line).unwrap());
        let found = lines.filter_map(|line| match line {
            Some(Line::Instruction(one)) => Some((one.tick, levels.executed(&one))),
            _ => None,
        });
        found.collect()
    }

    #[test]
    fn a_level_is_the_one_before_where_the_instruction_leaves_it() {
        use Level::{El1, El2};
        // A trapped write and the instruction after it, an ERET, as in-order cores trace them.
        let text = "1 clk cpu0 IT (0) 4020b6d4:4020b6d4 d518cba1 O EL2h_ns : msr\n\
                    2 clk cpu0 IT (1) 80202400:80202400 d518cba1 O EL2h_ns : msr\n\
                    3 clk cpu0 R cpsr 000003c5\n\
                    4 clk cpu0 IT (2) 8020245c:8020245c d69f03e0 O EL1h_ns : eret\n\
                    5 clk cpu0 IT (3) 4020b6d8:4020b6d8 d503201f O EL1h_ns : nop";
        assert_eq!(executed(text), [(1, El1), (2, El2), (4, El2), (5, El1)]);
        // An interrupt's first instruction, and then an ERET as the out-of-order core traces it.
        let text = "1 clk cpu0 IT (0) 80202480:80202480 d518cba1 O EL2h_ns : msr\n\
                    2 clk cpu0 IT (2) 8020245c:8020245c d69f03e0 O EL2h_ns : eret";
        assert_eq!(executed(text), [(1, El2), (2, El2)]);
    }

    #[test]
    fn accesses_and_registers_are_read() {
        let read = |text| parse(text).unwrap();
        assert_eq!(
            read("2500 clk cpu0 MW8 ffff000080100000:000080100000 0000000000000001"),
            Some(Line::Access(Access {
                store: true,
                address: 0xffff_0000_8010_0000,
                physical: Some(0x8010_0000),
                bytes: 8,
            }))
        );
        let Some(Line::Access(access)) = read("5 clk cpu0 MR4 80100000 00000001") else {
            panic!("an access");
        };
        assert_eq!((access.store, access.physical), (false, None));
        assert_eq!(
            read("5 clk cpu0 R icc_sgi1r_el1 01000002"),
            Some(Line::Register("icc_sgi1r_el1", 0x0100_0002))
        );
        for other in [
            "info: x",
            "5 clk cpu0 R",
            "5 clk cpu0 MR4",
            "5 clk cpu0 X y z",
            "",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn damaged_lines_are_refused() {
        for line in [
            "5 clk cpu0 IT (0) 8040000 d503201f O XX1h_ns : nop",
            "x clk cpu0 IT (0) 8040000 d503201f O EL1h_ns : nop",
            "5 clk cpu0 IT (0) 8040000 zz O EL1h_ns : nop",
            "5 clk cpu0 IT (0) 8040000 1d503201f O EL1h_ns : nop",
            "5 clk cpu0 IT (0) 80400",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
