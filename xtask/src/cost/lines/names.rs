// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lines of EL2 are called: code by the symbol that it is behind, a CPU's memory by the fields of its state.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use cost::Level;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use serde::{Deserialize, Serialize};

use super::fields::Fields;
use super::misses::LINE;
use crate::cost::trace::Window;

/// `stp x?, x?, [sp, #-256]!`, without its registers: how an exit begins, with the stack empty. The stack ends where the
/// CPU's state begins (`hypervisor/src/exits/fast_paths.rs`).
const PUSH: u32 = 0xa9b0_03e0;
const REGISTERS: u32 = 0x7c1f;
const FRAME: u64 = 256;
/// What tables of vectors are called, and bytes of one and of a vector (DDI 0487K.a, D1.3.1.5).
const TABLES: &str = "el2_vectors";
const TABLE: u64 = 0x800;
const VECTOR: u64 = 0x80;
/// What labels of assembly behind them begin with.
const HANDLERS: [&str; 5] = ["fast_", "slow_", "exit_", "serror_", "el2_from_"];
/// Bytes of a CPU's stack (`hypervisor/src/cpu/percpu.rs`).
const STACK: u64 = 0x4000;

/// What a line is of.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The vectors, and the common case of an exit in them.
    Vector,
    /// Assembly behind them.
    Handler,
    /// Rust code.
    Code,
    /// What an exit saves: the top of the CPU's stack.
    Frame,
    /// The stack below it.
    Stack,
    /// The CPU's state.
    Cpu,
    /// Constants and variables of the image.
    Image,
    /// Memory that is neither.
    Memory,
}

impl Kind {
    /// Whether it is code.
    pub const fn is_code(self) -> bool {
        matches!(self, Self::Vector | Self::Handler | Self::Code)
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Vector => "vector",
            Self::Handler => "handler",
            Self::Code => "code",
            Self::Frame => "frame",
            Self::Stack => "stack",
            Self::Cpu => "CPU",
            Self::Image => "image",
            Self::Memory => "memory",
        }
    }
}

/// Names of EL2's memory.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Where the image is, and how long it is.
    image: (u64, u64),
    /// Symbols by link address, sorted.
    symbols: Vec<(u64, String)>,
    /// Sections that are no code: link address, bytes, name.
    sections: Vec<(u64, u64, String)>,
    state: Fields,
    /// Where each core's state is.
    cpus: BTreeMap<u16, u64>,
}

impl Names {
    /// Those of the hypervisor in file `elf`, which is at `base`, and of the cores whose windows these are.
    pub fn of(elf: &Path, base: u64, windows: &[Window]) -> Result<Self> {
        let bytes = fs::read(elf).with_context(|| format!("{} can't be read", elf.display()))?;
        let file = ElfFile64::<object::Endianness>::parse(&*bytes)?;
        let mut symbols: Vec<(u64, String)> = file
            .symbols()
            .filter_map(|symbol| {
                let name = symbol.name().ok()?;
                let names = !name.is_empty() && !name.starts_with(['$', '.']);
                let in_image = symbol.section_index().is_some() && !name.starts_with("__");
                let name = format!("{:#}", rustc_demangle::demangle(name));
                (names && in_image).then(|| (symbol.address(), name))
            })
            .collect();
        symbols.sort();
        let allocated = |kind| {
            !matches!(
                kind,
                SectionKind::Text | SectionKind::Other | SectionKind::Debug
            )
        };
        let sections = file.sections().filter(|section| section.address() != 0);
        let all = sections.map(|section| {
            let name = section.name().unwrap_or_default().to_owned();
            (section.kind(), (section.address(), section.size(), name))
        });
        let (all, length) = all.fold((Vec::new(), 0), |(mut found, end), (kind, section)| {
            let end = end.max(section.0 + section.1);
            if allocated(kind) {
                found.push(section);
            }
            (found, end)
        });
        Ok(Self {
            image: (base, length),
            symbols,
            sections: all,
            state: Fields::of(&file)?,
            cpus: windows
                .iter()
                .filter_map(|window| Some((window.cpu, state(window)?)))
                .collect(),
        })
    }

