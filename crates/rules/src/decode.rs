// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an instruction is to the rules (DDI 0487K.a, C4.1, C5.1 and C6.2). Most
//! instructions are nothing.

mod used;

use crate::register::{CNTPCT_EL0, CNTVCT_EL0, Register};

/// What an instruction does that a rule may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// MRS of a register into X`into`.
    Read {
        /// The system register.
        register: Register,
        /// The general register; 31 is none.
        into: u8,
        /// The bits that are looked at, as far as the next instructions tell: see
        /// [`decode_before`].
        bits: u64,
    },
    /// MRS of a counter whose value is kept as a time: see [`decode_before`].
    Measure {
        /// CNTVCT_EL0 or CNTPCT_EL0.
        register: Register,
    },
    /// MSR of X`from`, which is the value of the event.
    Write {
        /// The system register.
        register: Register,
        /// The general register; 31 is zero.
        from: u8,
    },
    /// ISB.
    Isb,
    /// DSB.
    Dsb(Barrier),
    /// TLBI; `broadcast` beyond this PE.
    Tlbi {
        /// It is for the TLBs of other PEs as well.
        broadcast: bool,
    },
    /// DC by address; the value of the event is that in memory.
    Clean(Maintenance),
    /// DC ZVA.
    Zero,
    /// AT.
    Translate,
    /// WFI, WFE and those with a deadline.
    Wait(Wait),
    /// SEV.
    SendEvent,
    /// SEVL.
    SendEventLocal,
    /// CLREX.
    ClearExclusive,
    /// ERET.
    Return,
    /// HVC or SMC.
    Call,
    /// A load exclusive.
    LoadExclusive,
    /// A store exclusive.
    StoreExclusive,
    /// An atomic read and write in one instruction.
    Atomic,
    /// An instruction of floating point or SIMD.
    Float,
}

/// What a DSB waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Only for this PE: NSH.
    pub alone: bool,
    /// Stores before it.
    pub stores: bool,
    /// Loads before it.
    pub loads: bool,
}

/// What a DC does to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// What is dirty goes to memory, to the point of coherency.
    pub cleans: bool,
    /// It is in no cache any more.
    pub invalidates: bool,
}

/// An instruction that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// WFI.
    Interrupt,
    /// WFE.
    Event,
    /// WFIT or WFET.
    Bounded,
}

/// What `word` does, if a rule looks at it.
#[must_use]
pub fn decode(word: u32) -> Option<Operation> {
    match word >> 22 {
        0x354 => system(word),
        _ => other(word),
    }
}

/// As [`decode`], where the instructions `after` it in its block are known.
#[must_use]
pub fn decode_before(word: u32, after: impl IntoIterator<Item = u32>) -> Option<Operation> {
    let operation = decode(word)?;
    let Operation::Read { register, into, .. } = operation else {
        return Some(operation);
    };
    Some(if !matches!(register, CNTVCT_EL0 | CNTPCT_EL0) {
        let bits = used::bits(into, after);
        Operation::Read {
            register,
            into,
            bits,
        }
    } else if is_measured(word, after) {
        Operation::Measure { register }
    } else {
        operation
    })
}

/// The system instructions: bits 31:22 are 1101010100.
fn system(word: u32) -> Option<Operation> {
    let (read, op0) = (word >> 21 & 1 == 1, word >> 19 & 3);
    let general = (word & 0x1f) as u8;
    match op0 {
        2 | 3 if read => Some(Operation::Read {
            register: Register::of_word(word),
            into: general,
            bits: u64::MAX,
        }),
        2 | 3 => Some(Operation::Write {
            register: Register::of_word(word),
            from: general,
        }),
        1 if !read => maintenance(word),
        0 if !read => barrier_or_hint(word),
        _ => None,
    }
}

/// SYS.
fn maintenance(word: u32) -> Option<Operation> {
    let (op1, crn) = (word >> 16 & 7, word >> 12 & 15);
    let (crm, op2) = (word >> 8 & 15, word >> 5 & 7);
    let line = |cleans, invalidates| {
        Some(Operation::Clean(Maintenance {
            cleans,
            invalidates,
        }))
    };
    match (crn, op1, crm, op2) {
        // Those for this PE alone; 9 is nXS.
        (8 | 9, _, 6 | 7, _) | (8 | 9, 4, 4, 1 | 2 | 5 | 6) => {
            Some(Operation::Tlbi { broadcast: false })
        }
        (8 | 9, ..) => Some(Operation::Tlbi { broadcast: true }),
        (7, _, 8 | 9, _) => Some(Operation::Translate),
        (7, 3, 4, 1) => Some(Operation::Zero),
        (7, 0, 6, 1) => line(false, true),
        // CVAC, CVAP, CVADP; cleaning to the point of unification is no cleaning to memory.
        (7, 3, 10 | 12 | 13, 1) => line(true, false),
        (7, 3, 14, 1) => line(true, true),
        _ => None,
    }
}

