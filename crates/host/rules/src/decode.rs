// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes instructions for the rules (DDI 0487K.a, C4.1, C5.1 and C6.2). Most instructions have no effect on any rule.

mod used_bits;

use crate::register::{CNTPCT_EL0, CNTVCT_EL0, Register};

/// The pattern of an MRS of a register.
macro_rules! mrs {
    ($register:pat) => {
        Operation::Read {
            register: $register,
            ..
        }
    };
}

/// The pattern of an MSR of a register.
macro_rules! msr {
    ($register:pat) => {
        Operation::Write {
            register: $register,
            ..
        }
    };
}

pub(crate) use {mrs, msr};

/// The operation of an instruction that some rule uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// MRS of a register into X`into`.
    Read {
        /// The system register.
        register: Register,
        /// The number of the general register. 31 means none.
        into: u8,
        /// The bits of the value that the next instructions use. All bits if they can't be seen: see [`decode_before`].
        bits: u64,
    },
    /// MRS of a counter whose value the code keeps as a time or a duration: see [`decode_before`].
    Measure {
        /// CNTVCT_EL0 or CNTPCT_EL0.
        register: Register,
    },
    /// MSR of X`from`. The rules get the content of X`from` as the `value` of the operation.
    Write {
        /// The system register.
        register: Register,
        /// The number of the general register. 31 means zero.
        from: u8,
    },
    /// ISB.
    Isb,
    /// DSB.
    Dsb(Barrier),
    /// DMB.
    Dmb(Barrier),
    /// TLBI.
    Tlbi {
        /// Whether it also applies to the TLBs of other PEs.
        broadcast: bool,
        /// The entries that it invalidates.
        of: Invalidated,
    },
    /// DC by address. The rules get the address in memory as the `value` of the operation.
    Clean(Maintenance),
    /// IC of everything, or of one address in memory. The rules get this address as the `value` of the operation.
    InvalidateCode {
        /// Whether it is IALLU or IALLUIS.
        all: bool,
    },
    /// DC ZVA.
    Zero,
    /// AT.
    Translate,
    /// WFI, WFE, and their variants with a deadline.
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
    /// A floating-point or SIMD instruction.
    Float,
}

/// Which accesses a DSB completes, or a DMB orders before later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Whether the barrier is only for accesses of this PE (NSH).
    pub alone: bool,
    /// Whether the barrier applies to stores before it.
    pub stores: bool,
    /// Whether the barrier applies to loads before it.
    pub loads: bool,
}

impl Barrier {
    /// Decodes the field CRm of a DSB or DMB.
    const fn of(crm: u32) -> Self {
        Self {
            alone: crm >> 2 == 1,
            stores: crm & 2 != 0,
            loads: crm & 1 != 0,
        }
    }
}

/// The TLB entries that a TLBI invalidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidated {
    /// A part of a translation regime, selected by address or ASID.
    Part,
    /// Stage 1 of EL1, for the VMID in VTTBR_EL2: VMALLE1. Entries that hold only stage 2 remain.
    Stage1,
    /// Both stages of EL1, for the VMID in VTTBR_EL2: VMALLS12E1.
    Guest,
    /// EL1, for every VMID.
    Guests,
    /// EL2.
    El2,
    /// EL3.
    El3,
}

/// The effect of a DC on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// Whether the line is written back to the point of coherency. Every DC writes it back at least to the point of
    /// unification, from which instructions are fetched.
    pub cleans: bool,
    /// Whether no cache holds the line afterwards.
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

/// Decodes `word`. Returns `None` if no rule uses the instruction.
#[must_use]
pub fn decode(word: u32) -> Option<Operation> {
    match word >> 22 {
        0x354 => decode_system(word),
        _ => decode_other(word),
    }
}

/// Like [`decode`], but also considers `after`, the instructions that follow `word` in its block.
#[must_use]
pub fn decode_before(word: u32, after: impl IntoIterator<Item = u32>) -> Option<Operation> {
    let operation = decode(word)?;
    let Operation::Read { register, into, .. } = operation else {
        return Some(operation);
    };
    Some(if !matches!(register, CNTVCT_EL0 | CNTPCT_EL0) {
        let bits = used_bits::used_bits(into, after);
        Operation::Read {
            register,
            into,
            bits,
        }
    } else if is_kept_as_time(word, after) {
        Operation::Measure { register }
    } else {
        operation
    })
}

