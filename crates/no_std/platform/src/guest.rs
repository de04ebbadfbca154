// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device tree of a guest: its CPUs, its RAM, its GIC and UART, the timer and
//! PSCI, and nothing else of the machine.
//!
//! `guest/writer.rs` writes it front to back into a caller's buffer, without allocation.

mod writer;

use arrayvec::ArrayVec;

use crate::fdt::{ACPI, DESCRIBED_BY};
use crate::{Conduit, Firmware, GicV2, Region, Timer, Uart, UartKind};
use writer::Writer;

/// An idle state of a guest's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleState {
    /// Time to leave the state, in microseconds.
    pub exit_us: u32,
    /// Minimum time in the state for which it pays off, in microseconds.
    pub residency_us: u32,
}

/// Description of a guest's machine.
#[derive(Clone, Copy, Debug)]
pub struct GuestTree<'a, C, B> {
    /// MPIDR affinity of each vCPU; the first vCPU boots.
    pub cpus: C,
    /// RAM, as intermediate physical addresses.
    pub memory: Region,
    /// Registers of the distributor.
    pub distributor: Region,
    /// CPU interfaces of a GICv2, if the GIC is one.
    pub version2: Option<GicV2>,
    /// Ranges of redistributor frames.
    pub redistributors: &'a [Region],
    /// Distance between redistributors, if their own registers do not give it.
    pub stride: Option<u64>,
    /// Console, if there is one.
    pub uart: Option<Uart>,
    /// Interrupts of the timer.
    pub timer: Timer,
    /// How the guest calls PSCI, if it has PSCI.
    pub conduit: Option<Conduit>,
    /// Name of the hypervisor below, if the guest should know it.
    pub hypervisor: Option<&'a str>,
    /// The kind of description that the machine's firmware provides.
    pub described_by: Firmware,
    /// The `compatible` and the address of the page with EL2's counters and knobs, if there is one.
    pub exits: Option<(&'a str, Region)>,
    /// Idle states of the guest's CPUs besides WFI, from shallow to deep.
    pub idle_states: &'a [IdleState],
    /// Seed of the guest kernel's random numbers (`rng-seed`), if the tree should have one.
    pub seed: Option<u64>,
    /// The guest's initial RAM disk, if there is one.
    pub initrd: Option<Region>,
    /// Boot arguments, as pieces to concatenate.
    pub bootargs: B,
}

/// The buffer is too small for the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTooSmall;

const GIC_PHANDLE: u32 = 1;
const CLOCK_PHANDLE: u32 = 2;
/// The phandle of the first idle state. The phandles of further states follow.
const STATES_PHANDLE: u32 = 3;
/// Maximum number of idle states in a tree; further ones are left out.
const MOST_STATES: usize = 8;
/// Time to enter an idle state, in microseconds.
const ENTRY_US: u32 = 10;
/// Bytes of a UART's registers.
const UART_SIZE: u64 = 0x1000;
/// Interrupt flags of the GIC binding.
const LEVEL_HIGH: u32 = 4;

