// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores of device registers, each with one instruction that takes the address from one
//! register.
//!
//! The compiler may turn a volatile access into an instruction with address write-back, especially
//! in a loop. If such an instruction takes a stage-2 abort, as in a guest, the syndrome does not
//! describe it (DDI 0487K.a, ISS encoding for a Data Abort, ISV), and it can't be emulated.

#[cfg(target_arch = "aarch64")]
use core::arch::asm;
#[cfg(not(target_arch = "aarch64"))]
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

macro_rules! loads {
    ($($load:ident $kind:ty, $instruction:literal;)*) => {$(
        /// Reads the register at `address`.
        ///
        /// # Safety
        /// The register must be aligned and mapped as device memory, and a read must have no effect
        /// on other code.
        #[inline(always)]
        pub unsafe fn $load(address: u64) -> $kind {
            let value: $kind;
            // SAFETY: the caller promises what this needs.
            #[cfg(target_arch = "aarch64")]
            unsafe {
                asm!($instruction, value = out(reg) value, address = in(reg) address, options(nostack, preserves_flags));
            }
            // SAFETY: as above; a test has memory in place of the register.
            #[cfg(not(target_arch = "aarch64"))]
            unsafe {
                value = with_exposed_provenance::<$kind>(address as usize).read_volatile();
            }
            value
        }
    )*};
}

macro_rules! stores {
    ($($store:ident $kind:ty, $instruction:literal;)*) => {$(
        /// Writes `value` to the register at `address`.
        ///
        /// # Safety
        /// The register must be aligned and mapped as device memory, and a write must have no
        /// effect on other code.
        #[inline(always)]
        pub unsafe fn $store(address: u64, value: $kind) {
            // SAFETY: the caller promises what this needs.
            #[cfg(target_arch = "aarch64")]
            unsafe {
                asm!($instruction, value = in(reg) value, address = in(reg) address, options(nostack, preserves_flags));
            }
            // SAFETY: as above; a test has memory in place of the register.
            #[cfg(not(target_arch = "aarch64"))]
            unsafe {
                with_exposed_provenance_mut::<$kind>(address as usize).write_volatile(value);
            }
        }
    )*};
}

loads! {
    load_32 u32, "ldr {value:w}, [{address}]";
    load_64 u64, "ldr {value:x}, [{address}]";
}

stores! {
    store_8 u8, "strb {value:w}, [{address}]";
    store_32 u32, "str {value:w}, [{address}]";
    store_64 u64, "str {value:x}, [{address}]";
}
