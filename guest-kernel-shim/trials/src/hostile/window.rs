// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps a page through which the hostile CPU accesses any address, with tables that may point anywhere.
//! The tables are a copy of this kernel's map with one more address range, and only this CPU uses them.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{Readable, TCR_EL1, TTBR0_EL1, Writeable};
use arch::insn;

/// A translation table.
#[repr(C, align(4096))]
pub struct Table([AtomicU64; 512]);

impl Table {
    const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; 512])
    }

    /// Returns the table's address, which is both physical and virtual.
    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// Sets descriptor `index`.
    pub fn set(&self, index: usize, descriptor: u64) {
        // strict break-before-make: only this CPU uses these tables, so a DSB NSH is enough.
        self.0[index].store(descriptor, Relaxed);
    }
}

static ROOT: Table = Table::new();
static LEVEL1: Table = Table::new();
static LEVEL2: Table = Table::new();
static LEVEL3: Table = Table::new();

/// Address of the page, in a range that this kernel does not use.
pub const ADDRESS: u64 = 1 << 39;
/// Bits 1:0 of a descriptor: a table, or a page.
pub const TABLE: u64 = 3;
/// Accessed (10), not executable (53, 54).
const DATA: u64 = 1 << 10 | 3 << 53 | TABLE;
/// Attribute index 1 (2), inner shareable (8, 9).
const NORMAL: u64 = 1 << 2 | 3 << 8;
/// TCR_EL1.IPS, and its value for 48 bits.
const IPS: u64 = 7 << 32;
const IPS_48: u64 = 5 << 32;

/// How the page is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    /// Device-nGnRE.
    Device,
    /// Normal, cacheable.
    Normal,
    /// Normal, and code.
    Code,
}

/// Runs `work` with the window mapped.
pub fn run_with_window(work: impl FnOnce()) {
    let kept = (TTBR0_EL1.get(), TCR_EL1.get());
    let original = (kept.0 & 0xffff_ffff_f000) as *const u64;
    for n in 0..512 {
        // SAFETY: this is this kernel's own root table, which nothing changes.
        ROOT.set(n, unsafe { original.add(n).read_volatile() });
    }
    ROOT.set(1, LEVEL1.address() | TABLE);
    LEVEL1.set(0, LEVEL2.address() | TABLE);
    LEVEL2.set(0, LEVEL3.address() | TABLE);
    LEVEL3.set(0, 0);
    TCR_EL1.set(kept.1 & !IPS | IPS_48);
    TTBR0_EL1.set(ROOT.address() | kept.0 >> 48 << 48);
    flush_tlbs();
    work();
    TTBR0_EL1.set(kept.0);
    TCR_EL1.set(kept.1);
    flush_tlbs();
}

/// Maps the page of `address` at the window. Returns the virtual address that accesses `address`.
pub fn map_page(address: u64, how: As) -> u64 {
    let attributes = match how {
        As::Device => DATA,
        As::Normal => DATA | NORMAL,
        // The page is read-only (7): a writable page is never executable here.
        As::Code => DATA & !(1 << 53) | NORMAL | 1 << 7,
    };
    set_descriptor(3, address & 0xffff_ffff_f000 | attributes);
    ADDRESS | address & 0xfff
}

/// Sets the descriptor of level 0 to 3 that leads to the window, after making it invalid (DDI
/// 0487K.a, D8.17.1).
pub fn set_descriptor(level: u64, descriptor: u64) {
    let (table, index) = match level {
        0 => (&ROOT, 1),
        1 => (&LEVEL1, 0),
        2 => (&LEVEL2, 0),
        _ => (&LEVEL3, 0),
    };
    for descriptor in [0, descriptor] {
        table.set(index, descriptor);
        flush_tlbs();
    }
}

/// Restores the tables.
pub fn restore_tables() {
    set_descriptor(0, LEVEL1.address() | TABLE);
    set_descriptor(1, LEVEL2.address() | TABLE);
    set_descriptor(2, LEVEL3.address() | TABLE);
    set_descriptor(3, 0);
}

fn flush_tlbs() {
    insn::dsb_ishst();
    insn::tlbi_vmalle1();
    insn::dsb_nsh();
    insn::isb();
}