fn barrier_or_hint(word: u32) -> Option<Operation> {
    let (crm, op2) = (word >> 8 & 15, word >> 5 & 7);
    match (word >> 12 & 0xff, op2) {
        (0x33, 2) => Some(Operation::ClearExclusive),
        // DSB with nXS is one of all accesses.
        (0x33, 1) if crm & 3 == 2 => Some(Operation::Dsb(Barrier {
            alone: crm >> 2 == 1,
            stores: true,
            loads: true,
        })),
        // SSBB and PSSBB have the place of a DSB without accesses.
        (0x33, 4) if crm & 3 != 0 => Some(Operation::Dsb(Barrier {
            alone: crm >> 2 == 1,
            stores: crm & 2 != 0,
            loads: crm & 1 != 0,
        })),
        (0x33, 6) => Some(Operation::Isb),
        (0x32, _) => hint(crm << 3 | op2),
        (0x31, 0 | 1) if crm == 0 => Some(Operation::Wait(Wait::Bounded)),
        _ => None,
    }
}

fn hint(number: u32) -> Option<Operation> {
    match number {
        2 => Some(Operation::Wait(Wait::Event)),
        3 => Some(Operation::Wait(Wait::Interrupt)),
        4 => Some(Operation::SendEvent),
        5 => Some(Operation::SendEventLocal),
        _ => None,
    }
}

fn other(word: u32) -> Option<Operation> {
    // ERET, ERETAA, ERETAB.
    if matches!(word, 0xd69f_03e0 | 0xd69f_0bff | 0xd69f_0fff) {
        return Some(Operation::Return);
    }
    if word & 0xffe0_001f == 0xd400_0002 || word & 0xffe0_001f == 0xd400_0003 {
        return Some(Operation::Call);
    }
    // Loads and stores of SIMD registers are bit 26 of that group.
    if word >> 25 & 7 == 7 || is_access(word) && word >> 26 & 1 == 1 {
        return Some(Operation::Float);
    }
    let (load, o2, o1) = (word >> 22 & 1, word >> 23 & 1, word >> 21 & 1);
    match word >> 24 & 0x3f {
        // Exclusives; with o2 ordered accesses, or CAS by o1; pairs of CAS are in the place
        // of pairs of the small sizes.
        0x08 => match (o2, o1, word >> 31) {
            (0, 0, _) | (0, 1, 1) if load == 1 => Some(Operation::LoadExclusive),
            (0, 0, _) | (0, 1, 1) => Some(Operation::StoreExclusive),
            (0, 1, 0) | (1, 1, _) => Some(Operation::Atomic),
            _ => None,
        },
        // The atomic operations of FEAT_LSE; opc 100 with o3 is LDAPR.
        0x38 if o1 == 1 && word >> 10 & 3 == 0 && word >> 12 & 15 != 0xc => Some(Operation::Atomic),
        _ => None,
    }
}

/// Whether `word` is a load or a store.
#[must_use]
pub fn is_access(word: u32) -> bool {
    word & 0x0a00_0000 == 0x0800_0000
}

/// The logarithm of what an access of `word` has to be aligned to on Device memory: the
/// size of an element, of both for an exclusive pair (DDI 0487K.a, B2.8).
#[must_use]
pub fn alignment(word: u32) -> u8 {
    let (size, vector) = ((word >> 30) as u8, word >> 26 & 1 == 1);
    match word >> 27 & 7 {
        // Exclusives and ordered accesses; structures of SIMD: by the byte.
        0b001 if vector => 0,
        0b001 => size + (word >> 21 & 1 == 1 && word >> 23 & 1 == 0) as u8,
        0b101 if vector => 2 + size,
        0b101 => 2 + (size >> 1),
        0b011 => 2 + (size & 1),
        0b111 if vector && word >> 23 & 1 == 1 => 4,
        _ => size,
    }
}

