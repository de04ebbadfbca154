// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares the machine, from the first Rust instruction on, and runs the image's program.

use aarch64_cpu::registers::{MPIDR_EL1, Readable};
use arch::layout;
use arch::place::Place;
use arrayvec::ArrayVec;
use pages::{PAGE, Pool, Use};
use plan::{Arguments, Names, Program};
use platform::uart::Named;
use platform::{Enable, MAX_WATCHDOGS, Platform, Region, Room, carve};

use crate::machine::{self, HOLE};
use crate::{
    atomics, clock, exits, gicv2, hypervisor, kernel, memory, output, percpu, planted, pmu, report,
    smp, stage, vectors,
};

/// Storage for the lists of the machine's description.
static ROOM: Place<Room> = Place::new(Room::new());

/// Maximum number of pages in which loaders put the words of spin tables.
const MAX_WORD_PAGES: usize = 8;

/// The main function of a program; it runs when all CPUs run, and returns the exit status.
pub type Run = fn(&Arguments<'static>, &mut Pool) -> u64;

/// Runs on the first CPU with MMU and caches off, on the boot stack: sets everything up, calls
/// `run`, and ends the machine when `run` returns.
///
/// # Panics
/// Panics if the machine's description lacks something that this kernel needs.
pub fn run_first_cpu(dtb: u64, program: Program, run: Run) -> ! {
    // SAFETY: by the boot protocol x0 is the device tree's address, and the header's own size field bounds the slice.
    let blob = unsafe { device_tree(dtb) };
    // SAFETY: this runs once.
    let room = unsafe { ROOM.take() };
    room.begin_with(MPIDR_EL1.get() & platform::AFFINITY);
    let mut platform = Platform::from_fdt(blob, room).unwrap_or_else(|error| panic!("{error}"));
    // The arguments may name a console that the platform lacks. Errors in the arguments are reported once there is a console.
    let (told, _) = Arguments::<Names>::read(platform.bootargs);
    if let Some(Named::Ready(uart)) = told.uart.and_then(Named::parse) {
        platform.uart = Some(uart);
    }
    if let Some(version2) = &mut platform.gic.version2 {
        // SAFETY: the description names the interfaces, which were checked to be outside of RAM, and the MMU is off.
        *version2 = unsafe { gic::version2::find_pages(*version2) };
        // SAFETY: MMU and caches are off, the other CPUs are off or held, and a loader puts an image into writable RAM.
        unsafe { arch::gicv2::adapt() };
        arch::gicv2::REGISTERS.set_access(gicv2::access_register);
    }
    let tree = Region {
        base: dtb,
        size: blob.len() as u64,
    };
    let monitor = platform::monitor(blob);
    let watchdogs = stop_watchdogs(&platform, told.keep_watchdogs);
    let mut pool = enable_translation(&platform, tree, monitor);
    // SAFETY: the description names the UART, `enable_translation` mapped it, and no other CPU runs yet.
    unsafe { atomics::check_first_cpu(&platform) };
    let platform = machine::set_platform(platform);
    if let Some(uart) = platform.uart {
        // SAFETY: the description names the UART, and `enable_translation` mapped it.
        unsafe { output::open(uart) };
    }
    output::print(format_args!("rouse: base guest {:#x}", layout::base()));
    for (control, state) in watchdogs {
        output::print(format_args!("rouse: watchdog {control:#x}: {state}"));
    }
    stage!("guest-mmu", "{} CPUs", platform.cpus.len());
    hypervisor::discover(platform.psci, platform.hypervisor);
    if let Some(call) = hypervisor::print_function() {
        output::send_by_call(call);
    }
    if let Some(other) = platform::other_monitor(blob) {
        output::print(format_args!(
            "rouse: refused: monitor: it has {other}, and this guest needs {}; use the monitor of the guest's tree",
            platform::MONITOR
        ));
        hypervisor::end_machine(2);
    }
    if let Some(page) = monitor {
        // SAFETY: the description names the page, and `enable_translation` mapped it.
        unsafe { exits::use_monitor(page) };
    }
    percpu::create(&mut pool, platform.cpus.iter().map(|cpu| cpu.mpidr));
    kernel::create_kernel(&mut pool, platform.cpus.len());
    // SAFETY: the description is true, its devices are mapped, and no other CPU
    // runs yet.
    unsafe { gic::enable_distributor(&platform.gic) }.unwrap_or_else(|error| panic!("{error}"));
    pmu::detect_pmu(|access| vectors::catch_exception(access).is_none());
    smp::prepare_cpu();
    if Arguments::parse(platform.bootargs).is_ok_and(|arguments| arguments.checkpoint) {
        simulator::checkpoint();
    }
    // This test precedes the start of the other CPUs, and follows the checkpoint and the start of
    // this CPU's PMU. A simulator may take these two for the end of the boot: it then continues with
    // cores of another model, on which the counter counts something else.
    clock::counts_instructions();
    smp::start_others();
    let mut arguments = Arguments::parse(platform.bootargs).unwrap_or_else(|wrong| give_up(&wrong));
    if platform.psci.is_none() && has_standby(&arguments) {
        give_up(
            &"states: a standby state needs PSCI, and this machine has none; use states poll+wfi",
        );
    }
    if let Err(wrong) = arguments.fit(program) {
        give_up(&wrong);
    }
    if let Some(wrong) = planted::read_arguments(&arguments) {
        give_up(&wrong);
    }
    if let Err(wrong) = hypervisor::record_named(&arguments) {
        give_up(&wrong);
    }
    if let Err(wrong) = atomics::check_request(&mut arguments) {
        give_up(&wrong);
    }
    clock::cycles::record_simulated_clock(arguments.core_mhz.unwrap_or(0));
    let cpus = percpu::online().count();
    stage!("measure", "{cpus} CPUs run, counter {}", clock::now());
    report::report_machine(&arguments);
    hypervisor::end_machine(run(&arguments, &mut pool))
}

/// Stops the generic watchdogs that a loader left running, with the MMU off: on the bare machine,
/// nothing has stopped them before. The watchdogs that are found are reported once there is a console.
fn stop_watchdogs(
    platform: &Platform<'_>,
    keep: bool,
) -> ArrayVec<(u64, watchdog::State), MAX_WATCHDOGS> {
    let found = platform.watchdogs.found.iter();
    let ours = found.filter(|watchdog| !keep && platform.why_not(watchdog).is_none());
    ours.map(|watchdog| {
        // SAFETY: the description names the frame for this side, no other device in use has this frame, and the MMU is
        // off.
        let state = unsafe { watchdog::stop(watchdog.control) };
        (watchdog.control, state)
    })
    .collect()
}

/// Whether a governor may choose a state that is entered through PSCI.
fn has_standby(arguments: &Arguments<'_>) -> bool {
    let lists = &arguments.plan.lists;
    let mut waits = lists.wait.values.iter();
    let mut states = lists.states.values.iter();
    waits.any(|wait| wait.governor().is_some()) && states.any(|states| states.slow_exit_us(1) > 0)
}

/// Ends the machine because of its boot arguments; a hypervisor, if there is one that can check
/// them, has refused them already.
fn give_up(wrong: &dyn core::fmt::Display) -> ! {
    output::print(format_args!("rouse: refused: boot arguments: {wrong}"));
    hypervisor::end_machine(2)
}

/// Turns translation on, and returns the free memory.
fn enable_translation(platform: &Platform<'_>, tree: Region, monitor: Option<Region>) -> Pool {
    let image = Region::from(layout::base()..layout::data().end);
    let words = spin_table_pages(platform);
    let mut taken = platform.reserved.clone();
    let regions = words.iter().copied().chain([image, tree]);
    regions.for_each(|region| taken.keep(region));
    let free = carve::largest_free(&platform.memory, &taken, PAGE)
        .unwrap_or_else(|| panic!("RAM: no free page for the guest"));
    // SAFETY: the description says that this RAM is free.
    let mut pool = unsafe { Pool::new(free) };
    let [below_guard, above_guard] = memory::data_regions();
    let devices = |region: Region| (region, Use::Device);
    let frames = platform.gic.redistributors.iter().copied().map(devices);
    let uart = platform.uart.map(|uart| Region {
        base: uart.base,
        size: PAGE,
    });
    let regions = [
        (layout::text().into(), Use::Execute),
        (layout::rodata().into(), Use::Read),
        (below_guard, Use::Write),
        (above_guard, Use::Write),
        (tree, Use::Read),
        (free, Use::Write),
        devices(platform.gic.distributor),
    ];
    let interface = platform.gic.version2.map(|version2| devices(version2.gicc));
    let words = words.into_iter().map(|page| (page, Use::Write));
    let regions = regions
        .into_iter()
        .chain(frames)
        .chain(interface)
        .chain(words);
    let regions = regions.chain([uart, monitor].into_iter().flatten().map(devices));
    // The hole is not mapped on machines that have memory there.
    let is_hole = !platform.memory.iter().any(|bank| bank.overlaps(&HOLE));
    let regions = regions.chain(is_hole.then_some(devices(HOLE)));
    // SAFETY: the regions include the image, its data with the stack, and the pool.
    unsafe { memory::enable_translation(&mut pool, regions) };
    pool
}

/// Returns the pages with the words of spin tables, to be mapped. Some, such as the tree's, may be mapped already.
fn spin_table_pages(platform: &Platform<'_>) -> ArrayVec<Region, MAX_WORD_PAGES> {
    let mut pages = ArrayVec::<Region, MAX_WORD_PAGES>::new();
    for cpu in platform.cpus {
        let Enable::SpinTable(word) = cpu.enable else {
            continue;
        };
        let page = Region {
            base: word & !(PAGE - 1),
            size: PAGE,
        };
        if !pages.contains(&page) {
            pages.try_push(page).unwrap_or_else(|_| {
                panic!("device tree: spin tables of more than {MAX_WORD_PAGES} pages")
            });
        }
    }
    pages
}

/// Returns the device tree at `address`, after making memory and caches agree on it, because memory is
/// read now and caches are used later. A loader may have written the tree with its caches on or off.
///
/// # Safety
/// `address` must be the one that the loader passed.
unsafe fn device_tree(address: u64) -> &'static [u8] {
    /// Bytes of the tree's header.
    const HEADER: u64 = 40;
    let clean = |size| {
        pages::clean(Region {
            base: address,
            size,
        });
    };
    clean(HEADER);
    let header = address as *const u32;
    // SAFETY: the caller vouches for the address; the header has 40 bytes.
    let (magic, size) = unsafe { (u32::from_be(*header), u32::from_be(*header.add(1))) };
    assert!(magic == 0xd00d_feed, "no device tree at {address:#x}");
    clean(u64::from(size));
    // SAFETY: by its own header, the tree is `size` bytes long.
    unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) }
}
