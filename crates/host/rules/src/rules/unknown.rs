// SPDX-License-Identifier: MIT OR Apache-2.0
//! Code must not read a register, or bits of a register, that are UNKNOWN at reset and have not been written since.
//! Some registers act on EL1 without being read, for example the registers for EL1's traps, counter and identity. EL2
//! must not return to EL1 for the first time while such a register is still UNKNOWN.
//!
//! Emulators reset such registers to 0, so code that takes 0 to mean "none" works on emulators. The table has the bits
//! of each register whose reset value is architecturally UNKNOWN, even if this is so only on a PE that has EL3. The
//! next instructions show which bits of a read value are used ([`decode_before`]). If a value is changed and written
//! back, all its bits count as used. A level may read a register of a lower level, because EL2 saves and shows such
//! registers. Registers of EL0, like its timers, count as registers of every level.
//!
//! Not seen: registers that exceptions write (ELR, SPSR, ESR, FAR, HPFAR), which only a handler can interpret and a
//! dump always shows; and values that firmware left, which count as written, although code can't know them. The check
//! at the return to EL1 does not include registers that some CPUs lack, like HCRX_EL2, or registers that software at
//! EL1 is expected to set up itself.
//!
//! [`decode_before`]: crate::decode::decode_before

use crate::decode::Operation;
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

const ALL: u64 = u64::MAX;
/// ENABLE, IMASK and ISTATUS of a timer. ISTATUS has no meaning while ENABLE is 0.
const TIMER: u64 = 7;
/// The bits of SCTLR_EL2 that the boot protocol of the image does not define: all except M, C, I and EE.
const OTHERS: u64 = !(1 << 0 | 1 << 2 | 1 << 12 | 1 << 25);

/// Registers, each with the bits that are UNKNOWN at reset.
const UNKNOWN: &[(Register, u64)] = &[
    (SCTLR_EL1, ALL),
    (TTBR0_EL1, ALL),
    (TTBR1_EL1, ALL),
    (TCR_EL1, ALL),
    (MAIR_EL1, ALL),
    (VBAR_EL1, ALL),
    (CONTEXTIDR_EL1, ALL),
    (TPIDR_EL1, ALL),
    (PAR_EL1, ALL),
    (CPACR_EL1, ALL),
    (CNTKCTL_EL1, ALL),
    // EOImode and CBPR.
    (ICC_CTLR_EL1, 3),
    (TPIDR_EL0, ALL),
    // LC, DP, X and D.
    (PMCR_EL0, 0xf << 3),
    (PMCNTENSET_EL0, ALL),
    (CNTP_CTL_EL0, TIMER),
    (CNTP_CVAL_EL0, ALL),
    (CNTV_CTL_EL0, TIMER),
    (CNTV_CVAL_EL0, ALL),
    (VPIDR_EL2, ALL),
    (VMPIDR_EL2, ALL),
    (SCTLR_EL2, OTHERS),
    (HCR_EL2, ALL),
    // HPMN is the number of counters.
    (MDCR_EL2, !0x1f),
    (CPTR_EL2, ALL),
    (HSTR_EL2, ALL),
    (TTBR0_EL2, ALL),
    (TCR_EL2, ALL),
    (MAIR_EL2, ALL),
    (VBAR_EL2, ALL),
    (TPIDR_EL2, ALL),
    (VTTBR_EL2, ALL),
    (VTCR_EL2, ALL),
    (CNTVOFF_EL2, ALL),
    (CNTHCTL_EL2, ALL),
    (CNTHP_CTL_EL2, TIMER),
    (CNTHP_CVAL_EL2, ALL),
    (ICH_VMCR_EL2, ALL),
    (ICH_AP1R0_EL2, ALL),
    (ICH_LR0_EL2, ALL),
    (ICH_LR1_EL2, ALL),
    (ICH_LR2_EL2, ALL),
    (ICH_LR3_EL2, ALL),
];

/// Registers that act on EL1 whenever EL1 runs below an EL2.
pub const OF_EL1: &[Register] = &[
    SCTLR_EL1,
    VPIDR_EL2,
    VMPIDR_EL2,
    HCR_EL2,
    MDCR_EL2,
    CPTR_EL2,
    HSTR_EL2,
    CNTVOFF_EL2,
    CNTHCTL_EL2,
];
/// Registers that also act on EL1 if stage 2 is enabled (HCR_EL2.VM).
pub const OF_STAGE_2: &[Register] = &[VTTBR_EL2, VTCR_EL2];
/// Registers that also act on EL1 if the virtual CPU interface is enabled (ICH_HCR_EL2.En). The only list registers
/// included are those that every interface of the emulator has.
pub const OF_INTERFACE: &[Register] = &[
    ICH_VMCR_EL2,
    ICH_AP1R0_EL2,
    ICH_LR0_EL2,
    ICH_LR1_EL2,
    ICH_LR2_EL2,
    ICH_LR3_EL2,
];

