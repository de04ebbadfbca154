// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the first Rust instruction to a machine that can measure.

use aarch64_cpu::registers::{MPIDR_EL1, Readable};
use arch::layout;
use arrayvec::ArrayVec;
use pages::{PAGE, Pool, Use};
use plan::Arguments;
use platform::{MAX_CPUS, Platform, Region, carve};
use spin::once::Once;

use crate::percpu::PerCpu;
use crate::soak::Mix;
use crate::{
    bench, checks, cost, hostile, hypervisor, interrupts, kernel, memory, output, percpu, pmu,
    report, smp, soak, stage,
};

static PLATFORM: Once<Platform<'static>> = Once::new();

/// The machine.
///
/// # Panics
/// Panics before [`el1_start`] has read the description.
pub fn platform() -> &'static Platform<'static> {
    PLATFORM
        .get()
        .expect("the machine is described before anything asks")
}

/// Addresses where neither Rouse nor QEMU's `virt` has anything, mapped for the
/// check that says so.
pub const HOLE: Region = Region {
    base: 0x0f00_0000,
    size: PAGE,
};

/// Runs on the first CPU with MMU and caches off, on the boot stack.
#[unsafe(no_mangle)]
extern "C" fn el1_start(dtb: u64) -> ! {
    // SAFETY: the boot protocol says that x0 is the device tree's address, and
    // the header's own size field bounds the slice.
    let blob = unsafe { device_tree(dtb) };
    let mut platform = Platform::from_fdt(blob).unwrap_or_else(|error| panic!("{error}"));
    platform.begin_with(MPIDR_EL1.get() & platform::AFFINITY);
    let tree = Region {
        base: dtb,
        size: blob.len() as u64,
    };
    let mut pool = enter(&platform, tree);
    let platform = PLATFORM.call_once(|| platform);
    if let Some(uart) = platform.uart {
        // SAFETY: the description names the UART, and `enter` mapped it.
        unsafe { output::open(uart) };
    }
    output::line(format_args!("rouse: base guest {:#x}", layout::base()));
    stage!("guest-mmu", "{} CPUs", platform.cpus.len());
    hypervisor::discover(platform.psci);
    let mpidrs: ArrayVec<u64, MAX_CPUS> = platform.cpus.iter().map(|cpu| cpu.mpidr).collect();
    percpu::create(&mut pool, &mpidrs);
    kernel::create(&mut pool, mpidrs.len());
    // SAFETY: the description is true, its devices are mapped, and no other CPU
    // runs yet.
    unsafe { gic::enable_distributor(&platform.gic) }.unwrap_or_else(|error| panic!("{error}"));
    prepare();
    smp::start_others();
    let arguments = Arguments::parse(platform.bootargs).unwrap_or_else(|wrong| refuse(wrong));
    let plan = &arguments.plan;
    stage!("measure", "{} CPUs run", percpu::online().count());
    report::machine(plan.cycles);
    if let Some(check) = arguments.check {
        let failed = checks::run(check, plan);
        report::end(0);
        hypervisor::exit(failed);
    }
    if let Some(which) = arguments.cost {
        cost::run(which, plan);
        report::end(0);
        hypervisor::exit(0);
    }
    let soaks = [(arguments.soak, Mix::All), (arguments.stress, Mix::WakeUps)];
    for (count, mix) in soaks {
        if let Some(count) = count {
            soak(count, mix, &arguments);
        }
    }
    if let Some(class) = arguments.hostile {
        let wrong = hostile::run(class, arguments.seed.unwrap_or(1), plan, &mut pool);
        report::end(0);
        hypervisor::exit(wrong.min(1));
    }
    if let Some(fault) = arguments.fault {
        checks::fail(fault, plan);
    }
    bench::run(plan, &mut pool);
    hypervisor::exit(0)
}

/// Ends the machine, because of its boot arguments; the hypervisor has refused them
/// before, if there is one.
fn refuse(wrong: plan::Error<'_>) -> ! {
    output::line(format_args!("rouse: refused: boot arguments: {wrong}"));
    hypervisor::exit(2)
}

/// Soaks as the boot arguments say, and ends the machine.
fn soak(count: u64, mix: Mix, arguments: &Arguments<'_>) -> ! {
    let done = soak::run(count, arguments.seed.unwrap_or(1), mix, arguments.fault);
    report::end(0);
    if let Err(why) = done {
        output::line(format_args!("soak: {why}"));
    }
    hypervisor::exit(u64::from(done.is_err()))
}

/// Sets up what each CPU has of its own, and lets interrupts in.
pub fn prepare() {
    let cpu = PerCpu::this();
    // SAFETY: the description is true and its devices are mapped.
    unsafe { interrupts::enable(cpu, platform()) };
    pmu::start();
    cpu.set_online();
    arch::insn::unmask_irq();
}

/// Turns translation on; answers the memory that is free.
fn enter(platform: &Platform<'_>, tree: Region) -> Pool {
    let image = Region::from(layout::base()..layout::data().end);
    let mut taken: ArrayVec<Region, 40> = platform.reserved.iter().copied().collect();
    taken.extend([image, tree]);
    let free = carve::largest_free(&platform.memory, &taken, PAGE)
        .unwrap_or_else(|| panic!("RAM: no free page for the guest"));
    // SAFETY: free RAM by the description.
    let mut pool = unsafe { Pool::new(free) };
    let mut regions: ArrayVec<(Region, Use), 24> = ArrayVec::new();
    regions.extend([
        (layout::text().into(), Use::Execute),
        (layout::rodata().into(), Use::Read),
        (layout::data().into(), Use::Write),
        (tree, Use::Read),
        (free, Use::Write),
        (platform.gic.distributor, Use::Device),
        (HOLE, Use::Device),
    ]);
    regions.extend(
        platform
            .gic
            .redistributors
            .iter()
            .map(|&frames| (frames, Use::Device)),
    );
    regions.extend(platform.uart.map(|uart| {
        let registers = Region {
            base: uart.base,
            size: PAGE,
        };
        (registers, Use::Device)
    }));
    // SAFETY: image, stack (in its data) and pool are among the regions.
    unsafe { memory::enter(&mut pool, &regions) };
    pool
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
