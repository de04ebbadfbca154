// SPDX-License-Identifier: MIT OR Apache-2.0
//! No unaligned access and no DC ZVA to Device memory, which includes all data with the MMU off.
//!
//! The tables of stage 1 decide the type of memory.
//!
//! Not seen: the attributes of stage 2, and granules other than 4 KiB.

use crate::access::Access;
use crate::attributes::{Type, Types};
use crate::decode::Operation;
use crate::finding::Place;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// See the module.
#[derive(Debug, Default)]
pub struct DeviceAccess {
    types: Types,
    /// The last DC ZVA.
    zeroed: Option<Place>,
}

impl Rule for DeviceAccess {
    const ABOUT: About = About {
        name: "device-access",
        says: "no unaligned access and no DC ZVA to Device memory, which all data is with the MMU off",
        cites: "DDI 0487K.a, B2.8 (alignment support), B2.10.2 (Device memory) and DC ZVA",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        self.types.executed(now, operation);
        if operation == Operation::Zero {
            self.zeroed = Some(now.place);
            if is_device(now) {
                now.report::<Self>(None, "DC ZVA with the MMU off");
            }
        }
    }

    #[inline]
    fn accessed(&mut self, now: &Now<'_>, access: &Access) {
        let unaligned = access.address & ((1 << access.alignment) - 1) != 0;
        let zeroes = self.zeroed == Some(access.place);
        if !unaligned && !zeroes {
            return;
        }
        let device = access.physical.is_none()
            || is_device(now)
            || self.types.of(now, access.address) == Some(Type::Device);
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
    fn breaks() -> Vec<Example> {
        use crate::register::*;
        vec![
            ("MMU off", Program::new().access(LDR, 0x4000_0004)),
            ("a pair", Program::new().access(STP, 0x4000_0004)),
            (
                "a device",
                Program::new()
                    .write(SCTLR_EL2, 5)
                    .then(ISB)
                    .device(LDR, 0x0900_0004),
            ),
            ("mapped as a device", mapped(DEVICE).access(LDR, 0x8014)),
            (
                "DC ZVA of what is mapped as a device",
                mapped(DEVICE).access(DC_ZVA, 0x8000),
            ),
            ("DC ZVA", Program::new().of(DC_ZVA, 0x4000_0000)),
        ]
    }

    #[cfg(test)]
    fn keeps() -> Vec<Example> {
        use crate::register::*;
        let on = || Program::new().write(SCTLR_EL2, 5).then(ISB);
        vec![
            (
                "aligned",
                Program::new()
                    .access(LDR, 0x4000_0008)
                    .access(STP, 0x4000_0008),
            ),
            (
                "mapped as memory, not cached",
                mapped(UNCACHED).access(LDR, 0x8014).access(DC_ZVA, 0x8000),
            ),
            ("aligned, a device", mapped(DEVICE).access(LDR, 0x8018)),
            (
                "memory",
                on().access(LDR, 0x4000_0004).of(DC_ZVA, 0x4000_0000),
            ),
        ]
    }
}

/// Whether all data at the level of `now` is Device memory.
fn is_device(now: &Now<'_>) -> bool {
    !now.controls.translates(now.place.level) && !now.controls.caches(now.place.level)
}
