// SPDX-License-Identifier: MIT OR Apache-2.0
//! Splits the machine's RAM between hypervisor and guest, and builds the maps of both.

use aarch64_cpu::registers::{CNTFRQ_EL0, Readable};
use arch::layout;
use pages::{PAGE, Pool, Use};
use platform::carve::{self, Division};
use platform::{Enable, GicV2, Platform, Region};

use crate::boot::discovery::Discovered;
use crate::cpu::percpu::{PerCpu, Slot, boot_stack_guard};
use crate::machine::memory::{EL2_REGIME, GuestMap, HypervisorMap, VMID};
use crate::machine::{Machine, payload, vm};
use crate::neighbour::place;
use crate::refuse;

/// Bytes of a [`Slot`], rounded up to whole pages.
const SLOT: u64 = (size_of::<Slot>() as u64).next_multiple_of(PAGE);
const _: () = assert!(SLOT + PAGE == carve::PER_CPU);

// The packer of the image reads these; see crates/no_std/arch/src/needs.rs.
arch::needs!(
    __needs_fixed = carve::pool(0),
    __needs_per_cpu = carve::PER_CPU,
    __needs_per_neighbour = place::pool_bytes(0),
);

/// Divides the RAM between hypervisor and guest and builds the EL2 map; `neighbours` is the number of KiB that each
/// CPU's neighbour works on, if there are neighbours.
pub fn split_ram(
    platform: Platform<'static>,
    discovered: &Discovered,
    neighbours: Option<u32>,
) -> Machine {
    let image = Region {
        base: layout::base(),
        size: payload::payload().end().next_multiple_of(PAGE) - layout::base(),
    };
    let mut taken = platform.reserved.clone();
    [image]
        .into_iter()
        .chain(discovered.tree)
        .for_each(|region| taken.keep(region));
    let count = platform.cpus.len() as u64;
    let size = carve::pool(count) + neighbours.map_or(0, |kib| count * place::pool_bytes(kib));
    let Division { hypervisor, guest } =
        carve::divide(&platform.memory, &taken, size).unwrap_or_else(|short| refuse!("{short}"));
    // From here on, data is written with the caches off: lines that the loader left in the caches must not overwrite
    // it.
    pages::clean(hypervisor);
    // SAFETY: the description says that this RAM is free, and nothing else gets it.
    let mut pool = unsafe { Pool::new(hypervisor) };
    let slots = pool.take(SLOT * platform.cpus.len() as u64);
    let cpus = platform.cpus.iter().enumerate().map(|(n, cpu)| {
        let slot = (slots + n as u64 * SLOT) as *mut Slot;
        // SAFETY: fresh pages of the pool, given to this CPU.
        unsafe { Slot::init(slot, cpu.mpidr) }
    });
    let cpus: &[&PerCpu] = pool.fill(cpus);
    if let Some(kib) = neighbours {
        for cpu in cpus {
            cpu.set_tenant(place::make_neighbour(&mut pool, kib));
        }
    }
    let (stage2, closed) = build_guest_map(&mut pool, guest, platform.gic.version2.as_ref());
    let machine = Machine {
        stage2,
        closed,
        frequency: CNTFRQ_EL0.get(),
        platform,
        guest,
        cpus,
    };
    build_el2_map(&machine, &mut pool, hypervisor, discovered);
    // Writes with the caches off went to memory, so older copies are dropped from the caches.
    // `memory::enable_translation` does this last for the image's own variables.
    pages::clean(hypervisor);
    machine
}

/// Returns the words through which a loader's spin tables release CPUs, except any in the guest's
/// RAM; loaders should reserve the memory of these words.
fn spin_table_words(machine: &Machine) -> impl Iterator<Item = Region> {
    let words = machine
        .platform
        .cpus
        .iter()
        .filter_map(|cpu| match cpu.enable {
            Enable::SpinTable(base) => Some(Region { base, size: 8 }),
            Enable::Psci | Enable::Held => None,
        });
    words.filter(|word| !word.overlaps(&machine.guest))
}

/// Builds the guest's map, which contains the guest's RAM and, with a GICv2, the CPU's GICV. Returns
/// VTTBR_EL2 and VTCR_EL2, and VTTBR_EL2 of the map without GICV.
fn build_guest_map(pool: &mut Pool, ram: Region, version2: Option<&GicV2>) -> ((u64, u64), u64) {
    let gicv = version2.and_then(|version2| version2.virt);
    let spare = gicv.map(|_| pool.take(PAGE));
    let mut map = GuestMap::new(pool);
    map.map_ram(vm::RAM, ram);
    // No RAM is in the block of level 1 that the interface is in, so the two maps share all other blocks.
    let closed = spare.map(|spare| map.copy_root(spare, VMID));
    if let Some([_, gicv]) = gicv {
        map.map_device(vm::INTERFACE.base, gicv);
    }
    let stage2 = map.stage2_registers(VMID);
    (stage2, closed.unwrap_or(stage2.0))
}

/// Builds the EL2 map of everything that the hypervisor uses.
fn build_el2_map(machine: &Machine, pool: &mut Pool, hypervisor: Region, discovered: &Discovered) {
    let platform = &machine.platform;
    let mut map = HypervisorMap::new(pool);
    map.map(layout::text().into(), Use::Execute);
    map.map(layout::rodata().into(), Use::Read);
    map.map(layout::data().into(), Use::Write);
    map.map(
        Region {
            base: layout::payload(),
            size: payload::payload().end() - layout::payload(),
        },
        Use::Read,
    );
    for region in discovered.description_regions() {
        map.map(region, Use::Read);
    }
    map.map(hypervisor, Use::Write);
    map.map(machine.guest, Use::Write);
    let guards = machine.cpus.iter().flat_map(|cpu| cpu.guard_pages());
    for guard in guards.chain([boot_stack_guard()]) {
        map.unmap(guard);
    }
    map.map(platform.gic.distributor, Use::Device);
    if let Some(GicV2 { gicc, virt }) = platform.gic.version2 {
        let gich = virt.map(|[gich, _]| gich);
        [gicc]
            .into_iter()
            .chain(gich)
            .for_each(|frames| map.map(frames, Use::Device));
    }
    for frames in platform.gic.redistributors {
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
    for word in spin_table_words(machine) {
        map.map(word, Use::Write);
    }
    map.fill_regime(&EL2_REGIME);
}
