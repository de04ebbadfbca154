// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine as its firmware describes it, in one plain structure.
//!
//! [`Platform::from_fdt`] reads a device tree, the only source of facts about the machine, such as
//! the addresses of RAM, the numbers of CPUs and the kind of UART. [`guest`] writes the device tree for
//! a guest, which shows the guest its own part of the machine and nothing else.
//!
//! The crate touches no register and allocates nothing.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod carve;
pub mod claims;
mod fdt;
pub mod guest;
pub mod image;
pub mod index;
mod lacks;
mod reserved;
mod room;
mod tree;
pub mod uart;
mod watchdog;

use arrayvec::{ArrayString, ArrayVec};
use core::fmt;

pub use claims::{Claims, Unfit};
pub use fdt::{MONITOR, monitor, other_monitor};
pub use reserved::{MAX_RESERVED, Reserved};
pub use room::Room;
pub use tree::{MAGIC as TREE_MAGIC, Node, Tree};
pub use uart::{Uart, UartKind};
pub use watchdog::{MAX_WATCHDOGS, Watchdog, Watchdogs};

/// Maximum number of CPUs used; a machine's further CPUs are ignored. QEMU's `virt` has this limit,
/// too.
pub const MAX_CPUS: usize = 512;

/// Aff3, Aff2, Aff1 and Aff0 of MPIDR_EL1 (DDI 0487K.a, D23.2.98).
pub const AFFINITY: u64 = 0xff_00ff_ffff;

/// A range of physical addresses, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub base: u64,
    /// Number of bytes.
    pub size: u64,
}

impl From<core::ops::Range<u64>> for Region {
    fn from(range: core::ops::Range<u64>) -> Self {
        Self {
            base: range.start,
            size: range.end - range.start,
        }
    }
}

impl Region {
    /// Returns the first address after the region.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.base.saturating_add(self.size)
    }

    /// Whether `address` lies in the region.
    #[must_use]
    pub const fn contains(&self, address: u64) -> bool {
        address >= self.base && address < self.end()
    }

    /// Whether the two regions share an address.
    #[must_use]
    pub const fn overlaps(&self, other: &Region) -> bool {
        self.base < other.end() && other.base < self.end()
    }
}

/// Maximum number of banks of RAM used.
pub const MAX_BANKS: usize = 16;

/// Banks of RAM.
pub type Ram = ArrayVec<Region, MAX_BANKS>;

/// How a CPU is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enable {
    /// PSCI CPU_ON starts the CPU.
    Psci,
    /// Writing the entry address to a physical address, and sending an event, starts the CPU.
    SpinTable(u64),
    /// The CPU entered the image together with the first CPU and is held there.
    Held,
}

/// One CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Affinity fields of MPIDR_EL1 (bits 39:32 and 23:0), which may have any value.
    pub mpidr: u64,
    /// How the CPU is started.
    pub enable: Enable,
}

/// The instruction that calls PSCI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduit {
    /// SMC.
    Smc,
    /// HVC.
    Hvc,
}

/// A GICv2, or a GICv3 or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gic<'a> {
    /// Distributor registers.
    pub distributor: Region,
    /// The mapped CPU interfaces of a GICv2; later versions have system registers instead.
    pub version2: Option<GicV2>,
    /// Ranges of redistributor frames; none in a GICv2.
    pub redistributors: &'a [Region],
    /// Distance between frames if the description gives one. Otherwise, each frame's
    /// GICR_TYPER.VLPIS decides between 0x20000 and 0x40000.
    pub stride: Option<u64>,
    /// INTID of the maintenance interrupt.
    pub maintenance: u32,
}

/// The CPU interfaces of a GICv2 (IHI 0048B, 2.1): each CPU finds its own at these addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GicV2 {
    /// GICC, the physical CPU interface.
    pub gicc: Region,
    /// GICH, with which a hypervisor controls the virtual CPU interface, and GICV, the virtual interface.
    pub virt: Option<[Region; 2]>,
}

impl GicV2 {
    /// Maximum number of CPUs of a GICv2 (IHI 0048B, 1.1).
    pub const MAX_CPUS: usize = 8;

