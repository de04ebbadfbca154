// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads and stores of device registers: one instruction each, with one register that holds the
//! address.
//!
//! The compiler may turn a volatile access into one with address write-back, especially in a loop.
//! If that takes a stage-2 abort, as in a guest, there is no syndrome (DDI 0487K.a, ISS encoding
//! for a Data Abort, ISV), and the access can't be emulated.

use core::ptr::NonNull;

use safe_mmio::UniqueMmioPointer;

macro_rules! loads {
    ($($load:ident $kind:ty;)*) => {$(
        /// Reads the register at `address`.
        ///
        /// # Safety
        /// It must be mapped as device memory, aligned, and a read must do nothing that matters to
        /// anybody else.
        pub unsafe fn $load(address: u64) -> $kind {
            // SAFETY: as the caller promises.
            unsafe { at::<$kind>(address).read_unsafe() }
        }
    )*};
}

macro_rules! stores {
    ($($store:ident $kind:ty;)*) => {$(
        /// Writes `value` to the register at `address`.
        ///
        /// # Safety
        /// It must be mapped as device memory, aligned, and a write must do nothing that matters to
        /// anybody else.
        pub unsafe fn $store(address: u64, value: $kind) {
            // SAFETY: as the caller promises.
            unsafe { at::<$kind>(address).write_unsafe(value) }
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
/// `address` is that of a register.
#[inline(always)]
unsafe fn at<T>(address: u64) -> UniqueMmioPointer<'static, T> {
    let register = core::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: no register is at address 0.
    unsafe { UniqueMmioPointer::new(NonNull::new_unchecked(register)) }
}
