// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds the guest's device tree (Devicetree Specification, release 0.4, and the bindings of Linux,
//! Documentation/devicetree/bindings/).

use std::ops::Range;

use vm_fdt::{Error, FdtWriter};

use crate::layout::{
    CONSOLE, CONSOLE_SIZE, CONSOLE_SPI, CPU_INTERFACE, CPU_INTERFACE_SIZE, DISTRIBUTOR,
    DISTRIBUTOR_SIZE, EXITS, EXITS_SIZE, RAM, REDISTRIBUTOR_SIZE, REDISTRIBUTORS,
};

/// The GIC's phandle, by which other nodes refer to it.
const GIC_PHANDLE: u32 = 1;
/// Rate of the console's clock in Hz; nothing depends on it.
const CLOCK_HZ: u32 = 1_843_200;
/// Size of a PL011's registers in bytes, and its interrupt on QEMU's `virt`, as an SPI number.
const PL011_SIZE: u64 = 0x1000;
const PL011_SPI: u32 = 1;
/// Rate of the PL011's clock in Hz, and the clock's phandle.
const PL011_HZ: u32 = 24_000_000;
const CLOCK: u32 = 2;
/// Values from the GIC's binding: shared and private interrupts, edge and level.
const SPI: u32 = 0;
const PPI: u32 = 1;
const EDGE: u32 = 1;
const LEVEL: u32 = 4;
/// Private interrupts of the timers, in the order of the binding: secure, physical, virtual, EL2. A guest without EL2
/// never sees the last of these. KVM uses the middle two (Documentation/virt/kvm/devices/vcpu.rst, 2.1).
const TIMERS: [u32; 4] = [13, 14, 11, 10];

/// The machine that the tree describes.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// The affinity of each CPU, as in its MPIDR_EL1.
    pub cpus: &'a [u64],
    /// The version of the machine's GIC.
    pub gic: Gic,
    /// Size of RAM in bytes.
    pub memory: u64,
    /// The boot arguments.
    pub arguments: &'a str,
    /// Address range of the initial RAM disk, if there is one.
    pub initrd: Option<Range<u64>>,
    /// Seed of the kernel's random numbers, if it is fixed.
    pub seed: Option<u64>,
    /// Whether the guest can read its vCPUs' exit counts.
    pub exits: bool,
    /// The console, at [`CONSOLE`].
    pub console: Console,
    /// The name of the hypervisor, if the hypervisor does not answer a call for its name.
    pub hypervisor: Option<&'a str>,
}

/// The version of a GIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gic {
    /// A GICv2, with a memory-mapped CPU interface.
    V2,
    /// A GICv3, with a redistributor for each CPU.
    #[default]
    V3,
}

impl Gic {
    const fn compatible(self) -> &'static str {
        match self {
            Self::V2 => "arm,gic-400",
            Self::V3 => "arm,gic-v3",
        }
    }
}

/// The kind of a console.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Console {
    /// A 16550, which the monitor emulates.
    #[default]
    Ns16550,
    /// QEMU's PL011, which a hypervisor passes through.
    Pl011,
}

/// Builds the tree as a blob.
///
/// # Errors
/// The boot arguments contain a zero byte.
pub fn blob(guest: &Guest<'_>) -> Result<Vec<u8>, Error> {
    let mut tree = FdtWriter::new()?;
    let root = tree.begin_node("")?;
    tree.property_string("compatible", "linux,dummy-virt")?;
    tree.property_u32("#address-cells", 2)?;
    tree.property_u32("#size-cells", 2)?;
    tree.property_u32("interrupt-parent", GIC_PHANDLE)?;
    let chosen = tree.begin_node("chosen")?;
    tree.property_string("bootargs", guest.arguments)?;
    tree.property_string("stdout-path", &format!("/serial@{CONSOLE:x}"))?;
    if let Some(initrd) = &guest.initrd {
        tree.property_u64("linux,initrd-start", initrd.start)?;
        tree.property_u64("linux,initrd-end", initrd.end)?;
    }
    if let Some(seed) = guest.seed {
        // The kernel hashes the property, so different seeds only have to give different values.
        tree.property_u64("rng-seed", seed)?;
    }
    tree.end_node(chosen)?;
    let memory = tree.begin_node(&format!("memory@{RAM:x}"))?;
    tree.property_string("device_type", "memory")?;
    tree.property_array_u64("reg", &[RAM, guest.memory])?;
    tree.end_node(memory)?;
    add_cpus(&mut tree, guest.cpus)?;
    let psci = tree.begin_node("psci")?;
    let names = ["arm,psci-1.0", "arm,psci-0.2"];
    tree.property_string_list("compatible", names.map(String::from).to_vec())?;
    tree.property_string("method", "hvc")?;
    tree.end_node(psci)?;
    add_devices(&mut tree, guest.gic, guest.cpus.len())?;
    add_console(&mut tree, guest.console)?;
    if let Some(name) = guest.hypervisor {
        let hypervisor = tree.begin_node("hypervisor")?;
        tree.property_string("compatible", name)?;
        tree.end_node(hypervisor)?;
    }
    if guest.exits {
        let exits = tree.begin_node(&format!("exits@{EXITS:x}"))?;
        tree.property_string("compatible", platform::MONITOR)?;
        tree.property_array_u64("reg", &[EXITS, EXITS_SIZE])?;
        tree.end_node(exits)?;
    }
    tree.end_node(root)?;
    tree.finish()
}