    /// Bytes of a CPU interface whose first page is repeated to fill 64 KiB, so that it can be
    /// mapped in pages of that size; its second page follows.
    pub const REPEATED: u64 = 0x1_1000;
    /// GICC_IIDR and GICV_IIDR (IHI 0048B, 4.4 and 5.5).
    const IIDR: u64 = 0xfc;

    /// Returns the MPIDR of a CPU whose Aff1 and Aff0 equal those of an earlier CPU. An SGI of a GICv2 has no
    /// affinity, and the driver finds its target by these two fields (`arch::gicv2`).
    #[must_use]
    pub fn alike(cpus: &[Cpu]) -> Option<u64> {
        let low = |cpu: &Cpu| cpu.mpidr & 0xffff;
        let is_alike = |n: &usize| cpus[..*n].iter().any(|cpu| low(cpu) == low(&cpus[*n]));
        (1..cpus.len()).find(is_alike).map(|n| cpus[n].mpidr)
    }

    /// Returns the interfaces with the two pages of GICC, and those of GICV, one directly after the other. If
    /// the first page is repeated, its last repetition is used. `read` reads a register at an address.
    #[must_use]
    pub fn with_adjacent_pages(self, read: impl Fn(u64) -> u32) -> Self {
        let adjacent = |all: Region| {
            let last = all.base + 0xf000;
            let is_repeated = || read(all.base + Self::IIDR) == read(last + Self::IIDR);
            let base = match all.size == Self::REPEATED && is_repeated() {
                true => last,
                false => all.base,
            };
            let size = all.size.min(0x2000);
            Region { base, size }
        };
        Self {
            gicc: adjacent(self.gicc),
            virt: self.virt.map(|[gich, gicv]| [gich, adjacent(gicv)]),
        }
    }

    /// Returns the blocks of registers, in the order of the binding.
    pub fn registers(&self) -> impl Iterator<Item = Region> + Clone {
        [self.gicc]
            .into_iter()
            .chain(self.virt.into_iter().flatten())
    }
}

/// INTIDs of the generic timer's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Virtual timer.
    pub virt: u32,
    /// Non-secure EL1 physical timer.
    pub phys: u32,
    /// Non-secure EL2 physical timer; virtual machines without EL2 have no such timer.
    pub hyp: Option<u32>,
}

impl Timer {
    /// Whether one of the timer's interrupts is `intid`.
    #[must_use]
    pub fn has(&self, intid: u32) -> bool {
        self.virt == intid || self.phys == intid || self.hyp == Some(intid)
    }
}

/// A machine. Lists with an entry for each CPU are in a [`Room`], so this struct is small and may
/// be moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform<'a> {
    /// CPUs in the order of the description, after the one that [`Room::begin_with`] named.
    pub cpus: &'a [Cpu],
    /// Number of described CPUs beyond [`MAX_CPUS`].
    pub cpus_ignored: usize,
    /// RAM.
    pub memory: Ram,
    /// Parts of the RAM that are in use.
    pub reserved: Reserved,
    /// Interrupt controller.
    pub gic: Gic<'a>,
    /// Generic timer.
    pub timer: Timer,
    /// Generic watchdogs.
    pub watchdogs: Watchdogs,
    /// Console, if the description names one.
    pub uart: Option<Uart>,
    /// How PSCI is called, if there is PSCI.
    pub psci: Option<Conduit>,
    /// Command line.
    pub bootargs: &'a str,
    /// The description's name of the hypervisor below, if it names one: the tree's
    /// `/hypervisor`, or the FADT's Hypervisor Vendor Identity.
    pub hypervisor: Option<Name>,
    /// The kind of description that was read.
    pub described_by: Firmware,
}

/// A name that firmware gives, of printable ASCII.
pub type Name = ArrayString<32>;

/// Returns `bytes` as a name: up to the first zero, without surrounding spaces, truncated if too
/// long, and with dots in place of unprintable characters. `None` if nothing is left.
#[must_use]
pub fn name(bytes: &[u8]) -> Option<Name> {
    let end = bytes.iter().position(|&byte| byte == 0);
    let text = bytes[..end.unwrap_or(bytes.len())].trim_ascii();
    let mut name = Name::new();
    for &byte in text.iter().take(name.capacity()) {
        let graphic = byte.is_ascii_graphic();
        name.push(if graphic { char::from(byte) } else { '.' });
    }
    (!name.is_empty()).then_some(name)
}

