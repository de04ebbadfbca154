// SPDX-License-Identifier: MIT OR Apache-2.0
//! Firmware for tests: it loads the next image, leaves behind all state that firmware may leave,
//! and enters that image as a loader does. docs/bring-up.md lists this state, the words that ask
//! for it, and the rules that allow it.
//!
//! The firmware knows one family of machines, QEMU's `virt`. QEMU passes the image and the words through fw_cfg.
//! For every word, the firmware reads the state back and prints it, and ends the machine if the state is
//! missing.

#![no_std]
#![no_main]

mod cpus;
mod devices;
mod el3;
mod entry;
mod fw_cfg;
mod leftovers;
mod ram;
mod registers;
mod tree;

use core::fmt::{self, Write};
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{Acquire, Release};

use aarch64_cpu::registers::{MPIDR_EL1, Readable};
use arch::place::Place;
use console::Port;
use platform::image::{HEADER, Image};
use platform::{Platform, Room};

use crate::entry::Entry;
use crate::fw_cfg::FwCfg;
use crate::leftovers::Words;
use crate::registers::PATTERN;
use crate::tree::{Changes, Start};

/// Storage for the lists of the machine's description.
static ROOM: Place<Room> = Place::new(Room::new());

/// Start of RAM, where QEMU leaves the device tree for firmware.
const RAM: u64 = 0x4000_0000;
/// RAM of this firmware, for device buffers and for the device tree that the firmware makes.
const SCRATCH: u64 = 0x47c0_0000;
const SCRATCH_SIZE: u64 = 0x40_0000;
/// Parts of the scratch RAM.
const TREE: u64 = SCRATCH + 0x10_0000;
const TREE_SIZE: usize = 0x10_0000;
const LPIS: u64 = SCRATCH + 0x20_0000;
const LPIS_SIZE: u64 = 0x2_0000 + 0x1_0000 * entry::CPUS as u64;
/// Address of the next image.
const IMAGE: u64 = RAM + 0x20_0000;
const IMAGE_HIGH: u64 = 0x5020_0000;
/// Size of the hole between the two banks of RAM; it decides where the second bank begins.
const HOLE: u64 = 0x100_0000;

/// Periods of a watchdog in ticks: one longer than any run, and one shorter.
const LONG: u64 = 1 << 44;
const SOON: u64 = 10_000_000;

/// HCR_EL2: E2H and TGE, and a pattern without these bits. The pattern also lacks virtual SErrors and interrupts,
/// because a CPU that does not mask them would take them at once.
const E2H: u64 = 1 << 34 | 1 << 27;
const HCR: u64 = PATTERN & !E2H & !(7 << 6);
/// SCTLR_EL2: RES1 bits with I and SA; EE; the MMU is off.
const SCTLR: u64 = 0x30c5_0830 | 1 << 12 | 1 << 3;
const EE: u64 = 1 << 25;
/// PSTATE: EL2 with its own stack pointer, and everything masked.
const EL2H: u64 = 9;
const MASKED: u64 = 0xf << 6;
/// PSTATE.PAN: EL2 may not access EL0's memory while E2H is set.
const PAN: u64 = 1 << 22;

/// Data that every CPU needs.
struct BootData {
    platform: Platform<'static>,
    words: Words,
}

/// The machine, once it is known.
static MACHINE: AtomicPtr<BootData> = AtomicPtr::new(ptr::null_mut());

/// Returns the data that every CPU needs.
fn boot_data() -> &'static BootData {
    // SAFETY: `firmware_start` sets it before any other CPU gets here, to data that is never given back.
    unsafe { &*MACHINE.load(Acquire) }
}

/// Writes a line.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => { $crate::print_line(format_args!($($arg)*)) };
}

/// Writes a line that begins with `firmware:`.
fn print_line(text: fmt::Arguments<'_>) {
    let machine = MACHINE.load(Acquire);
    // SAFETY: as in `boot_data`.
    let uart = unsafe { machine.as_ref() }.and_then(|machine| machine.platform.uart);
    if let Some(uart) = uart {
        // SAFETY: the device tree names the UART, and the MMU is off.
        let mut port = unsafe { Port::new(uart) };
        let _ = writeln!(port, "firmware: {text}");
    }
}

/// Reports a failed requirement, and ends the machine.
fn fail(text: fmt::Arguments<'_>) -> ! {
    print_line(text);
    if el3::is_el3() {
        el3::end_machine(0);
    }
    call_psci(SYSTEM_OFF, 0, 0, 0);
    loop {
        arch::insn::wfi();
    }
}

