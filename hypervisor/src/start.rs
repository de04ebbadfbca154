// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the first Rust instruction to a machine that can run a guest.

use core::fmt;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{CNTFRQ_EL0, CurrentEL, MPIDR_EL1, Readable};
use arch::layout;
use arch::regs::ID_AA64MMFR4_EL1;
use arrayvec::ArrayVec;
use pages::{PAGE, Pool, Use};
use platform::uart::Named;
use platform::{Conduit, Firmware, Platform, Region, Report, carve};
use spin::once::Once;

use crate::memory::{self, EL2_REGIME, GuestMap, HypervisorMap};
use crate::percpu::{PerCpu, Slot};
use crate::{boot, efi, fault, log, pci, say, smp, stage, survey, vcpu, vgic_cpu, vm};

/// What stays of the machine's description once it was read.
pub struct Machine {
    /// As the firmware describes it.
    pub platform: Platform<'static>,
    /// RAM that is the guest's.
    pub guest: Region,
    /// State of each CPU, in the order of `platform.cpus`.
    pub cpus: ArrayVec<&'static PerCpu, { platform::MAX_CPUS }>,
    /// VTTBR_EL2 and VTCR_EL2 of the guest's map.
    pub stage2: (u64, u64),
    /// Frequency of the counter, Hz.
    pub frequency: u64,
}

impl Machine {
    /// `nanoseconds` in ticks of the counter.
    pub fn ticks(&self, nanoseconds: u64) -> u64 {
        (u128::from(nanoseconds) * u128::from(self.frequency) / 1_000_000_000) as u64
    }
}

static MACHINE: Once<Machine> = Once::new();

/// The machine.
///
/// # Panics
/// Panics before [`el2_start`] has read the description.
pub fn machine() -> &'static Machine {
    MACHINE
        .get()
        .expect("the machine is described before anything asks")
}

/// How the firmware is called, as soon as that is known: 1 is SMC, 2 is HVC. Not
/// a lock, because those are exclusive accesses.
static CONDUIT: AtomicU32 = AtomicU32::new(0);

fn note_conduit(conduit: Option<Conduit>) {
    let number = match conduit {
        None => 0,
        Some(Conduit::Smc) => 1,
        Some(Conduit::Hvc) => 2,
    };
    CONDUIT.store(number, Relaxed);
}

fn conduit() -> Option<Conduit> {
    match CONDUIT.load(Relaxed) {
        1 => Some(Conduit::Smc),
        2 => Some(Conduit::Hvc),
        _ => None,
    }
}

/// Makes sure that there is time: every wait of the start ends by the counter.
///
/// # Panics
/// Panics if the counter has no frequency or stands still.
fn check_counter() {
    /// Looks at it: far more than a tick takes on any machine.
    const PATIENCE: u32 = 1_000_000;
    assert!(
        CNTFRQ_EL0.get() != 0,
        "counter: CNTFRQ_EL0 is 0; the firmware has to set it"
    );
    let first = fault::counter();
    let moves = (0..PATIENCE).any(|_| fault::counter() != first);
    assert!(
        moves,
        "counter: CNTPCT_EL0 stands still at {first:#x}; the firmware has to enable the system counter"
    );
}

/// The guest's RAM begins and ends on blocks of stage 2.
const GUEST_ALIGN: u64 = 2 << 20;

/// The most RAM that the guest gets, on machines that have it: more would only
/// take time to prepare.
const GUEST_MOST: u64 = 4 << 30;

/// Bytes of the page pool: page tables, and a slot for each CPU.
fn pool_size(cpus: usize) -> u64 {
    const TABLES: u64 = 64 * PAGE;
    TABLES + (cpus * size_of::<Slot>()) as u64
}

/// What was found out of the machine before it is taken over.
pub struct Found {
    /// The machine.
    pub platform: Platform<'static>,
    /// More of the ACPI tables, where they describe it.
    pub acpi: Option<Acpi>,
    /// The device tree, where the platform refers to it.
    pub tree: Option<Region>,
}

