// SPDX-License-Identifier: MIT OR Apache-2.0
//! The CPUs: those that firmware says can be started (5.2.12.14).

use arrayvec::ArrayVec;
use platform::{AFFINITY, Conduit, Cpu, Enable, MAX_CPUS};

use crate::error::Error;
use crate::madt::{GICC_FLAGS, GICC_MPIDR, Gicc, Madt};

/// What the GICC structures say of the CPUs.
#[derive(Debug, Default)]
pub struct Cpus {
    pub list: ArrayVec<Cpu, MAX_CPUS>,
    /// Usable ones that do not fit.
    pub ignored: usize,
    /// Ones that are off and could be added.
    pub online_capable: usize,
    /// Ones that can't be used.
    pub unusable: usize,
    /// Ones of `list` with a mailbox of the parking protocol.
    pub parked: usize,
}

/// The CPUs, in the order of the table.
pub fn read(madt: &Madt<'_>, psci: Option<Conduit>) -> Result<Cpus, Error> {
    let mut cpus = Cpus::default();
    for (index, gicc) in madt.cpus().enumerate() {
        match (gicc.enabled()?, gicc.online_capable()?) {
            (true, true) => {
                let expected = "not both Enabled (bit 0) and Online Capable (bit 3)";
                let flags = gicc.0.u32(GICC_FLAGS)?;
                return Err(gicc.0.defect(GICC_FLAGS, expected, flags));
            }
            (false, true) => cpus.online_capable += 1,
            (false, false) => cpus.unusable += 1,
            (true, false) => {
                let mpidr = affinity(madt, index, &gicc)?;
                cpus.add(&gicc, mpidr, psci)?;
            }
        }
    }
    if cpus.list.is_empty() {
        return Err(madt.lacks("a GICC structure of an enabled CPU"));
    }
    Ok(cpus)
}

impl Cpus {
    fn add(&mut self, gicc: &Gicc<'_>, mpidr: u64, psci: Option<Conduit>) -> Result<(), Error> {
        let enable = match psci {
            Some(_) => Enable::Psci,
            // The only CPU runs already. The parking protocol, by which others
            // would be started, is of machines older than GICv3.
            None if self.list.is_empty() => Enable::Held,
            None => {
                let expected = "a single CPU, as the FADT's ARM_BOOT_ARCH names no PSCI";
                return Err(gicc.0.defect(GICC_MPIDR, expected, mpidr));
            }
        };
        match self.list.try_push(Cpu { mpidr, enable }) {
            Ok(()) => self.parked += usize::from(gicc.parked()? != 0),
            Err(_) => self.ignored += 1,
        }
        Ok(())
    }
}

/// The affinity of the enabled CPU number `index`, which must be its alone.
fn affinity(madt: &Madt<'_>, index: usize, gicc: &Gicc<'_>) -> Result<u64, Error> {
    let mpidr = gicc.mpidr()?;
    if mpidr & !AFFINITY != 0 {
        let expected = "zeros but in bits 39:32 and 23:0 of the MPIDR";
        return Err(gicc.0.defect(GICC_MPIDR, expected, mpidr));
    }
    for earlier in madt.cpus().take(index) {
        if earlier.enabled()? && earlier.mpidr()? == mpidr {
            let expected = "an MPIDR that no other enabled CPU has";
            return Err(gicc.0.defect(GICC_MPIDR, expected, mpidr));
        }
    }
    Ok(mpidr)
}
