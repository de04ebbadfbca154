// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory at EL2: the page pool, and the stage-1 and stage-2 tables.
//!
//! Stage 1 maps everything at its physical address with 4 KiB granules from
//! level 0. Only what is used is mapped; code is never writable and, by
//! SCTLR_EL2.WXN, nothing writable is executable.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{
    ID_AA64MMFR0_EL1, MAIR_EL2, Readable, SCTLR_EL2, TCR_EL2, TTBR0_EL2, Writeable,
};
use aarch64_paging::descriptor::{
    El23Attributes, PagingAttributes, PhysicalAddress, Stage2Attributes,
};
use aarch64_paging::paging::{
    Constraints, El2, MemoryRegion, PageTable, RootTable, Stage2, Translation,
};
use arch::insn;
use platform::Region;

use crate::boot::SCTLR_RES1;

/// Page size, bytes.
pub const PAGE: u64 = 4096;

/// A stretch of RAM that is handed out page by page and never taken back.
pub struct Pool {
    next: u64,
    end: u64,
}

impl Pool {
    /// A pool over `region`.
    ///
    /// # Safety
    /// The region must be RAM that nothing else uses, ever, and accessible.
    pub const unsafe fn new(region: Region) -> Self {
        Self {
            next: region.base,
            end: region.end(),
        }
    }

    /// Takes `bytes` bytes, rounded up to pages, zeroed.
    ///
    /// # Panics
    /// Panics if the pool is exhausted: it was sized too small.
    pub fn take(&mut self, bytes: u64) -> u64 {
        let base = self.next;
        self.next += bytes.next_multiple_of(PAGE);
        assert!(
            self.next <= self.end,
            "page pool of {:#x} bytes exhausted",
            self.end - base
        );
        // SAFETY: inside the region that `new` was given.
        unsafe { (base as *mut u8).write_bytes(0, bytes as usize) };
        base
    }
}

/// Page tables come from the pool and are used at their physical address.
struct Tables<'p>(&'p mut Pool);

impl<A: PagingAttributes> Translation<A> for Tables<'_> {
    fn allocate_table(&mut self) -> (NonNull<PageTable<A>>, PhysicalAddress) {
        let page = self.0.take(PAGE);
        let table = NonNull::new(page as *mut PageTable<A>).expect("the pool is not at 0");
        (table, PhysicalAddress(page as usize))
    }

    unsafe fn deallocate_table(&mut self, _table: NonNull<PageTable<A>>) {
        // Tables are built once and live as long as the machine; one that the
        // library replaces by a block during the build stays unused.
    }

    fn physical_to_virtual(&self, pa: PhysicalAddress) -> NonNull<PageTable<A>> {
        NonNull::new(pa.0 as *mut PageTable<A>).expect("the pool is not at 0")
    }
}

/// MAIR_EL2: index 0 Device-nGnRE, index 1 Normal write-back (DDI 0487K.a, D23.2.110).
const MAIR: u64 = 0x04 | 0xff << 8;

/// How a region of the EL2 map may be used.
#[derive(Clone, Copy)]
pub enum Use {
    /// Code.
    Execute,
    /// Constants.
    Read,
    /// Variables.
    Write,
    /// Device registers.
    Device,
}

impl Use {
    fn attributes(self) -> El23Attributes {
        let common = El23Attributes::VALID | El23Attributes::ACCESSED | El23Attributes::USER_RES1;
        let normal = common | El23Attributes::ATTRIBUTE_INDEX_1 | El23Attributes::INNER_SHAREABLE;
        match self {
            Self::Execute => normal | El23Attributes::READ_ONLY,
            Self::Read => normal | El23Attributes::READ_ONLY | El23Attributes::XN,
            Self::Write => normal | El23Attributes::XN,
            Self::Device => common | El23Attributes::ATTRIBUTE_INDEX_0 | El23Attributes::XN,
        }
    }
}

/// The EL2 translation regime, as the start code of every CPU loads it.
#[repr(C, align(64))]
pub struct Regime {
    /// TTBR0_EL2.
    pub ttbr: AtomicU64,
    /// TCR_EL2.
    pub tcr: AtomicU64,
    /// MAIR_EL2.
    pub mair: AtomicU64,
    /// SCTLR_EL2.
    pub sctlr: AtomicU64,
}

/// The one regime; written by the first CPU before it starts another.
#[unsafe(no_mangle)]
pub static EL2_REGIME: Regime = Regime {
    ttbr: AtomicU64::new(0),
    tcr: AtomicU64::new(0),
    mair: AtomicU64::new(0),
    sctlr: AtomicU64::new(0),
};

impl Regime {
    /// Turns translation and caches on for this CPU, which runs with both off.
    ///
    /// # Safety
    /// The tables must map the running code, its data and its stack at their
    /// physical addresses.
    pub unsafe fn enter(&self) {
        TTBR0_EL2.set(self.ttbr.load(Relaxed));
        TCR_EL2.set(self.tcr.load(Relaxed));
        MAIR_EL2.set(self.mair.load(Relaxed));
        insn::isb();
        insn::tlbi_alle2();
        insn::dsb_nsh();
        insn::isb();
        // The caller promises that the next instruction is where it was.
        SCTLR_EL2.set(self.sctlr.load(Relaxed));
        insn::isb();
    }
}

