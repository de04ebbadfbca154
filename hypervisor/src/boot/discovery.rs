// SPDX-License-Identifier: MIT OR Apache-2.0
//! Discovers the machine before the hypervisor takes it over, with MMU and caches off or, if UEFI started the image,
//! as firmware left them.

use core::fmt;

use aarch64_cpu::registers::{CNTFRQ_EL0, CurrentEL, HCR_EL2, MIDR_EL1, MPIDR_EL1, Readable};
use arch::place::Place;
use arch::regs::ID_AA64MMFR4_EL1;
use arrayvec::ArrayVec;
use plan::{Arguments, Names};
use platform::uart::Named;
use platform::{AFFINITY, Firmware, Platform, Region, Report, Room, Uart};

use crate::boot::pci;
use crate::console::log;
use crate::machine::memory::pa_space_end;
use crate::machine::power;
use crate::{refuse, say, stage};

/// Findings about the machine, made before the hypervisor takes it over.
pub struct Discovered {
    /// The machine.
    pub platform: Platform<'static>,
    /// Further contents of the ACPI tables, if they describe the machine.
    pub acpi: Option<Acpi>,
    /// The device tree, if the platform refers to it.
    pub tree: Option<Region>,
}

/// Further contents of the ACPI tables, and where the tables are.
pub struct Acpi {
    /// Findings for which [`Platform`] has no field.
    pub notes: acpi::Notes,
    pub tables: ArrayVec<acpi::Listed, { acpi::MAX_LISTED }>,
}

impl Discovered {
    /// Returns the memory that holds the parts of the description that are read later.
    pub fn description_regions(&self) -> impl Iterator<Item = Region> {
        let tables = self.acpi.iter().flat_map(|acpi| &acpi.tables);
        self.tree.into_iter().chain(tables.map(|table| table.place))
    }
}

/// Why a CPU can't run the hypervisor.
pub enum Unfit {
    /// The image was entered at this exception level.
    Level(u64),
    /// Each write of HCR_EL2 needs barriers around it, which the exit code lacks.
    HcrErratum,
    /// The CPU has EL2 only with FEAT_VHE's E2H set.
    NoE2h0,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(level) => {
                write!(
                    f,
                    "started at EL{level}, and Rouse needs EL2, or EL1 for the guest alone"
                )
            }
            Self::HcrErratum => write!(
                f,
                "this CPU is an AmpereOne AC04 (MIDR_EL1 {:#x}), where a write of HCR_EL2 can corrupt translations (erratum AC04_CPU_23), and Rouse writes it in exits; start the guest alone, at EL1",
                MIDR_EL1.get()
            ),
            Self::NoE2h0 => f.write_str(
                "this CPU has no HCR_EL2.E2H=0 (ID_AA64MMFR4_EL1.E2H0, or it reads back as 1), which Rouse needs",
            ),
        }
    }
}

/// The exception level at which the image was entered, if it can run there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// EL1: the image can only run the guest, without a hypervisor.
    El1,
    /// EL2.
    El2,
}

/// MIDR_EL1 without variant and revision: implementer, architecture and part (D23.2.121).
const MODEL: u64 = 0xff0f_fff0;
/// Ampere AC04. Linux applies the workaround to all its revisions.
const AMPERE_AC04: u64 = 0xc00f_ac40;

/// Whether HCR_EL2.E2H, which the entry wrote as 0, reads as 0. On some cores the bit can't be
/// cleared, and no feature register says so.
pub fn is_e2h_clear() -> bool {
    const E2H: u64 = 1 << 34;
    HCR_EL2.get() & E2H == 0
}

/// Returns the exception level at which this CPU runs, if the image can run there.
pub fn find_el() -> Result<Level, Unfit> {
    match CurrentEL.read(CurrentEL::EL) {
        1 => Ok(Level::El1),
        // E2H0 is a signed field: negative where E2H reads as one (DDI 0487K.a, D23.2.82).
        2 if ID_AA64MMFR4_EL1.get() >> 24 & 0x8 != 0 => Err(Unfit::NoE2h0),
        2 if MIDR_EL1.get() & MODEL == AMPERE_AC04 => Err(Unfit::HcrErratum),
        2 => Ok(Level::El2),
        level => Err(Unfit::Level(level)),
    }
}

/// Size of a device tree's header in bytes.
const TREE_HEADER: u64 = 40;
/// Maximum size of a device tree in bytes (Linux, booting.rst).
const TREE_MOST: u32 = 2 << 20;

/// Storage for the lists of the description.
static ROOM: Place<Room> = Place::new(Room::new());