fn add_cpus(tree: &mut FdtWriter, affinities: &[u64]) -> Result<(), Error> {
    let cpus = tree.begin_node("cpus")?;
    tree.property_u32("#address-cells", 2)?;
    tree.property_u32("#size-cells", 0)?;
    for &affinity in affinities {
        let cpu = tree.begin_node(&format!("cpu@{affinity:x}"))?;
        tree.property_string("device_type", "cpu")?;
        tree.property_string("compatible", "arm,armv8")?;
        tree.property_string("enable-method", "psci")?;
        tree.property_u64("reg", affinity)?;
        tree.end_node(cpu)?;
    }
    tree.end_node(cpus)
}

/// Adds the devices that KVM and this program emulate for `cpus` CPUs.
fn add_devices(tree: &mut FdtWriter, version: Gic, cpus: usize) -> Result<(), Error> {
    let gic = tree.begin_node(&format!("intc@{DISTRIBUTOR:x}"))?;
    tree.property_string("compatible", version.compatible())?;
    tree.property_null("interrupt-controller")?;
    tree.property_u32("#interrupt-cells", 3)?;
    let interfaces = match version {
        Gic::V2 => [CPU_INTERFACE, CPU_INTERFACE_SIZE],
        Gic::V3 => [REDISTRIBUTORS, cpus as u64 * REDISTRIBUTOR_SIZE],
    };
    tree.property_array_u64(
        "reg",
        [[DISTRIBUTOR, DISTRIBUTOR_SIZE], interfaces].as_flattened(),
    )?;
    tree.property_phandle(GIC_PHANDLE)?;
    tree.end_node(gic)?;
    let timer = tree.begin_node("timer")?;
    tree.property_string("compatible", "arm,armv8-timer")?;
    tree.property_null("always-on")?;
    let interrupts = TIMERS.map(|number| [PPI, number, LEVEL]);
    tree.property_array_u32("interrupts", interrupts.as_flattened())?;
    tree.end_node(timer)
}

fn add_console(tree: &mut FdtWriter, kind: Console) -> Result<(), Error> {
    let console = tree.begin_node(&format!("serial@{CONSOLE:x}"))?;
    match kind {
        Console::Ns16550 => {
            tree.property_string("compatible", "ns16550a")?;
            tree.property_array_u64("reg", &[CONSOLE, CONSOLE_SIZE])?;
            tree.property_array_u32("interrupts", &[SPI, CONSOLE_SPI, EDGE])?;
            tree.property_u32("clock-frequency", CLOCK_HZ)?;
        }
        Console::Pl011 => {
            let names = ["arm,pl011", "arm,primecell"];
            tree.property_string_list("compatible", names.map(String::from).to_vec())?;
            tree.property_array_u64("reg", &[CONSOLE, PL011_SIZE])?;
            tree.property_array_u32("interrupts", &[SPI, PL011_SPI, LEVEL])?;
            // Linux's driver requires both clocks (arm,primecell.yaml, arm,pl011.yaml).
            tree.property_array_u32("clocks", &[CLOCK, CLOCK])?;
            let names = ["uartclk", "apb_pclk"];
            tree.property_string_list("clock-names", names.map(String::from).to_vec())?;
        }
    }
    tree.end_node(console)?;
    match kind {
        Console::Ns16550 => Ok(()),
        Console::Pl011 => add_clock(tree),
    }
}

