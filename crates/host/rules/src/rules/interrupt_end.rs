// SPDX-License-Identifier: MIT OR Apache-2.0
//! Acknowledged interrupts must be ended, in the reverse order of their acknowledgement, and no other interrupts may be
//! ended.
//!
//! A read of ICC_IAR1_EL1 that returns an interrupt raises the running priority. A write of the interrupt's number to
//! ICC_EOIR1_EL1 drops this priority. If the write is missing, other interrupts of the same or a lower priority are
//! blocked for ever. An extra write, or the write of another number, is UNPREDICTABLE. The level that acknowledged an
//! interrupt must end it before it returns from the exception. With EOImode 1, a write of ICC_DIR_EL1 deactivates the
//! interrupt after its end. If this write comes before the end, the priority stays active although the interrupt is
//! not. With a GICv2, the registers are GICC_IAR, GICC_EOIR and GICC_DIR, or a guest's GICV, and the end of an SGI
//! names the CPU interface that sent it.
//!
//! The rule counts separately for each level, because each level has its own interface, or uses one that the other
//! level does not use. At EL1, it counts separately for each guest, which it identifies by its VMID. If EL2 writes
//! SCTLR_EL1, a vCPU restarts with no acknowledged interrupts. An exception may hide from the emulator which value a
//! read of ICC_IAR1_EL1 returned. If an interrupt that is not known to be active then ends, it is taken for the hidden
//! interrupt. An interrupt stays hidden until the return from the exception in which the read was executed. The read
//! may also have returned no interrupt. The rule stops checking a guest once one of the guest's accesses has trapped,
//! because EL2's answer is unknown. EL2 may make a guest's GICV inaccessible for a time. A failed access to it counts
//! as answered by EL2 once EL2 moves the guest past the instruction. Otherwise the guest repeats the access.
//!
//! Not seen: interrupts of Group 0 of a GICv3, GICC_AIAR and GICC_AEOIR, an interrupt that is never deactivated,
//! deactivation through registers of the distributor, and a failed access to a GICV that the guest has not yet accessed.

mod interface;

use std::collections::BTreeMap;

use crate::access::Access;
use crate::decode::{Operation, msr};
use crate::gic::{Block, Interrupt, Step};
use crate::register::*;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;
use interface::Interface;

/// See the module.
#[derive(Debug, Default)]
pub struct InterruptEnded {
    levels: [Interface; 4],
    /// The interfaces of EL1, by VMID.
    guests: BTreeMap<u64, Interface>,
    /// The virtual address of the GICV that a guest used last.
    gicv: Option<u64>,
    /// The guest whose access to its GICV failed, and the address of the instruction after it.
    failed: Option<(u64, u64)>,
}

impl InterruptEnded {
    fn interface(&mut self, now: &Now<'_>, level: u8) -> &mut Interface {
        match level & 3 {
            1 => self.guests.entry(now.controls.guest()).or_default(),
            level => &mut self.levels[usize::from(level)],
        }
    }
}

/// Returns the step that an access to a GICv3's CPU interface makes.
fn step(operation: Operation) -> Option<Step> {
    let (Operation::Read { register, .. } | Operation::Write { register, .. }) = operation else {
        return None;
    };
    match register {
        ICC_IAR1_EL1 => Some(Step::Acknowledge),
        ICC_EOIR1_EL1 => Some(Step::End),
        ICC_DIR_EL1 => Some(Step::Deactivate),
        _ => None,
    }
}

impl Rule for InterruptEnded {
    const ABOUT: About = About {
        name: "interrupt-ended",
        says: "an interrupt that is acknowledged is ended before the return, the last one first, no other is, and it is deactivated after that only",
        cites: "IHI 0069H, 4.6.2, 4.8 and 12.2 (ICC_IAR1_EL1, ICC_EOIR1_EL1, ICC_DIR_EL1); \
                IHI 0048B, 3.2, 4.4.4, 4.4.5 (GICC_IAR, GICC_EOIR, GICC_DIR)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, value: Option<u64>) {
        if let Some(step) = step(operation) {
            let interrupt = value.map(Interrupt::new);
            let level = self.interface(now, now.place.level);
            return level.note_step(now, step, interrupt);
        }
        match (operation, value) {
            (msr!(SCTLR_EL1), _) if now.place.level == 2 => {
                *self.interface(now, 1) = Interface::default();
            }
            (msr!(ELR_EL2), Some(pc)) => {
                if let Some((guest, _)) = self.failed.take_if(|(_, next)| *next == pc) {
                    self.guests.entry(guest).or_default().note_emulation();
                }
            }
            (Operation::Return, _) => {
                self.failed = None;
                self.interface(now, now.place.level).note_return(now);
            }
            _ => {}
        }
    }