impl<'p, C, B> GuestTree<'_, C, B>
where
    C: Iterator<Item = u64> + Clone,
    B: Iterator<Item = &'p str> + Clone,
{
    /// Writes the tree into `buffer` and returns its size in bytes.
    ///
    /// # Errors
    /// Returns [`BufferTooSmall`]; the contents of the buffer are then undefined.
    pub fn write(&self, buffer: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let mut w = Writer::new(buffer)?;
        w.begin_node("")?;
        w.cells("#address-cells", &[2])?;
        w.cells("#size-cells", &[2])?;
        w.cells("interrupt-parent", &[GIC_PHANDLE])?;
        w.strings("compatible", &["rouse,guest", "linux,dummy-virt"])?;
        self.write_chosen(&mut w)?;
        self.write_cpus(&mut w)?;
        w.begin_node("memory")?;
        w.strings("device_type", &["memory"])?;
        w.regions("reg", [self.memory].into_iter())?;
        w.end_node()?;
        self.write_services(&mut w)?;
        self.write_gic(&mut w)?;
        if let Some(uart) = self.uart {
            write_serial(&mut w, uart)?;
        }
        if let Some((compatible, page)) = self.exits {
            w.begin_node("exits")?;
            w.strings("compatible", &[compatible])?;
            w.regions("reg", [page].into_iter())?;
            w.end_node()?;
        }
        w.end_node()?;
        w.finish()
    }

    /// Writes the nodes of the services that the guest can call.
    fn write_services(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        if let Some(conduit) = self.conduit {
            w.begin_node("psci")?;
            w.strings("compatible", &["arm,psci-1.0", "arm,psci-0.2"])?;
            let method = match conduit {
                Conduit::Smc => "smc",
                Conduit::Hvc => "hvc",
            };
            w.strings("method", &[method])?;
            w.end_node()?;
        }
        if let Some(hypervisor) = self.hypervisor {
            w.begin_node("hypervisor")?;
            w.strings("compatible", &[hypervisor])?;
            w.end_node()?;
        }
        Ok(())
    }

    fn write_chosen(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        w.begin_node("chosen")?;
        w.pieces("bootargs", self.bootargs.clone())?;
        if let Some(initrd) = self.initrd {
            for (name, address) in [
                ("linux,initrd-start", initrd.base),
                ("linux,initrd-end", initrd.end()),
            ] {
                w.cells(name, &[(address >> 32) as u32, address as u32])?;
            }
        }
        if let Some(seed) = self.seed {
            // The kernel hashes the seed, so it is enough that seeds differ.
            w.cells("rng-seed", &[(seed >> 32) as u32, seed as u32])?;
        }
        if self.described_by == Firmware::Acpi {
            w.strings(DESCRIBED_BY, &[ACPI])?;
        }
        if self.uart.is_some() {
            w.strings("stdout-path", &["/serial"])?;
        }
        w.end_node()
    }

    fn write_cpus(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        w.begin_node("cpus")?;
        w.cells("#address-cells", &[2])?;
        w.cells("#size-cells", &[0])?;
        for (index, mpidr) in self.cpus.clone().enumerate() {
            let mut name = *b"cpu@000";
            name[4] = hex_digit(index >> 8);
            name[5] = hex_digit(index >> 4);
            name[6] = hex_digit(index);
            w.begin_node(core::str::from_utf8(&name).unwrap_or("cpu"))?;
            w.strings("device_type", &["cpu"])?;
            w.strings("compatible", &["arm,armv8"])?;
            if self.conduit.is_some() {
                w.strings("enable-method", &["psci"])?;
            }
            w.cells("reg", &[(mpidr >> 32) as u32, mpidr as u32])?;
            if !self.idle_states.is_empty() {
                let states = 0..self.idle_states.len() as u32;
                let states: ArrayVec<u32, MOST_STATES> = states
                    .take(MOST_STATES)
                    .map(|state| STATES_PHANDLE + state)
                    .collect();
                w.cells("cpu-idle-states", &states)?;
            }
            w.end_node()?;
        }
        if !self.idle_states.is_empty() {
            write_idle_states(w, self.idle_states)?;
        }
        w.end_node()
    }

    fn write_gic(&self, w: &mut Writer<'_>) -> Result<(), BufferTooSmall> {
        w.begin_node("interrupt-controller")?;
        let compatible = match self.version2 {
            Some(_) => "arm,cortex-a15-gic",
            None => "arm,gic-v3",
        };
        w.strings("compatible", &[compatible])?;
        w.cells("#interrupt-cells", &[3])?;
        w.cells("interrupt-controller", &[])?;
        if self.version2.is_none() {
            w.cells(
                "#redistributor-regions",
                &[self.redistributors.len() as u32],
            )?;
        }
        let interfaces = self.version2.iter().flat_map(GicV2::registers);
        let frames = [self.distributor].into_iter().chain(interfaces);
        w.regions("reg", frames.chain(self.redistributors.iter().copied()))?;
        if let Some(stride) = self.stride {
            let cells = [(stride >> 32) as u32, stride as u32];
            w.cells("redistributor-stride", &cells)?;
        }
        w.cells("phandle", &[GIC_PHANDLE])?;
        w.end_node()?;
        w.begin_node("timer")?;
        w.strings("compatible", &["arm,armv8-timer"])?;
        // Secure physical (which a guest lacks, but the binding requires the entry), non-secure
        // physical, virtual, hypervisor.
        let mut interrupts: ArrayVec<u32, 12> = ArrayVec::new();
        let timer = self.timer;
        for intid in [29, timer.phys, timer.virt].into_iter().chain(timer.hyp) {
            interrupts.extend([1, intid - 16, LEVEL_HIGH]);
        }
        w.cells("interrupts", &interrupts)?;
        w.cells("always-on", &[])?;
        w.end_node()
    }
}

