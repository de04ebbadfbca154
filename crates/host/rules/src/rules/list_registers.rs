// SPDX-License-Identifier: MIT OR Apache-2.0
//! List registers in use must hold different interrupts, and no list register for a hardware interrupt may be both
//! active and pending.
//!
//! If two list registers have the same vINTID when the guest runs, the behaviour is UNPREDICTABLE. The behaviour is
//! also UNPREDICTABLE for State 0b11 with HW set, because the distributor itself holds the pending state of a hardware
//! interrupt. The guest also empties list registers, so a register counts as in use from the write that fills it until
//! a read of ICH_ELRSR_EL2, or of the register itself, shows that it is empty.
//!
//! On a GICv2, the list registers are GICH_LR\<n>. IHI 0048B, 5.3.8 requires a unique VirtualID for each valid
//! interrupt in them. CPUID, which tells a guest the sender of an SGI, makes no difference there: two SGIs with the
//! same number, sent by different vCPUs, have to be listed one after the other.
//!
//! Not seen: the value of a read that the emulator does not report. After such a read, no register counts as in use.

use std::collections::BTreeMap;

use crate::access::Access;
use crate::decode::{Operation, mrs};
use crate::finding::Place;
use crate::gic::Listed;
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// Fields of ICH_LR\<n>_EL2: State (active, pending), HW and vINTID.
const ACTIVE: u64 = 1 << 63;
const PENDING: u64 = 1 << 62;
const HW: u64 = 1 << 61;
const VINTID: u64 = 0xffff_ffff;
/// ICH_HCR_EL2.En.
const ENABLED: u64 = 1;

/// See the module.
#[derive(Debug, Default)]
pub struct ListRegisters {
    /// List registers in use, each with its vINTID and the instruction that wrote it.
    used: BTreeMap<u8, (u64, Place)>,
    /// ICH_HCR_EL2.En.
    enabled: bool,
}

impl ListRegisters {
    fn note_write(&mut self, now: &Now<'_>, number: u8, listed: Listed) {
        if !listed.is_used() {
            self.used.remove(&number);
            return;
        }
        if listed.active && listed.pending && listed.hw {
            let what = "a list register of an interrupt of the hardware is active and pending";
            now.report::<Self>(None, what);
        }
        self.used.insert(number, (listed.intid, now.place));
    }

    /// Notes which list registers are empty, with a bit for each.
    fn note_empty(&mut self, empty: u64) {
        self.used
            .retain(|number, _| empty.unbounded_shr(u32::from(*number)) & 1 == 0);
    }

    /// Checks all list registers before the guest runs.
    fn check_all(&self, now: &Now<'_>) {
        let mut seen = BTreeMap::new();
        for (vintid, at) in self.used.values() {
            if let Some(first) = seen.insert(*vintid, *at) {
                let what = format!("two list registers are of interrupt {vintid}");
                now.report_at::<Self>(*at, Some(first), what);
            }
        }
    }
}

/// Returns the interrupt in an ICH_LR\<n>_EL2.
const fn of_ich(value: u64) -> Listed {
    Listed {
        intid: value & VINTID,
        pending: value & PENDING != 0,
        active: value & ACTIVE != 0,
        hw: value & HW != 0,
    }
}

impl Rule for ListRegisters {
    const ABOUT: About = About {
        name: "list-registers",
        says: "no two list registers in use with one interrupt ID, and none with HW that is active and pending",
        cites: "IHI 0069H, 12.4 (ICH_LR<n>_EL2: State, HW, vINTID); IHI 0048B, 5.3.8 (GICH_LR<n>: State, HW, VirtualID)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        match (operation, value) {
            (Operation::Write { register, .. }, Some(value)) => match register.list_register() {
                Some(number) => self.note_write(now, number, of_ich(value)),
                None if register == ICH_HCR_EL2 => self.enabled = value & ENABLED != 0,
                None => {}
            },
            (mrs!(ICH_ELRSR_EL2), empty) => {
                self.note_empty(empty.unwrap_or(u64::MAX));
            }
            (Operation::Read { register, .. }, value) => {
                if let Some(number) = register.list_register()
                    && value.is_none_or(|value| !of_ich(value).is_used())
                {
                    self.used.remove(&number);
                }
            }
            (Operation::Return, _) if now.place.level == 2 && self.enabled => self.check_all(now),
            _ => {}
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let Some(register) = access.gic.filter(|one| one.is_guest_control()) else {
            return;
        };
        match (register.list_register(), access.store) {
            (Some((number, listed)), true) => self.note_write(now, number, listed),
            (Some((number, listed)), false) if !listed.is_used() => {
                self.used.remove(&number);
            }
            (Some(_), false) => {}
            (None, true) => {
                self.enabled = register.enables_guest().unwrap_or(self.enabled);
            }
            (None, false) => self.note_empty(register.empty_list_registers().unwrap_or(0)),
        }
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("listed", "msr ICH_HCR_EL2 1; msr ICH_LR0_EL2 $1; msr ICH_LR1_EL2 $2"),
            ("PENDING", "0x4000000000000000"),
            ("BOTH", "0xc000000000000000"),
            ("HW", "0x2000000000000000"),
            ("listed2", "gich str 0 1; gich str 0x100 $1; gich str 0x104 $2"),
            ("PENDING2", "0x10000000"),
            ("ACTIVE2", "0x20000000"),
            ("HW2", "0x80000000"),
        ],
        breaks: "
            one interrupt twice: listed PENDING|27 PENDING|27; eret
            another one has become empty: listed PENDING|27 PENDING|27; msr ICH_LR2_EL2 PENDING|30; isb; mrs ICH_ELRSR_EL2 = 4; eret
            the hardware's, active and pending: msr ICH_LR0_EL2 BOTH|HW|27
            a GICv2's, one interrupt twice: listed2 PENDING2|27 ACTIVE2|27; eret
            a GICv2's, an SGI of two senders: listed2 PENDING2|0x403 PENDING2|0x803; eret
            a GICv2's, and another one has become empty: listed2 PENDING2|27 PENDING2|27; gich ldr 0x30 4; gich ldr 0x34 0xffffffff; eret
            a GICv2's of the hardware, active and pending: gich str 0x100 ACTIVE2|PENDING2|HW2|27
        ",
        keeps: "
            two interrupts: listed PENDING|27 PENDING|30; eret
            one is empty: listed PENDING|27 0; msr ICH_LR1_EL2 27; eret
            the guest has ended it: listed PENDING|27 0; isb; mrs ICH_ELRSR_EL2 = 3; msr ICH_LR1_EL2 PENDING|27; eret
            it is read as empty: listed PENDING|27 0; isb; mrs ICH_LR0_EL2 = 27; msr ICH_LR1_EL2 PENDING|27; eret
            a GICv2's, two interrupts: listed2 PENDING2|27 PENDING2|30; eret
            a GICv2's, the guest has ended it: listed2 PENDING2|27 0; gich ldr 0x30 1; gich str 0x104 PENDING2|27; eret
            a GICv2's, it is read as empty: listed2 PENDING2|27 0; gich ldr 0x100 27; gich str 0x104 PENDING2|27; eret
            a GICv2's that is off: listed2 PENDING2|27 PENDING2|27; gich str 0 0; gich ldr 0 0; dsb nsh; eret
            a GICv2's, of the guest's interface: gicv str 0x100 PENDING2|27; gicv str 0x104 PENDING2|27; eret
            active and pending by software: msr ICH_LR0_EL2 BOTH|27
        ",
    };
}
