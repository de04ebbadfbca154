// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads which CPUs can be started according to firmware (5.2.12.14).

use platform::{AFFINITY, Conduit, Cpu, Enable, Room};

use crate::error::Error;
use crate::madt::{GICC_FLAGS, GICC_MPIDR, Gicc, Madt};
use crate::notes::Tolerated;

/// Counts of CPUs, from the GICC structures.
#[derive(Debug, Default)]
pub struct Cpus {
    /// CPUs that are off and could be added.
    pub online_capable: usize,
    /// CPUs that can't be used.
    pub unusable: usize,
    /// CPUs in use that have a mailbox of the parking protocol.
    pub parked: usize,
}

/// Reads the CPUs into `room`, in the order of the table.
pub fn read(
    madt: &Madt<'_>,
    psci: Option<Conduit>,
    room: &mut Room,
    tolerated: &mut Tolerated,
) -> Result<Cpus, Error> {
    let mut cpus = Cpus::default();
    for gicc in madt.cpus() {
        match (gicc.is_enabled()?, gicc.is_online_capable()?) {
            (false, true) => cpus.online_capable += 1,
            (false, false) => cpus.unusable += 1,
            (true, online_capable) => {
                if online_capable {
                    let expected = "not both Enabled (bit 0) and Online Capable (bit 3)";
                    let flags = gicc.0.u32(GICC_FLAGS)?;
                    tolerated.note_defect(Err(gicc.0.defect(GICC_FLAGS, expected, flags)));
                }
                let mpidr = affinity(&gicc, room)?;
                cpus.add_cpu(&gicc, mpidr, psci, room)?;
            }
        }
    }
    if room.cpus.is_empty() {
        return Err(madt.missing_structure("a GICC structure of an enabled CPU"));
    }
    room.sort();
    Ok(cpus)
}

impl Cpus {
    fn add_cpu(
        &mut self,
        gicc: &Gicc<'_>,
        mpidr: u64,
        psci: Option<Conduit>,
        room: &mut Room,
    ) -> Result<(), Error> {
        let enable = match psci {
            Some(_) => Enable::Psci,
            // The only CPU is already running. The parking protocol, which would start other CPUs,
            // belongs to machines older than GICv3.
            None if room.cpus.is_empty() => Enable::Held,
            None => {
                let expected = "a single CPU, as the FADT's ARM_BOOT_ARCH names no PSCI";
                return Err(gicc.0.defect(GICC_MPIDR, expected, mpidr));
            }
        };
        if !room.cpus.is_full() {
            self.parked += usize::from(gicc.mailbox_address()? != 0);
        }
        room.add(Cpu { mpidr, enable });
        Ok(())
    }
}

/// Returns the affinity of an enabled CPU, which no CPU in `room` may share.
fn affinity(gicc: &Gicc<'_>, room: &Room) -> Result<u64, Error> {
    let mpidr = gicc.mpidr()?;
    if mpidr & !AFFINITY != 0 {
        let expected = "zeros but in bits 39:32 and 23:0 of the MPIDR";
        return Err(gicc.0.defect(GICC_MPIDR, expected, mpidr));
    }
    if room.cpus.iter().any(|earlier| earlier.mpidr == mpidr) {
        let expected = "an MPIDR that no other enabled CPU has";
        return Err(gicc.0.defect(GICC_MPIDR, expected, mpidr));
    }
    Ok(mpidr)
}
