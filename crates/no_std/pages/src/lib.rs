// SPDX-License-Identifier: MIT OR Apache-2.0
//! Manages pages for both images: a pool of pages, the memory of the translation tables, the common
//! parts of the maps at EL1 and EL2, and cache maintenance by address.

#![no_std]
#![cfg(target_arch = "aarch64")]

use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

use aarch64_paging::descriptor::{PagingAttributes, PhysicalAddress};
use aarch64_paging::paging::{PageTable, Translation};
use arch::insn;
use arch::regs::{CTR_EL0, DCZID_EL0};
use platform::Region;

/// Size of a page in bytes.
pub const PAGE: u64 = 4096;

/// A region of RAM from which pages are taken one after another and never given back.
#[derive(Debug)]
pub struct Pool {
    base: u64,
    next: u64,
    end: u64,
}

impl Pool {
    /// Creates a pool of the pages of `region`.
    ///
    /// # Safety
    /// The region must be accessible RAM that nothing else ever uses.
    pub const unsafe fn new(region: Region) -> Self {
        Self {
            base: region.base,
            next: region.base,
            end: region.end(),
        }
    }

    /// Returns the part of the region that has been taken so far.
    #[must_use]
    pub const fn taken(&self) -> Region {
        Region {
            base: self.base,
            size: self.next - self.base,
        }
    }

    /// Takes `bytes` bytes, rounded up to pages, and zeroes them. If firmware left lines of this
    /// memory in a cache, they could overwrite the memory while caches are off (DDI 0487K.a,
    /// B2.11), so this function first cleans the lines.
    ///
    /// # Panics
    /// Panics if the pool is exhausted, because it was too small.
    pub fn take(&mut self, bytes: u64) -> u64 {
        let base = self.reserve(bytes);
        clean(Region { base, size: bytes });
        // SAFETY: the memory is inside the region that `new` got.
        unsafe { (base as *mut u8).write_bytes(0, bytes as usize) };
        base
    }

    /// Like [`Self::take`], but does not change the contents of the memory.
    ///
    /// # Panics
    /// Panics if the pool is exhausted.
    pub fn reserve(&mut self, bytes: u64) -> u64 {
        let base = self.next;
        self.next += bytes.next_multiple_of(PAGE);
        assert!(
            self.next <= self.end,
            "RAM: {bytes} bytes are wanted and {} left; give the machine more memory, or ask for less at once",
            self.end - base
        );
        base
    }
}

impl Pool {
    /// Puts `items` into memory of the pool, one after another, where they stay for ever.
    ///
    /// # Panics
    /// Panics if the pool is exhausted.
    pub fn fill<T>(&mut self, items: impl ExactSizeIterator<Item = T>) -> &'static mut [T] {
        const { assert!(align_of::<T>() as u64 <= PAGE) };
        let count = items.len();
        let place = self.reserve((count * size_of::<T>()) as u64) as *mut MaybeUninit<T>;
        // SAFETY: the memory is fresh, has the right size and is aligned to a page; it is never
        // given back, and nothing else uses it.
        let slots = unsafe { core::slice::from_raw_parts_mut(place, count) };
        let mut written = 0;
        for (slot, item) in slots.iter_mut().zip(items) {
            slot.write(item);
            written += 1;
        }
        assert!(written == count, "an iterator is shorter than it says");
        // SAFETY: all slots were written.
        unsafe { slots.assume_init_mut() }
    }
}

/// The permitted use of a region of a stage-1 map.
#[derive(Clone, Copy, Debug)]
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

/// The registers of a stage-1 translation regime, which the start code of every CPU loads. The regime
/// belongs to the exception level at which the image runs.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Regime {
    /// TTBR0.
    pub ttbr: AtomicU64,
    /// TCR.
    pub tcr: AtomicU64,
    /// MAIR.
    pub mair: AtomicU64,
    /// SCTLR.
    pub sctlr: AtomicU64,
}

impl Regime {
    /// Creates a regime whose values are not yet set.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "it is only made once, as a static"
    )]
    pub const fn new() -> Self {
        Self {
            ttbr: AtomicU64::new(0),
            tcr: AtomicU64::new(0),
            mair: AtomicU64::new(0),
            sctlr: AtomicU64::new(0),
        }
    }
}

/// Allocates translation tables from the pool, for use at their physical addresses.
#[derive(Debug)]
pub struct Tables<'p>(pub &'p mut Pool);

impl<A: PagingAttributes> Translation<A> for Tables<'_> {
    fn allocate_table(&mut self) -> (NonNull<PageTable<A>>, PhysicalAddress) {
        let page = self.0.take(PAGE);
        let table = NonNull::new(page as *mut PageTable<A>).expect("the pool is not at 0");
        (table, PhysicalAddress(page as usize))
    }

    unsafe fn deallocate_table(&mut self, _table: NonNull<PageTable<A>>) {
        // Tables are built once and live as long as the machine. If the library replaces a table
        // with a block during the build, the table's page stays unused.
    }

    fn physical_to_virtual(&self, pa: PhysicalAddress) -> NonNull<PageTable<A>> {
        NonNull::new(pa.0 as *mut PageTable<A>).expect("the pool is not at 0")
    }
}

