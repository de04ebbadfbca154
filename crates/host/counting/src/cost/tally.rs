// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts the events in a part of a path.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::instruction_kind::{InstructionKind, kind};
use super::trace::{Access, Executed};

/// Bytes per cache line.
const LINE: u64 = 64;

/// Counts of one pass.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Tally {
    pub insns: u64,
    /// Number of reads of system registers.
    pub reads: u64,
    /// Number of writes of system registers.
    pub writes: u64,
    pub dsb: u64,
    pub isb: u64,
    pub dmb: u64,
    /// Exceptions taken to the counted exception level.
    pub entries: u64,
    /// Exception returns from the counted exception level.
    pub returns: u64,
    /// Number of load instructions.
    pub loads: u64,
    /// Number of store instructions.
    pub stores: u64,
    /// Cache lines of 64 bytes that the loads and stores accessed.
    pub lines: u64,
    /// Cache lines of 64 bytes that contain the executed instructions.
    pub code_lines: u64,
}

impl Tally {
    /// Returns all counts, in the order of the fields and of tables.
    pub fn columns(&self) -> [u64; 12] {
        [
            self.insns,
            self.reads,
            self.writes,
            self.dsb,
            self.isb,
            self.dmb,
            self.entries,
            self.returns,
            self.loads,
            self.stores,
            self.lines,
            self.code_lines,
        ]
    }

    /// Counts the events in `steps`. The level was entered by `entries` exceptions.
    pub fn count_events(steps: &[&Executed], entries: usize) -> Self {
        let kinds = |wanted: &[InstructionKind]| {
            let found = steps
                .iter()
                .filter(|step| wanted.contains(&kind(step.word)));
            found.count() as u64
        };
        let with = |store: bool| {
            let one = |access: &Access| access.store == store;
            let found = steps.iter().filter(|step| step.accesses.iter().any(one));
            found.count() as u64
        };
        let accesses = steps.iter().flat_map(|step| &step.accesses);
        let lines = accesses
            .flat_map(|access| access.address / LINE..=(access.address + access.bytes - 1) / LINE);
        Self {
            insns: steps.len() as u64,
            reads: kinds(&[InstructionKind::Read]),
            writes: kinds(&[InstructionKind::Write, InstructionKind::SendSgi]),
            dsb: kinds(&[InstructionKind::Dsb]),
            isb: kinds(&[InstructionKind::Isb]),
            dmb: kinds(&[InstructionKind::Dmb]),
            entries: entries as u64,
            returns: kinds(&[InstructionKind::Return]),
            loads: with(false),
            stores: with(true),
            lines: lines.collect::<BTreeSet<_>>().len() as u64,
            code_lines: count_distinct(steps.iter().map(|step| step.pc / LINE)),
        }
    }
}

fn count_distinct(values: impl Iterator<Item = u64>) -> u64 {
    values.collect::<BTreeSet<_>>().len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use cost::Level;

    #[test]
    fn lines_are_counted_once_and_accesses_across_two_twice() {
        let access = |store, address, bytes| Access {
            store,
            address,
            bytes,
        };
        let step = |pc, word, accesses: &[Access]| Executed {
            level: Level::El2,
            word,
            pc,
            accesses: accesses.to_vec(),
            tick: 0,
        };
        let steps = [
            // One instruction makes these two accesses.
            step(0, 0, &[access(true, 0x100, 8), access(true, 0x108, 8)]),
            step(4, 0, &[access(false, 0x13c, 8)]),
            step(64, 0xd503_3fdf, &[]),
            step(68, 0xd69f_03e0, &[]),
        ];
        let tally = Tally::count_events(&steps.iter().collect::<Vec<_>>(), 1);
        let expected = Tally {
            insns: 4,
            isb: 1,
            entries: 1,
            returns: 1,
            loads: 1,
            stores: 1,
            lines: 2,
            code_lines: 2,
            ..Tally::default()
        };
        assert_eq!(tally, expected);
    }
}
