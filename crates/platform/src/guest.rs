// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device tree of a guest: its CPUs, its RAM, the emulated GIC and UART,
//! the timer and PSCI, and nothing else of the machine.
//!
//! It is written front to back into a caller's buffer without allocation (`guest/writer.rs`).

mod writer;

use crate::{Conduit, Region, Timer};
use writer::Writer;

/// What a guest is told of its machine.
#[derive(Clone, Copy, Debug)]
pub struct GuestTree<C, B> {
    /// MPIDR affinity of each vCPU; the first one boots.
    pub cpus: C,
    /// RAM, as intermediate physical addresses.
    pub memory: Region,
    /// Frames of the emulated distributor.
    pub distributor: Region,
    /// Frames of the emulated redistributors, 0x20000 bytes each, in CPU order.
    pub redistributors: Region,
    /// Registers of the emulated PL011.
    pub uart: Region,
    /// Interrupts of the timer.
    pub timer: Timer,
    /// How the guest calls PSCI.
    pub conduit: Conduit,
    /// Boot arguments, as pieces to be put one behind the other.
    pub bootargs: B,
}

/// The buffer is too small for the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTooSmall;

const GIC_PHANDLE: u32 = 1;
const CLOCK_PHANDLE: u32 = 2;
/// Interrupt flags of the GIC binding.
const LEVEL_HIGH: u32 = 4;

impl<'p, C, B> GuestTree<C, B>
where
    C: Iterator<Item = u64> + Clone,
    B: Iterator<Item = &'p str> + Clone,
{
    /// Writes the tree into `buffer` and returns how many bytes it has.
    ///
    /// # Errors
    /// [`BufferTooSmall`], with the buffer's contents undefined.
    pub fn write(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let mut w = Writer::new(buffer)?;
        w.begin("")?;
        w.cells("#address-cells", &[2])?;
        w.cells("#size-cells", &[2])?;
        w.cells("interrupt-parent", &[GIC_PHANDLE])?;
        w.strings("compatible", &["rouse,guest", "linux,dummy-virt"])?;
        self.chosen(&mut w)?;
        self.cpus(&mut w)?;
        w.begin("memory")?;
        w.strings("device_type", &["memory"])?;
        w.regions("reg", &[self.memory])?;
        w.end()?;
        w.begin("psci")?;
        w.strings("compatible", &["arm,psci-1.0", "arm,psci-0.2"])?;
        let method = match self.conduit {
            Conduit::Smc => "smc",
            Conduit::Hvc => "hvc",
        };
        w.strings("method", &[method])?;
        w.end()?;
        self.interrupts(&mut w)?;
        self.serial(&mut w)?;
        w.end()?;
        w.finish()
    }

    fn chosen(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        w.begin("chosen")?;
        w.pieces("bootargs", self.bootargs.clone())?;
        w.strings("stdout-path", &["/serial"])?;
        w.end()
    }

    fn cpus(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        w.begin("cpus")?;
        w.cells("#address-cells", &[2])?;
        w.cells("#size-cells", &[0])?;
        for (index, mpidr) in self.cpus.clone().enumerate() {
            let mut name = *b"cpu@000";
            name[4] = hex_digit(index >> 8);
            name[5] = hex_digit(index >> 4);
            name[6] = hex_digit(index);
            w.begin(core::str::from_utf8(&name).unwrap_or("cpu"))?;
            w.strings("device_type", &["cpu"])?;
            w.strings("compatible", &["arm,armv8"])?;
            w.strings("enable-method", &["psci"])?;
            w.cells("reg", &[(mpidr >> 32) as u32, mpidr as u32])?;
            w.end()?;
        }
        w.end()
    }

    fn interrupts(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        w.begin("interrupt-controller")?;
        w.strings("compatible", &["arm,gic-v3"])?;
        w.cells("#interrupt-cells", &[3])?;
        w.cells("interrupt-controller", &[])?;
        w.cells("#redistributor-regions", &[1])?;
        w.regions("reg", &[self.distributor, self.redistributors])?;
        w.cells("phandle", &[GIC_PHANDLE])?;
        w.end()?;
        w.begin("timer")?;
        w.strings("compatible", &["arm,armv8-timer"])?;
        // Secure physical (a guest has none, the binding wants the place),
        // non-secure physical, virtual, hypervisor.
        let mut interrupts = [0; 12];
        let intids = [29, self.timer.phys, self.timer.virt, self.timer.hyp];
        for (entry, intid) in interrupts.chunks_exact_mut(3).zip(intids) {
            entry.copy_from_slice(&[1, intid - 16, LEVEL_HIGH]);
        }
        w.cells("interrupts", &interrupts)?;
        w.cells("always-on", &[])?;
        w.end()
    }

    fn serial(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        w.begin("clock")?;
        w.strings("compatible", &["fixed-clock"])?;
        w.cells("#clock-cells", &[0])?;
        w.cells("clock-frequency", &[24_000_000])?;
        w.cells("phandle", &[CLOCK_PHANDLE])?;
        w.end()?;
        w.begin("serial")?;
        w.strings("compatible", &["arm,pl011", "arm,primecell"])?;
        w.regions("reg", &[self.uart])?;
        w.cells("clocks", &[CLOCK_PHANDLE, CLOCK_PHANDLE])?;
        w.strings("clock-names", &["uartclk", "apb_pclk"])?;
        // The emulated UART raises no interrupt; the line exists for drivers
        // that insist on one.
        w.cells("interrupts", &[0, 1, LEVEL_HIGH])?;
        w.end()
    }
}