    /// What the line with number `line` is, `used` being the addresses in it that were used, and its name; `None` if it is not EL2's.
    pub fn find(&self, core: u16, line: u64, used: &[u64]) -> Option<(Kind, String)> {
        let address = used.iter().min().copied().unwrap_or(line * LINE);
        let cpu = self.cpus.get(&core).copied();
        let at = address.wrapping_sub(self.image.0);
        if at < self.image.1 {
            return Some(self.in_image(at));
        }
        match cpu {
            Some(state) if (state - FRAME..state).contains(&address) => {
                Some((Kind::Frame, format!("sp+{:#x}", address + FRAME - state)))
            }
            Some(state) if (state - STACK..state).contains(&address) => {
                Some((Kind::Stack, format!("top-{:#x}", state - line * LINE)))
            }
            Some(state) if (state..state + self.state.size).contains(&address) => {
                Some((Kind::Cpu, self.fields(state, line, used)))
            }
            _ if used.is_empty() => None,
            _ => Some(self.elsewhere(line, used)),
        }
    }

    /// Memory that EL2 used and that is not this core's: the state of another one, or the rest.
    fn elsewhere(&self, line: u64, used: &[u64]) -> (Kind, String) {
        let mut states = self.cpus.values().copied();
        let state = states.find(|state| (*state..state + self.state.size).contains(&used[0]));
        match state {
            Some(state) => (
                Kind::Cpu,
                format!("other's {}", self.fields(state, line, used)),
            ),
            None => (Kind::Memory, format!("{:#x}", line * LINE)),
        }
    }

    /// The fields that were used.
    fn fields(&self, state: u64, line: u64, used: &[u64]) -> String {
        let begin = [line * LINE];
        let used = if used.is_empty() { &begin } else { used };
        // Of an access its first byte.
        let words = used
            .iter()
            .filter(|address| *address % 8 == 0 || used.len() == 1);
        let names = words.filter_map(|address| self.state.at(address - state));
        let mut names: Vec<String> = names.collect();
        names.dedup();
        names.join(" ")
    }

    /// What is at link address `at`.
    fn in_image(&self, at: u64) -> (Kind, String) {
        let mut sections = self.sections.iter();
        let section = sections.find(|(begin, size, _)| (*begin..begin + size).contains(&at));
        if let Some((begin, _, section)) = section {
            let own = self.symbol(at, 1).filter(|(symbol, _)| symbol >= begin);
            let (begin, name) = own.map_or((begin, section), |(symbol, name)| (symbol, name));
            return (Kind::Image, behind(name, at - begin));
        }
        let vector = self.in_table(at);
        // Labels within a vector are no vectors.
        let Some((begin, name)) = self.symbol(at, if vector { VECTOR } else { 1 }) else {
            return (Kind::Code, behind("text", at));
        };
        let kind = if vector {
            Kind::Vector
        } else if HANDLERS.iter().any(|start| name.starts_with(start)) {
            Kind::Handler
        } else {
            Kind::Code
        };
        (kind, behind(name, at - begin))
    }

    /// The symbol that `at` is behind, of those that are `aligned`.
    fn symbol(&self, at: u64, aligned: u64) -> Option<&(u64, String)> {
        let after = self.symbols.partition_point(|(begin, _)| *begin <= at);
        let mut before = self.symbols[..after].iter().rev();
        before.find(|(begin, _)| begin % aligned == 0)
    }

    /// Whether `at` is in a table of vectors. Those of floors end early, and are not taken cold.
    fn in_table(&self, at: u64) -> bool {
        let mut tables = self
            .symbols
            .iter()
            .filter(|(_, name)| name.starts_with(TABLES) && !name.contains("floor"));
        tables.any(|(begin, _)| (*begin..begin + TABLE).contains(&at))
    }
}

/// A place this far behind the one with this name.
pub fn behind(name: &str, far: u64) -> String {
    match far {
        0 => name.to_owned(),
        far => format!("{name}+{far:#x}"),
    }
}

/// Where the state of the core is whose window this is, from the first instruction of an exit.
fn state(window: &Window) -> Option<u64> {
    let mut steps = window.steps.iter().filter(|step| step.level == Level::El2);
    let push = steps.find(|step| step.word & !REGISTERS == PUSH)?;
    let saved = push.accesses.iter().map(|access| access.address).min()?;
    Some(saved + FRAME)
}

#[cfg(test)]
impl Names {
    /// An image at `base` with these symbols of code, and one core's state, of one field every 8 bytes.
    pub fn planted(base: u64, symbols: &[(u64, &str)], core: u16, state: u64) -> Self {
        Self {
            image: (base, 0x10000),
            symbols: symbols
                .iter()
                .map(|&(at, name)| (at, name.into()))
                .collect(),
            sections: vec![(0xf000, 0x1000, ".data".into())],
            state: Fields::planted(0x100),
            cpus: [(core, state)].into(),
        }
    }
}

#[cfg(test)]
mod tests;
