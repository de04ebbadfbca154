// SPDX-License-Identifier: MIT OR Apache-2.0
//! The generic timer's interrupts and the generic watchdogs: GTDT (5.2.25).

use platform::{Timer, Watchdog, Watchdogs};

use crate::error::Error;
use crate::gic::read_ppi;
use crate::notes::Tolerated;
use crate::view::{REVISION, View};

/// Offsets of the GSIVs of the per-CPU timers.
const NON_SECURE_EL1: usize = 56;
const VIRTUAL_EL1: usize = 64;
const EL2: usize = 72;

/// Offsets of two fields: the number of platform timers, and the first timer's offset.
const PLATFORM_TIMERS: usize = 88;
const PLATFORM_TIMERS_AT: usize = 92;
/// Bytes before the first possible platform timer: the length of revision 2.
const FIRST: u32 = 96;
/// Offset of the length in a platform timer; it follows the type.
const LENGTH: usize = 1;
/// Type of an Arm Generic Watchdog structure (5.2.25.2), its size in bytes, and offsets in it.
const WATCHDOG: u8 = 1;
const WATCHDOG_SIZE: usize = 28;
const WATCHDOG_CONTROL: usize = 12;
const WATCHDOG_FLAGS: usize = 24;
/// Flag: the watchdog belongs to the secure side.
const SECURE: u32 = 1 << 2;

/// Adds the watchdogs to `watchdogs`. The machine can be used even without them.
///
/// # Errors
/// Returns the first defect of the platform timers; the watchdogs before it were added.
pub fn add_watchdogs(gtdt: &View<'_>, watchdogs: &mut Watchdogs) -> Result<(), Error> {
    // A table that is too short for platform timers has none.
    if gtdt.len() < FIRST as usize {
        return Ok(());
    }
    let count = gtdt.u32(PLATFORM_TIMERS)?;
    let first = gtdt.u32(PLATFORM_TIMERS_AT)?;
    if count > 0 && first < FIRST {
        let expected = "platform timers after the fields";
        return Err(gtdt.defect(PLATFORM_TIMERS_AT, expected, first));
    }
    let mut at = first as usize;
    for _ in 0..count {
        let (kind, length) = (gtdt.u8(at)?, gtdt.u16(at + LENGTH)?);
        let least = if kind == WATCHDOG { WATCHDOG_SIZE } else { 4 };
        let expected = "a platform timer with the length of its type, within the table";
        let timer = gtdt
            .sub_view(at, length.into())
            .filter(|timer| timer.len() >= least)
            .ok_or(gtdt.defect(at + LENGTH, expected, length))?;
        if kind == WATCHDOG {
            watchdogs.add(Watchdog {
                control: timer.u64(WATCHDOG_CONTROL)?,
                kept: timer.u32(WATCHDOG_FLAGS)? & SECURE != 0,
            });
        }
        at += timer.len();
    }
    Ok(())
}

/// Returns the timers' INTIDs, which must differ from each other and from `maintenance`. Accepts a
/// table that is too short for its revision if it has these fields.
pub fn read(gtdt: &View<'_>, maintenance: u32, tolerated: &mut Tolerated) -> Result<Timer, Error> {
    tolerated.note_defect(match gtdt.u8(REVISION)? {
        // Revision 1, in ACPI 5.0, has a different layout.
        revision @ 0..2 => return Err(gtdt.defect(REVISION, "revision 2 or later", revision)),
        2 => gtdt.check_length(96, "96 bytes or more in revision 2"),
        3.. => gtdt.check_length(104, "104 bytes or more since revision 3"),
    });
    gtdt.check_length(PLATFORM_TIMERS, "88 bytes or more")?;
    let timer = Timer {
        phys: read_ppi(gtdt, NON_SECURE_EL1)?,
        virt: read_ppi(gtdt, VIRTUAL_EL1)?,
        // Virtual machines without EL2 have 0 here.
        hyp: match gtdt.u32(EL2)? {
            0 => None,
            _ => Some(read_ppi(gtdt, EL2)?),
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