fn hex_digit(value: usize) -> u8 {
    b"0123456789abcdef"[value & 15]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Enable, Platform, Room, UartKind};

    fn tree(
        cpus: &[u64],
    ) -> GuestTree<impl Iterator<Item = u64> + Clone, impl Iterator<Item = &str> + Clone> {
        GuestTree {
            cpus: cpus.iter().copied(),
            memory: Region {
                base: 0x8_4000_0000,
                size: 0x1000_0000,
            },
            distributor: Region {
                base: 0x800_0000,
                size: 0x1_0000,
            },
            redistributors: Region {
                base: 0x80a_0000,
                size: 0x4_0000,
            },
            uart: Region {
                base: 0x900_0000,
                size: 0x1000,
            },
            timer: Timer {
                virt: 27,
                phys: 30,
                hyp: 26,
            },
            conduit: Conduit::Smc,
            bootargs: ["rouse.wait=wfi ", "rouse.workload=ipi"].into_iter(),
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let cpus = [0x1_0001_0000, 0x3, 0x1f_0000];
        let mut buffer = [0; 4096];
        let size = tree(&cpus).write(&mut buffer).unwrap();
        let mut room = Room::new();
        let read = Platform::from_fdt(&buffer[..size], &mut room).unwrap();
        let mpidrs: Vec<u64> = read.cpus.iter().map(|cpu| cpu.mpidr).collect();
        assert_eq!(mpidrs, cpus);
        assert!(read.cpus.iter().all(|cpu| cpu.enable == Enable::Psci));
        assert_eq!(read.memory.as_slice(), [tree(&cpus).memory]);
        assert_eq!(read.gic.distributor, tree(&cpus).distributor);
        assert_eq!(read.gic.redistributors, [tree(&cpus).redistributors]);
        assert_eq!(read.timer, tree(&cpus).timer);
        assert_eq!(read.psci, Some(Conduit::Smc));
        let uart = read.uart.unwrap();
        assert_eq!((uart.kind, uart.base), (UartKind::Pl011, 0x900_0000));
        assert_eq!(read.bootargs, "rouse.wait=wfi rouse.workload=ipi");
    }

    #[test]
    fn every_short_buffer_is_refused() {
        let cpus = [0];
        let mut buffer = [0; 4096];
        let size = tree(&cpus).write(&mut buffer).unwrap();
        for short in 0..size {
            assert_eq!(tree(&cpus).write(&mut buffer[..short]), Err(BufferTooSmall));
        }
    }
}