/// Runs on the first CPU, as the first Rust code of this firmware.
#[unsafe(no_mangle)]
extern "C" fn firmware_start() -> ! {
    // SAFETY: this is QEMU's tree; the second word of its header is its size, big-endian.
    let tree = unsafe {
        let size = u32::from_be((RAM as *const u32).add(1).read());
        core::slice::from_raw_parts(RAM as *const u8, size as usize)
    };
    // SAFETY: this runs once.
    let room = unsafe { ROOM.take() };
    let Ok(platform) = Platform::from_fdt(tree, room) else {
        el3::end_machine(0)
    };
    // SAFETY: this RAM belongs to this firmware.
    let source = unsafe { FwCfg::new(SCRATCH) };
    let mut machine = BootData {
        platform,
        words: Words::default(),
    };
    MACHINE.store(&raw mut machine, Release);
    machine.words = read_words(&source);
    let words = machine.words;
    let end = load_image(&source, words);
    let changes = tree_changes(&machine.platform, words);
    // SAFETY: this RAM belongs to this firmware.
    let made = unsafe { core::slice::from_raw_parts_mut(TREE as *mut u8, TREE_SIZE) };
    let size = tree::write_changed_tree(tree, made, &changes);
    let at = tree_base(&machine.platform, &changes, words, end, size as u64);
    // SAFETY: this RAM holds nothing that is needed: QEMU's own tree is not read again, and
    // the next image reads the boot arguments from the new tree.
    unsafe { (at as *mut u8).copy_from(made.as_ptr(), size) };
    say!("device tree at {at:#x}, {size} bytes");
    if words.ram {
        let kept = [
            [image_address(words), end],
            [at, at + size as u64],
            [SCRATCH, SCRATCH + SCRATCH_SIZE],
            [entry::HOME_EL2, entry::image_end().max(entry::HOME_EL2)],
        ];
        say!(
            "left ram: {} MiB of garbage",
            ram::fill_ram(&machine.platform, &kept) >> 20
        );
    }
    start_cpus(&machine, image_address(words), at)
}

/// Sets up this CPU and the others, and enters the image.
fn start_cpus(machine: &BootData, image: u64, tree: u64) -> ! {
    let words = machine.words;
    let first = MPIDR_EL1.get() & platform::AFFINITY;
    cpus::note_first_cpu();
    if el3::is_el3() {
        devices::set_up_distributor(&machine.platform.gic);
        let frame = devices::redistributor_frame(&machine.platform.gic, first);
        el3::set_up_cpu(frame, words);
        entry::release_cpus();
    }
    let others = || {
        machine
            .platform
            .cpus
            .iter()
            .filter(|cpu| cpu.mpidr != first)
    };
    if words.spin_table && !el3::is_el3() {
        for cpu in others() {
            call_psci(CPU_ON, cpu.mpidr, entry::secondary_entry(), 0);
        }
    }
    if words.spis {
        if let Some(uart) = machine.platform.uart {
            devices::dirty_uart(&uart);
        }
        let [enabled, pending, active] = devices::dirty_spis(&machine.platform.gic);
        say!("left spis: enabled {enabled:#x} pending {pending:#x} active {active:#x}");
        require_state(
            "spis",
            enabled == u32::MAX && pending == u32::MAX && active != 0,
        );
    }
    if words.watchdog || words.watchdog_soon {
        let ticks = if words.watchdog { LONG } else { SOON };
        let watchdog = machine.platform.watchdogs.found.first();
        let control = watchdog.map_or(0, |watchdog| devices::start_watchdog(watchdog, ticks));
        say!("left watchdog: WCS {control:#x}");
        require_state("watchdog", control & 1 != 0);
    }
    if words.at_once {
        for cpu in others() {
            cpus::turn_on(cpu.mpidr, image, tree);
        }
    }
    enter_image(image, tree)
}

/// Enters the next image on this CPU, with the state that the words leave in the CPU.
fn enter_image(address: u64, x0: u64) -> ! {
    let machine = boot_data();
    let words = machine.words;
    let mpidr = MPIDR_EL1.get() & platform::AFFINITY;
    dirty_cpu(&machine.platform, words, mpidr);
    let pattern = if words.registers { PATTERN } else { 0 };
    let hcr = if words.registers { HCR } else { 1 << 31 };
    let entry = Entry {
        address,
        x0,
        hcr: if words.e2h { hcr | E2H } else { hcr },
        sctlr: if words.endian { SCTLR | EE } else { SCTLR },
        pstate: entry_pstate(words),
        pattern,
        event: u64::from(words.event),
        stacks: if words.spsel { PATTERN } else { 0 },
    };
    say!("CPU {mpidr:#x} enters {address:#x}: {entry:x?}");
    // SAFETY: the address is that of an image for the boot protocol, or the entry that the image has asked for.
    unsafe { entry::firmware_leave(&entry) }
}

/// Returns PSTATE for the entry into the next image.
fn entry_pstate(words: Words) -> u64 {
    let stack = if words.spsel { EL2H & !1 } else { EL2H };
    let masked = if words.unmasked { 0 } else { MASKED };
    let pan = if words.e2h && registers::has_pan() {
        PAN
    } else {
        0
    };
    stack | masked | pan
}