    fn on_trap(&mut self, now: &Now<'_>, operation: Operation) {
        if step(operation).is_some() {
            self.interface(now, now.place.level).note_emulation();
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let Some(register) = access.gic else {
            return;
        };
        self.gicv = register.interface_at(access.address).or(self.gicv);
        if let Some((step, interrupt)) = register.step(access.store) {
            let level = self.interface(now, now.place.level);
            level.note_step(now, step, Some(interrupt));
        }
    }

    fn on_failed_access(&mut self, now: &Now<'_>, address: u64) {
        let offset = self.gicv.map(|gicv| address.wrapping_sub(gicv));
        self.failed = offset
            .filter(|offset| Block::handles_interrupts(*offset))
            .map(|_| (now.controls.guest(), now.place.pc + 4));
    }

    fn on_level_entry(&mut self, now: &Now<'_>, level: u8) {
        self.interface(now, level).note_entry();
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("acknowledge", "mrs ICC_IAR1_EL1 = $1"),
            ("end", "msr ICC_EOIR1_EL1 $1"),
            ("deactivate", "msr ICC_DIR_EL1 $1"),
            ("enter", "irq 2; el 2; msr VTTBR_EL2 $1; eret; el 1"),
            ("GUEST", "0x2000000000000"),
            ("SGI", "0x1403"),
            ("version2", "irq 2; gicc ldr 0xc $1"),
            ("end2", "gicc str 0x10 $1"),
            ("virtual", "el 1; irq 1; gicv ldr 0xc $1"),
            ("taken", "irq 2; acknowledge 27"),
        ],
        breaks: "
            never ended: taken; eret
            ended twice: taken; end 27; end 27
            another one is ended: taken; end 30
            deactivated first: taken; deactivate 27; end 27
            more than there are priorities: irq 2; 200 * acknowledge #
            not acknowledged: end 27
            of EL2, which has answered a guest's access: el 1; mrs ICC_IAR1_EL1; traps 2; el 2; eret; irq 2; acknowledge 27; eret
            after one that is unknown, which was spurious: irq 2; mrs ICC_IAR1_EL1; eret; irq 2; acknowledge 27; eret
            not acknowledged, after one that is unknown, which was spurious: irq 2; mrs ICC_IAR1_EL1; eret; irq 2; end 27
            besides one that is unknown: taken; mrs ICC_IAR1_EL1; end 30; eret
            an LPI: irq 2; acknowledge 8192; eret
            the first one first: taken; irq 2; acknowledge 30; end 27
            a GICv2's, never ended: version2 27; eret
            a GICv2's, ended twice: version2 27; end2 27; end2 27
            a GICv2's SGI, of another sender: version2 SGI; end2 0x803; eret
            a GICv2's SGI, without its sender: version2 SGI; end2 3; eret
            a GICv2's, deactivated first: version2 27; gicc str 0x1000 27; end2 27
            a guest's, never ended: virtual 27; eret
            a guest's, ended in place of another: virtual 27; gicv str 0x10 30
            a guest's, and an access that EL2 lets it repeat: virtual 27; failed 0x10; el 2; msr VTTBR_EL2 0x80000000; eret; el 1; gicv str 0x10 30
            a guest's, after another failed access: virtual 27; failed 0x14; el 2; skip; eret; el 1; eret
        ",
        keeps: "
            ended: taken; end 27; eret
            deactivated after its end, or by somebody else: taken; end 27; deactivate 27; deactivate 30; eret
            spurious: irq 2; acknowledge 1023; eret
            nested: taken; irq 2; acknowledge 30; end 30; eret; end 27; eret
            a guest's EOI that traps: el 1; end 27; traps 2
            an acknowledge that traps, ended by itself: el 1; irq 1; mrs ICC_IAR1_EL1; traps 2; el 2; eret; el 1; end 27; eret
            a guest that has a turn between: el 1; irq 1; acknowledge 27; enter GUEST; eret; enter 0; end 27; eret
            unknown what: irq 2; mrs ICC_IAR1_EL1; end 27; eret
            unknown what, and an exception besides: irq 2; mrs ICC_IAR1_EL1; irq 2; acknowledge 30; end 30; eret; end 27; eret
            a GICv2's, ended: version2 27; end2 27; gicc str 0x1000 27; eret
            a GICv2's SGI, with reserved bits: version2 0xfffff403; end2 SGI; eret
            a GICv2's, spurious: version2 1023; eret
            a guest's, ended: virtual SGI; gicv str 0x10 SGI; eret
            a guest with two tables: virtual 27; irq 2; el 2; msr VTTBR_EL2 0x80000000; eret; el 1; gicv str 0x10 27; eret
            a guest's, ended by EL2: virtual 27; failed 0x10; el 2; skip; eret; el 1; eret
            a vCPU that starts again: el 1; irq 1; acknowledge 27; irq 2; el 2; msr SCTLR_EL1 0; eret; el 1; irq 1; eret
        ",
    };
}