/// The kind of description that firmware gives of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmware {
    /// A flattened device tree.
    Fdt,
    /// ACPI tables.
    Acpi,
}

/// The means to report that a machine can't be used, read even if the rest of its description is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    /// Console, if the description names one.
    pub uart: Option<Uart>,
    /// How PSCI is called to turn off the machine, if that is known.
    pub psci: Option<Conduit>,
    /// The boot arguments; empty without any.
    pub bootargs: &'a str,
}

/// The reason why a description is refused: what is missing or wrong, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The tree's structure is damaged at this offset.
    Malformed(usize),
    /// Version of the format, and the oldest version with which it is compatible; 17 is not in that
    /// range.
    Version(u32, u32),
    /// There is no node of the named kind.
    NoNode(&'static str),
    /// The node lacks the property, or its value does not have the required form.
    Property {
        /// Kind of node.
        node: &'static str,
        /// Property.
        property: &'static str,
    },
    /// A device's registers can't be where they are described.
    Registers {
        /// The device's node.
        node: Name,
        /// Where the registers begin.
        base: u64,
        /// Why the registers can't be there.
        why: Unfit,
    },
    /// Nodes are nested deeper than this.
    TooDeep(usize),
    /// A CPU names an unknown way of starting it.
    EnableMethod,
    /// A CPU is started by a spin table whose address a boot loader has yet to write.
    NoReleaseAddress,
    /// The interrupt controller is a GICv1.
    GicV1,
    /// A machine with a GICv2 describes too many CPUs; this is their number.
    GicV2Cpus(usize),
    /// The interrupt controller is a GICv5.
    GicV5,
    /// Two CPUs of a machine with a GICv2 have the same Aff1 and Aff0; this is the MPIDR of one.
    GicV2Clusters(u64),
    /// The GIC has a status other than `okay`.
    GicOff,
    /// Two CPUs have this MPIDR.
    SharedMpidr(u64),
    /// The named interrupt controller is not supported.
    Controller(Name),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(offset) => write!(
                f,
                "device tree: not a valid flattened device tree: its structure is damaged at offset {offset:#x}"
            ),
            Self::Version(version, oldest) => write!(
                f,
                "device tree: version {version} of the format, compatible with {oldest}, and Rouse reads version 17, \
                 which `dtc -I dtb -O dtb -V 17` makes of 16"
            ),
            Self::NoNode(node) => write!(f, "device tree: no {node} node"),
            Self::Property { node, property } => {
                write!(
                    f,
                    "device tree: {node}: property '{property}' is missing or malformed"
                )
            }
            Self::Registers { node, base, why } => {
                write!(f, "device tree: {node}: reg: {base:#x} {why}")
            }
            Self::TooDeep(most) => {
                write!(f, "device tree: nodes nested more than {most} deep")
            }
            Self::GicV1 => write!(
                f,
                "device tree: the interrupt controller is a GICv1, and Rouse needs a GICv2 or later"
            ),
            Self::GicV2Cpus(cpus) => write!(
                f,
                "device tree: {cpus} CPUs with a GICv2, which has at most {}",
                GicV2::MAX_CPUS
            ),
            Self::GicV2Clusters(mpidr) => write!(
                f,
                "device tree: CPU {mpidr:#x} differs from another one only above Aff1, and with a GICv2 Rouse \
                 needs different Aff1 or Aff0"
            ),
            Self::GicV5 => write!(
                f,
                "device tree: the interrupt controller is a GICv5, and Rouse needs a GICv3 or GICv4"
            ),
            Self::GicOff => write!(
                f,
                "device tree: the GIC has a status other than 'okay': the boot loader has to enable it"
            ),
            Self::SharedMpidr(mpidr) => {
                write!(f, "device tree: cpu: reg: two CPUs have MPIDR {mpidr:#x}")
            }
            Self::Controller(name) => write!(
                f,
                "device tree: the interrupt controller is '{name}', and Rouse needs a GICv2 or later"
            ),
            Self::NoReleaseAddress => write!(
                f,
                "device tree: cpu: spin-table without cpu-release-addr, which a boot loader writes"
            ),
            Self::EnableMethod => write!(
                f,
                "device tree: cpu: enable-method is neither 'psci' nor 'spin-table'"
            ),
        }
    }
}
