// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hypervisor that turns a GICv2's virtual CPU interface off must read GICH back, and wait for the read, before it
//! returns to a guest.
//!
//! While GICH_HCR.En is 0, no virtual interrupt is signalled (IHI 0048B, 5.3.1), so the hypervisor may run a guest without
//! an interface. GICH is Device memory, and its type permits an early acknowledgement of writes (Device-nGnRE): even a
//! DSB then completes when a buffer holds the store, not when the GIC does (DDI 0487K.a, B2.8). The exception return is
//! not a barrier for the store either. Until the store arrives, the guest that runs next takes the interrupts of the
//! previous guest. But accesses to one device arrive in program order, so when a load from GICH has returned its value,
//! the store has arrived. The load needs a DSB after it, or else it may complete after the return.
//!
//! Other stores to GICH need no read-back. An interrupt that a store adds to a list register arrives a little later, as
//! if sent later. An interrupt that a store removes may still be signalled, but the guest's load from GICV comes after
//! the store, and returns 1023, which a guest has to expect at any time (IHI 0048B, 3.2.4). A load by the hypervisor
//! comes after the store, too.
//!
//! Not seen: a load whose value is used before the return, so that the load needs no DSB; and a mapping of GICH as
//! Device-nGnRnE, for which a DSB would suffice.

use crate::access::Access;
use crate::decode::Operation;
use crate::finding::Place;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// See the module.
#[derive(Debug, Default)]
pub struct GichReadBack {
    /// The store that turned the interface off, as long as it may not have arrived.
    off: Option<Place>,
    /// Whether a load from GICH has followed that store.
    loaded: bool,
}

impl Rule for GichReadBack {
    const ABOUT: About = About {
        name: "gich-read-back",
        says: "a load from GICH and a DSB between a store that clears GICH_HCR.En and the return to a guest",
        cites: "IHI 0048B, 5.3.1 (GICH_HCR.En); DDI 0487K.a, B2.8 (early write acknowledgement) and the DSB instruction",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        match operation {
            Operation::Dsb(barrier) if barrier.loads && self.loaded => self.off = None,
            Operation::Return if now.place.level == 2 => {
                if let Some(at) = self.off.take() {
                    let what = "GICH_HCR.En is cleared, and GICH not read back before the return to a guest";
                    now.report_at::<Self>(at, Some(now.place), what);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let Some(register) = access.gic.filter(|one| one.is_guest_control()) else {
            return;
        };
        match (access.store, register.enables_guest()) {
            (true, Some(on)) => {
                self.off = (!on).then_some(now.place);
                self.loaded = false;
            }
            (true, None) => {}
            (false, _) => self.loaded = true,
        }
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[("off", "gich str 0 0"), ("read", "gich ldr 0 0")],
        breaks: "
            not read: off; eret
            a DSB, and no load: off; dsb sy; eret
            a load before the store: read; off; dsb sy; eret
            a load from another block: off; gicc ldr 0 0; dsb sy; eret
            a load, and no DSB: off; read; isb; eret
            a DSB for stores: off; read; dsb ishst; eret
            a DSB before the load: off; dsb sy; read; eret
            a DMB: off; read; dmb ish; eret
        ",
        keeps: "
            read back: off; read; dsb nsh; eret
            another register is read: off; gich ldr 0x30 15; dsb ishld; eret
            on again: off; gich str 0 1; eret
            only turned on, and a list register: gich str 0 1; gich str 0x100 0x1000001b; eret
        ",
    };
}
