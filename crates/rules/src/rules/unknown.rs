// SPDX-License-Identifier: MIT OR Apache-2.0
//! No read of a register that is UNKNOWN at reset and that nothing has written since.
//!
//! Emulators reset such registers to 0, and code that takes 0 for "none" works there. The
//! table has those whose reset value is architecturally UNKNOWN as a whole, or in the
//! fields that software looks at. A register of a lower level may be read, as EL2 does to
//! save and to show it.
//!
//! Not seen: what exceptions write of themselves (ELR, SPSR, ESR, FAR, HPFAR), which only a
//! handler makes sense of and a dump shows whatever it is; single bits of a register that was written; what firmware wrote counts as
//! written, though it is as good as UNKNOWN.

use crate::decode::Operation;
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// Registers that are UNKNOWN at reset.
const UNKNOWN: [Register; 21] = [
    TTBR0_EL1,
    TTBR1_EL1,
    TCR_EL1,
    MAIR_EL1,
    VBAR_EL1,
    CONTEXTIDR_EL1,
    TPIDR_EL1,
    PAR_EL1,
    CPACR_EL1,
    CPTR_EL2,
    HSTR_EL2,
    TTBR0_EL2,
    TCR_EL2,
    MAIR_EL2,
    VBAR_EL2,
    TPIDR_EL2,
    VTTBR_EL2,
    VTCR_EL2,
    CNTVOFF_EL2,
    HCR_EL2,
    ICH_VMCR_EL2,
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
        says: "no read of a system register that is UNKNOWN at reset before something has written it",
        cites: "DDI 0487K.a, D1.6.3 (reset behavior), D24.1.2.1 and the registers' reset values; IHI 0069H, 12.4",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        match operation {
            Operation::Write { register, .. } => self.written |= bit(register),
            Operation::Translate => self.written |= bit(PAR_EL1),
            Operation::Read { register, .. }
                if bit(register) & !self.written != 0 && register.level() == now.place.level =>
            {
                now.report::<Self>(
                    None,
                    format!("{register} is read, and nothing has written it since reset"),
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
                "known at reset",
                Program::new().read(SCTLR_EL2).read(ICC_PMR_EL1),
            ),
            (
                "AT",
                Program::new().level(1).then(AT).then(ISB).read(PAR_EL1),
            ),
        ]
    }
}

fn bit(register: Register) -> u64 {
    let place = UNKNOWN.iter().position(|one| *one == register);
    place.map_or(0, |place| 1 << place)
}
