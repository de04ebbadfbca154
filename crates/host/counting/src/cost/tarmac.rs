// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows from a trace of gem5. Its TarmacTracer writes a line for each instruction that a core commits, with the time
//! of the commit, and further lines for the instruction's results.
//!
//! An instruction is `TICK clk CPU IT (COUNT) VIRTUAL:PHYSICAL OPCODE SET LEVEL_SECURITY : TEXT` (gem5's
//! `src/arch/arm/tracers/tarmac_record_v8.cc`, 24.0); all numbers but TICK and COUNT are hexadecimal.
//! An access that the instruction made follows as `TICK clk CPU MR BYTES VIRTUAL:PHYSICAL VALUE`, without the blank
//! before BYTES; MW for a write. The physical address may be missing. The level is the level after the instruction; see
//! [`executed_at`]. Each core has its own file, which may be a FIFO: lines between windows are dropped as they come.
//! The marks are part of their window: the cost of an exception follows from the lines before and after it.

use std::io::BufRead;

use anyhow::{Context, Result, bail};
use cost::{Edge, Level, Mark};

use super::instruction_kind::{InstructionKind, kind};
use super::trace::{Access, Executed, Window};
use super::visit;

/// Most steps of a window; longer windows are dropped.
const MOST: usize = 200_000;

/// Returns the windows of the core with number `cpu`.
pub fn windows(mut trace: impl BufRead, cpu: u16) -> Result<Vec<Window>> {
    let (mut done, mut open) = (Vec::new(), None::<Window>);
    let mut before = Level::El1;
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = trace
            .read_until(b'\n', &mut line)
            .context("gem5's trace can't be read")?;
        if length == 0 {
            return Ok(done);
        }
        let text = String::from_utf8_lossy(&line);
        let Some(step) = step(&text, &mut before)? else {
            // The mark itself has no step.
            let last = open.as_mut().and_then(|window| window.steps.last_mut());
            if let Some((last, access)) = last.zip(access(&text)) {
                last.accesses.push(access);
            }
            continue;
        };
        match Mark::decode(step.word).filter(|_| step.level == Level::El1) {
            Some(Mark {
                path,
                edge: Edge::Begin,
            }) => {
                open = Some(Window {
                    path,
                    cpu,
                    steps: vec![step],
                    spun: false,
                });
            }
            Some(Mark {
                path,
                edge: Edge::End,
            }) => {
                let ended = open.take_if(|window| window.path == path);
                let ended = ended.filter(|window| window.steps.len() < MOST);
                done.extend(ended.map(|mut window| {
                    window.steps.push(step);
                    window
                }));
            }
            None => {
                if let Some(window) = open.as_mut().filter(|window| window.steps.len() < MOST) {
                    window.steps.push(step);
                }
            }
        }
    }
}

/// Parses the instruction of a line; `None` for any other line. `before` is the level at which it was executed, and
/// becomes the level after it.
fn step(line: &str, before: &mut Level) -> Result<Option<Executed>> {
    let mut words = line.split_ascii_whitespace();
    let mut next = || words.next();
    let (Some(tick), Some("clk"), Some(_), Some("IT")) = (next(), next(), next(), next()) else {
        return Ok(None);
    };
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
    let parsed = (tick.parse(), hex(pc), hex(word));
    let (Ok(tick), Ok(pc), Ok(word)) = parsed else {
        bail!(
            "gem5's trace has a line with a damaged number: {}",
            line.trim()
        );
    };
    let word =
        u32::try_from(word).context("gem5's trace has an instruction of more than 32 bits")?;
    let level = executed_at(*before, after, word, pc);
    *before = after;
    Ok(Some(Executed::new(level, word, pc, tick)))
}

/// Parses the access of a line; `None` for any other line.
fn access(line: &str) -> Option<Access> {
    let mut words = line.split_ascii_whitespace();
    let what = words.nth(3)?;
    let (store, bytes) = match what.strip_prefix("MW") {
        Some(bytes) => (true, bytes),
        None => (false, what.strip_prefix("MR")?),
    };
    let address = words.next()?.split(':').next()?;
    Some(Access {
        store,
        address: u64::from_str_radix(address, 16).ok()?,
        bytes: bytes.parse().ok()?,
    })
}