/// Returns the storage for the lists of the description; the running CPU comes first in the list of CPUs.
///
/// # Safety
/// The function must be called only once.
pub unsafe fn take_list_storage() -> &'static mut Room {
    // SAFETY: as the caller promises.
    let room = unsafe { ROOM.take() };
    room.begin_with(MPIDR_EL1.get() & AFFINITY)
        .below(pa_space_end())
}

/// Describes the machine from the device tree at `dtb`.
pub fn from_tree(dtb: u64) -> Discovered {
    let region = |size| Region { base: dtb, size };
    // A loader may have written the tree with its caches on or off. This code reads the tree with the caches off, and
    // later code with them on; cleaning makes both read the same bytes.
    pages::clean(region(TREE_HEADER));
    // SAFETY: the boot protocol says that x0 is the device tree's address.
    let blob = unsafe { device_tree(dtb) }.unwrap_or_else(|error| refuse!("{error}"));
    pages::clean(region(blob.len() as u64));
    // The parts that are needed to report errors in the rest are read first.
    let report = Report::from_fdt(blob, pa_space_end());
    power::note_conduit(report.psci);
    let (arguments, _) = Arguments::<Names>::read(report.bootargs);
    if let Some(uart) = open_named_uart(arguments.uart).or(report.uart) {
        // SAFETY: the machine's description names the UART, or the boot arguments do.
        unsafe { log::start_output(uart) };
    }
    Discovered {
        // SAFETY: each entry path describes the machine once, and each boot takes only one of these paths.
        platform: Platform::from_fdt(blob, unsafe { take_list_storage() })
            .unwrap_or_else(|error| refuse!("{error}")),
        acpi: None,
        tree: Some(Region {
            base: dtb,
            size: blob.len() as u64,
        }),
    }
}

/// Returns the UART that the boot argument `uart` names, ready to be used. The MMU must be off.
pub fn open_named_uart(uart: Option<&str>) -> Option<Uart> {
    match Named::parse(uart?)? {
        Named::Ready(uart) => Some(uart),
        Named::Pci {
            configuration,
            window,
        } => {
            // SAFETY: the boot arguments name the function, the MMU is off,
            // and nothing else uses PCI.
            unsafe { pci::enable_uart(configuration, window) }
        }
    }
}

/// Checks that the hypervisor can use `platform`, on a CPU that entered at `level`. Returns the reason if it
/// can't.
pub fn check_usable(platform: &Platform<'_>, level: Level) -> Result<(), &'static str> {
    if CNTFRQ_EL0.get() == 0 {
        return Err("counter: CNTFRQ_EL0 is 0; the firmware, or what is at EL2, has to set it");
    }
    match platform.lacks() {
        Some(why) if level == Level::El2 => Err(why),
        _ => Ok(()),
    }
}

/// Starts output on the UART that the boot arguments name, or else on the one that the description names.
pub fn open_console(platform: &mut Platform<'_>, uart: Option<&str>) {
    platform.uart = open_named_uart(uart).or(platform.uart);
    if let Some(uart) = platform.uart {
        // SAFETY: the machine's description names the UART, or the boot arguments do.
        unsafe { log::start_output(uart) };
    }
}

/// Prints what kind of description was used, and which parts of it are unused.
pub fn report(discovered: &Discovered, platform: &Platform<'_>) {
    let from: &dyn fmt::Display = match (&discovered.tree, platform.described_by) {
        (Some(tree), _) => &format_args!("device tree at {:#x}", tree.base),
        (None, Firmware::Fdt) => &"device tree by UEFI",
        (None, Firmware::Acpi) => &"ACPI tables by UEFI",
    };
    stage!("describe", "{} CPUs, {from}", platform.cpus.len());
    if platform.cpus_ignored > 0 {
        say!(
            "{} further CPUs are described and left out: {} is the most",
            platform.cpus_ignored,
            platform::MAX_CPUS
        );
    }
    if let Some(acpi) = &discovered.acpi {
        say!("{}", acpi.notes);
    }
}

/// Returns the device tree at `address`.
///
/// # Safety
/// `address` must be the one that the loader passed.
pub unsafe fn device_tree(address: u64) -> Result<&'static [u8], platform::Error> {
    let header = address as *const u32;
    // SAFETY: the caller vouches for the address; the header has 40 bytes.
    let (magic, size) = unsafe { (u32::from_be(*header), u32::from_be(*header.add(1))) };
    if magic != platform::TREE_MAGIC {
        return Err(platform::Error::Malformed(0));
    }
    // A larger size means that the tree is damaged. Reading only a part is enough to report this.
    let size = size.min(TREE_MOST);
    // SAFETY: by its own header, the tree has at least `size` bytes.
    Ok(unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) })
}
