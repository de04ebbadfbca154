// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds and audits EL2's stage-1 table and the guests' stage-2 tables.
//!
//! Stage 1 maps everything at its physical address with 4 KiB granules from level 0. Only memory in
//! use is mapped; code is never writable and, because of SCTLR_EL2.WXN, nothing writable is
//! executable.

use core::mem::ManuallyDrop;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ID_AA64MMFR0_EL1, MAIR_EL2, Readable, TCR_EL2, TTBR0_EL2, Writeable};
use aarch64_paging::descriptor::{El23Attributes, PhysicalAddress, Stage2Attributes};
use aarch64_paging::paging::{Constraints, El2, MemoryRegion, RootTable, Stage2};
use arch::{insn, layout};
use pages::{Pool, Regime, Tables, Use};
use platform::Region;

/// SCTLR_EL2 with the MMU off: the RES1 bits of E2H=0 (DDI 0487K.a, D23.2.140).
pub const SCTLR_RES1: u64 = 0x30c5_0830;
/// MAIR_EL2: index 0 Device-nGnRE, index 1 Normal write-back (DDI 0487K.a, D23.2.110).
const MAIR: u64 = 0x04 | 0xff << 8;

/// Returns the attributes of memory that is used as `how`.
fn attributes(how: Use) -> El23Attributes {
    let common = El23Attributes::VALID | El23Attributes::ACCESSED | El23Attributes::USER_RES1;
    let normal = common | El23Attributes::ATTRIBUTE_INDEX_1 | El23Attributes::INNER_SHAREABLE;
    match how {
        Use::Execute => normal | El23Attributes::READ_ONLY,
        Use::Read => normal | El23Attributes::READ_ONLY | El23Attributes::XN,
        Use::Write => normal | El23Attributes::XN,
        Use::Device => common | El23Attributes::ATTRIBUTE_INDEX_0 | El23Attributes::XN,
    }
}

/// The registers of EL2's translation regime; the first CPU writes them before it starts any other CPU.
#[unsafe(no_mangle)]
pub static EL2_REGIME: Regime = Regime::new();

/// Turns translation and caches on for this CPU, which runs with both off, and drops the cached
/// copies of the image's variables.
///
/// # Safety
/// The tables must map the running code, its data and its stack at their
/// physical addresses.
pub unsafe fn enable_translation(regime: &Regime) {
    TTBR0_EL2.set(regime.ttbr.load(Relaxed));
    TCR_EL2.set(regime.tcr.load(Relaxed));
    MAIR_EL2.set(regime.mair.load(Relaxed));
    insn::isb();
    insn::tlbi_alle2();
    insn::dsb_nsh();
    insn::isb();
    // Writes up to here went to memory. Older copies in caches, those of the stack included, are
    // dropped last (DDI 0487K.a, B2.11).
    let data = layout::data();
    let sctlr = regime.sctlr.load(Relaxed);
    // SAFETY: as the caller promises. With translation off, every address can be accessed.
    unsafe { insn::clean_and_set_sctlr_el2(data.start, data.end, pages::line(), sctlr) };
}

/// Builds the EL2 map.
pub struct HypervisorMap<'p> {
    root: ManuallyDrop<RootTable<El2, Tables<'p>>>,
}

impl<'p> HypervisorMap<'p> {
    /// Creates an empty map whose tables come from `pool`.
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
            .map_range(&range, at, attributes(how), Constraints::empty())
            .unwrap_or_else(|error| panic!("EL2 map of {region:x?}: {error}"));
    }

    /// Removes `region`, which is whole pages, from the map.
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

    /// Writes to `regime` the register values that make the map take effect.
    pub fn fill_regime(&self, regime: &Regime) {
        // T0SZ 16 (48 bits), write-back inner-shareable walks, 4 KiB granule, RES1 bits 31 and 23,
        // PS as the PE supports it (DDI 0487K.a, D23.2.161).
        let tcr = 16 | 1 << 8 | 1 << 10 | 3 << 12 | pa_range_field() << 16 | 1 << 23 | 1 << 31;
        // M, C, SA, I and WXN.
        let sctlr = SCTLR_RES1 | 1 | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 19;
        regime.ttbr.store(self.root.to_physical().0 as u64, Relaxed);
        regime.tcr.store(tcr, Relaxed);
        regime.mair.store(MAIR, Relaxed);
        regime.sctlr.store(sctlr, Relaxed);
    }
}

/// Returns ID_AA64MMFR0_EL1.PARange, but at most 48 bits (5), because the tables have 4 levels.
fn pa_range_field() -> u64 {
    ID_AA64MMFR0_EL1.read(ID_AA64MMFR0_EL1::PARange).min(5)
}

/// Returns the end of the physical addresses that a map can contain.
pub fn pa_space_end() -> u64 {
    1 << PHYSICAL_BITS[pa_range_field() as usize]
}

/// Number of bits of a physical address, indexed by the encoding of PARange and PS.
const PHYSICAL_BITS: [u64; 6] = [32, 36, 40, 42, 44, 48];
/// Maximum number of bits of an intermediate physical address: the number that tables beginning at
/// level 1 cover. VTCR_EL2 must not select more bits than the PE's physical addresses have.
const IPA_BITS: u64 = 39;

/// VMID of the measured guest.
pub const VMID: u64 = 1;

/// Builds a guest's stage-2 map, whose tables begin at level 1.
pub struct GuestMap<'p> {
    root: ManuallyDrop<RootTable<Stage2, Tables<'p>>>,
}