/// Decodes a system instruction. Bits 31:22 of such an instruction are 1101010100.
fn decode_system(word: u32) -> Option<Operation> {
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
        1 if !read => decode_sys(word),
        0 if !read => decode_barrier_or_hint(word),
        _ => None,
    }
}

/// Decodes a SYS instruction: maintenance of TLBs and caches, or a translation.
fn decode_sys(word: u32) -> Option<Operation> {
    let (op1, crn) = (word >> 16 & 7, word >> 12 & 15);
    let (crm, op2) = (word >> 8 & 15, word >> 5 & 7);
    let line = |cleans, invalidates| {
        Some(Operation::Clean(Maintenance {
            cleans,
            invalidates,
        }))
    };
    match (crn, op1, crm, op2) {
        // TLBIs that are only for this PE. CRn is 9 for nXS.
        (8 | 9, _, 6 | 7, _) | (8 | 9, 4, 4, 1 | 2 | 5 | 6) => Some(Operation::Tlbi {
            broadcast: false,
            of: tlbi_scope(op1, crm, op2),
        }),
        (8 | 9, ..) => Some(Operation::Tlbi {
            broadcast: true,
            of: tlbi_scope(op1, crm, op2),
        }),
        (7, _, 8 | 9, _) => Some(Operation::Translate),
        (7, 3, 4, 1) => Some(Operation::Zero),
        (7, 0, 6, 1) => line(false, true),
        (7, 0, 1 | 5, 0) => Some(Operation::InvalidateCode { all: true }),
        (7, 3, 5, 1) => Some(Operation::InvalidateCode { all: false }),
        // CVAU: a clean to the point of unification need not reach memory.
        (7, 3, 11, 1) => line(false, false),
        // CVAC, CVAP, CVADP.
        (7, 3, 10 | 12 | 13, 1) => line(true, false),
        (7, 3, 14, 1) => line(true, true),
        _ => None,
    }
}

/// Returns the scope of a TLBI. CRm is 1, 3 or 7 for ALL, VMALL, VMALLS12 and ALLE1.
fn tlbi_scope(op1: u32, crm: u32, op2: u32) -> Invalidated {
    match (op1, crm, op2) {
        (0, 1 | 3 | 7, 0) => Invalidated::Stage1,
        (4, 1 | 3 | 7, 6) => Invalidated::Guest,
        (4, 1 | 3 | 7, 4) => Invalidated::Guests,
        (4, 1 | 3 | 7, 0) => Invalidated::El2,
        (6, 1 | 3 | 7, 0) => Invalidated::El3,
        _ => Invalidated::Part,
    }
}

fn decode_barrier_or_hint(word: u32) -> Option<Operation> {
    let (crm, op2) = (word >> 8 & 15, word >> 5 & 7);
    match (word >> 12 & 0xff, op2) {
        (0x33, 2) => Some(Operation::ClearExclusive),
        // A DSB with nXS, like other DSBs, waits for all accesses.
        (0x33, 1) if crm & 3 == 2 => Some(Operation::Dsb(Barrier {
            alone: crm >> 2 == 1,
            stores: true,
            loads: true,
        })),
        // SSBB and PSSBB use the encodings of a DSB that would wait for no accesses.
        (0x33, 4) if crm & 3 != 0 => Some(Operation::Dsb(Barrier::of(crm))),
        (0x33, 5) if crm & 3 != 0 => Some(Operation::Dmb(Barrier::of(crm))),
        (0x33, 6) => Some(Operation::Isb),
        (0x32, _) => decode_hint(crm << 3 | op2),
        (0x31, 0 | 1) if crm == 0 => Some(Operation::Wait(Wait::Bounded)),
        _ => None,
    }
}

fn decode_hint(number: u32) -> Option<Operation> {
    match number {
        2 => Some(Operation::Wait(Wait::Event)),
        3 => Some(Operation::Wait(Wait::Interrupt)),
        4 => Some(Operation::SendEvent),
        5 => Some(Operation::SendEventLocal),
        _ => None,
    }
}

