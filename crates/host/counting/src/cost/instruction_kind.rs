// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kinds of instructions that the costs count separately (encodings: DDI 0487K.a, C4.1).

use critical::Reasons;

/// A kind of instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionKind {
    /// MRS.
    Read,
    /// MSR that writes a register.
    Write,
    /// MSR of ICC_SGI1R_EL1.
    SendSgi,
    /// Store to GICD_SGIR.
    StoreSgi,
    Dsb,
    Isb,
    Dmb,
    /// ERET.
    Return,
    Hvc,
    Smc,
    Wfi,
    Wfe,
    /// Any other instruction.
    Other,
}

/// Bits of the register's encoding in MSR and MRS.
const NAME: u32 = 0x000f_ffe0;
/// MSR ICC_SGI1R_EL1, X0.
const SEND_SGI: u32 = 0xd518_cba0;

/// Returns the kind of the instruction `word`.
pub fn kind(word: u32) -> InstructionKind {
    const KINDS: [(u32, u32, InstructionKind); 12] = [
        (u32::MAX, Reasons::STORES_SGIR, InstructionKind::StoreSgi),
        (u32::MAX, Reasons::FORWARDS_SGIR, InstructionKind::StoreSgi),
        (0xfff0_0000, 0xd530_0000, InstructionKind::Read),
        (0xfff0_0000, 0xd510_0000, InstructionKind::Write),
        (0xffff_f0ff, 0xd503_309f, InstructionKind::Dsb),
        (0xffff_f0ff, 0xd503_30bf, InstructionKind::Dmb),
        (0xffff_f0ff, 0xd503_30df, InstructionKind::Isb),
        (0xffff_ffff, 0xd69f_03e0, InstructionKind::Return),
        (0xffe0_001f, 0xd400_0002, InstructionKind::Hvc),
        (0xffe0_001f, 0xd400_0003, InstructionKind::Smc),
        (0xffff_ffff, 0xd503_207f, InstructionKind::Wfi),
        (0xffff_ffff, 0xd503_205f, InstructionKind::Wfe),
    ];
    let found = KINDS.iter().find(|(mask, value, _)| word & mask == *value);
    match found {
        Some((.., InstructionKind::Write)) if word & NAME == SEND_SGI & NAME => {
            InstructionKind::SendSgi
        }
        Some((.., kind)) => *kind,
        None => InstructionKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_as_an_assembler_makes_them() {
        for (word, expected) in [
            (0xd538_d080, InstructionKind::Read),     // mrs x0, tpidr_el1
            (0xd51c_1100, InstructionKind::Write),    // msr hcr_el2, x0
            (0xd518_cba1, InstructionKind::SendSgi),  // msr icc_sgi1r_el1, x1
            (0xd518_cbe1, InstructionKind::Write),    // msr icc_sgi0r_el1, x1
            (0xb90f_0065, InstructionKind::StoreSgi), // str w5, [x3, #0xf00]
            (0xb90f_0060, InstructionKind::Other),    // str w0, [x3, #0xf00]
            (0xd503_3a9f, InstructionKind::Dsb),      // dsb ishst
            (0xd503_3bbf, InstructionKind::Dmb),      // dmb ish
            (0xd503_3fdf, InstructionKind::Isb),      // isb
            (0xd503_42df, InstructionKind::Other),    // msr daifset, #2
            (0xd69f_03e0, InstructionKind::Return),   // eret
            (0xd65f_03c0, InstructionKind::Other),    // ret
            (0xd400_0002, InstructionKind::Hvc),      // hvc #0
            (0xd503_207f, InstructionKind::Wfi),      // wfi
            (0xd503_203f, InstructionKind::Other),    // yield
        ] {
            assert_eq!(kind(word), expected, "{word:#x}");
        }
    }
}
