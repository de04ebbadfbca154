// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exclusives and atomics only on Normal memory that is write-back and shareable.
//!
//! With the MMU off data is Device memory. Whether a monitor or an atomic operation works on
//! that, or on memory that is not cached or not shareable, is implementation defined, and an
//! exclusive there may fault, or fail for ever. The tables of stage 1 decide the type of memory,
//! at each access.
//!
//! Not seen: the attributes of stage 2, and granules other than 4 KiB.

use crate::access::Access;
use crate::attributes::{Type, Types};
use crate::decode::Operation;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// See the module.
#[derive(Debug, Default)]
pub struct ExclusiveMemory {
    types: Types,
}

impl Rule for ExclusiveMemory {
    const ABOUT: About = About {
        name: "exclusive-memory",
        says: "exclusives and atomics only with the MMU on, on memory that is write-back and shareable",
        cites: "DDI 0487K.a, B2.12.1, B2.12.5 (usage restrictions of exclusives) and B2.10.2 (Device memory)",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        self.types.executed(now, operation);
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
        if !access.exclusive {
            return;
        }
        let what = match (access.physical, self.types.of(now, access.address)) {
            (None, _) => "a device",
            (_, Some(Type::Device)) => "memory that is mapped as a device",
            (_, Some(Type::Normal)) => "memory that is not write-back or not shareable",
            (_, None | Some(Type::Conventional)) => return,
        };
        now.report::<Self>(None, format!("an exclusive or atomic access to {what}"));
    }

    #[cfg(test)]
    fn breaks() -> Vec<Example> {
        use crate::register::*;
        let on = || Program::new().write(SCTLR_EL2, 5).then(ISB);
        vec![
            ("MMU off", Program::new().access(LDAXR, 0x4000_0000)),
            ("atomic, MMU off", Program::new().access(LDADD, 0x4000_0000)),
            ("a device", on().device(LDADD, 0x0900_0000)),
            ("mapped as a device", mapped(DEVICE).access(LDAXR, 0x8010)),
            ("not cached", mapped(UNCACHED).access(STXR, 0x8010)),
            (
                "not shareable",
                mapped(CACHED & !SHAREABLE).access(LDADD, 0x8010),
            ),
            (
                "mapped again",
                mapped(CACHED)
                    .access(LDAXR, 0x8010)
                    .entry(LEAF, 0)
                    .then(DSB_ISH)
                    .then(TLBI_ALLE2)
                    .then(DSB_ISH)
                    .entry(LEAF, DEVICE)
                    .then(DSB_ISH)
                    .then(ISB)
                    .access(LDAXR, 0x8010),
            ),
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
            (
                "write-back and shareable",
                mapped(CACHED)
                    .access(LDAXR, 0x8010)
                    .access(STXR, 0x8010)
                    .access(LDADD, 0x8010),
            ),
            ("a load of a device", mapped(DEVICE).access(LDR, 0x8010)),
            ("a load", Program::new().access(LDR, 0x4000_0000)),
        ]
    }
}