/// What ACPI tables say besides, and where they are.
pub struct Acpi {
    /// What has no place in [`Platform`].
    pub notes: acpi::Notes,
    /// The tables.
    pub tables: ArrayVec<acpi::Listed, { acpi::MAX_LISTED }>,
}

impl Found {
    /// The memory of the description, as far as it is read later.
    fn regions(&self) -> impl Iterator<Item = Region> {
        let tables = self.acpi.iter().flat_map(|acpi| &acpi.tables);
        self.tree.into_iter().chain(tables.map(|table| table.place))
    }
}

/// Why a CPU can't run the hypervisor.
pub enum Unfit {
    /// It was entered at this exception level.
    Level(u64),
    /// It has EL2 only with FEAT_VHE's E2H set.
    NoE2h0,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level(1) => f.write_str(
                "started at EL1, and Rouse needs EL2: on a virtual instance there is \
                 none, take a .metal one; in QEMU add virtualization=on",
            ),
            Self::Level(level) => {
                write!(f, "started at EL{level}, and Rouse needs EL2")
            }
            Self::NoE2h0 => f.write_str(
                "this CPU has no HCR_EL2.E2H=0 (ID_AA64MMFR4_EL1.E2H0), which Rouse needs",
            ),
        }
    }
}

/// Whether this CPU can run the hypervisor.
pub fn fit() -> Result<(), Unfit> {
    let level = CurrentEL.read(CurrentEL::EL);
    if level != 2 {
        return Err(Unfit::Level(level));
    }
    // A signed field: negative where E2H reads as one (DDI 0487K.a, D23.2.82).
    if ID_AA64MMFR4_EL1.get() >> 24 & 0x8 != 0 {
        return Err(Unfit::NoE2h0);
    }
    Ok(())
}

/// Runs on the first CPU with MMU and caches off, on the boot stack.
#[unsafe(no_mangle)]
extern "C" fn el2_start(dtb: u64) -> ! {
    let found = from_tree(dtb);
    take_over(&found)
}

/// As [`el2_start`], for a machine that [`crate::efi`] has described.
#[unsafe(no_mangle)]
extern "C" fn el2_start_described() -> ! {
    take_over(efi::found())
}

/// Runs at another level than EL2, to say so.
#[unsafe(no_mangle)]
extern "C" fn el2_missing(dtb: u64) {
    let mut found = from_tree(dtb);
    open_console(&mut found.platform);
    if let Err(unfit) = fit() {
        say!("refused: {unfit}");
    }
    if let Some(conduit) = found.platform.psci {
        smp::psci(conduit, smp::SYSTEM_OFF, 0, 0, 0);
    }
}

/// The machine as the device tree at `dtb` describes it.
fn from_tree(dtb: u64) -> Found {
    // SAFETY: the boot protocol says that x0 is the device tree's address, and
    // the header's own size field bounds the slice.
    let blob = unsafe { device_tree(dtb) };
    // First what is needed to say that the rest can't be used.
    let report = Report::from_fdt(blob);
    note_conduit(report.psci);
    if let Some(uart) = report.uart {
        // SAFETY: the machine's description names the UART.
        unsafe { log::open(uart) };
    }
    Found {
        platform: Platform::from_fdt(blob).unwrap_or_else(|error| panic!("{error}")),
        acpi: None,
        tree: Some(Region {
            base: dtb,
            size: blob.len() as u64,
        }),
    }
}

/// Starts output on the UART that the boot arguments name, or the description.
fn open_console(platform: &mut Platform<'_>) {
    match Named::from_bootargs(platform.bootargs) {
        Some(Named::Ready(uart)) => platform.uart = Some(uart),
        Some(Named::Pci {
            configuration,
            window,
        }) => {
            // SAFETY: whoever boots the machine names the function, the MMU is
            // off, and nobody else uses PCI.
            let uart = unsafe { pci::enable_uart(configuration, window) };
            platform.uart = uart.or(platform.uart);
        }
        None => {}
    }
    if let Some(uart) = platform.uart {
        // SAFETY: the machine's description names the UART, or whoever boots it.
        unsafe { log::open(uart) };
    }
}

