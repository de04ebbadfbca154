// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device memory allows neither unaligned accesses nor DC ZVA. While the MMU is off, all data accesses are to Device
//! memory.
//!
//! The type of memory follows from the stage 1 tables.
//!
//! Not seen: the attributes of stage 2, and granules other than 4 KiB.

use crate::access::Access;
use crate::attributes::{Type, Types};
use crate::decode::Operation;
use crate::finding::Place;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::Examples;

/// See the module.
#[derive(Debug, Default)]
pub struct DeviceAccess {
    types: Types,
    /// The last DC ZVA instruction.
    zeroed: Option<Place>,
}

impl Rule for DeviceAccess {
    const ABOUT: About = About {
        name: "device-access",
        says: "no unaligned access and no DC ZVA to Device memory, which all data is with the MMU off",
        cites: "DDI 0487K.a, B2.8 (alignment support), B2.10.2 (Device memory) and DC ZVA",
    };

    fn on_instruction(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        self.types.drop_if_changed(now, operation);
        if operation == Operation::Zero {
            self.zeroed = Some(now.place);
            if is_device(now) {
                now.report::<Self>(None, "DC ZVA with the MMU off");
            }
        }
    }

    #[inline]
    fn on_access(&mut self, now: &Now<'_>, access: &Access) {
        let unaligned = access.address & ((1 << access.alignment) - 1) != 0;
        let zeroes = self.zeroed == Some(access.place);
        if !unaligned && !zeroes {
            return;
        }
        let device = access.physical.is_none()
            || is_device(now)
            || self.types.type_at(now, access.address) == Some(Type::Device);
        if device {
            let what = if zeroes {
                "DC ZVA"
            } else {
                "an unaligned access"
            };
            now.report::<Self>(
                None,
                format!("{what} to Device memory at {:#x}", access.address),
            );
        }
    }

    #[cfg(test)]
    const EXAMPLES: Examples = Examples {
        words: &[("UNALIGNED", "0x40000004")],
        breaks: "
            MMU off: ldr UNALIGNED
            a pair: stp UNALIGNED
            a device: on; device ldr 0x9000004
            mapped as a device: mapped DEVICE; ldr 0x8014
            DC ZVA of what is mapped as a device: mapped DEVICE; zero 0x8000
            DC ZVA: dc zva A
        ",
        keeps: "
            aligned: ldr 0x40000008; stp 0x40000008
            mapped as memory, not cached: mapped UNCACHED; ldr 0x8014; zero 0x8000
            aligned, a device: mapped DEVICE; ldr 0x8018
            memory: on; ldr UNALIGNED; dc zva A
        ",
    };
}

/// Whether all data accesses at the level of `now` are to Device memory.
fn is_device(now: &Now<'_>) -> bool {
    !now.controls.translates(now.place.level) && !now.controls.uses_caches(now.place.level)
}