impl<'p> GuestMap<'p> {
    /// Creates an empty map whose tables come from `pool`.
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

    /// Gives the guest `device` at `ipa`.
    pub fn map_device(&mut self, ipa: u64, device: Region) {
        let attributes = Stage2Attributes::VALID
            | Stage2Attributes::MEMATTR_DEVICE_nGnRE
            | Stage2Attributes::S2AP_ACCESS_RW
            | Stage2Attributes::XN
            | Stage2Attributes::ACCESS_FLAG;
        let range = MemoryRegion::new(ipa as usize, (ipa + device.size) as usize);
        let at = PhysicalAddress(device.base as usize);
        self.root
            .map_range(&range, at, attributes, Constraints::empty())
            .unwrap_or_else(|error| panic!("stage-2 map of {device:x?}: {error}"));
    }

    /// Copies the first-level table to the page at `place`, and returns VTTBR_EL2 of guest `vmid` for
    /// the copy. From here on, a new mapping whose block of that level is empty now goes only into
    /// the original.
    pub fn copy_root(&self, place: u64, vmid: u64) -> u64 {
        let entries = table_at(self.root.to_physical().0 as u64);
        for (entry, copy) in entries.iter().zip(table_at(place)) {
            copy.store(entry.load(Relaxed), Relaxed);
        }
        place | vmid << 48
    }

    /// Returns VTTBR_EL2 and VTCR_EL2 for the map of guest `vmid`.
    pub fn stage2_registers(&self, vmid: u64) -> (u64, u64) {
        let vttbr = self.root.to_physical().0 as u64 | vmid << 48;
        // Start level 1 (SL0=1), write-back inner-shareable walks, RES1 bit 31
        // (DDI 0487K.a, D23.2.177).
        let bits = IPA_BITS.min(PHYSICAL_BITS[pa_range_field() as usize]);
        let vtcr =
            (64 - bits) | 1 << 6 | 1 << 8 | 1 << 10 | 3 << 12 | pa_range_field() << 16 | 1 << 31;
        (vttbr, vtcr)
    }
}

/// Findings of a walk through a map.
#[derive(Clone, Copy, Debug, Default)]
pub struct Audit {
    /// Number of blocks and pages.
    pub entries: usize,
    /// Bytes of code.
    pub executable: u64,
    /// Bytes that can be written.
    pub writable: u64,
}

/// Walks the map that EL2 uses now.
///
/// # Panics
/// Panics if any memory can be both written and executed.
pub fn audit_el2_map() -> Audit {
    let mut audit = Audit::default();
    visit_leaves(TTBR0_EL2.get(), 0, 0, &mut |address, size, descriptor| {
        // AP[2] (7) makes memory read-only, XN (54) makes it non-executable (DDI 0487K.a, D8.3.1).
        let (writable, executable) = (descriptor >> 7 & 1 == 0, descriptor >> 54 & 1 == 0);
        assert!(
            !(writable && executable),
            "EL2 map: {address:#x} can be written and executed"
        );
        audit.entries += 1;
        audit.executable += if executable { size } else { 0 };
        audit.writable += if writable { size } else { 0 };
    });
    audit
}

/// Walks the guest's map that `vttbr` refers to.
///
/// # Panics
/// Panics if the map leads to anything but `ram` and `device`.
pub fn audit_guest_map(vttbr: u64, ram: Region, device: Option<Region>) -> Audit {
    let mut audit = Audit::default();
    visit_leaves(vttbr, 1, 0, &mut |address, size, descriptor| {
        let to = descriptor & ADDRESS;
        let is_whole = |region: &Region| region.contains(to) && region.contains(to + size - 1);
        assert!(
            is_whole(&ram) || device.as_ref().is_some_and(is_whole),
            "stage-2 map: IPA {address:#x} leads to {to:#x}, which is not the guest's"
        );
        audit.entries += 1;
        audit.writable += size;
    });
    audit
}

/// Output address of a descriptor, with 4 KiB granules.
const ADDRESS: u64 = 0xffff_ffff_f000;

/// Returns the entries of the table at `address`.
fn table_at(address: u64) -> &'static [AtomicU64; 512] {
    let place = (address & ADDRESS) as *const [AtomicU64; 512];
    // SAFETY: tables are in the pool, which is mapped and never given back.
    unsafe { &*place }
}

/// Calls `see` with the address, size and descriptor of every block and page below the table at
/// `root`. The table's level is `level`, and the addresses that it translates begin at `start`.
fn visit_leaves(root: u64, level: u32, start: u64, see: &mut dyn FnMut(u64, u64, u64)) {
    let size = 1u64 << (39 - 9 * level);
    for (n, entry) in table_at(root).iter().enumerate() {
        let descriptor = entry.load(Relaxed);
        let address = start + n as u64 * size;
        match (descriptor & 3, level) {
            (1, _) | (3, 3) => see(address, size, descriptor),
            (3, _) => visit_leaves(descriptor, level + 1, address, see),
            _ => {}
        }
    }
}

/// Unmaps everything from the guest whose map `vttbr` refers to, on every CPU.
pub fn unmap_guest(vttbr: u64) {
    for entry in table_at(vttbr) {
        entry.store(0, Relaxed);
    }
    insn::dsb_ish();
    // On some cores, the first DSB may complete before accesses through an old translation do;
    // repeating the sequence is the workaround (errata 2441007 of Cortex-A55, 4118414 of A76, V2
    // and V3).
    for _ in 0..2 {
        insn::tlbi_alle1is();
        insn::dsb_ish();
    }
    insn::isb();
}