/// Writes the idle states (Devicetree binding `idle-states`): CPU_SUSPEND with the state's number
/// as the power state, a retention state of the core that returns to the caller (DEN0022, 5.4.2,
/// original format). In the binding, the residency includes the time to enter the state.
fn write_idle_states(w: &mut Writer<'_>, states: &[IdleState]) -> Result<(), BufferTooSmall> {
    w.begin_node("idle-states")?;
    w.strings("entry-method", &["psci"])?;
    for (number, state) in (0..).zip(states.iter().take(MOST_STATES)) {
        let mut name = *b"standby-0";
        name[8] = hex_digit(number as usize);
        let name = core::str::from_utf8(&name).unwrap_or_default();
        // The first state, usually the only one, needs no number.
        w.begin_node(if number == 0 { "standby" } else { name })?;
        w.strings("compatible", &["arm,idle-state"])?;
        w.cells("arm,psci-suspend-param", &[number])?;
        w.cells("entry-latency-us", &[ENTRY_US])?;
        w.cells("exit-latency-us", &[state.exit_us])?;
        w.cells("min-residency-us", &[state.residency_us])?;
        w.cells("phandle", &[STATES_PHANDLE + number])?;
        w.end_node()?;
    }
    w.end_node()
}

fn write_serial(w: &mut Writer<'_>, uart: Uart) -> Result<(), BufferTooSmall> {
    w.begin_node("clock")?;
    w.strings("compatible", &["fixed-clock"])?;
    w.cells("#clock-cells", &[0])?;
    w.cells("clock-frequency", &[24_000_000])?;
    w.cells("phandle", &[CLOCK_PHANDLE])?;
    w.end_node()?;
    w.begin_node("serial")?;
    let registers = Region {
        base: uart.base,
        size: UART_SIZE,
    };
    w.regions("reg", [registers].into_iter())?;
    let compatible = uart.kind.compatible();
    match uart.kind {
        UartKind::Pl011 => {
            w.strings("compatible", &[compatible, "arm,primecell"])?;
            w.cells("clocks", &[CLOCK_PHANDLE, CLOCK_PHANDLE])?;
            w.strings("clock-names", &["uartclk", "apb_pclk"])?;
        }
        UartKind::Ns16550 { shift, width } => {
            w.strings("compatible", &[compatible])?;
            w.cells("reg-shift", &[u32::from(shift)])?;
            w.cells("reg-io-width", &[u32::from(width)])?;
            w.cells("clocks", &[CLOCK_PHANDLE])?;
        }
        UartKind::Imx | UartKind::Lpuart { .. } | UartKind::Geni | UartKind::Armada3700 => {
            w.strings("compatible", &[compatible])?;
            w.cells("clocks", &[CLOCK_PHANDLE])?;
        }
    }
    // The emulated UART raises no interrupt; the line exists for drivers
    // that insist on one.
    w.cells("interrupts", &[0, 1, LEVEL_HIGH])?;
    w.end_node()
}

fn hex_digit(value: usize) -> u8 {
    b"0123456789abcdef"[value & 15]
}