/// Takes the machine over, on the first CPU with MMU and caches off.
fn take_over(found: &Found) -> ! {
    let mut platform = found.platform.clone();
    note_conduit(platform.psci);
    open_console(&mut platform);
    fault::read(platform.bootargs);
    say!("hypervisor {} at EL2", env!("CARGO_PKG_VERSION"));
    say!("base hypervisor {:#x}", layout::base());
    if let Err(unfit) = fit() {
        say!("refused: {unfit}");
        end(platform.psci, smp::SYSTEM_OFF);
    }
    check_counter();
    platform.begin_with(MPIDR_EL1.get() & smp::AFFINITY);
    report(found, &platform);
    let machine = divide(platform, found);
    stage!(
        "memory",
        "guest {:#x}..{:#x}",
        machine.guest.base,
        machine.guest.end()
    );
    // SAFETY: `divide` mapped the image, the boot stack in it included.
    unsafe { memory::enter(&EL2_REGIME) };
    // Not before: it is an exclusive access, which needs cacheable memory.
    let machine = MACHINE.call_once(|| machine);
    log::enable_locking();
    machine.cpus[0].install();
    let audit = memory::audit();
    stage!(
        "mmu",
        "stage 1 on, {} bytes of code, {} that can be written, none both",
        audit.executable,
        audit.writable
    );
    memory::audit_guest(machine.stage2.0, machine.guest);
    // SAFETY: the description is true and `divide` mapped the distributor.
    unsafe { gic::enable_distributor(&machine.platform.gic) }
        .unwrap_or_else(|error| panic!("{error}"));
    prepare(machine.cpus[0]);
    smp::start_others(machine);
    if survey::wanted(machine.platform.bootargs) {
        survey::print(machine, found);
    }
    vm::create(machine);
    run_guest(machine.cpus[0])
}

