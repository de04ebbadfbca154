// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests instructions as an assembler encodes them, and random words.

use proptest::prelude::*;

use super::*;

/// Instructions that are decoded, as LLVM's assembler encodes them.
const KNOWN: [(u32, &str); 29] = [
    (0x381f_f441, "strb w1, [x2], #-1"),
    (0x380f_fc83, "strb w3, [x4, #255]!"),
    (0x3840_14c5, "ldrb w5, [x6], #1"),
    (0x3850_0d07, "ldrb w7, [x8, #-256]!"),
    (0x38c0_1549, "ldrsb w9, [x10], #1"),
    (0x3880_1d8b, "ldrsb x11, [x12, #1]!"),
    (0x7800_25cd, "strh w13, [x14], #2"),
    (0x785f_ee0f, "ldrh w15, [x16, #-2]!"),
    (0x78c0_2651, "ldrsh w17, [x18], #2"),
    (0x7880_2e93, "ldrsh x19, [x20, #2]!"),
    (0xb800_4401, "str w1, [x0], #4"),
    (0xb81f_0fff, "str wzr, [sp, #-16]!"),
    (0xb840_46d5, "ldr w21, [x22], #4"),
    (0xb840_47f7, "ldr w23, [sp], #4"),
    (0xb880_4738, "ldrsw x24, [x25], #4"),
    (0xf800_8f7a, "str x26, [x27, #8]!"),
    (0xf840_87bc, "ldr x28, [x29], #8"),
    (0xf85f_8fdf, "ldr xzr, [x30, #-8]!"),
    (0x2900_0861, "stp w1, w2, [x3]"),
    (0x2920_0861, "stp w1, w2, [x3, #-256]"),
    (0x289f_94c4, "stp w4, w5, [x6], #252"),
    (0x29c1_2127, "ldp w7, w8, [x9, #8]!"),
    (0xa8c1_2fea, "ldp x10, x11, [sp], #16"),
    (0xa91f_fdac, "stp x12, xzr, [x13, #504]"),
    (0xa9a0_3fee, "stp x14, x15, [sp, #-512]!"),
    (0x6940_c650, "ldpsw x16, x17, [x18, #4]"),
    (0x68ff_c650, "ldpsw x16, x17, [x18], #-4"),
    (0x2841_52b3, "ldnp w19, w20, [x21, #8]"),
    (0xa83f_df16, "stnp x22, x23, [x24, #-8]"),
];

/// Instructions that are rejected. LLVM's assembler refuses the last five, which are UNPREDICTABLE.
const OTHERS: [(u32, &str); 33] = [
    (0xb900_0041, "str w1, [x2]"),
    (0xb840_4041, "ldur w1, [x2, #4]"),
    (0xb840_4841, "ldtr w1, [x2, #4]"),
    (0xb863_6841, "ldr w1, [x2, x3]"),
    (0x3c81_0420, "str q0, [x1], #16"),
    (0xbc00_4420, "str s0, [x1], #4"),
    (0xad00_0440, "stp q0, q1, [x2]"),
    (0x6cc1_0440, "ldp d0, d1, [x2], #16"),
    (0x4c40_7020, "ld1 { v0.16b }, [x1]"),
    (0x4c9f_7020, "st1 { v0.16b }, [x1], #16"),
    (0x885f_7c41, "ldxr w1, [x2]"),
    (0x8801_7c62, "stxr w1, w2, [x3]"),
    (0x887f_0861, "ldxp w1, w2, [x3]"),
    (0x88df_fc41, "ldar w1, [x2]"),
    (0x88a1_7c62, "cas w1, w2, [x3]"),
    (0x4822_7cc4, "casp x2, x3, x4, x5, [x6]"),
    (0xb821_0062, "ldadd w1, w2, [x3]"),
    (0xb821_8062, "swp w1, w2, [x3]"),
    (0xd920_1441, "stg x1, [x2], #16"),
    (0xd9a0_1c41, "st2g x1, [x2, #16]!"),
    (0x6900_0861, "stgp x1, x2, [x3]"),
    (0x6880_8861, "stgp x1, x2, [x3], #16"),
    (0xf820_1c41, "ldraa x1, [x2, #8]!"),
    (0xf980_0020, "prfm pldl1keep, [x1]"),
    (0xd50b_7421, "dc zva, x1"),
    (0xd50b_7e21, "dc civac, x1"),
    (0x9940_4041, "ldapur w1, [x2, #4]"),
    (0xd503_201f, "nop"),
    (0xb800_4421, "str w1, [x1], #4"),
    (0xf840_8c21, "ldr x1, [x1, #8]!"),
    (0x2940_0441, "ldp w1, w1, [x2]"),
    (0x28c1_0821, "ldp w1, w2, [x1], #8"),
    (0x2981_0841, "stp w1, w2, [x2, #8]!"),
];

