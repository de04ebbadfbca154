// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exclusives and atomics only on Normal memory.
//!
//! With the MMU off data is Device memory. Whether a monitor or an atomic operation works on
//! that is implementation defined, and an exclusive there may fault, or fail for ever.
//!
//! Not seen: Normal memory that is not cacheable, and Device attributes of RAM.

use crate::cpu::Access;
use crate::decode::Operation;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// See the module.
#[derive(Debug, Default)]
pub struct ExclusiveMemory;

impl Rule for ExclusiveMemory {
    const ABOUT: About = About {
        name: "exclusive-memory",
        says: "exclusives and atomics only with the MMU on, and not on Device memory",
        cites: "DDI 0487K.a, B2.12.1, B2.12.5 (usage restrictions of exclusives) and B2.10.2 (Device memory)",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        let exclusive = matches!(
            operation,
            Operation::LoadExclusive | Operation::StoreExclusive | Operation::Atomic
        );
        if exclusive
            && !now.controls.translates(now.place.level)
            && !now.controls.caches(now.place.level)
        {
            now.report::<Self>(None, "an exclusive or atomic access with the MMU off");
        }
    }

    #[inline]
    fn accessed(&mut self, now: &Now<'_>, access: &Access) {
        if access.exclusive && access.physical.is_none() {
            now.report::<Self>(None, "an exclusive or atomic access to a device");
        }
    }

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        use crate::register::*;
        let on = || Program::new().write(SCTLR_EL2, 5).then(ISB);
        vec![
            ("MMU off", Program::new().access(LDAXR, 0x4000_0000)),
            ("atomic, MMU off", Program::new().access(LDADD, 0x4000_0000)),
            ("a device", on().device(LDADD, 0x0900_0000)),
            (
                "EL1, its MMU off",
                on().then(ERET).level(1).access(STXR, 0x4000_0000),
            ),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        use crate::register::*;
        let on = || Program::new().write(SCTLR_EL2, 5).then(ISB);
        vec![
            (
                "MMU on",
                on().access(LDAXR, 0x4000_0000).access(STXR, 0x4000_0000),
            ),
            ("a load", Program::new().access(LDR, 0x4000_0000)),
        ]
    }
}