/// Returns the level at which an instruction was executed, from the traced levels of the previous instruction and of
/// this one: an ERET or a trapped instruction is traced with the next level. The first instruction after an interrupt
/// is in a vector, and has its own level.
fn executed_at(before: Level, after: Level, word: u32, pc: u64) -> Level {
    let returns = kind(word) == InstructionKind::Return;
    let traps = after > before && !visit::is_interrupt(pc);
    if returns || traps { before } else { after }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cost::Path;

    fn mark(edge: Edge) -> String {
        let mark = Mark {
            path: Path::Hypercall,
            edge,
        };
        format!(
            "10 clk cpu0 IT (1) 80400000:80400000 {:08x} O EL1h_ns : movz xzr, #1\n",
            mark.instruction()
        )
    }

    #[test]
    fn a_window_has_what_is_between_its_marks() {
        let text = format!(
            "5 clk cpu0 IT (0) 803ffffc:803ffffc d503201f O EL1h_ns : nop\n{}\
             1500 clk cpu0 IT (2) ffff000080400004 d4000002 O EL2h_ns : hvc #0\n\
             1500 clk cpu0 R cpsr 000003c5\n\
             2500 clk cpu0 IT (3) 80200400:000080200400 d503201f O EL2h_ns : nop\n\
             3000 clk cpu0 IT (4) 80200404 d69f03e0 O EL1h_ns : eret\n\
             2500 clk cpu0 MW8 80100000 0000000000000001\n\
             4000 clk cpu0 IT (5) ffff000080400008:000080400008 d503201f O EL1h_ns : nop\n{}\
             9 clk cpu0 IT (9) 80400010:80400010 d503201f O EL1h_ns : nop\n",
            mark(Edge::Begin),
            mark(Edge::End)
        );
        let windows = windows(text.as_bytes(), 1).unwrap();
        let [window] = &windows[..] else {
            panic!("{windows:?}");
        };
        let steps: Vec<_> = window
            .steps
            .iter()
            .map(|step| (step.level, step.tick))
            .collect();
        assert_eq!(
            steps,
            [
                (Level::El1, 10),
                (Level::El1, 1500),
                (Level::El2, 2500),
                (Level::El2, 3000),
                (Level::El1, 4000),
                (Level::El1, 10),
            ]
        );
        assert_eq!((window.cpu, window.steps[1].word), (1, 0xd400_0002));
        let accesses = [Access {
            store: true,
            address: 0x8010_0000,
            bytes: 8,
        }];
        assert_eq!(window.steps[3].accesses, accesses);
        assert!(window.steps[2].accesses.is_empty());
    }

    #[test]
    fn a_level_is_the_one_before_where_the_instruction_leaves_it() {
        use Level::{El1, El2};
        const ERET: u32 = 0xd69f_03e0;
        const MSR: u32 = 0xd518_cba1;
        // A trapped write and the instruction after it, as the cores trace them.
        assert_eq!(executed_at(El1, El2, MSR, 0x4020_b6d4), El1);
        assert_eq!(executed_at(El2, El2, MSR, 0x8020_2400), El2);
        // The first instruction after an interrupt.
        assert_eq!(executed_at(El1, El2, MSR, 0x8020_2480), El2);
        // A return: in-order cores trace the level after it, and the out-of-order core traces the level before it.
        assert_eq!(executed_at(El2, El1, ERET, 0x8020_245c), El2);
        assert_eq!(executed_at(El2, El2, ERET, 0x8020_245c), El2);
        assert_eq!(executed_at(El2, El1, MSR, 0x4020_b6d8), El1);
        assert_eq!(executed_at(El1, El1, ERET, 0x4020_b6d8), El1);
    }

    #[test]
    fn what_is_damaged_is_told() {
        for line in [
            "5 clk cpu0 IT (0) 8040000 d503201f O XX1h_ns : nop",
            "x clk cpu0 IT (0) 8040000 d503201f O EL1h_ns : nop",
            "5 clk cpu0 IT (0) 8040000 zz O EL1h_ns : nop",
            "5 clk cpu0 IT (0) 80400",
        ] {
            assert!(windows(line.as_bytes(), 0).is_err(), "{line}");
        }
        // Other lines, and a window without an end, do not count.
        let other = format!("info: x\n5 clk cpu0 R x0 1\n{}", mark(Edge::Begin));
        assert!(windows(other.as_bytes(), 0).unwrap().is_empty());
    }
}
