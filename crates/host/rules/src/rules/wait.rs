// SPDX-License-Identifier: MIT OR Apache-2.0
//! During a wait at EL2, an interrupt must be able to end the wait.
//!
//! A physical IRQ ends a WFI or WFE only if the architecture's tables of asynchronous exception masking list the IRQ as
//! taken or masked at the CPU's level. At EL2, they do so if HCR_EL2.IMO or TGE is set, or if SCR_EL3.IRQ routes the
//! IRQ to EL3. Otherwise, the IRQ is routed to EL1: at EL2, it stays pending without effect, and the wait never ends.
//! At EL1, every IRQ can end the CPU's wait, whatever its routing.
//!
//! A WFE can also be ended by an event of another CPU, if any CPU ever sends events, by the clearing of a monitor that
//! the CPU has armed, by the event stream, or by an event that SEVL or an exception return has left in the event
//! register. WFIT and WFET end at their deadline.
//!
//! Not seen: whether an interrupt that could end the wait is enabled, and whether it will arrive.

use std::sync::atomic::Ordering::Relaxed;

use crate::decode::{Operation, Wait};
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// HCR_EL2.IMO, TGE.
const TO_EL2: u64 = 1 << 4 | 1 << 27;
/// SCR_EL3.IRQ.
const TO_EL3: u64 = 1 << 1;
/// EVNTEN of CNTHCTL_EL2 and CNTKCTL_EL1.
const STREAM: u64 = 1 << 2;

/// See the module.
#[derive(Debug, Default)]
pub struct WaitCanEnd {
    /// Whether the event register is set.
    event: bool,
    /// Whether a monitor is armed.
    armed: bool,
}

impl Rule for WaitCanEnd {
    const ABOUT: About = About {
        name: "wait-can-end",
        says: "WFI and WFE at EL2 only where an interrupt is a wake-up event, or another end is sure",
        cites: "DDI 0487K.a, D1.7.2.1 (WFI wake-up events) and D1.7.1.4 (WFE wake-up events), \
                by the tables of asynchronous exception masking",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        match operation {
            Operation::SendEvent => {
                now.shared.events.store(true, Relaxed);
                self.event = true;
            }
            Operation::SendEventLocal | Operation::Return => self.event = true,
            Operation::LoadExclusive => self.armed = true,
            Operation::StoreExclusive | Operation::ClearExclusive => self.armed = false,
            Operation::Wait(Wait::Interrupt) if !ends_by_interrupt(now) => {
                now.report::<Self>(
                    None,
                    "WFI at EL2 while IRQs are routed to EL1 (HCR_EL2.IMO and TGE are 0): none ends it",
                );
            }
            Operation::Wait(Wait::Event) => {
                let streams = now.controls.streams;
                let ends = std::mem::take(&mut self.event)
                    || self.armed
                    || streams.iter().any(|control| control & STREAM != 0)
                    || now.shared.events.load(Relaxed);
                if !ends && !ends_by_interrupt(now) {
                    now.report::<Self>(
                        None,
                        "WFE at EL2 while IRQs are routed to EL1 (HCR_EL2.IMO and TGE are 0), and no CPU \
                         has sent an event",
                    );
                }
            }
            _ => {}
        }
    }

    fn on_level_entry(&mut self, _: &Now<'_>, _: u8) {
        // It is IMPLEMENTATION DEFINED whether an exception entry clears the monitor. This rule assumes that it does,
        // so that the monitor can't end a wait after the entry.
        self.armed = false;
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[("routed", "msr HCR_EL2 $1; isb")],
        breaks: "
            WFI after reset: wfi
            IMO was taken back: msr HCR_EL2 0x18; msr HCR_EL2 0x80000000; isb; wfi
            WFE, and nothing sends: wfe
            one event ends one wait: sevl; wfe; wfe
        ",
        keeps: "
            IMO: routed 0x18; wfi; wfe
            TGE: routed 0x8000000; wfi
            SCR_EL3.IRQ: el 3; msr SCR_EL3 2; isb; eret; el 2; wfi
            EL1 waits for itself or for EL2: el 1; wfi
            a deadline: wfit
            SEVL: sevl; wfe
            another CPU has sent: cpu 1; sev; cpu 0; wfe
            the stream: msr CNTHCTL_EL2 4; isb; wfe
        ",
    };
}

fn ends_by_interrupt(now: &Now<'_>) -> bool {
    match now.place.level {
        2 => now.controls.hcr & TO_EL2 != 0 || now.controls.scr & TO_EL3 != 0,
        3 => now.controls.scr & TO_EL3 != 0,
        _ => true,
    }
}
