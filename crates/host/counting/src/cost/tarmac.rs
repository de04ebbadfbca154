// SPDX-License-Identifier: MIT OR Apache-2.0
//! Extracts windows from a trace of gem5 (crate `tarmac`). Lines between windows are dropped while they are read. The
//! marks are part of their window, because the cost of an exception is computed from the lines before and after it.

use std::io::BufRead;

use anyhow::{Context, Result};
use cost::{Edge, Level, Mark};
use tarmac::{Levels, Line};

use super::trace::{Executed, Window};

/// Largest number of steps in a window. Longer windows are dropped.
const MOST: usize = 200_000;

/// Returns the windows of the core with number `cpu`.
pub fn windows(mut trace: impl BufRead, cpu: u16) -> Result<Vec<Window>> {
    let (mut done, mut open) = (Vec::new(), None::<Window>);
    let mut levels = Levels::default();
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
        let step = match tarmac::parse(&text)? {
            Some(Line::Instruction(one)) => {
                Executed::new(levels.executed(&one), one.word, one.pc, one.tick)
            }
            // An access belongs to the last step in the open window.
            Some(Line::Access(access)) => {
                let last = open.as_mut().and_then(|window| window.steps.last_mut());
                if let Some(last) = last {
                    last.accesses.push(access.into());
                }
                continue;
            }
            Some(Line::Register(..)) | None => continue,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::trace::Access;
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
    fn a_damaged_line_is_an_error_and_a_window_without_an_end_is_none() {
        assert!(windows(&b"5 clk cpu0 IT (0) 80400"[..], 0).is_err());
        // Other lines, and a window without an end, are ignored.
        let other = format!("info: x\n5 clk cpu0 R x0 1\n{}", mark(Edge::Begin));
        assert!(windows(other.as_bytes(), 0).unwrap().is_empty());
    }
}
