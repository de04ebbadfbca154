// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::register::*;

/// The assembler generates these words.
#[test]
fn instructions_are_what_they_are() {
    use Operation::*;
    let all = Barrier {
        alone: false,
        stores: true,
        loads: true,
    };
    let tlbi = |broadcast, of| Some(Tlbi { broadcast, of });
    let line = |cleans, invalidates| {
        Clean(Maintenance {
            cleans,
            invalidates,
        })
    };
    let (register, from) = (TPIDR_EL2, 0);
    let write = Write { register, from };
    let (into, bits) = (0, u64::MAX);
    let read = |register| {
        Some(Read {
            register,
            into,
            bits,
        })
    };
    let own = Barrier { alone: true, ..all };
    let (mut of_stores, mut of_loads) = (all, all);
    (of_stores.loads, of_loads.stores) = (false, false);
    for (word, meant) in [
        (0xd51c_d040, Some(write)),
        (0xd53b_e040, read(CNTVCT_EL0)),
        (0xd538_cc00, read(ICC_IAR1_EL1)),
        (0xd503_3fdf, Some(Isb)),
        (0xd503_3f9f, Some(Dsb(all))),
        (0xd503_3b9f, Some(Dsb(all))),
        (0xd503_379f, Some(Dsb(own))),
        (0xd503_3a9f, Some(Dsb(of_stores))),
        (0xd503_399f, Some(Dsb(of_loads))),
        (0xd503_3bbf, Some(Dmb(all))),
        (0xd503_3abf, Some(Dmb(of_stores))),
        (0xd503_39bf, Some(Dmb(of_loads))),
        (0xd503_309f, None), // ssbb
        (0xd503_3f5f, Some(ClearExclusive)),
        (0xd503_205f, Some(Wait(super::Wait::Event))),
        (0xd503_207f, Some(Wait(super::Wait::Interrupt))),
        (0xd503_1000, Some(Wait(super::Wait::Bounded))), // wfet x0
        (0xd503_1020, Some(Wait(super::Wait::Bounded))), // wfit x0
        (0xd503_203f, None),                             // yield
        (0xd503_201f, None),                             // nop
        (0xd503_209f, Some(SendEvent)),
        (0xd503_20bf, Some(SendEventLocal)),
        (0xd50c_871f, tlbi(false, Invalidated::El2)), // alle2
        (0xd508_871f, tlbi(false, Invalidated::Stage1)), // vmalle1
        (0xd50c_87df, tlbi(false, Invalidated::Guest)), // vmalls12e1
        (0xd50c_879f, tlbi(false, Invalidated::Guests)), // alle1
        (0xd508_751f, Some(InvalidateCode { all: true })), // ic iallu
        (0xd508_711f, Some(InvalidateCode { all: true })), // ic ialluis
        (0xd50b_7520, Some(InvalidateCode { all: false })), // ic ivau, x0
        (0xd50c_839f, tlbi(true, Invalidated::Guests)), // alle1is
        (0xd508_8360, tlbi(true, Invalidated::Part)), // vaae1is, x0
        (0xd50b_7e20, Some(line(true, true))),        // dc civac
        (0xd50b_7a20, Some(line(true, false))),       // dc cvac
        (0xd508_7620, Some(line(false, true))),       // dc ivac
        (0xd50b_7b20, Some(line(false, false))),      // dc cvau
        (0xd50b_7420, Some(Zero)),
        (0xd50c_7800, Some(Translate)), // at s1e2r, x0
        (0xd69f_03e0, Some(Return)),
        (0xd400_0002, Some(Call)),           // hvc #0
        (0xd400_0003, Some(Call)),           // smc #0
        (0xd400_0001, None),                 // svc #0
        (0x885f_fc22, Some(LoadExclusive)),  // ldaxr w2, [x1]
        (0xc87f_0c22, Some(LoadExclusive)),  // ldxp x2, x3, [x1]
        (0x8804_7c23, Some(StoreExclusive)), // stxr w4, w3, [x1]
        (0xc8df_fc20, None),                 // ldar x0, [x1]
        (0xc89f_fc20, None),                 // stlr x0, [x1]
        (0xc8e0_7c22, Some(Atomic)),         // casa x0, x2, [x1]
        (0x4820_7c82, Some(Atomic)),         // casp x0, x1, x2, x3, [x4]
        (0xf8e0_0022, Some(Atomic)),         // ldaddal x0, x2, [x1]
        (0xf8e0_8022, Some(Atomic)),         // swpal x0, x2, [x1]
        (0xf8bf_c020, None),                 // ldapr x0, [x1]
        (0x1e60_2820, Some(Float)),          // fadd d0, d1, d0
        (0x3dc0_0020, Some(Float)),          // ldr q0, [x1]
        (0xf940_0020, None),                 // ldr x0, [x1]
        (0x8b01_0000, None),                 // add x0, x0, x1
    ] {
        assert_eq!(decode(word), meant, "{word:#x}");
    }
}

#[test]
fn accesses_are_aligned_to_their_elements() {
    for (word, log) in [
        (0xf940_0020, 3), // ldr x0, [x1]
        (0xb900_0020, 2), // str w0, [x1]
        (0x3900_0020, 0), // strb w0, [x1]
        (0xa9bf_07e0, 3), // stp x0, x1, [sp, #-16]!
        (0x2940_0440, 2), // ldp w0, w1, [x2]
        (0x3dc0_0020, 4), // ldr q0, [x1]
        (0xad40_0440, 4), // ldp q0, q1, [x2]
        (0xc87f_0c22, 4), // ldxp x2, x3, [x1]
        (0x885f_fc22, 2), // ldaxr w2, [x1]
        (0x5800_0040, 3), // ldr x0, label
    ] {
        assert!(is_access(word));
        assert_eq!(access_alignment(word), log, "{word:#x}");
    }
    assert!(!is_access(0x8b01_0000) && !is_access(0xd503_3fdf));
}

#[test]
fn a_counter_that_is_stored_or_ends_a_duration_is_measured() {
    let (mrs, nop) = (0xd53b_e040, 0xd503_201f); // mrs x0, cntvct_el0
    for (after, measured) in [
        (vec![nop, 0xf900_0020], true),              // str x0, [x1]
        (vec![0xa900_0c40], true),                   // stp x0, x3, [x2]
        (vec![0xa900_0043], true),                   // stp x3, x0, [x2]
        (vec![0xf900_07e0], false),                  // str x0, [sp, #8]
        (vec![0xcb01_0000], true),                   // sub x0, x0, x1
        (vec![0xeb01_001f], false),                  // cmp x0, x1
        (vec![0xcb00_0021], false),                  // sub x1, x1, x0: the time that is left
        (vec![0x8b00_0023], false),                  // add x3, x1, x0: a deadline
        (vec![0xf940_0020, 0xf900_0020], false),     // ldr x0, [x1]; str x0, [x1]
        (vec![0xaa01_03e0, 0xf900_0020], false),     // mov x0, x1; str x0, [x1]
        (vec![0xb400_0040, 0xf900_0020], false),     // cbz x0, label; str x0, [x1]
        (vec![nop, 0xd503_3fdf, 0xf900_0020], true), // isb
        (vec![], false),
    ] {
        assert_eq!(is_kept_as_time(mrs, after.clone()), measured, "{after:x?}");
    }
}
