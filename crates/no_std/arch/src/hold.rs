// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds and releases CPUs that a loader starts together with the first one.
//!
//! Held CPUs run with MMU and caches off, so a CPU that releases them cleans the slot to memory.
//! One slot serves all held CPUs: they are released one after another, each by its affinity. CPUs
//! poll the slot without WFE: only an event would end a WFE, and some simulators lose an event that
//! arrives while a CPU goes to sleep.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::insn;

/// The slot polled by held CPUs, whose code is in [`crate::held_entry`].
#[repr(C, align(64))]
pub struct Release {
    /// Affinity of the CPU that is released, or all ones.
    mpidr: AtomicU64,
    /// Value of x0 for that CPU.
    context: AtomicU64,
}

impl Default for Release {
    fn default() -> Self {
        Self::new()
    }
}

impl Release {
    /// Creates a slot that releases no CPU.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            mpidr: AtomicU64::new(u64::MAX),
            context: AtomicU64::new(0),
        }
    }

    /// Releases the held CPU `mpidr`, which starts with x0 = `context`.
    pub fn let_go(&self, mpidr: u64, context: u64) {
        // A CPU that was released earlier but polls late must not take this context.
        self.mpidr.store(u64::MAX, Ordering::Relaxed);
        self.clean();
        self.context.store(context, Ordering::Relaxed);
        insn::dmb_ish();
        self.mpidr.store(mpidr, Ordering::Relaxed);
        self.clean();
    }

    /// Releases the CPU `mpidr`, with x0 = `context`, from a loader's spin table, where it waits
    /// for an address in the word at `address`. The CPU continues at `held`, the symbol of
    /// [`crate::held_entry`].
    ///
    /// # Safety
    /// The word must be mapped as normal memory and, according to the machine's description, must be the
    /// CPU's release address.
    pub unsafe fn let_go_from_table(&self, address: u64, held: u64, mpidr: u64, context: u64) {
        let word = core::ptr::with_exposed_provenance_mut::<u64>(address as usize);
        // SAFETY: the caller promises that the word is mapped and is the CPU's release address.
        unsafe {
            // The loader may have written its words without caches: writing back an older copy of
            // the line would restore the old values of adjacent words.
            insn::dc_civac(address as usize);
            insn::dsb_sy();
            word.write_volatile(held);
            insn::dc_civac(address as usize);
        }
        self.let_go(mpidr, context);
        // Loaders may wait for the address with WFE (Linux, booting.rst). `let_go` executes the DSB
        // that has to precede this SEV.
        insn::sev();
    }

    fn clean(&self) {
        // SAFETY: this is the address of the slot itself; both words of the slot lie in one line.
        unsafe { insn::dc_civac(core::ptr::from_ref(self) as usize) };
        insn::dsb_sy();
    }
}

/// Emits the code for `held: release => then`: at the symbol `$held`, each CPU waits until the
/// [`Release`] `$release` names it, and then branches to `$then` with x0 = the context. Needs no
/// stack; clobbers x0 to x3.
#[macro_export]
macro_rules! held_entry {
    ($held:ident: $release:path => $then:literal) => {
        core::arch::global_asm!(
            ".section .text.boot, \"ax\"",
            concat!(".global ", stringify!($held)),
            concat!(stringify!($held), ":"),
            // A CPU that a spin table holds executes this code first.
            $crate::plain_data!(),
            "    mrs     x1, mpidr_el1",
            "    ldr     x2, =0xff00ffffff           // affinity fields",
            "    and     x1, x1, x2",
            "    adrp    x2, {release}",
            "    add     x2, x2, :lo12:{release}",
            "1:  ldr     x3, [x2]",
            "    cmp     x3, x1",
            "    b.eq    2f",
            "    yield",
            "    b       1b",
            "2:  ldr     x0, [x2, #8]",
            concat!("    b       ", $then),
            "    .ltorg",
            release = sym $release,
        );
    };
}