/// Says what the description is and what of it is not used.
fn report(found: &Found, platform: &Platform<'_>) {
    let from: &dyn fmt::Display = match (&found.tree, platform.described_by) {
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
    if let Some(acpi) = &found.acpi {
        say!("{}", acpi.notes);
    }
}

/// Runs the guest's first vCPU on this CPU.
fn run_guest(cpu: &PerCpu) -> ! {
    fault::before_guest();
    let turned = cpu.vcpu.turn_on(vm::vm().entry, vm::RAM);
    assert!(
        turned.is_ok(),
        "the first vCPU is on before it was turned on"
    );
    stage!("enter", "guest at {:#x}", vm::vm().entry);
    vcpu::wait_for_power()
}

/// Sets up what each CPU has of its own: GIC interfaces, EL2 timer.
fn prepare(cpu: &'static PerCpu) {
    let machine = machine();
    // SAFETY: the description is true, the frames are mapped, and this CPU is
    // the only one that touches its own redistributor before it reports in.
    unsafe { vgic_cpu::prepare(cpu, &machine.platform) }
        .unwrap_or_else(|error| panic!("CPU {:#x}: {error}", cpu.mpidr));
    cpu.set_online();
}

/// Runs on each other CPU, on its own stack, with MMU and caches on.
#[unsafe(no_mangle)]
extern "C" fn el2_start_secondary() -> ! {
    prepare(PerCpu::this());
    vcpu::wait_for_power()
}

/// Divides the RAM between hypervisor and guest and builds the EL2 map.
fn divide(platform: Platform<'static>, found: &Found) -> Machine {
    let image = Region {
        base: layout::base(),
        size: vm::payload().end().next_multiple_of(PAGE) - layout::base(),
    };
    let mut taken: ArrayVec<Region, 40> = platform.reserved.iter().copied().collect();
    taken.push(image);
    taken.extend(found.tree);
    let size = pool_size(platform.cpus.len());
    let free = carve::largest_free(&platform.memory, &taken, PAGE)
        .filter(|free| free.size > size)
        .unwrap_or_else(|| {
            panic!("RAM: no {size} free bytes for the hypervisor; give the machine more memory")
        });
    // From the top, so that the guest's RAM starts on a large boundary.
    let hypervisor = Region {
        base: free.end() - size,
        size,
    };
    taken.push(hypervisor);
    let mut guest =
        carve::largest_free(&platform.memory, &taken, GUEST_ALIGN).unwrap_or_else(|| {
            panic!("RAM: no {GUEST_ALIGN} free bytes for the guest; give the machine more memory")
        });
    guest.size = guest.size.min(GUEST_MOST);
    // What the loader left in the caches must not come over what is written
    // past them from here on.
    pages::clean(hypervisor);
    // SAFETY: free RAM by the description, and taken out of what others get.
    let mut pool = unsafe { Pool::new(hypervisor) };
    let cpus = platform
        .cpus
        .iter()
        .map(|cpu| {
            let slot = pool.take(size_of::<Slot>() as u64) as *mut Slot;
            // SAFETY: fresh pages of the pool, given to this CPU.
            unsafe { Slot::init(slot, cpu.mpidr) }
        })
        .collect();
    let machine = Machine {
        stage2: guest_map(&mut pool, guest),
        frequency: CNTFRQ_EL0.get(),
        platform,
        guest,
        cpus,
    };
    map(&machine, &mut pool, hypervisor, found);
    // What was written with the caches off is in memory; drop what caches may
    // hold of it from before.
    pages::clean(layout::data().into());
    pages::clean(hypervisor);
    machine
}

/// Builds the guest's map: its RAM, and nothing else.
fn guest_map(pool: &mut Pool, ram: Region) -> (u64, u64) {
    let mut map = GuestMap::new(pool);
    map.map_ram(vm::RAM, ram);
    map.registers()
}

/// Builds the EL2 map of everything that the hypervisor uses.
fn map(machine: &Machine, pool: &mut Pool, hypervisor: Region, found: &Found) {
    let platform = &machine.platform;
    let mut map = HypervisorMap::new(pool);
    map.map(layout::text().into(), Use::Execute);
    map.map(layout::rodata().into(), Use::Read);
    map.map(layout::data().into(), Use::Write);
    map.map(
        Region {
            base: layout::payload(),
            size: vm::payload().end() - layout::payload(),
        },
        Use::Read,
    );
    for region in found.regions() {
        map.map(region, Use::Read);
    }
    map.map(hypervisor, Use::Write);
    map.map(machine.guest, Use::Write);
    let guards = machine.cpus.iter().flat_map(|cpu| cpu.guards());
    for guard in guards.chain([boot::stack_guard()]) {
        map.unmap(guard);
    }
    map.map(platform.gic.distributor, Use::Device);
    for frames in &platform.gic.redistributors {
        map.map(*frames, Use::Device);
    }
    if let Some(uart) = platform.uart {
        map.map(
            Region {
                base: uart.base,
                size: PAGE,
            },
            Use::Device,
        );
    }
    map.publish(&EL2_REGIME);
}

/// The device tree at `address`.
///
/// # Safety
/// `address` must be what the loader passed.
pub unsafe fn device_tree(address: u64) -> &'static [u8] {
    let header = address as *const u32;
    // SAFETY: the caller vouches for the address; the header has 40 bytes.
    let (magic, size) = unsafe { (u32::from_be(*header), u32::from_be(*header.add(1))) };
    assert!(magic == 0xd00d_feed, "no device tree at {address:#x}");
    // SAFETY: the tree is `size` bytes long by its own header.
    unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) }
}

/// Ends the machine: PSCI SYSTEM_OFF, and a halt where that does not return.
pub fn stop() -> ! {
    off(smp::SYSTEM_OFF)
}

/// Resets the machine: PSCI SYSTEM_RESET, and a halt where that does not return.
pub fn reset() -> ! {
    off(smp::SYSTEM_RESET)
}

fn off(function: u64) -> ! {
    if log::uses_firmware() {
        efi::shut_down();
    }
    end(conduit(), function)
}

fn end(conduit: Option<Conduit>, function: u64) -> ! {
    if let Some(conduit) = conduit {
        smp::psci(conduit, function, 0, 0, 0);
    }
    loop {
        arch::insn::wfi();
    }
}
