// SPDX-License-Identifier: MIT OR Apache-2.0
//! A context synchronization event must come between a write of a system register and the instructions that depend on
//! it.
//!
//! A write affects later instructions only after the next context synchronization event: an ISB, an exception entry, or
//! an exception return. Before that event, instructions may use either the old or the new value. Exceptions to this are
//! a read of the same register, which returns the written value (D24.1.2.2), and PSTATE's fields, which take effect at
//! once. ICC_PMR_EL1, ICC_IAR, ICC_EOIR and ICC_DIR are self-synchronising in the effects on which software may rely
//! (IHI 0069H, 12.1.6).
//!
//! The rule checks the dependencies in [`depends_on_write`]. While the MMU is on, every access to memory depends on the
//! translation registers of its own level.
//!
//! Not seen: the effect of a write on the fetching of instructions, and on other PEs.

use std::collections::BTreeMap;

use crate::access::Access;
use crate::decode::{Operation, Wait, mrs, msr};
use crate::finding::Place;
use crate::register::*;
use crate::rule::{About, Now, Rule, synchronises};
#[cfg(test)]
use crate::testing::Examples;

/// SCTLR_ELx.M and C.
const MMU_AND_CACHES: u64 = 5;

/// See the module.
#[derive(Debug, Default)]
pub struct Synchronised {
    /// Written registers, each with the instruction that wrote it. There is one entry per register, so none is
    /// forgotten.
    written: BTreeMap<Register, Place>,
    /// A written register on which accesses to memory depend.
    translation: Option<(Register, Place)>,
    /// The last AT. The result of an AT instruction is in a register, PAR_EL1.
    translated: Option<Place>,
    /// Whether VBAR_EL1 and VBAR_EL2 have already taken effect once. If so, an exception during a later change of the
    /// register finds valid vectors, either the old or the new ones.
    vectors: [bool; 2],
}

impl Rule for Synchronised {
    const ABOUT: About = About {
        name: "synchronised",
        says: "a context synchronization event between a write of a system register and what depends on it",
        cites: "DDI 0487K.a, D24.1.2.2 (synchronization requirements for AArch64 System registers); \
                IHI 0069H, 12.1.6 and ICH_ELRSR_EL2",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        if synchronises(operation) {
            return self.synchronise();
        }
        if let mrs!(PAR_EL1) = operation
            && let Some(at) = self.translated
        {
            now.report::<Self>(
                Some(at),
                "PAR_EL1 is read, and AT before it is not synchronised",
            );
        }
        for (&register, &at) in &self.written {
            if depends_on_write(register, now.place.level, operation)
                || enables_mmu(register, now, operation, value)
            {
                now.report::<Self>(
                    Some(at),
                    format!("{register} was written, and what depends on it follows without synchronization"),
                );
            }
        }
        match operation {
            Operation::Translate => self.translated = Some(now.place),
            Operation::Write { register, .. } => self.note_write(now, register, value),
            _ => {}
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, _: &Access) {
        if self.translation.is_some() {
            self.check_translation(now);
        }
    }

    fn on_level_entry(&mut self, now: &Now<'_>, level: u8) {
        let (vectors, known) = match level {
            1 => (VBAR_EL1, self.vectors[0]),
            _ => (VBAR_EL2, self.vectors[1]),
        };
        if let Some(&at) = self.written.get(&vectors)
            && !known
        {
            // An exception can be taken at any instruction.
            now.report_at::<Self>(
                at,
                Some(now.place),
                format!("{vectors} was written, and an exception came before a synchronization"),
            );
        }
        self.synchronise();
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[],
        breaks: "
            ELRSR after LR: msr ICH_LR1_EL2 1; mrs ICH_ELRSR_EL2
            HCR before WFI: msr HCR_EL2 0; isb; msr HCR_EL2 0x10; wfi
            VTTBR before TLBI: msr VTTBR_EL2 1; tlbi alle1is
            TTBR, MMU on: on; msr TTBR0_EL2 1; ldr A
            MMU on: msr SCTLR_EL2 5; ldr A
            TCR before the MMU: msr TCR_EL2 1; on
            VBAR: msr VBAR_EL2 0x800; irq 2
            CPTR: msr CPTR_EL2 0x33ff; fadd
            stream: msr CNTHCTL_EL2 4; wfe
            SRE: msr ICC_SRE_EL2 1; msr ICC_PMR_EL1 0xff
            a timer's time before its state: msr CNTV_CTL_EL0 1; msr CNTV_CVAL_EL0 9; mrs CNTV_CTL_EL0
            PMU: msr PMCNTENSET_EL0 1; msr PMCR_EL0 1; mrs PMCCNTR_EL0
            EOI mode: msr ICC_CTLR_EL1 2; msr ICC_DIR_EL1 27
            timer before WFI: msr HCR_EL2 0x10; isb; msr CNTHP_CVAL_EL2 9; wfi
            AT: at; mrs PAR_EL1
            however many are written between: msr VTTBR_EL2 1; 100 * msr S3_3_C15_C#/8_#%8 0; tlbi alle1is
        ",
        keeps: "
            ISB: msr ICH_LR1_EL2 1; isb; mrs ICH_ELRSR_EL2
            an exception and its return: msr ICH_LR0_EL2 1; eret; el 1; irq 2; el 2; mrs ICH_ELRSR_EL2
            the same register: msr ICH_LR0_EL2 1; mrs ICH_LR0_EL2
            another timer's state: msr CNTP_CTL_EL0 1; isb; msr CNTV_CVAL_EL0 9; mrs CNTP_CTL_EL0
            another level's: msr SCTLR_EL1 5; ldr A
            SCTLR as it was: on; msr SCTLR_EL2 7; ldr A
            MMU off: msr TTBR0_EL2 1; ldr A
            a write that traps: el 1; msr ICC_SRE_EL1 1; traps 2; el 1; mrs ICC_PMR_EL1
            AT: at; isb; mrs PAR_EL1
            from vectors to vectors: msr VBAR_EL2 0x800; isb; msr VBAR_EL2 0x1000; irq 2
        ",
    };
}

impl Synchronised {
    fn synchronise(&mut self) {
        self.vectors[0] |= self.written.contains_key(&VBAR_EL1);
        self.vectors[1] |= self.written.contains_key(&VBAR_EL2);
        self.written.clear();
        self.translation = None;
        self.translated = None;
    }