/// Adds the clock of a PL011.
fn add_clock(tree: &mut FdtWriter) -> Result<(), Error> {
    let clock = tree.begin_node("clock")?;
    tree.property_string("compatible", "fixed-clock")?;
    tree.property_u32("#clock-cells", 0)?;
    tree.property_u32("clock-frequency", PL011_HZ)?;
    tree.property_phandle(CLOCK)?;
    tree.end_node(clock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::{Conduit, Platform, Region, UartKind};

    const GUEST: Guest<'_> = Guest {
        cpus: &[0],
        gic: Gic::V3,
        memory: 0x1000_0000,
        arguments: "",
        initrd: None,
        seed: None,
        exits: true,
        console: Console::Ns16550,
        hypervisor: None,
    };

    /// Parses the tree in the same way as Rouse's own guest.
    #[test]
    fn the_guest_finds_what_it_is_given() {
        let blob = blob(&Guest {
            cpus: &[0, 1, 0x100],
            arguments: "rouse.workload=ipi panic=1",
            exits: false,
            ..GUEST
        })
        .unwrap();
        assert_eq!(platform::monitor(&blob), None);
        let platform = Platform::from_fdt(&blob, Box::leak(Box::default())).unwrap();
        let cpus: Vec<u64> = platform.cpus.iter().map(|cpu| cpu.mpidr).collect();
        assert_eq!(cpus, [0, 1, 0x100]);
        let ram = Region {
            base: RAM,
            size: 0x1000_0000,
        };
        assert_eq!(platform.memory[..], [ram]);
        assert_eq!(platform.psci, Some(Conduit::Hvc));
        assert_eq!(platform.bootargs, "rouse.workload=ipi panic=1");
        let uart = platform.uart.unwrap();
        assert_eq!(uart.base, CONSOLE);
        assert!(matches!(
            uart.kind,
            UartKind::Ns16550 { shift: 0, width: 1 }
        ));
        assert_eq!(platform.gic.distributor.base, DISTRIBUTOR);
        assert_eq!(platform.gic.redistributors[0].base, REDISTRIBUTORS);
        assert_eq!(platform.gic.redistributors[0].size, 3 * REDISTRIBUTOR_SIZE);
    }

    #[test]
    fn the_guest_finds_a_gicv2() {
        let blob = blob(&Guest {
            gic: Gic::V2,
            ..GUEST
        })
        .unwrap();
        let platform = Platform::from_fdt(&blob, Box::leak(Box::default())).unwrap();
        let gicc = Region {
            base: CPU_INTERFACE,
            size: CPU_INTERFACE_SIZE,
        };
        let found = platform.gic.version2.unwrap();
        assert_eq!((found.gicc, found.virt), (gicc, None));
        assert_eq!(platform.gic.distributor.base, DISTRIBUTOR);
    }

    #[test]
    fn the_guest_finds_where_to_ask() {
        let page = Region {
            base: EXITS,
            size: EXITS_SIZE,
        };
        let mut blob = blob(&GUEST).unwrap();
        assert_eq!(platform::monitor(&blob), Some(page));
        assert_eq!(platform::other_monitor(&blob), None);
        // Changes the tree to that of an older monitor.
        let name = platform::MONITOR.as_bytes();
        let at = blob.windows(name.len()).position(|window| window == name);
        blob[at.unwrap() + name.len() - 1] = b'0';
        assert_eq!(platform::monitor(&blob), None);
        assert_eq!(platform::other_monitor(&blob), Some("rouse,kvm-exits-0"));
    }

    #[test]
    fn linux_finds_its_ram_disk_and_its_seed() {
        let blob = blob(&Guest {
            initrd: Some(0x4bff_0000..0x4bff_1234),
            seed: Some(0x1_0000_0002),
            ..GUEST
        })
        .unwrap();
        let has = |bytes: &[u8]| blob.windows(bytes.len()).any(|window| window == bytes);
        for name in ["linux,initrd-start", "linux,initrd-end", "rng-seed"] {
            assert!(has(name.as_bytes()), "{name}");
        }
        for value in [0x4bff_0000, 0x4bff_1234, 0x1_0000_0002u64] {
            assert!(has(&value.to_be_bytes()), "{value:#x}");
        }
        let without = super::blob(&GUEST).unwrap();
        assert!(!without.windows(8).any(|window| window == b"rng-seed"));
        assert!(!without.windows(12).any(|window| window == b"linux,initrd"));
    }

    #[test]
    fn arguments_that_no_tree_can_have_are_refused() {
        let guest = Guest {
            arguments: "a\0b",
            ..GUEST
        };
        assert!(blob(&guest).is_err());
    }
}
