// SPDX-License-Identifier: MIT OR Apache-2.0
//! No unaligned access and no DC ZVA to Device memory, which data is with the MMU off.
//!
//! Not seen: Device attributes of RAM.

use crate::cpu::Access;
use crate::decode::Operation;
use crate::rule::{About, Now, Rule};
#[cfg(test)]
use crate::testing::*;

/// See the module.
#[derive(Debug, Default)]
pub struct DeviceAccess;

impl Rule for DeviceAccess {
    const ABOUT: About = About {
        name: "device-access",
        says: "no unaligned access and no DC ZVA to Device memory, which all data is with the MMU off",
        cites: "DDI 0487K.a, B2.8 (alignment support), B2.10.2 (Device memory) and DC ZVA",
    };

    fn executed(&mut self, now: &Now<'_>, operation: Operation, _: Option<u64>) {
        if operation == Operation::Zero && is_device(now) {
            now.report::<Self>(None, "DC ZVA with the MMU off");
        }
    }

    #[inline]
    fn accessed(&mut self, now: &Now<'_>, access: &Access) {
        let unaligned = access.address & ((1 << access.alignment) - 1) != 0;
        if unaligned && (access.physical.is_none() || is_device(now)) {
            now.report::<Self>(
                None,
                format!(
                    "an unaligned access to Device memory at {:#x}",
                    access.address
                ),
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
                "memory",
                on().access(LDR, 0x4000_0004).of(DC_ZVA, 0x4000_0000),
            ),
        ]
    }
}

/// Whether data at the level of `now` is Device memory whatever it is.
fn is_device(now: &Now<'_>) -> bool {
    !now.controls.translates(now.place.level) && !now.controls.caches(now.place.level)
}