    fn note_write(&mut self, now: &Now<'_>, register: Register, value: Option<u64>) {
        let own = register.level() == now.place.level;
        let (level, value) = (now.place.level, value.unwrap_or(0));
        let changes = match register {
            SCTLR_EL1 | SCTLR_EL2 => {
                own && (now.controls.sctlr(level) ^ value) & MMU_AND_CACHES != 0
            }
            _ => own && is_translation(register) && now.controls.translates(level),
        };
        if changes {
            self.translation = Some((register, now.place));
        }
        self.written.insert(register, now.place);
    }

    #[cold]
    fn check_translation(&mut self, now: &Now<'_>) {
        if let Some((register, at)) = self
            .translation
            .take_if(|(register, _)| register.level() == now.place.level)
        {
            now.report::<Self>(
                Some(at),
                format!(
                    "memory is accessed, and the write of {register} before it is not synchronised"
                ),
            );
        }
    }
}

/// Whether `register` is a register of stage 1 translation, other than SCTLR_ELx.
fn is_translation(register: Register) -> bool {
    matches!(
        register,
        TTBR0_EL1 | TTBR1_EL1 | TCR_EL1 | MAIR_EL1 | TTBR0_EL2 | TCR_EL2 | MAIR_EL2
    )
}

/// Whether `operation` turns on an MMU whose translation `written` controls.
fn enables_mmu(written: Register, now: &Now<'_>, operation: Operation, value: Option<u64>) -> bool {
    let msr!(register @ (SCTLR_EL1 | SCTLR_EL2)) = operation else {
        return false;
    };
    let level = register.level();
    is_translation(written)
        && written.level() == level
        && now.place.level == level
        && value.is_some_and(|value| value & 1 != 0)
        && !now.controls.translates(level)
}

/// Whether the effect of `operation` at `level` depends on a write of `written`.
fn depends_on_write(written: Register, level: u8, operation: Operation) -> bool {
    match operation {
        Operation::Read { register, .. } | Operation::Write { register, .. } => {
            let reads = matches!(operation, Operation::Read { .. });
            match written {
                _ if written.is_list_register() => {
                    reads && matches!(register, ICH_ELRSR_EL2 | ICH_EISR_EL2 | ICH_MISR_EL2)
                }
                ICH_HCR_EL2 => reads && matches!(register, ICH_MISR_EL2),
                ICC_SRE_EL2 => register.is_interface() || register.is_list_register(),
                ICC_SRE_EL1 => register.is_interface() && !matches!(register, ICC_SRE_EL1),
                ICC_CTLR_EL1 => matches!(register, ICC_EOIR1_EL1 | ICC_DIR_EL1),
                ICC_IGRPEN1_EL1 => matches!(register, ICC_IAR1_EL1 | ICC_HPPIR1_EL1),
                ICC_AP0R0_EL1 | ICC_AP1R0_EL1 => reads && register == ICC_RPR_EL1,
                CNTVOFF_EL2 => register == CNTVCT_EL0,
                PMCR_EL0 | PMCNTENSET_EL0 => reads && register == PMCCNTR_EL0,
                // A read of ISTATUS depends on the write that set the timer's expiry.
                _ if written.is_timer() => {
                    reads && written != register && register.is_control_of(written)
                }
                _ => false,
            }
        }
        Operation::Measure { register } => written == CNTVOFF_EL2 && register == CNTVCT_EL0,
        Operation::Tlbi { .. } => matches!(written, HCR_EL2 | VTTBR_EL2),
        Operation::Translate => {
            matches!(written, HCR_EL2 | VTTBR_EL2 | VTCR_EL2) || is_translation(written)
        }
        Operation::Float => match level {
            2 => written == CPTR_EL2,
            _ => written == CPACR_EL1,
        },
        Operation::Wait(wait) => {
            let routes = level == 2 && written == HCR_EL2;
            let stream = wait == Wait::Event && matches!(written, CNTHCTL_EL2 | CNTKCTL_EL1);
            routes || stream || written.is_timer()
        }
        _ => false,
    }
}