/// Builds the EL2 map.
pub struct HypervisorMap<'p> {
    root: ManuallyDrop<RootTable<El2, Tables<'p>>>,
}

impl<'p> HypervisorMap<'p> {
    /// An empty map whose tables come from `pool`.
    pub fn new(pool: &'p mut Pool) -> Self {
        Self {
            root: ManuallyDrop::new(RootTable::new(Tables(pool), 0, El2)),
        }
    }

    /// Maps `region`, widened to whole pages, at its physical address.
    pub fn map(&mut self, region: Region, how: Use) {
        let range = MemoryRegion::new(region.base as usize, region.end() as usize);
        let at = PhysicalAddress(range.start().0);
        self.root
            .map_range(&range, at, how.attributes(), Constraints::empty())
            .unwrap_or_else(|error| panic!("EL2 map of {region:x?}: {error}"));
    }

    /// Takes `region`, whole pages, out of the map.
    pub fn unmap(&mut self, region: Region) {
        let range = MemoryRegion::new(region.base as usize, region.end() as usize);
        self.root
            .map_range(
                &range,
                PhysicalAddress(0),
                El23Attributes::empty(),
                Constraints::empty(),
            )
            .unwrap_or_else(|error| panic!("EL2 map of {region:x?}: {error}"));
    }

    /// Writes the register values that put the map into force to `regime`.
    pub fn publish(&self, regime: &Regime) {
        // T0SZ 16 (48 bits), write-back inner-shareable walks, 4 KiB granule,
        // RES1 bits 31 and 23, PS as the PE has it (DDI 0487K.a, D23.2.161).
        let tcr = 16 | 1 << 8 | 1 << 10 | 3 << 12 | physical_range() << 16 | 1 << 23 | 1 << 31;
        // M, C, SA, I and WXN.
        let sctlr = SCTLR_RES1 | 1 | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 19;
        regime.ttbr.store(self.root.to_physical().0 as u64, Relaxed);
        regime.tcr.store(tcr, Relaxed);
        regime.mair.store(MAIR, Relaxed);
        regime.sctlr.store(sctlr, Relaxed);
    }
}

/// ID_AA64MMFR0_EL1.PARange, at most 48 bits (5): the tables have 4 levels.
fn physical_range() -> u64 {
    ID_AA64MMFR0_EL1.read(ID_AA64MMFR0_EL1::PARange).min(5)
}

/// Bits of an intermediate physical address.
const IPA_BITS: u64 = 39;

/// Builds the guest's stage-2 map: 39-bit IPAs, tables from level 1.
pub struct GuestMap<'p> {
    root: ManuallyDrop<RootTable<Stage2, Tables<'p>>>,
}

impl<'p> GuestMap<'p> {
    /// An empty map whose tables come from `pool`.
    pub fn new(pool: &'p mut Pool) -> Self {
        Self {
            root: ManuallyDrop::new(RootTable::new(Tables(pool), 1, Stage2)),
        }
    }

    /// Gives the guest `memory` as RAM at `ipa`.
    pub fn map_ram(&mut self, ipa: u64, memory: Region) {
        let attributes = Stage2Attributes::VALID
            | Stage2Attributes::MEMATTR_NORMAL_INNER_WB
            | Stage2Attributes::MEMATTR_NORMAL_OUTER_WB
            | Stage2Attributes::S2AP_ACCESS_RW
            | Stage2Attributes::SH_INNER
            | Stage2Attributes::ACCESS_FLAG;
        let range = MemoryRegion::new(ipa as usize, (ipa + memory.size) as usize);
        let at = PhysicalAddress(memory.base as usize);
        self.root
            .map_range(&range, at, attributes, Constraints::empty())
            .unwrap_or_else(|error| panic!("stage-2 map of {memory:x?}: {error}"));
    }

    /// VTTBR_EL2 and VTCR_EL2 for the map, VMID 1.
    pub fn registers(&self) -> (u64, u64) {
        let vttbr = self.root.to_physical().0 as u64 | 1 << 48;
        // Start level 1 (SL0=1), write-back inner-shareable walks, RES1 bit 31
        // (DDI 0487K.a, D23.2.177).
        let vtcr = (64 - IPA_BITS)
            | 1 << 6
            | 1 << 8
            | 1 << 10
            | 3 << 12
            | physical_range() << 16
            | 1 << 31;
        (vttbr, vtcr)
    }
}

/// Cleans and invalidates `region` to the point of coherency, for a reader
/// whose caches are off.
pub fn clean(region: Region) {
    const LINE: u64 = 16; // the smallest a cache may have; larger lines are only cleaned twice
    let mut address = region.base & !(LINE - 1);
    while address < region.end() {
        // SAFETY: callers clean memory that they have just used.
        unsafe { insn::dc_civac(address as usize) };
        address += LINE;
    }
    insn::dsb_sy();
}
