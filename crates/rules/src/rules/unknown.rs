// SPDX-License-Identifier: MIT OR Apache-2.0
//! No read of a register, or of bits of one, that is UNKNOWN at reset and that nothing has
//! written since.
//!
//! Emulators reset such registers to 0, and code that takes 0 for "none" works there. The
//! table has the bits of each register whose reset value is architecturally UNKNOWN, also
//! where it is so only on a PE that has EL3. Which bits are looked at the next instructions
//! tell ([`decode_before`]); what is changed and written back was looked at as a whole. A
//! register of a lower level may be read, as EL2 does to save and to show it, but those of
//! EL0, as its timers, are everybody's.
//!
//! Not seen: what exceptions write of themselves (ELR, SPSR, ESR, FAR, HPFAR), which only a
//! handler makes sense of and a dump shows whatever it is; what firmware wrote counts as
//! written, though it is as good as UNKNOWN.
//!
//! [`decode_before`]: crate::decode::decode_before

use crate::decode::Operation;
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

const ALL: u64 = u64::MAX;
/// ENABLE, IMASK and ISTATUS of a timer, the last of which means nothing without the first.
const TIMER: u64 = 7;
/// SCTLR_EL2 without M, C, I and EE, which the loader of the image vouches for.
const OTHERS: u64 = !(1 << 0 | 1 << 2 | 1 << 12 | 1 << 25);

/// Registers, and bits of them, that are UNKNOWN at reset.
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
    (ICH_LR0_EL2, ALL),
    (ICH_LR1_EL2, ALL),
    (ICH_LR2_EL2, ALL),
    (ICH_LR3_EL2, ALL),
];

/// See the module.
#[derive(Debug, Default)]
pub struct WrittenBeforeRead {
    /// Of [`UNKNOWN`], a bit each.
    written: u64,
}

impl Rule for WrittenBeforeRead {
    const ABOUT: About = About {
        name: "written-before-read",
        says: "no read of a system register, or of bits of one, that is UNKNOWN at reset before something has written it",
        cites: "DDI 0487K.a, D1.6.3 (reset behavior), D24.1.2.1 and the registers' reset values; IHI 0069H, 12.4",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        match operation {
            Operation::Write { register, .. } => self.written |= place(register).0,
            Operation::Translate => self.written |= place(PAR_EL1).0,
            Operation::Read { register, bits, .. } if matches!(register.level(), level if level == 0 || level == now.place.level) =>
            {
                let (place, unknown) = place(register);
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

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        vec![
            ("TPIDR_EL2", Program::new().read(TPIDR_EL2)),
            (
                "another CPU wrote its own",
                Program::new()
                    .cpu(1)
                    .write(TPIDR_EL2, 8)
                    .cpu(0)
                    .read(TPIDR_EL2),
            ),
            ("EL1's own", Program::new().level(1).read(TPIDR_EL1)),
            (
                "a bit of a timer",
                Program::new().read_before(CNTV_CTL_EL0, AND_1),
            ),
            (
                "changed and written back",
                Program::new()
                    .read_before(SCTLR_EL2, ORR_1)
                    .write(SCTLR_EL2, 1),
            ),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        vec![
            (
                "written",
                Program::new().write(TPIDR_EL2, 0).read(TPIDR_EL2),
            ),
            ("what an exception writes", Program::new().read(ESR_EL2)),
            (
                "EL2 saves what is EL1's",
                Program::new().read(TPIDR_EL1).read(SPSR_EL1),
            ),
            (
                "a bit that is known",
                Program::new()
                    .read_before(SCTLR_EL2, AND_1)
                    .read_before(PMCR_EL0, AND_1)
                    .read(ICC_PMR_EL1),
            ),
            (
                "AT",
                Program::new().level(1).then(AT).then(ISB).read(PAR_EL1),
            ),
        ]
    }
}

/// The bit of a register among those that were written, and which of its own are UNKNOWN.
fn place(register: Register) -> (u64, u64) {
    const { assert!(UNKNOWN.len() <= 64) };
    let found = UNKNOWN.iter().position(|(one, _)| *one == register);
    found.map_or((0, 0), |place| (1 << place, UNKNOWN[place].1))
}