fn decode_other(word: u32) -> Option<Operation> {
    // ERET, ERETAA, ERETAB.
    if matches!(word, 0xd69f_03e0 | 0xd69f_0bff | 0xd69f_0fff) {
        return Some(Operation::Return);
    }
    if word & 0xffe0_001f == 0xd400_0002 || word & 0xffe0_001f == 0xd400_0003 {
        return Some(Operation::Call);
    }
    // Bit 26 in the group of loads and stores marks SIMD registers.
    if word >> 25 & 7 == 7 || is_access(word) && word >> 26 & 1 == 1 {
        return Some(Operation::Float);
    }
    let (load, o2, o1) = (word >> 22 & 1, word >> 23 & 1, word >> 21 & 1);
    match word >> 24 & 0x3f {
        // Exclusives. If o2 is set, the instructions are ordered accesses, or CAS if o1 is set too. CASP uses the
        // encodings that would be exclusive pairs of the small sizes.
        0x08 => match (o2, o1, word >> 31) {
            (0, 0, _) | (0, 1, 1) if load == 1 => Some(Operation::LoadExclusive),
            (0, 0, _) | (0, 1, 1) => Some(Operation::StoreExclusive),
            (0, 1, 0) | (1, 1, _) => Some(Operation::Atomic),
            _ => None,
        },
        // The atomic operations of FEAT_LSE. If o3 is set and opc is 100, the instruction is LDAPR.
        0x38 if o1 == 1 && word >> 10 & 3 == 0 && word >> 12 & 15 != 0xc => Some(Operation::Atomic),
        _ => None,
    }
}

/// Whether `word` is a load or a store.
#[must_use]
pub fn is_access(word: u32) -> bool {
    word & 0x0a00_0000 == 0x0800_0000
}

/// Returns the base-2 logarithm of the alignment that an access of `word` needs on Device memory: the size of an
/// element, or of both elements of an exclusive pair (DDI 0487K.a, B2.8).
#[must_use]
pub fn access_alignment(word: u32) -> u8 {
    let (size, vector) = ((word >> 30) as u8, word >> 26 & 1 == 1);
    match word >> 27 & 7 {
        // Exclusives and ordered accesses. SIMD structures need only byte alignment.
        0b001 if vector => 0,
        0b001 => size + (word >> 21 & 1 == 1 && word >> 23 & 1 == 0) as u8,
        0b101 if vector => 2 + size,
        0b101 => 2 + (size >> 1),
        0b011 => 2 + (size & 1),
        0b111 if vector && word >> 23 & 1 == 1 => 4,
        _ => size,
    }
}

/// Whether the counter value that `mrs` reads is kept unchanged, or as the end of a duration. A counter value counts as
/// kept if an instruction in `after` stores it, or subtracts something from it and keeps the difference. `after` is the
/// rest of the block. Code that waits for a deadline does not do this: it compares the value, or adds to it.
fn is_kept_as_time(mrs: u32, after: impl IntoIterator<Item = u32>) -> bool {
    let counter = mrs & 0x1f;
    for word in after {
        if is_access(word) {
            let (target, second) = (word & 0x1f, word >> 10 & 0x1f);
            let pair = word >> 27 & 7 == 0b101;
            let general = word >> 26 & 1 == 0;
            // A store to the stack only spills the value, and does not keep it.
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
        // 64-bit SUB and SUBS with registers as operands.
        let subtracts = word >> 24 & 0xdf == 0xcb && word >> 21 & 1 == 0;
        if subtracts && word >> 5 & 0x1f == counter {
            return word & 0x1f != 31;
        }
        // The class of branches includes the system instructions, which have the value 0x354 in bits 31:22.
        let branches = word >> 26 & 7 == 0b101 && word >> 22 != 0x354;
        if branches || written_register(word) == Some(counter) {
            return false;
        }
    }
    false
}

/// Whether an access is a store. An atomic operation is both a load and a store, and does not count as a store here.
fn is_store(word: u32) -> bool {
    match word >> 27 & 7 {
        0b011 => false,
        0b101 | 0b001 => word >> 22 & 1 == 0,
        _ => word >> 22 & 3 == 0 && decode(word) != Some(Operation::Atomic),
    }
}

/// Returns the general register that a data-processing instruction writes, if any.
fn written_register(word: u32) -> Option<u32> {
    let immediate = word >> 26 & 7 == 0b100;
    let registers = word >> 25 & 7 == 0b101;
    let reads_system = matches!(decode(word), Some(Operation::Read { .. }));
    (immediate || registers || reads_system).then_some(word & 0x1f)
}

#[cfg(test)]
mod tests;
