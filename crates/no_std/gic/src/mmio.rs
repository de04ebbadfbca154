// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores of device registers, each with one instruction that takes the address from one
//! register.
//!
//! The compiler may turn a volatile access into an instruction with address write-back, especially
//! in a loop. If such an instruction takes a stage-2 abort, as in a guest, the syndrome does not
//! describe it (DDI 0487K.a, ISS encoding for a Data Abort, ISV), and it can't be emulated.

use core::ptr::NonNull;

use safe_mmio::UniqueMmioPointer;

macro_rules! loads {
    ($($load:ident $kind:ty;)*) => {$(
        /// Reads the register at `address`.
        ///
        /// # Safety
        /// The register must be mapped as device memory, aligned, and a read must have no effect on
        /// other code.
        pub unsafe fn $load(address: u64) -> $kind {
            // SAFETY: the caller promises what this needs.
            unsafe { register_at::<$kind>(address).read_unsafe() }
        }
    )*};
}

macro_rules! stores {
    ($($store:ident $kind:ty;)*) => {$(
        /// Writes `value` to the register at `address`.
        ///
        /// # Safety
        /// The register must be mapped as device memory, aligned, and a write must have no effect on
        /// other code.
        pub unsafe fn $store(address: u64, value: $kind) {
            // SAFETY: the caller promises what this needs.
            unsafe { register_at::<$kind>(address).write_unsafe(value) }
        }
    )*};
}

loads! {
    load_32 u32;
    load_64 u64;
}

stores! {
    store_8 u8;
    store_32 u32;
    store_64 u64;
}

/// # Safety
/// `address` must be the address of a register.
#[inline(always)]
unsafe fn register_at<T>(address: u64) -> UniqueMmioPointer<'static, T> {
    let register = core::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: no register is at address 0.
    unsafe { UniqueMmioPointer::new(NonNull::new_unchecked(register)) }
}
