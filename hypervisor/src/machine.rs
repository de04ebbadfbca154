// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that was taken over, and the virtual machine on it.

pub mod caches;
pub mod ending;
pub mod latencies;
pub mod memory;
pub mod payload;
pub mod power;
pub mod vm;

use platform::{Platform, Region};
use spin::once::Once;

use crate::cpu::gicv2::DOORBELL;
use crate::cpu::percpu::PerCpu;

/// The parts of the machine's description that are kept.
pub struct Machine {
    /// The machine, as the firmware describes it.
    pub platform: Platform<'static>,
    /// RAM that belongs to the guest.
    pub guest: Region,
    /// State of each CPU, in the order of `platform.cpus`.
    pub cpus: &'static [&'static PerCpu],
    /// VTTBR_EL2 and VTCR_EL2 of the guest's map.
    pub stage2: (u64, u64),
    /// VTTBR_EL2 of the guest's map without the CPU interface that a GICv2 has in memory.
    pub closed: u64,
    /// Frequency of the counter, in Hz.
    pub frequency: u64,
}

impl Machine {
    /// INTID of the interrupt that makes a CPU read its pending word (`interrupts::kick`): the
    /// maintenance interrupt, or an SGI of a GICv2.
    pub fn doorbell(&self) -> u32 {
        match self.platform.gic.version2 {
            Some(_) => DOORBELL,
            None => self.platform.gic.maintenance,
        }
    }

    /// The doorbell as a bit of the redistributor's registers.
    pub fn doorbell_bit(&self) -> u32 {
        1 << self.doorbell()
    }

    /// Converts `nanoseconds` to ticks of the counter.
    pub fn ns_to_ticks(&self, nanoseconds: u64) -> u64 {
        (u128::from(nanoseconds) * u128::from(self.frequency) / 1_000_000_000) as u64
    }
}

static MACHINE: Once<Machine> = Once::new();

/// Makes `machine` the one that [`machine()`] returns.
pub fn set_machine(machine: Machine) -> &'static Machine {
    MACHINE.call_once(|| machine)
}

/// Returns the machine.
///
/// # Panics
/// Panics if [`set_machine`] has not been called.
pub fn machine() -> &'static Machine {
    MACHINE
        .get()
        .expect("the machine is described before anything asks")
}
