// SPDX-License-Identifier: MIT OR Apache-2.0
//! The addresses at which the linker and the packer put the parts of this image.

use core::ops::Range;

/// Declares functions that return the addresses of symbols.
#[macro_export]
macro_rules! symbol_addresses {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident;)*) => {
        unsafe extern "C" { $(static $symbol: [u8; 0];)* }
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name() -> u64 {
                // The value of a symbol is its address, so this reads no memory.
                (&raw const $symbol) as u64
            }
        )*
    };
}

symbol_addresses! {
    /// The load address. The image is linked at 0, so this is also the relocation offset.
    base = _head;
    /// Address at which the packer put the image's payload, after a header.
    payload = __payload;
    /// End of the code.
    text_end = __text_end;
    /// Start of the constants.
    rodata_start = __rodata_start;
    /// End of the constants.
    rodata_end = __rodata_end;
    /// Start of the variables.
    data_start = __data_start;
    /// End of the variables.
    data_end = __data_end;
}

/// Returns the range of the code, for reading and executing.
#[must_use]
pub fn text() -> Range<u64> {
    base()..text_end()
}

/// Returns the range of constants and relocations, for reading.
#[must_use]
pub fn rodata() -> Range<u64> {
    rodata_start()..rodata_end()
}

/// Returns the range of variables, for reading and writing.
#[must_use]
pub fn data() -> Range<u64> {
    data_start()..data_end()
}
