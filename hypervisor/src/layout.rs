// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the linker and the packer put things. One function per symbol.

use platform::Region;

/// Declares functions that return the address of a linker symbol.
macro_rules! symbols {
    ($($(#[$doc:meta])* $name:ident = $symbol:ident;)*) => {
        unsafe extern "C" { $(static $symbol: [u8; 0];)* }
        $(
            $(#[$doc])*
            pub fn $name() -> u64 {
                // The value of a linker symbol is its address; nothing is read.
                (&raw const $symbol) as u64
            }
        )*
    };
}

symbols! {
    /// Load address; the image is linked at 0, so it is also the relocation offset.
    base = _head;
    text_end = __text_end;
    rodata_start = __rodata_start;
    rodata_end = __rodata_end;
    data_start = __data_start;
    data_end = __data_end;
    /// Where the packer put the guest's image, behind a header.
    payload = __payload;
    /// Entry of the other CPUs, at EL2 with the MMU off.
    secondary_entry = _el2_secondary;
    /// Entry of CPUs that were let in and wait for their turn.
    held_entry = _el2_held;
}

fn region(start: u64, end: u64) -> Region {
    Region {
        base: start,
        size: end - start,
    }
}

/// Code: read and execute.
pub fn text() -> Region {
    region(base(), text_end())
}

/// Constants and relocations: read.
pub fn rodata() -> Region {
    region(rodata_start(), rodata_end())
}

/// Variables: read and write.
pub fn data() -> Region {
    region(data_start(), data_end())
}
