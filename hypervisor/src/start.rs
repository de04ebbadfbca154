// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the first Rust instruction to a machine that can run a guest.

use arrayvec::ArrayVec;
use platform::{Platform, Region, carve};
use spin::once::Once;

use crate::memory::{EL2_REGIME, HypervisorMap, PAGE, Pool, Use};
use crate::percpu::{PerCpu, Slot};
use crate::{layout, log, memory, say, smp, stage};

/// What stays of the machine's description once it was read.
pub struct Machine {
    /// As the firmware describes it.
    pub platform: Platform<'static>,
    /// RAM that is the guest's.
    pub guest: Region,
    /// State of each CPU, in the order of `platform.cpus`.
    pub cpus: ArrayVec<&'static PerCpu, { platform::MAX_CPUS }>,
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

/// The guest's RAM begins and ends on blocks of stage 2.
const GUEST_ALIGN: u64 = 2 << 20;

/// Bytes of the page pool: page tables, and a slot for each CPU.
fn pool_size(cpus: usize) -> u64 {
    const TABLES: u64 = 64 * PAGE;
    TABLES + (cpus * size_of::<Slot>()) as u64
}

/// Runs on the first CPU with MMU and caches off, on the boot stack.
#[unsafe(no_mangle)]
extern "C" fn el2_start(dtb: u64) -> ! {
    // SAFETY: the boot protocol says that x0 is the device tree's address, and
    // the header's own size field bounds the slice.
    let blob = unsafe { device_tree(dtb) };
    let platform = Platform::from_fdt(blob).unwrap_or_else(|error| panic!("{error}"));
    if let Some(uart) = platform.uart {
        // SAFETY: the machine's description names the UART.
        unsafe { log::open(uart) };
    }
    say!("hypervisor {} at EL2", env!("CARGO_PKG_VERSION"));
    say!("base hypervisor {:#x}", layout::base());
    stage!(
        "describe",
        "{} CPUs, device tree at {dtb:#x}",
        platform.cpus.len()
    );
    let dtb = Region {
        base: dtb,
        size: blob.len() as u64,
    };
    let machine = MACHINE.call_once(|| divide(platform, dtb));
    stage!(
        "memory",
        "guest {:#x}..{:#x}",
        machine.guest.base,
        machine.guest.end()
    );
    // SAFETY: `divide` mapped the image, the boot stack in it included.
    unsafe { EL2_REGIME.enter() };
    log::enable_locking();
    machine.cpus[0].install();
    stage!("mmu", "stage 1 on, W^X");
    // SAFETY: the description is true and `divide` mapped the distributor.
    unsafe { gic::enable_distributor(&machine.platform.gic) }
        .unwrap_or_else(|error| panic!("{error}"));
    machine.cpus[0].set_online();
    smp::start_others(machine);
    stop()
}

/// Runs on each other CPU, on its own stack, with MMU and caches on.
#[unsafe(no_mangle)]
extern "C" fn el2_start_secondary() -> ! {
    PerCpu::this().set_online();
    loop {
        arch::insn::wfi();
    }
}

/// Divides the RAM between hypervisor and guest and builds the EL2 map.
fn divide(platform: Platform<'static>, dtb: Region) -> Machine {
    let image = Region {
        base: layout::base(),
        size: layout::data_end() - layout::base(),
    };
    let mut taken: ArrayVec<Region, 40> = platform.reserved.iter().copied().collect();
    taken.extend([image, dtb]);
    let size = pool_size(platform.cpus.len());
    let free = carve::largest_free(&platform.memory, &taken, PAGE)
        .filter(|free| free.size > size)
        .unwrap_or_else(|| panic!("RAM: no {size} free bytes for the hypervisor"));
    // From the top, so that the guest's RAM starts on a large boundary.
    let hypervisor = Region {
        base: free.end() - size,
        size,
    };
    taken.push(hypervisor);
    let guest = carve::largest_free(&platform.memory, &taken, GUEST_ALIGN)
        .unwrap_or_else(|| panic!("RAM: no {GUEST_ALIGN} free bytes for the guest"));
    // SAFETY: free RAM by the description, and taken out of what others get.
    let mut pool = unsafe { Pool::new(hypervisor) };
    let cpus = platform
        .cpus
        .iter()
        .enumerate()
        .map(|(index, cpu)| {
            let slot = pool.take(size_of::<Slot>() as u64) as *mut Slot;
            // SAFETY: fresh zeroed pages of the pool, given to this CPU.
            unsafe { Slot::init(slot, index, cpu.mpidr) }
        })
        .collect();
    let machine = Machine {
        platform,
        guest,
        cpus,
    };
    map(&machine, &mut pool, hypervisor, dtb);
    // What was written with the caches off is in memory; drop what caches may
    // hold of it from before.
    memory::clean(layout::data());
    memory::clean(hypervisor);
    machine
}

/// Builds the EL2 map of everything that the hypervisor uses.
fn map(machine: &Machine, pool: &mut Pool, hypervisor: Region, dtb: Region) {
    let platform = &machine.platform;
    let mut map = HypervisorMap::new(pool);
    map.map(layout::text(), Use::Execute);
    map.map(layout::rodata(), Use::Read);
    map.map(layout::data(), Use::Write);
    map.map(dtb, Use::Read);
    map.map(hypervisor, Use::Write);
    map.map(machine.guest, Use::Write);
    for cpu in &machine.cpus {
        map.unmap(cpu.guard());
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
unsafe fn device_tree(address: u64) -> &'static [u8] {
    let header = address as *const u32;
    // SAFETY: the caller vouches for the address; the header has 40 bytes.
    let (magic, size) = unsafe { (u32::from_be(*header), u32::from_be(*header.add(1))) };
    assert!(magic == 0xd00d_feed, "no device tree at {address:#x}");
    // SAFETY: the tree is `size` bytes long by its own header.
    unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) }
}

/// Ends the machine: PSCI SYSTEM_OFF, and a halt where that does not return.
pub fn stop() -> ! {
    if let Some(conduit) = MACHINE.get().and_then(|machine| machine.platform.psci) {
        smp::psci(conduit, smp::SYSTEM_OFF, 0, 0, 0);
    }
    loop {
        arch::insn::wfi();
    }
}
