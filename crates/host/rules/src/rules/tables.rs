// SPDX-License-Identifier: MIT OR Apache-2.0
//! Translation tables in use must be changed by break-before-make, and a new entry must be visible to table walks
//! before code relies on it.
//!
//! The address, size or memory type of a valid entry may be changed only by making the entry invalid first. Code makes
//! the entry invalid, executes DSB, TLBI and DSB, and then stores the new entry. A TLBI before the first DSB is too
//! early: it may complete before a table walk sees the invalid entry. After a new valid entry, a DSB is needed before
//! the ISB or the exception return that relies on the entry.
//!
//! The rule finds tables by walking them from TTBR0_ELx when an MMU is turned on or the register changes, and from
//! VTTBR_EL2 when a guest is entered. The rule compares each later store to a table with the old entry. After a change
//! of TTBR0_ELx, a TLBI ends the use of the previous tables, except for tables that lookups of another CPU still use.
//!
//! Not seen: granules other than 4 KiB, TTBR1_EL1, changes of permissions, the addresses of a TLBI, and whether other
//! PEs use the table. So the rule accepts any TLBI, even if the table needs a TLBI that also applies to other PEs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use crate::access::Access;
use crate::decode::{Operation, msr};
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule, synchronises};
use crate::shared_state::lock;
use crate::tables::{ADDRESS, Change, TABLE, Tables, points_to_table, table_below};
#[cfg(test)]
use crate::testing::Examples;

/// Bits of an entry whose change needs break-before-make: the valid and type bits, the attribute index or memory type,
/// and the address.
const BREAKS: u64 = 3 | 7 << 2 | ADDRESS;
/// HCR_EL2.VM.
const STAGE_2: u64 = 1;

/// The tables of the machine that are in use.
#[derive(Debug, Default)]
pub struct InUse(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    tables: Tables,
    /// The root of lookups, by CPU and level. Level 0 means stage 2.
    roots: HashMap<(u16, u8), Root>,
}

