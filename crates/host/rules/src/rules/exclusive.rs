// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exclusives and atomic operations must only access Normal memory that is write-back and shareable.
//!
//! While the MMU is off, data accesses are to Device memory. It is implementation defined whether exclusive monitors
//! and atomic operations work on Device memory, or on memory that is not cached or not shareable. An exclusive may
//! fault there, or fail for ever. The type of memory of each access follows from the stage 1 tables.
//!
//! Not seen: the attributes of stage 2, and granules other than 4 KiB.

use crate::access::Access;
use crate::attributes::{Type, Types};
use crate::decode::Operation;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

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

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        self.types.drop_if_changed(now, operation);
        let exclusive = matches!(
            operation,
            Operation::LoadExclusive | Operation::StoreExclusive | Operation::Atomic
        );
        if exclusive
            && !now.controls.translates(now.place.level)
            && !now.controls.uses_caches(now.place.level)
        {
            now.report::<Self>(None, "an exclusive or atomic access with the MMU off");
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        if !access.exclusive {
            return;
        }
        let what = match (access.physical, self.types.type_at(now, access.address)) {
            (None, _) => "a device",
            (_, Some(Type::Device)) => "memory that is mapped as a device",
            (_, Some(Type::Normal)) => "memory that is not write-back or not shareable",
            (_, None | Some(Type::Conventional)) => return,
        };
        now.report::<Self>(None, format!("an exclusive or atomic access to {what}"));
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[("UNSHAREABLE", "0x8407")],
        breaks: "
            MMU off: ldaxr A
            atomic, MMU off: ldadd A
            a device: on; device ldadd 0x9000000
            mapped as a device: mapped DEVICE; ldaxr 0x8010
            not cached: mapped UNCACHED; stxr 0x8010
            not shareable: mapped UNSHAREABLE; ldadd 0x8010
            mapped again: mapped CACHED; ldaxr 0x8010; entry LEAF 0; dsb ish; tlbi alle2; dsb ish; entry LEAF DEVICE; dsb ish; isb; ldaxr 0x8010
            EL1, its MMU off: on; eret; el 1; stxr A
        ",
        keeps: "
            MMU on: on; ldaxr A; stxr A
            write-back and shareable: mapped CACHED; ldaxr 0x8010; stxr 0x8010; ldadd 0x8010
            a load of a device: mapped DEVICE; ldr 0x8010
            a load: ldr A
        ",
    };
}
