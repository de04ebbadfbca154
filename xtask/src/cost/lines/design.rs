// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines that each path has by design, and why. A path that misses another one fails: it has grown into a line, or uses
//! what it did not.
//!
//! The short paths have each line by its name. Of those that go through Rust the compiler decides which lines code is on, so
//! they have their number, by what they are of: as many as `minor`, `hpi` and `o3` missed, and those that were there still.

use cost::Path;

use super::names::Kind;
use super::{Line, Missed};

/// Some lines of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// What they may be of.
    pub kinds: &'static [Kind],
    /// What their names begin with.
    pub of: &'static str,
    /// The most of them.
    pub lines: usize,
    pub why: &'static str,
}

impl Design {
    /// Whether `line` is one of them.
    pub fn fits(&self, line: &Line) -> bool {
        self.kinds.contains(&line.kind) && line.name.starts_with(self.of)
    }
}

const fn lines(
    lines: usize,
    kinds: &'static [Kind],
    of: &'static str,
    why: &'static str,
) -> Design {
    Design {
        kinds,
        of,
        lines,
        why,
    }
}

const VECTOR: &[Kind] = &[Kind::Vector];
const HANDLER: &[Kind] = &[Kind::Handler];
const FRAME: &[Kind] = &[Kind::Frame];
const CPU: &[Kind] = &[Kind::Cpu];
/// Of what goes through Rust.
const CODE: &[Kind] = &[Kind::Vector, Kind::Handler, Kind::Code];
const DATA: &[Kind] = &[
    Kind::Frame,
    Kind::Stack,
    Kind::Cpu,
    Kind::Image,
    Kind::Memory,
];

const SAVED: Design = lines(
    1,
    FRAME,
    "sp+0x0",
    "two registers, saved at the top of the stack",
);
const FIRST: Design = lines(
    1,
    CPU,
    "vcpu.fast_paths",
    "what the path looks at and counts, beside each other",
);
const COUNTED: Design = lines(1, CPU, "vcpu.counters", "its counter");
const LISTED: Design = lines(
    1,
    CPU,
    "vcpu.list",
    "what is written to the list register for this SGI, behind what says whether it may be",
);
const SYNC: &str = "fast_sync_";
const IRQ: &str = "fast_irq_";

macro_rules! parts {
    ($($part:expr),* $(,)?) => { const { &[$($part),*] } };
}

/// The lines of `path`.
pub const fn design(path: Path) -> &'static [Design] {
    match path {
        Path::Hypercall => parts![
            lines(1, VECTOR, SYNC, "the vector, up to where calls part"),
            lines(1, HANDLER, "fast_call", "the answer to a call that is none"),
            SAVED,
            COUNTED,
        ],
        Path::SgiSend | Path::Broadcast | Path::WfiSend => parts![
            lines(
                2,
                VECTOR,
                SYNC,
                "the whole path, 19 instructions in the vector's 32",
            ),
            SAVED,
            FIRST,
        ],
        Path::SgiReceive => parts![
            lines(
                2,
                VECTOR,
                IRQ,
                "the whole path, 19 instructions in the vector's 32",
            ),
            SAVED,
            FIRST,
            LISTED,
        ],
        Path::Wfi => parts![
            lines(1, VECTOR, SYNC, "the vector, up to where waits part"),
            lines(
                2,
                HANDLER,
                "fast_",
                "the wait and the listing of what ends it, to the ERET",
            ),
            SAVED,
            FIRST,
            LISTED,
        ],
        Path::Wfe => parts![
            lines(1, VECTOR, SYNC, "the vector, up to where waits part"),
            lines(1, HANDLER, "fast_wait", "where WFE parts from WFI"),
            lines(1, HANDLER, "fast_wfe", "the rest"),
            SAVED,
            COUNTED,
        ],
        Path::Timer => parts![
            lines(
                1,
                VECTOR,
                IRQ,
                "the vector, up to where the guest's to deactivate part",
            ),
            lines(1, HANDLER, "fast_line_", "the rest"),
            SAVED,
            FIRST,
            lines(
                2,
                CPU,
                "vcpu.list",
                "what says whether it may be listed; the value of INTID 27, further on",
            ),
        ],
        Path::Service => parts![
            lines(
                9,
                CODE,
                "",
                "vector, stubs that save 19 registers, and the answer in Rust",
            ),
            lines(
                6,
                DATA,
                "",
                "the frame's 4 lines, a line of stack, a counter",
            ),
        ],
        Path::DoorbellSend => parts![
            lines(
                19,
                CODE,
                "",
                "vector, stubs, which CPUs are meant, the kick",
            ),
            lines(
                16,
                DATA,
                "",
                "frame and stack, counters, what names the CPUs, the target's pending word",
            ),
        ],
        Path::DoorbellReceive => parts![
            lines(
                18,
                CODE,
                "",
                "vector, stubs, what the kick brought, the listing",
            ),
            lines(
                18,
                DATA,
                "",
                "frame and stack, counters, the list, its own pending word and redistributor",
            ),
        ],
        Path::Switch => parts![
            lines(43, CODE, "", "two exits, and two worlds of registers"),
            lines(
                32,
                DATA,
                "",
                "frame and stack, the vCPU, the neighbour's registers",
            ),
        ],
        Path::Mmio => parts![
            lines(
                24,
                CODE,
                "",
                "vector, stubs, the access decoded, the distributor",
            ),
            lines(9, DATA, "", "frame and stack, counters, the distributor"),
        ],
        Path::CpuOn => parts![
            lines(35, CODE, "", "vector, stubs, PSCI, the kick"),
            lines(18, DATA, "", "frame and stack, counters, both CPUs' state"),
        ],
        Path::CpuStart => parts![
            lines(
                77,
                CODE,
                "",
                "from the halt to a guest that begins: every register of EL1 set",
            ),
            lines(
                34,
                DATA,
                "",
                "stack, both CPUs' state, the redistributor's registers",
            ),
        ],
        // Not taken cold: a floor is what it is warm, and with 16 list registers none is waited for.
        Path::FloorCall
        | Path::FloorSend
        | Path::FloorReceive
        | Path::FloorWait
        | Path::Maintenance => &[],
    }
}

/// Which of the lines that a pass of `path` missed are none of its design, in words.
pub fn check(path: Path, missed: &Missed) -> Vec<String> {
    let mut left: Vec<Design> = design(path).to_vec();
    let mut takes = |line: &&Line| {
        let mut fitting = left.iter_mut();
        let place = fitting.find(|design| design.lines > 0 && design.fits(line));
        place.map(|design| design.lines -= 1).is_some()
    };
    let extra = missed.used.iter().filter(|line| !takes(line));
    extra
        .map(|line| format!("{} {}", line.kind.name(), line.name))
        .collect()
}

#[cfg(test)]
mod tests;
