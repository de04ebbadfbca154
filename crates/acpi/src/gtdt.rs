// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generic timer's interrupts: GTDT (5.2.25).

use platform::Timer;

use crate::error::Error;
use crate::gic::ppi;
use crate::view::{REVISION, View};

/// Offsets of the GSIVs of the per-CPU timers.
const NON_SECURE_EL1: usize = 56;
const VIRTUAL_EL1: usize = 64;
const EL2: usize = 72;

/// The timers' INTIDs; none may be another's or `maintenance`.
pub fn read(gtdt: &View<'_>, maintenance: u32) -> Result<Timer, Error> {
    match gtdt.u8(REVISION)? {
        // Revision 1, of ACPI 5.0, has another layout.
        revision @ 0..2 => return Err(gtdt.defect(REVISION, "revision 2 or later", revision)),
        2 => gtdt.at_least(96, "96 bytes or more in revision 2")?,
        3.. => gtdt.at_least(104, "104 bytes or more since revision 3")?,
    }
    let timer = Timer {
        phys: ppi(gtdt, NON_SECURE_EL1)?,
        virt: ppi(gtdt, VIRTUAL_EL1)?,
        // Virtual machines without EL2 have none and say 0.
        hyp: match gtdt.u32(EL2)? {
            0 => None,
            _ => Some(ppi(gtdt, EL2)?),
        },
    };
    let order = [
        (Some(maintenance), 0),
        (Some(timer.phys), NON_SECURE_EL1),
        (Some(timer.virt), VIRTUAL_EL1),
        (timer.hyp, EL2),
    ];
    for (index, (intid, offset)) in order.iter().enumerate() {
        let Some(intid) = intid else { continue };
        if order[..index]
            .iter()
            .any(|(other, _)| *other == Some(*intid))
        {
            let expected = "an interrupt of no other timer and not the GIC's maintenance interrupt";
            return Err(gtdt.defect(*offset, expected, *intid));
        }
    }
    Ok(timer)
}