/// Whether the value that `mrs`, a read of a counter, brings is kept as it is, or as the
/// end of a duration: the instructions `after` it in its block store it, or subtract
/// something from it and keep the difference. A deadline is compared or added to.
fn is_measured(mrs: u32, after: impl IntoIterator<Item = u32>) -> bool {
    let counter = mrs & 0x1f;
    for word in after {
        if is_access(word) {
            let (target, second) = (word & 0x1f, word >> 10 & 0x1f);
            let pair = word >> 27 & 7 == 0b101;
            let general = word >> 26 & 1 == 0;
            // What goes to the stack is only put aside.
            let aside = word >> 5 & 0x1f == 31;
            if general
                && is_store(word)
                && !aside
                && (target == counter || pair && second == counter)
            {
                return true;
            }
            if general && !is_store(word) && (target == counter || pair && second == counter) {
                return false;
            }
            continue;
        }
        // SUB and SUBS of registers with 64 bits.
        let subtracts = word >> 24 & 0xdf == 0xcb && word >> 21 & 1 == 0;
        if subtracts && word >> 5 & 0x1f == counter {
            return word & 0x1f != 31;
        }
        // The system instructions, whose bits 31:22 these are, are in the class of branches.
        let branches = word >> 26 & 7 == 0b101 && word >> 22 != 0x354;
        if branches || writes(word) == Some(counter) {
            return false;
        }
    }
    false
}

/// Whether an access is a store; an atomic operation is both, and counts as none here.
fn is_store(word: u32) -> bool {
    match word >> 27 & 7 {
        0b011 => false,
        0b101 | 0b001 => word >> 22 & 1 == 0,
        _ => word >> 22 & 3 == 0 && decode(word) != Some(Operation::Atomic),
    }
}

/// The general register that an instruction of data processing writes.
fn writes(word: u32) -> Option<u32> {
    let immediate = word >> 26 & 7 == 0b100;
    let registers = word >> 25 & 7 == 0b101;
    let reads_system = matches!(decode(word), Some(Operation::Read { .. }));
    (immediate || registers || reads_system).then_some(word & 0x1f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::*;

    /// Words as the assembler encodes them.
    #[test]
    fn instructions_are_what_they_are() {
        use Operation::*;
        let all = Barrier {
            alone: false,
            stores: true,
            loads: true,
        };
        let line = |cleans, invalidates| {
            Clean(Maintenance {
                cleans,
                invalidates,
            })
        };
        for (word, meant) in [
            (
                0xd51c_d040,
                Some(Write {
                    register: TPIDR_EL2,
                    from: 0,
                }),
            ),
            (
                0xd53b_e040,
                Some(Read {
                    register: CNTVCT_EL0,
                    into: 0,
                    bits: u64::MAX,
                }),
            ),
            (
                0xd538_cc00,
                Some(Read {
                    register: ICC_IAR1_EL1,
                    into: 0,
                    bits: u64::MAX,
                }),
            ),
            (0xd503_3fdf, Some(Isb)),
            (0xd503_3f9f, Some(Dsb(all))),
            (0xd503_3b9f, Some(Dsb(all))),
            (0xd503_379f, Some(Dsb(Barrier { alone: true, ..all }))),
            (
                0xd503_3a9f,
                Some(Dsb(Barrier {
                    loads: false,
                    ..all
                })),
            ),
            (
                0xd503_399f,
                Some(Dsb(Barrier {
                    stores: false,
                    ..all
                })),
            ),
            (0xd503_3bbf, None), // dmb ish
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
            (0xd50c_871f, Some(Tlbi { broadcast: false })), // alle2
            (0xd508_871f, Some(Tlbi { broadcast: false })), // vmalle1
            (0xd50c_839f, Some(Tlbi { broadcast: true })),  // alle1is
            (0xd508_8360, Some(Tlbi { broadcast: true })),  // vaae1is, x0
            (0xd50b_7e20, Some(line(true, true))),          // dc civac
            (0xd50b_7a20, Some(line(true, false))),         // dc cvac
            (0xd508_7620, Some(line(false, true))),         // dc ivac
            (0xd50b_7b20, None),                            // dc cvau
            (0xd50b_7420, Some(Zero)),
            (0xd50c_7800, Some(Translate)), // at s1e2r, x0
            (0xd508_751f, None),            // ic iallu
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
            assert_eq!(alignment(word), log, "{word:#x}");
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
            (vec![0xcb00_0021], false),                  // sub x1, x1, x0: what is left
            (vec![0x8b00_0023], false),                  // add x3, x1, x0: a deadline
            (vec![0xf940_0020, 0xf900_0020], false),     // ldr x0, [x1]; str x0, [x1]
            (vec![0xaa01_03e0, 0xf900_0020], false),     // mov x0, x1; str x0, [x1]
            (vec![0xb400_0040, 0xf900_0020], false),     // cbz x0, label; str x0, [x1]
            (vec![nop, 0xd503_3fdf, 0xf900_0020], true), // isb
            (vec![], false),
        ] {
            assert_eq!(is_measured(mrs, after.clone()), measured, "{after:x?}");
        }
    }
}
