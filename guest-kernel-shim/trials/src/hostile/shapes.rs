// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defines the ways of accessing an address, one function each: x0 is the address, x1 a value.

use core::arch::global_asm;

/// Effect of an instruction on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Loads one general register in a way that a syndrome describes.
    Load,
    /// Stores one general register in a way that a syndrome describes.
    Store,
    /// Loads general registers in a way that only the instruction describes.
    DecodedLoad,
    /// Stores general registers in a way that only the instruction describes.
    DecodedStore,
    /// Loads in a way that no syndrome describes.
    OtherLoad,
    /// Stores in a way that no syndrome describes.
    OtherStore,
    /// Reads and writes atomically.
    Atomic,
    /// Cache maintenance, which need not check whether the address is that of memory or of a device.
    Maintenance,
    /// Never faults: a prefetch, or a translation.
    Harmless,
}

/// A way of accessing an address.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The instruction.
    pub name: &'static str,
    /// The effect on memory.
    pub kind: Kind,
    /// The size of the access in bytes.
    pub size: u64,
    /// The address of the code.
    pub code: u64,
}

/// Declares the shapes at a label: for each function, its instruction, kind and size.
macro_rules! shapes {
    ($label:ident: $($text:literal $kind:ident $size:literal;)*) => {
        global_asm!(
            ".section .text.hostile, \"ax\"",
            ".arch armv8.2-a+lse",
            ".balign 8",
            concat!(".global ", stringify!($label)),
            concat!(stringify!($label), ":"),
            $($text, "ret",)*
        );
        const LIST: &[(&str, Kind, u64)] = &[$(($text, Kind::$kind, $size)),*];
    };
}

shapes! {
    // strict any rule: it is hostile.
    hostile_shapes:
    "ldrb w0, [x0]" Load 1;
    "ldrh w0, [x0]" Load 2;
    "ldr w0, [x0]" Load 4;
    "ldr x0, [x0]" Load 8;
    "ldrsb x0, [x0]" Load 1;
    "ldrsh w0, [x0]" Load 2;
    "ldrsw x0, [x0]" Load 4;
    "ldar w0, [x0]" Load 4;
    "strb w1, [x0]" Store 1;
    "strh w1, [x0]" Store 2;
    "str w1, [x0]" Store 4;
    "str x1, [x0]" Store 8;
    "stlr x1, [x0]" Store 8;
    "ldr w1, [x0], #4" DecodedLoad 4;
    "ldp w1, w2, [x0]" DecodedLoad 4;
    "ldp x1, x2, [x0]" DecodedLoad 8;
    "ldnp x1, x2, [x0]" DecodedLoad 8;
    "ldxr w1, [x0]" OtherLoad 4;
    "ldaxp x1, x2, [x0]" OtherLoad 16;
    "ldr s0, [x0]" OtherLoad 4;
    "ldr q0, [x0]" OtherLoad 16;
    "ld1 {{v0.16b}}, [x0]" OtherLoad 1;
    "str w1, [x0], #4" DecodedStore 4;
    "stp x1, x1, [x0]" DecodedStore 8;
    "str q0, [x0]" OtherStore 16;
    "ldadd w1, w2, [x0]" Atomic 4;
    "swpal x1, x2, [x0]" Atomic 8;
    "cas w1, w2, [x0]" Atomic 4;
    "dc civac, x0" Maintenance 1;
    "dc cvac, x0" Maintenance 1;
    "dc ivac, x0" Maintenance 1;
    "dc cvau, x0" Maintenance 1;
    "ic ivau, x0" Maintenance 1;
    "prfm pldl1keep, [x0]" Harmless 1;
    "at s1e1r, x0" Harmless 1;
    "at s1e0w, x0" Harmless 1;
}

arch::symbol_addresses! {
    /// The first shape; each shape takes two instructions.
    first = hostile_shapes;
}

/// Returns every shape that this CPU has.
pub fn all() -> impl Iterator<Item = Shape> + Clone {
    use aarch64_cpu::registers::{ID_AA64ISAR0_EL1, Readable};
    // ID_AA64ISAR0_EL1.Atomic, bits 23:20.
    let atomics = ID_AA64ISAR0_EL1.get() >> 20 & 0xf != 0;
    LIST.iter()
        .enumerate()
        .map(|(n, &(name, kind, size))| Shape {
            name,
            kind,
            size,
            code: first() + 8 * n as u64,
        })
        .filter(move |shape| atomics || shape.kind != Kind::Atomic)
}