/// Leaves the state that is private to each CPU.
fn dirty_cpu(platform: &Platform<'_>, words: Words, mpidr: u64) {
    let frame = devices::redistributor_frame(&platform.gic, mpidr);
    if words.lpis {
        let control = devices::dirty_lpis(frame, LPIS, mpidr);
        say!("left lpis: GICR_CTLR {control:#x}");
        require_state("lpis", control & 1 != 0);
    }
    if words.timers {
        let [physical, virtual_, own] = devices::dirty_timers();
        say!("left timers: {physical:#x} {virtual_:#x} {own:#x}");
        require_state("timers", [physical, virtual_, own] == [5; 3]);
    }
    if words.pmu {
        let [control, counting] = devices::dirty_pmu();
        say!("left pmu: PMCR_EL0 {control:#x} PMCNTENSET_EL0 {counting:#x}");
        require_state("pmu", control & 0x39 == 0x39 && counting >> 31 == 1);
    }
    if words.ppis {
        let [enabled, pending, active] = devices::dirty_ppis(frame);
        say!("left ppis: enabled {enabled:#x} pending {pending:#x} active {active:#x}");
        require_state(
            "ppis",
            enabled == u32::MAX && pending >> 16 != 0 && active == u32::MAX,
        );
    }
    if words.priorities {
        let [own, guests] = devices::dirty_priorities();
        say!("left priorities: ICC_AP1R0_EL1 {own:#x} ICH_AP1R0_EL2 {guests:#x}");
        require_state("priorities", own != 0 && guests != 0);
    }
    if words.priorities || words.unmasked {
        devices::mask_interrupts();
    }
    if words.registers {
        let filled = registers::fill_registers();
        say!("left registers: {}", filled.all);
        require_state(filled.empty.unwrap_or(""), filled.empty.is_none());
    }
}

/// Ends the machine unless the state that `word` asks for is `there`: a test must not pass because state is missing.
fn require_state(word: &str, there: bool) {
    if !there {
        fail(format_args!("not left: {word}"));
    }
}

/// Returns the words that QEMU was given on its command line.
fn read_words(source: &FwCfg) -> Words {
    let Some(item) = source.find_file("opt/rouse/leaves") else {
        return Words::default();
    };
    // SAFETY: this RAM belongs to this firmware, and no command line of the emulator is as long as the RAM.
    let text = unsafe {
        source.copy_item(item, TREE);
        core::slice::from_raw_parts(TREE as *const u8, item.size as usize)
    };
    let text = core::str::from_utf8(text).unwrap_or("?");
    Words::parse(text).unwrap_or_else(|word| fail(format_args!("`{word}` is not a leftover")))
}

/// Returns the address of the image.
const fn image_address(words: Words) -> u64 {
    if words.image_high { IMAGE_HIGH } else { IMAGE }
}

/// Loads the next image, and returns the end of its memory.
fn load_image(source: &FwCfg, words: Words) -> u64 {
    let (at, kernel) = (image_address(words), source.kernel_item());
    // SAFETY: nothing uses this RAM; its first bytes are the header.
    let header = unsafe {
        source.copy_item(kernel, at);
        core::slice::from_raw_parts(at as *const u8, HEADER)
    };
    match Image::parse(header) {
        Ok(image) => at + image.span(u64::from(kernel.size)),
        Err(error) => fail(format_args!("the next image {error}")),
    }
}

/// Returns the changes to the device tree that the words ask for.
fn tree_changes(platform: &Platform<'_>, words: Words) -> Changes {
    let start = match (words.spin_table, words.at_once) {
        (true, _) => Start::SpinTable(cpus::spin_table_base()),
        (_, true) => Start::Unchanged,
        _ if el3::is_el3() => Start::Psci,
        _ => Start::Unchanged,
    };
    let ram = platform.memory[0];
    let half = ram.size / 2;
    let banks = words
        .tree_second_bank
        .then_some([[ram.base, half - HOLE], [ram.base + half, half]]);
    let lpis = words.lpis.then_some([LPIS, LPIS_SIZE]);
    // With spin tables, CPUs execute this firmware until they are released.
    let home = [
        arch::layout::base(),
        entry::image_end() - arch::layout::base(),
    ];
    let own = (words.spin_table && !el3::is_el3()).then_some(home);
    Changes {
        start,
        banks,
        reserved: [lpis.unwrap_or_default(), own.unwrap_or_default()],
    }
}

/// Returns the address for the device tree: a multiple of 8, as the boot protocol demands.
fn tree_base(platform: &Platform<'_>, changes: &Changes, words: Words, end: u64, size: u64) -> u64 {
    if words.tree_at_end {
        return (platform.memory[0].end() - size) & !7;
    }
    if words.tree_behind {
        return end.next_multiple_of(8);
    }
    if words.tree_unaligned {
        return SCRATCH - 0x10_0000 + 0x1008;
    }
    match changes.banks {
        Some([_, second]) => second[0],
        None => RAM,
    }
}

/// PSCI functions that QEMU serves.
const SYSTEM_OFF: u64 = 0x8400_0008;
const CPU_ON: u64 = 0xc400_0003;

fn call_psci(function: u64, a: u64, b: u64, c: u64) {
    // SAFETY: PSCI follows the SMC calling convention (DEN0028F, 2.6).
    unsafe {
        core::arch::asm!("smc #0", inlateout("x0") function => _, in("x1") a, in("x2") b,
            in("x3") c, clobber_abi("C"));
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    fail(format_args!("{info}"))
}