/// The progress of changing an entry that was made invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Stored,
    Visible,
    /// A TLBI, for this PE alone or for others too, has been executed, but no DSB has completed it.
    Invalidated {
        others: bool,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub struct BreakBeforeMake {
    /// Entries that were made invalid, each with the progress of its change.
    broken: BTreeMap<u64, Progress>,
    /// The instruction that last stored a valid entry, if no DSB has followed.
    made: Option<Place>,
    /// The level and the new root, if the root was replaced and no TLBI has followed.
    replaced: Option<(u8, Root)>,
}

impl Rule for BreakBeforeMake {
    const ABOUT: About = About {
        name: "break-before-make",
        says: "an entry of a table in use changes by way of an invalid one, DSB, TLBI and DSB; a DSB follows a new one",
        cites: "DDI 0487K.a, D8.17.1 (using break-before-make) and D8.17.5 (ordering and completion of TLB maintenance)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        match operation {
            Operation::Dsb(barrier) if barrier.stores => {
                let completes = |others: bool| barrier.loads && !(barrier.alone && others);
                self.broken.retain(|_, step| match step {
                    Progress::Invalidated { others } => !completes(*others),
                    Progress::Stored | Progress::Visible => true,
                });
                if !barrier.alone {
                    self.made = None;
                    for step in self.broken.values_mut() {
                        if *step == Progress::Stored {
                            *step = Progress::Visible;
                        }
                    }
                }
            }
            Operation::Tlbi { broadcast, .. } => {
                for step in self.broken.values_mut() {
                    match step {
                        Progress::Stored => now.report::<Self>(
                            None,
                            "TLBI, and no DSB after an entry of a table was made invalid",
                        ),
                        Progress::Visible => *step = Progress::Invalidated { others: broadcast },
                        Progress::Invalidated { others } => *others |= broadcast,
                    }
                }
                if let Some((level, root)) = self.replaced.take() {
                    use_only(now, level, root);
                }
            }
            msr!(register @ (SCTLR_EL1 | SCTLR_EL2))
                if register.level() == now.place.level
                    && value.is_some_and(|value| value & 1 != 0) =>
            {
                let level = register.level();
                begin_use(now, level, now.controls.root(level));
            }
            msr!(register @ (TTBR0_EL1 | TTBR0_EL2))
                if register.level() == now.place.level
                    && now.controls.translates(now.place.level) =>
            {
                let level = register.level();
                let next = now.controls.root_from(level, value.unwrap_or(0));
                self.replaced = find_root(now, next, level == 1).map(|root| (level, root));
            }
            _ if synchronises(operation) => {
                if let Some(made) = self.made.take() {
                    now.report_at::<Self>(
                        made,
                        Some(now.place),
                        "a valid entry is stored to a table in use, and no DSB follows before it is relied on",
                    );
                }
                let stage_2 = operation == Operation::Return && now.place.level == 2;
                if stage_2 && now.controls.hcr & STAGE_2 != 0 {
                    begin_use(now, 0, now.controls.guest_root());
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        if access.store
            && let Some(address) = access.physical
            && let Some(line) = now.shared.coherence.line_state(address)
            && line.load(Relaxed) & super::caches::TABLE_IN_USE != 0
        {
            self.note_store(now, address);
        }
    }

    fn on_level_entry(&mut self, _: &Now<'_>, _: u8) {
        // The exception handler and its return do not rely on the entry that the interrupted code has stored.
        self.made = None;
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("tables", "memory 0x2000 0x3003; memory 0x3000 0x4003; memory 0x4000 0x5003; memory 0x5000 0x8403; from 0x2000"),
            ("from", "msr TTBR0_EL2 $1; msr TCR_EL2 16; isb"),
            ("own_tlbi", "tlbi alle2; dsb nsh; isb"),
            ("in_use", "tables; on"),
            ("replaced", "in_use; memory 0x12000 0x13003; memory 0x13000 0x14003; memory 0x14000 0x15003; memory 0x15000 0x8403; msr TTBR0_EL2 0x12000; isb"),
            ("broken", "in_use; entry 0x5000 0; dsb ish; tlbi alle1is; dsb ish"),
        ],
        breaks: "
            another address at once: in_use; entry 0x5000 0x9403
            a block for a table: in_use; entry 0x4000 0x80000401
            made without TLBI: in_use; entry 0x5000 0; dsb ish; entry 0x5000 0x9403
            TLBI not finished: in_use; entry 0x5000 0; dsb ish; tlbi alle1is; entry 0x5000 0x9403
            a DSB for itself after a TLBI for all: in_use; entry 0x5000 0; dsb ish; tlbi alle1is; dsb nsh; entry 0x5000 0x9403
            TLBI before the DSB: in_use; entry 0x5000 0; tlbi alle1is
            replaced, without TLBI: replaced; entry 0x5000 0x9403
            replaced, but on one CPU: in_use; cpu 1; from 0x2000; on; msr TTBR0_EL2 0x12000; isb; own_tlbi; entry 0x5000 0x9403
            of the new tables: replaced; own_tlbi; entry 0x15000 0x9403
            a new entry without DSB: in_use; entry 0x5008 0x9403; isb
            of a table that was added: in_use; entry 0x3008 0x7003; dsb ish; isb; entry 0x7008 0x9403; isb
        ",
        keeps: "
            broken, then made: broken; entry 0x5000 0x9403; dsb ishst; isb
            a new entry: in_use; entry 0x5008 0x9403; dsb ishst; isb
            for itself: in_use; entry 0x5000 0; dsb ishst; tlbi alle2; dsb nsh; isb; entry 0x5000 0x9403; dsb ishst; isb
            not in use any more: replaced; own_tlbi; entry 0x5000 0x9403; isb
            interrupted: in_use; entry 0x5008 0x9403; irq 2; eret; dsb ishst; isb
            permissions: in_use; entry 0x5000 0x8483
            not in use: tables; entry 0x5000 0x9403; dc civac 0x5000; dsb sy; on
            no table: in_use; entry 0x8000 0x9403; isb
        ",
    };
}

impl BreakBeforeMake {
    #[cold]
    fn note_store(&mut self, now: &Now<'_>, address: u64) {
        let word = address & !7;
        let Some(new) = now.shared.read(word) else {
            return;
        };
        let Some(change) = lock(&now.shared.tables.0).tables.change_by_store(word, new) else {
            return;
        };
        let Change {
            old,
            new,
            level,
            intermediate,
        } = change;
        match (old & 1 != 0, new & 1 != 0) {
            (true, true) if (old ^ new) & BREAKS != 0 => now.report::<Self>(
                None,
                format!("an entry of a table in use changes from {old:#x} to {new:#x} without an invalid one between"),
            ),
            (true, false) => {
                self.broken.insert(word, Progress::Stored);
            }
            (false, true) => {
                if let Some(broken) = self.broken.remove(&word) {
                    let lacks = match broken {
                        Progress::Stored => "DSB, TLBI and DSB",
                        Progress::Visible => "TLBI and DSB",
                        Progress::Invalidated { others: false } => "DSB",
                        Progress::Invalidated { others: true } => "DSB for other PEs",
                    };
                    now.report::<Self>(
                        None,
                        format!("an entry of a table in use is made valid again, and {lacks} to end the old one is missing"),
                    );
                }
                self.made = Some(now.place);
                if points_to_table(new, level)
                    && let Some(below) = table_below(new, intermediate, &|at| now.shared.locate(at))
                {
                    find_root(now, Some((below, level + 1)), intermediate);
                }
            }
            _ => {}
        }
    }
}

/// The table at which lookups begin: its address in memory, its level, and whether its output addresses are
/// intermediate.
type Root = (u64, u8, bool);

/// Notes that from now on, `level`'s translation regime uses the tables below `root`. Level 0 means stage 2.
fn begin_use(now: &Now<'_>, level: u8, root: Option<(u64, u8)>) {
    if let Some(root) = find_root(now, root, level == 1) {
        let mut in_use = lock(&now.shared.tables.0);
        in_use.roots.entry((now.cpu, level)).or_insert(root);
    }
}

/// Notes that from now on, this CPU's lookups begin only at `root`. Tables that no CPU's lookups reach are then no
/// longer in use.
fn use_only(now: &Now<'_>, level: u8, root: Root) {
    let mut in_use = lock(&now.shared.tables.0);
    if in_use.roots.insert((now.cpu, level), root) == Some(root) {
        return;
    }
    let Known { tables, roots } = &mut *in_use;
    *tables = Tables::default();
    roots.values().for_each(|root| add_all(now, tables, *root));
}

/// Adds the tables below `root`, which has the address and the level at which a walk may begin from now on. Returns the
/// root with its address in memory.
fn find_root(now: &Now<'_>, root: Option<(u64, u8)>, intermediate: bool) -> Option<Root> {
    let (table, level) = root?;
    let table = table_below(table, intermediate, &|at| now.shared.locate(at))?;
    let root = (table, level, intermediate);
    add_all(now, &mut lock(&now.shared.tables.0).tables, root);
    Some(root)
}

/// Adds to the tables in use all tables that lookups from `root` can reach.
fn add_all(now: &Now<'_>, tables: &mut Tables, (root, level, intermediate): Root) {
    let shared = now.shared;
    let locate = |address| shared.locate(address);
    let read = |address| shared.read(address);
    let mut found = |table: u64| {
        for address in (table..table + TABLE).step_by(64) {
            if let Some(line) = shared.coherence.line_state(address) {
                line.fetch_or(super::caches::TABLE_IN_USE, Relaxed);
            }
        }
    };
    tables.add_table(root, level, intermediate, (&read, &locate), &mut found);
}