/// See the module.
#[derive(Debug, Default)]
pub struct WrittenBeforeRead {
    /// The registers of [`UNKNOWN`] that were written, with one bit for each.
    written: u64,
    /// Whether EL2 itself wrote the current value of SPSR_EL2, and the value returns to EL1.
    leads_to_el1: bool,
    /// ICH_HCR_EL2.En.
    has_interface: bool,
    /// Whether EL1 has been entered.
    entered: bool,
}

impl WrittenBeforeRead {
    fn note_write(&mut self, register: Register, value: u64) {
        self.written |= unknown_bits(register).0;
        match register {
            // M, bits 3:0. The values for EL1 are EL1t and EL1h.
            SPSR_EL2 => self.leads_to_el1 = value & 0xe == 4,
            ICH_HCR_EL2 => self.has_interface = value & 1 != 0,
            _ => {}
        }
    }

    /// Returns the registers that act on EL1 and were not written since reset, separated by commas.
    fn unwritten_registers(&self, hcr: u64) -> String {
        let stage_2 = if hcr & 1 != 0 { OF_STAGE_2 } else { &[] };
        let interface = if self.has_interface {
            OF_INTERFACE
        } else {
            &[]
        };
        let acting = [OF_EL1, stage_2, interface].into_iter().flatten();
        let missing = acting.filter(|one| unknown_bits(**one).0 & self.written == 0);
        let names: Vec<String> = missing.map(ToString::to_string).collect();
        names.join(", ")
    }
}

impl Rule for WrittenBeforeRead {
    const ABOUT: About = About {
        name: "written-before-read",
        says: "no read of a system register that is UNKNOWN at reset, or of such bits, and no EL1 below such a control, before something has written it",
        cites: "DDI 0487K.a, D1.6.3 (reset behavior), D24.1.2.1 and the registers' reset values; IHI 0069H, 12.4",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        match operation {
            Operation::Write { register, .. } => self.note_write(register, value.unwrap_or(0)),
            Operation::Return if self.leads_to_el1 && !self.entered && now.place.level == 2 => {
                self.entered = true;
                let missing = self.unwritten_registers(now.controls.hcr);
                if !missing.is_empty() {
                    now.report::<Self>(
                        None,
                        format!("EL1 is entered with what is UNKNOWN since reset: {missing}"),
                    );
                }
            }
            Operation::Translate => self.written |= unknown_bits(PAR_EL1).0,
            Operation::Read { register, bits, .. } if matches!(register.level(), level if level == 0 || level == now.place.level) =>
            {
                let (place, unknown) = unknown_bits(register);
                let read = bits & unknown;
                if place & !self.written == 0 || read == 0 {
                    return;
                }
                now.report::<Self>(
                    None,
                    format!("{register} is read, and bits {read:#x} of it are UNKNOWN since reset"),
                );
            }
            _ => {}
        }
    }

    fn on_level_entry(&mut self, _: &Now<'_>, level: u8) {
        // After an exception to EL2, SPSR_EL2 holds the level from which the exception came.
        self.leads_to_el1 &= level != 2;
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[(
            "set_up",
            "clear OF_EL1 but $3; clear OF_STAGE_2 but $3; clear OF_INTERFACE but $3; \
             msr HCR_EL2 0x80000000|$1; msr ICH_HCR_EL2 $2; msr ELR_EL2 0x8000; msr SPSR_EL2 0x3c5",
        )],
        breaks: "
            TPIDR_EL2: mrs TPIDR_EL2
            another CPU wrote its own: cpu 1; msr TPIDR_EL2 8; cpu 0; mrs TPIDR_EL2
            EL1's own: el 1; mrs TPIDR_EL1
            a bit of a timer: mrs CNTV_CTL_EL0 before and
            changed and written back: mrs SCTLR_EL2 before orr; msr SCTLR_EL2 1
            a control of EL1's: set_up 0 0 CNTVOFF_EL2; eret
            one of stage 2: set_up 1 0 VTCR_EL2; eret
            a list register: set_up 1 1 ICH_LR3_EL2; eret
        ",
        keeps: "
            written: msr TPIDR_EL2 0; mrs TPIDR_EL2
            what an exception writes: mrs ESR_EL2
            EL2 saves what is EL1's: mrs TPIDR_EL1; mrs SPSR_EL1
            a bit that is known: mrs SCTLR_EL2 before and; mrs PMCR_EL0 before and; mrs ICC_PMR_EL1
            AT: el 1; at; isb; mrs PAR_EL1
            EL1 has all that acts on it: set_up 1 1 -; eret
            without stage 2 and interface it has less: set_up 0 0 VTTBR_EL2; eret
            a return to EL2: msr SPSR_EL2 9; eret
        ",
    };
}

/// Returns the bit in `written` that belongs to a register, and the bits of the register that are UNKNOWN at reset.
fn unknown_bits(register: Register) -> (u64, u64) {
    const { assert!(UNKNOWN.len() <= 64) };
    let found = UNKNOWN.iter().position(|(one, _)| *one == register);
    found.map_or((0, 0), |place| (1 << place, UNKNOWN[place].1))
}