/// Returns the size in bytes of the smallest line in all data caches: CTR_EL0.DminLine, which is in
/// words (DDI 0487K.a, D23.2.34).
#[must_use]
pub fn line() -> u64 {
    4 << (CTR_EL0.get() >> 16 & 0xf)
}

/// Cleans and invalidates `region` to the point of coherency, for a reader whose caches are
/// off.
pub fn clean(region: Region) {
    let line = line();
    let mut address = region.base & !(line - 1);
    while address < region.end() {
        // SAFETY: callers clean only memory that they have just used.
        unsafe { insn::dc_civac(address as usize) };
        address += line;
    }
    insn::dsb_sy();
}

/// Evicts `regions` from every data and instruction cache of every CPU: the next access reads
/// memory, or a cache beyond the point of coherency. Contents stay unchanged.
///
/// An operation by address to the point of coherency takes effect in the caches of every PE in the
/// shareability domain of its memory, which is inner shareable here; so does `IC IALLUIS` (DDI
/// 0487K.a, D7.5, A64 cache maintenance instructions). `DC CIVAC` is complete after a DSB
/// ([`clean`] ends with one), and comes first: an instruction cache that was invalidated earlier
/// could be filled again from a unified cache that still has the line. `IC IALLUIS` is complete
/// after the next DSB, and this PE fetches again after the ISB (ibid., ordering and completion of
/// cache maintenance). TLBs, branch predictors and the lines of translation tables stay unchanged.
pub fn evict(regions: impl IntoIterator<Item = Region>) {
    regions.into_iter().for_each(clean);
    insn::ic_ialluis();
    insn::dsb_ish();
    insn::isb();
}

/// Copies `from` to `to`, one line per iteration: an image is large, and `memcpy` for a target
/// without vector registers takes nearly three times as many instructions.
///
/// # Safety
/// Both must be mapped as Normal memory and must not overlap, and the memory at `to` must belong to
/// the caller.
pub unsafe fn copy(from: Region, to: u64) {
    const LINE: u64 = 64;
    let lines = from.size / LINE * LINE;
    let mut done = 0;
    while done < lines {
        // SAFETY: the caller promises what this needs.
        unsafe { insn::copy_line((from.base + done) as usize, (to + done) as usize) };
        done += LINE;
    }
    let (rest, to) = (from.base + lines, to + lines);
    // SAFETY: the caller promises what this needs.
    unsafe {
        (to as *mut u8).copy_from_nonoverlapping(rest as *const u8, (from.size - lines) as usize);
    }
}

/// Zeroes `region`, which begins and ends on page boundaries, and cleans it to the point of
/// coherency.
///
/// # Panics
/// Panics if `DC ZVA` is prohibited here, which it is not at EL2.
pub fn zero(region: Region) {
    // DCZID_EL0: BS (3:0) is the logarithm of the number of words in a block, which has at most 2
    // KiB (DDI 0487K.a, D24.2.36).
    let id = DCZID_EL0.get();
    assert!(id & 1 << 4 == 0, "DC ZVA is prohibited");
    let block = 4 << (id & 0xf);
    // Line and block are powers of two: a step has whole lines, and a page has whole steps and blocks.
    const STEP: u64 = 8;
    let line = line().min(block).min(PAGE / STEP);
    // RAM is large, and each boot does this once. So the code works page by page, since a page is
    // still in the nearest cache when it is cleaned, and its loops contain little more than one
    // operation.
    let mut page = region.base;
    while page < region.end() {
        let end = page + PAGE;
        // SAFETY: the callers give the region away, and it is mapped as memory.
        unsafe {
            if block * STEP <= PAGE {
                zero_page::<STEP>(page, block);
            } else {
                zero_page::<1>(page, block);
            }
        }
        while page < end {
            for _ in 0..STEP {
                // SAFETY: the callers give the region away, and it is mapped as memory.
                unsafe { insn::dc_civac(page as usize) };
                page += line;
            }
        }
    }
    insn::dsb_sy();
}

/// Zeroes a page, `STEP` blocks per iteration.
///
/// # Safety
/// The page must be mapped as Normal memory, and nothing may use it. `block` must be the block size
/// of DCZID_EL0, and a page must be a multiple of `STEP` blocks.
#[inline(always)]
unsafe fn zero_page<const STEP: u64>(page: u64, block: u64) {
    let mut address = page;
    while address < page + PAGE {
        for _ in 0..STEP {
            // SAFETY: the caller gives the page away.
            unsafe { insn::dc_zva(address as usize) };
            address += block;
        }
    }
}
