// SPDX-License-Identifier: MIT OR Apache-2.0
//! A write to the interrupt controller has completed before code relies on it.
//!
//! A write of GICD_CTLR, GICD_ICENABLER\<n>, GICR_CTLR or GICR_ICENABLER0 takes time, and RWP of
//! the frame's CTLR shows when it has completed. Until then a disabled interrupt may still come:
//! so it must complete before the exception return and before a wait, and before another register of the frame is
//! written, which may be one that only a disabled interrupt lets change.
//!
//! Not seen: frames that no emulator names.

use std::collections::BTreeMap;

use crate::access::Access;
use crate::decode::Operation;
use crate::finding::Place;
use crate::gic::Frame;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// See the module.
#[derive(Debug, Default)]
pub struct WritesDone {
    /// The last write of each frame that may not have completed, and its depth in exceptions:
    /// handlers that interrupt it do not rely on it.
    begun: BTreeMap<Frame, (Place, i64)>,
    /// Exceptions taken and not returned from; a reset ends with a return without an entry.
    depth: i64,
}

impl Rule for WritesDone {
    const ABOUT: About = About {
        name: "gic-writes-done",
        says: "RWP is clear after a write of CTLR or ICENABLER of the interrupt controller, before something relies on it",
        cites: "IHI 0069H, 12.9 (GICD_CTLR.RWP) and 12.11 (GICR_CTLR.RWP)",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
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

    fn entered(&mut self, _: &Now<'_>, _: u8) {
        self.depth += 1;
    }

    fn accessed(&mut self, now: &Now<'_>, access: &Access) {
        let Some(register) = access.gic else {
            return;
        };
        let frame = register.frame;
        if !access.store {
            if register.is_control() && !register.pends() {
                self.begun.remove(&frame);
            }
        } else if register.is_control() || register.disables() {
            self.begun.insert(frame, (access.place, self.depth));
        } else if let Some(&(at, depth)) = self.begun.get(&frame)
            && depth >= self.depth
        {
            self.begun.remove(&frame);
            report(now, at);
        }
    }

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        let off = || on().gic(STR, DISTRIBUTOR, 0x184, 1);
        vec![
            ("a return", off().then(ERET)),
            ("a wait", off().then(WFI)),
            ("another register", off().gic(STR, DISTRIBUTOR, 0xc08, 1)),
            (
                "RWP is set still",
                off().gic(LDR, DISTRIBUTOR, 0, 1 << 31).then(ERET),
            ),
            (
                "RWP of another frame",
                off().gic(LDR, REDISTRIBUTOR, 0, 0).then(ERET),
            ),
            (
                "a redistributor",
                on().gic(STR, REDISTRIBUTOR, 0x1_0180, 1)
                    .gic(STR, REDISTRIBUTOR, 0x1_0280, 1),
            ),
            ("CTLR", on().gic(STR, DISTRIBUTOR, 0, 0).then(ERET)),
            (
                "in an exception",
                on().interrupt(2).gic(STR, DISTRIBUTOR, 0x184, 1).then(ERET),
            ),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        vec![
            (
                "awaited",
                on().gic(STR, DISTRIBUTOR, 0x184, 1)
                    .gic(STR, DISTRIBUTOR, 0x188, 1)
                    .gic(LDR, DISTRIBUTOR, 0, 1 << 31)
                    .gic(LDR, DISTRIBUTOR, 0, 0)
                    .gic(STR, DISTRIBUTOR, 0x284, 1)
                    .then(ERET),
            ),
            (
                "another frame is written",
                on().gic(STR, REDISTRIBUTOR, 0x1_0180, 1)
                    .gic(STR, DISTRIBUTOR, 0x104, 1)
                    .gic(LDR, REDISTRIBUTOR, 0, 0),
            ),
            (
                "an interrupt that comes between",
                on().gic(STR, DISTRIBUTOR, 0x184, 1)
                    .interrupt(2)
                    .gic(STR, DISTRIBUTOR, 0x284, 1)
                    .then(ERET)
                    .gic(LDR, DISTRIBUTOR, 0, 0)
                    .then(ERET),
            ),
            (
                "nothing is disabled",
                on().gic(STR, DISTRIBUTOR, 0x184, 0).then(ERET),
            ),
        ]
    }
}

fn report(now: &Now<'_>, at: Place) {
    let what = "CTLR or ICENABLER of the interrupt controller is written, and RWP not read as 0 before what relies on it";
    now.report_at::<WritesDone>(at, Some(now.place), what);
}

/// EL2 with interrupts that end a wait.
#[cfg(test)]
fn on() -> Program {
    Program::new()
        .write(crate::register::HCR_EL2, 0x10)
        .then(ISB)
}
