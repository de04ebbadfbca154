// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps memory at EL1: everything is mapped at its own address, code is never writable, and nothing
//! but code is executable.

use core::mem::ManuallyDrop;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{ID_AA64MMFR0_EL1, MAIR_EL1, Readable, TCR_EL1, TTBR0_EL1, Writeable};
use aarch64_paging::descriptor::{El1Attributes, PhysicalAddress};
use aarch64_paging::paging::{Constraints, El1And0, MemoryRegion, RootTable, VaRange};
use arch::image::SCTLR_EL1_RES1;
use arch::{insn, layout};
use pages::{Pool, Regime, Tables, Use};
use platform::Region;

/// MAIR_EL1: index 0 Device-nGnRE, index 1 Normal write-back (DDI 0487K.a, D23.2.109).
const MAIR: u64 = 0x04 | 0xff << 8;

arch::symbol_addresses! {
    /// The page below the first CPU's stack.
    boot_guard = el1_boot_guard;
}

/// Returns the variables of the image, without the page below the first CPU's stack: that page is not mapped, so that
/// a stack overflow does not overwrite the data below it.
pub fn data_regions() -> [Region; 2] {
    let data = layout::data();
    let guard = boot_guard();
    [data.start..guard, guard + pages::PAGE..data.end].map(Region::from)
}

/// Returns the attributes of memory that is used as `how` says.
fn attributes(how: Use) -> El1Attributes {
    let common = El1Attributes::VALID | El1Attributes::ACCESSED | El1Attributes::UXN;
    let normal = common | El1Attributes::ATTRIBUTE_INDEX_1 | El1Attributes::INNER_SHAREABLE;
    match how {
        Use::Execute => normal | El1Attributes::READ_ONLY,
        Use::Read => normal | El1Attributes::READ_ONLY | El1Attributes::PXN,
        Use::Write => normal | El1Attributes::PXN,
        Use::Device => common | El1Attributes::ATTRIBUTE_INDEX_0 | El1Attributes::PXN,
    }
}

/// The registers of EL1's translation regime; the first CPU writes them before it starts another.
#[unsafe(no_mangle)]
pub static EL1_REGIME: Regime = Regime::new();

/// Builds the map from `regions`, in order, and turns translation and caches on.
///
/// # Safety
/// The regions must contain the running code, its data and its stack, and
/// `pool`'s memory.
pub unsafe fn enable_translation(pool: &mut Pool, regions: impl Iterator<Item = (Region, Use)>) {
    let mut root = ManuallyDrop::new(RootTable::with_va_range(
        Tables(pool),
        0,
        El1And0,
        VaRange::Lower,
    ));
    for (region, how) in regions {
        let range = MemoryRegion::new(region.base as usize, region.end() as usize);
        let at = PhysicalAddress(range.start().0);
        root.map_range(&range, at, attributes(how), Constraints::empty())
            .unwrap_or_else(|error| panic!("EL1 map of {region:x?}: {error}"));
    }
    let range = ID_AA64MMFR0_EL1.read(ID_AA64MMFR0_EL1::PARange).min(5);
    // T0SZ 16, write-back inner-shareable walks, 4 KiB granule, nothing from TTBR1 (EPD1), IPS the
    // range of the PE (DDI 0487K.a, D23.2.158).
    let tcr = 16 | 1 << 8 | 1 << 10 | 3 << 12 | 1 << 23 | range << 32;
    // M, C, SA, I and WXN. WFI, WFE and cache instructions at EL0 would trap to EL1.
    let sctlr = SCTLR_EL1_RES1 | 1 | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 19;
    let regime = &EL1_REGIME;
    regime
        .ttbr
        .store(root.to_physical().0 as u64 | 1 << 48, Relaxed);
    regime.tcr.store(tcr, Relaxed);
    regime.mair.store(MAIR, Relaxed);
    regime.sctlr.store(sctlr, Relaxed);
    TTBR0_EL1.set(regime.ttbr.load(Relaxed));
    TCR_EL1.set(tcr);
    MAIR_EL1.set(MAIR);
    insn::isb();
    insn::tlbi_vmalle1();
    insn::dsb_nsh();
    insn::isb();
    // Writes up to here went to memory. A hypervisor that maps this memory as cacheable may have read it before,
    // perhaps speculatively, and the CPU would find those values once caches are on (DDI 0487K.a, B2.10, mismatched
    // memory attributes). No code below takes memory from the pool. The data includes the stack, so it is cleaned last.
    pages::clean(pool.taken());
    let data = layout::data();
    // SAFETY: the caller vouches for the regions, which map code and stack at the addresses where
    // they are.
    unsafe { insn::clean_and_set_sctlr_el1(data.start, data.end, pages::line(), sctlr) };
}
