// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads how PSCI is called: FADT, ARM Boot Architecture Flags (5.2.9.4).

use platform::{Conduit, Name, name};

use crate::error::Error;
use crate::notes::Tolerated;
use crate::view::{REVISION, View};

/// Offset of ARM_BOOT_ARCH.
const ARM_BOOT_ARCH: usize = 129;
/// Offset of the FADT Minor Version, in bits 3:0.
const MINOR_VERSION: usize = 131;
/// Offset of the Hypervisor Vendor Identity.
const HYPERVISOR: usize = 268;
/// PSCI is implemented.
const PSCI_COMPLIANT: u16 = 1 << 0;
/// PSCI is called with HVC rather than SMC.
const PSCI_USE_HVC: u16 = 1 << 1;

/// Returns the name of the hypervisor that runs this machine, if the table is long enough and names
/// one in its field Hypervisor Vendor Identity (since revision 6).
pub fn hypervisor_name(fadt: &View<'_>) -> Option<Name> {
    name(&fadt.bytes_at::<8>(HYPERVISOR).ok()?)
}

/// Returns how PSCI is called, if there is PSCI. Like Linux, accepts a table that contains the flags but is
/// too short for its revision, or is older than revision 5.1 if at least one flag is set.
pub fn psci_conduit(fadt: &View<'_>, tolerated: &mut Tolerated) -> Result<Option<Conduit>, Error> {
    fadt.check_length(MINOR_VERSION + 1, "132 bytes or more")?;
    let (major, minor) = (fadt.u8(REVISION)?, fadt.u8(MINOR_VERSION)? & 0xf);
    let flags = fadt.u16(ARM_BOOT_ARCH)?;
    let long_enough = match major {
        0..=5 => fadt.check_length(268, "268 bytes or more in revision 5"),
        6.. => fadt.check_length(276, "276 bytes or more since revision 6"),
    };
    tolerated.note_defect(long_enough);
    if (major, minor) < (5, 1) {
        let old = match major {
            5 => fadt.defect(MINOR_VERSION, "revision 5.1 or later", minor),
            _ => fadt.defect(REVISION, "revision 5.1 or later", major),
        };
        if flags == 0 {
            return Err(old);
        }
        tolerated.note_defect(Err(old));
    }
    match (flags & PSCI_COMPLIANT != 0, flags & PSCI_USE_HVC != 0) {
        (true, false) => Ok(Some(Conduit::Smc)),
        (true, true) => Ok(Some(Conduit::Hvc)),
        (false, false) => Ok(None),
        (false, true) => {
            let expected = "PSCI_COMPLIANT (bit 0) with PSCI_USE_HVC (bit 1)";
            Err(fadt.defect(ARM_BOOT_ARCH, expected, flags))
        }
    }
}