/// Formats the transfer as assembly code.
fn assembly(transfer: &Transfer, no_allocate: bool) -> String {
    let Transfer { access, second, .. } = transfer;
    let Access {
        size,
        write,
        sign_extend,
        sixty_four,
        ..
    } = *access;
    let name = |number: u32, zero: &str| match (number, sixty_four) {
        (31, _) => zero.to_owned(),
        (number, true) => format!("x{number}"),
        (number, false) => format!("w{number}"),
    };
    let zero = if sixty_four { "xzr" } else { "wzr" };
    let mut text = String::from(if write { "st" } else { "ld" });
    text += match (second, no_allocate) {
        (Some(_), true) => "np",
        (Some(_), false) => "p",
        (None, _) => "r",
    };
    text += if sign_extend { "s" } else { "" };
    text += match (size, second) {
        (1, _) => "b",
        (2, _) => "h",
        (4, _) if sign_extend => "w",
        _ => "",
    };
    let registers = [Some(access.register), *second].into_iter().flatten();
    let registers: Vec<String> = registers.map(|number| name(number, zero)).collect();
    let base = match transfer.base {
        31 => "sp".to_owned(),
        base => format!("x{base}"),
    };
    let address = match (transfer.offset, transfer.write_back) {
        (0, 0) => format!("[{base}]"),
        (offset, 0) => format!("[{base}, #{offset}]"),
        (0, after) => format!("[{base}], #{after}"),
        (offset, after) => {
            assert_eq!(offset, after);
            format!("[{base}, #{offset}]!")
        }
    };
    format!("{text} {}, {address}", registers.join(", "))
}

#[test]
fn what_an_assembler_encodes_is_read_back() {
    for (word, expected) in KNOWN {
        let transfer = Transfer::decode(word).unwrap_or_else(|| panic!("{expected}"));
        assert_eq!(assembly(&transfer, expected.contains("np ")), expected);
    }
    for (word, other) in OTHERS {
        assert_eq!(Transfer::decode(word), None, "{other}");
    }
}

/// Checks the bits and values that the diagrams of C6.2 demand of an instruction: for single ones,
/// size, V, opc, bit 21 and the index; for pairs, opc, V and L.
fn is_documented(word: u32) -> bool {
    let single =
        word & 0x3f20_0400 == 0x3800_0400 && !matches!(word >> 22 & 0x3ff, 0x3e2..=0x3e3 | 0x2e3);
    let pair = match word & 0xfe40_0000 {
        0x2800_0000 | 0x2840_0000 | 0xa800_0000 | 0xa840_0000 => true,
        0x6840_0000 => word >> 23 & 3 != 0,
        _ => false,
    };
    single || pair
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn nothing_else_is_decoded(word: u32, kind in 0..4u32) {
        // Most random words belong to other classes.
        let word = match kind {
            0 => word,
            1 => word & 0xc0ff_ffff | 0x3800_0000,
            2 => word & 0xc1ff_ffff | 0x2800_0000,
            _ => word & 0xc0df_ffff | 0x3800_0400,
        };
        if let Some(transfer) = Transfer::decode(word) {
            prop_assert!(is_documented(word), "{word:#x} is {}", assembly(&transfer, false));
        } else if is_documented(word) {
            let (t, t2, n) = (word & 31, word >> 10 & 31, word >> 5 & 31);
            prop_assert!(t == n || t2 == n || t == t2, "{word:#x}");
        }
    }

    #[test]
    fn only_what_is_aligned_and_in_a_page_fits(
        pair in proptest::sample::select(&KNOWN[18..]), base: u64, tag: u8
    ) {
        let transfer = Transfer::decode(pair.0).unwrap();
        let start = base.wrapping_add_signed(transfer.offset);
        let far = start ^ u64::from(tag) << 56;
        let write = transfer.access.write;
        let size = u64::from(transfer.access.size);
        let whole = start % size == 0 && start / 4096 == start.wrapping_add(2 * size - 1) / 4096;
        prop_assert_eq!(transfer.fits(far, write, base), whole);
        prop_assert!(!transfer.fits(far, !write, base));
        prop_assert!(!transfer.fits(far ^ size, write, base));
    }
}

#[test]
fn the_second_register_is_behind_the_first() {
    let pair = Transfer::decode(0xa8c1_2fea).unwrap();
    let accesses: Vec<_> = pair
        .accesses()
        .map(|(at, access)| (at, access.register))
        .collect();
    assert_eq!(accesses, [(0, 10), (8, 11)]);
    let single = Transfer::decode(0xb800_4401).unwrap();
    assert_eq!(single.accesses().count(), 1);
}
