// SPDX-License-Identifier: MIT OR Apache-2.0
//! A write to the interrupt controller must have completed before code relies on it.
//!
//! A write of GICD_CTLR, GICD_ICENABLER\<n>, GICR_CTLR or GICR_ICENABLER0 takes time, and RWP in the CTLR of the frame
//! shows when the write has completed. Until then, a disabled interrupt may still arrive. The write must therefore
//! complete before an exception return or a wait. The write must also complete before another register of the frame is
//! written, because some registers may be changed only while an interrupt is disabled.
//!
//! A GICv2 has no RWP, and the rule does not apply to it.
//!
//! Not seen: frames to which the emulator gives no name.

use std::collections::BTreeMap;

use crate::access::Access;
use crate::decode::Operation;
use crate::finding::Place;
use crate::gic::Frame;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// See the module.
#[derive(Debug, Default)]
pub struct WritesDone {
    /// For each frame, the last write that may not have completed, and the depth of exceptions at that write. Handlers
    /// that interrupt the code after the write do not rely on it.
    begun: BTreeMap<Frame, (Place, i64)>,
    /// Number of exceptions from which the CPU has not returned. The code after a reset ends with an exception return
    /// that has no matching entry.
    depth: i64,
}

impl Rule for WritesDone {
    const ABOUT: About = About {
        name: "gic-writes-done",
        says: "RWP is clear after a write of CTLR or ICENABLER of the interrupt controller, before something relies on it",
        cites: "IHI 0069H, 12.9 (GICD_CTLR.RWP) and 12.11 (GICR_CTLR.RWP)",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        if !matches!(operation, Operation::Return | Operation::Wait(_)) {
            return;
        }
        let depth = self.depth;
        self.begun.retain(|_, (at, begun)| {
            let relies = *begun >= depth;
            if relies {
                report(now, *at);
            }
            !relies
        });
        self.depth -= i64::from(operation == Operation::Return);
    }

    fn on_level_entry(&mut self, _: &Now<'_>, _: u8) {
        self.depth += 1;
    }

    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let Some(register) = access.gic else {
            return;
        };
        let frame = register.frame;
        if !access.store {
            if register.is_control() && !register.shows_pending_write() {
                self.begun.remove(&frame);
            }
        } else if register.is_control() || register.is_disable_register() {
            self.begun.insert(frame, (access.place, self.depth));
        } else if let Some(&(at, depth)) = self.begun.get(&frame)
            && depth >= self.depth
        {
            self.begun.remove(&frame);
            report(now, at);
        }
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[
            ("ready", "msr HCR_EL2 0x10; isb"),
            ("off", "ready; gicd str 0x184 1"),
        ],
        breaks: "
            a return: off; eret
            a wait: off; wfi
            another register: off; gicd str 0xc08 1
            RWP is set still: off; gicd ldr 0 0x80000000; eret
            RWP of another frame: off; gicr ldr 0 0; eret
            a redistributor: ready; gicr str 0x10180 1; gicr str 0x10280 1
            CTLR: ready; gicd str 0 0; eret
            in an exception: ready; irq 2; gicd str 0x184 1; eret
        ",
        keeps: "
            awaited: ready; gicd str 0x184 1; gicd str 0x188 1; gicd ldr 0 0x80000000; gicd ldr 0 0; gicd str 0x284 1; eret
            another frame is written: ready; gicr str 0x10180 1; gicd str 0x104 1; gicr ldr 0 0
            an interrupt that comes between: ready; gicd str 0x184 1; irq 2; gicd str 0x284 1; eret; gicd ldr 0 0; eret
            a GICv2: ready; gicd2 str 0 0; gicd2 str 0x180 0xffff0000; gicd2 str 0x284 1; eret
            nothing is disabled: ready; gicd str 0x184 0; eret
        ",
    };
}

fn report(now: &Now<'_>, at: Place) {
    let what = "CTLR or ICENABLER of the interrupt controller is written, and RWP not read as 0 before what relies on it";
    now.report_at::<WritesDone>(at, Some(now.place), what);
}
