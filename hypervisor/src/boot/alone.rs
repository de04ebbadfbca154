// SPDX-License-Identifier: MIT OR Apache-2.0
//! Starts the guest alone, on a machine that enters the image at EL1.
//!
//! Virtual instances are such machines: another hypervisor runs at EL2. This image is then only a loader for the guest.
//! The image discovers the machine as at EL2, puts the guest into free RAM, writes a device tree of the machine for it,
//! and does not run again. All of this runs with MMU and caches off, which is also the state in which the guest is
//! entered.

use core::slice;

use arch::layout;
use pages::PAGE;
use plan::{Arguments, Names};
use platform::carve::{self, GUEST_ALIGN, GUEST_MOST, Short};
use platform::guest::GuestTree;
use platform::{Enable, Platform, Region};

use crate::boot::discovery::{Discovered, Level, check_usable, from_tree, report};
use crate::boot::start::open_machine;
use crate::boot::{efi, entry, watchdogs};
use crate::machine::latencies;
use crate::machine::payload::{self, Chosen};
use crate::machine::power::turn_machine_off;
use crate::machine::vm::{self, TREE_SIZE};
use crate::{refuse, say, stage};

/// Name of the hypervisor at EL2, if the machine's description does not name it.
const UNKNOWN: &str = "unknown";

/// Runs on the first CPU at EL1, with MMU and caches off, on the boot stack.
#[unsafe(no_mangle)]
extern "C" fn el1_start(dtb: u64) -> ! {
    run_guest(&from_tree(dtb))
}

/// Like [`el1_start`], for a machine that [`efi`] has described.
#[unsafe(no_mangle)]
extern "C" fn el1_start_described() -> ! {
    efi::print_kept_refusal();
    run_guest(efi::description())
}

/// Reports an exception at EL1, where none is expected.
#[unsafe(no_mangle)]
extern "C" fn el1_failed(esr: u64, elr: u64, far: u64) -> ! {
    say!("exception at EL1: ESR {esr:#x}, ELR {elr:#x}, FAR {far:#x}");
    turn_machine_off()
}

/// Loads the guest and starts it.
fn run_guest(discovered: &Discovered) -> ! {
    let (mut platform, arguments, wrong) = open_machine(discovered);
    say!(
        "image {} at EL1: no hypervisor of Rouse, the guest runs alone",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(wrong) = wrong {
        refuse!("boot arguments: {wrong}");
    }
    check_usable(&platform, Level::El1).unwrap_or_else(|why| refuse!("{why}"));
    report(discovered, &platform);
    watchdogs::stop(&platform, arguments.keep_watchdogs);
    if let Some(version2) = &mut platform.gic.version2 {
        // SAFETY: the description names the interfaces, which were checked to be outside of RAM, and the MMU is off.
        *version2 = unsafe { gic::version2::find_pages(*version2) };
    }
    let ram = guest_ram(&platform, discovered);
    // The guest itself leaves out other CPUs that can't run its image.
    payload::note_lse();
    let Chosen {
        image: file,
        initrd,
        choice,
    } = payload::choose_image(arguments.plan.atomics);
    let places = vm::place_images(file, initrd.map_or(0, |initrd| initrd.size), ram);
    let offset = places.image;
    let prepared = [
        Region {
            base: ram.base,
            size: places.loaded.next_multiple_of(PAGE),
        },
        Region::from(ram.base + places.initrd..ram.end()),
    ];
    // A loader may have used the caches: the lines that it left must neither overwrite data that was written with the
    // caches off nor be read later.
    prepared.into_iter().for_each(pages::clean);
    copy_image(file, ram.base + offset);
    let initrd = initrd.map(|initrd| {
        let base = ram.base + places.initrd;
        copy_image(initrd, base);
        Region { base, ..initrd }
    });
    let tree = ram.base + places.tree;
    write_description(&platform, &arguments, ram, initrd, tree);
    prepared.into_iter().for_each(pages::clean);
    let (size, at) = (file.size, ram.base + offset);
    match choice {
        Some(choice) => stage!("guest", "{size} bytes at {at:#x}{choice}"),
        None => stage!("guest", "{size} bytes at {at:#x}"),
    }
    // SAFETY: tree and image were written with the data caches off, after cached lines of their
    // memory had been cleaned and invalidated.
    unsafe { entry::run_guest(tree, ram.base + offset) }
}

/// Returns the RAM that the guest gets.
fn guest_ram(platform: &Platform<'_>, discovered: &Discovered) -> Region {
    let image = Region::from(layout::base()..payload::payload_end().next_multiple_of(PAGE));
    let mut taken = platform.reserved.clone();
    [image]
        .into_iter()
        .chain(discovered.tree)
        .for_each(|region| taken.keep(region));
    let free = carve::largest_free(&platform.memory, &taken, GUEST_ALIGN);
    let free = free.unwrap_or_else(|| refuse!("{}", Short::Guest(GUEST_ALIGN)));
    Region {
        size: free.size.min(GUEST_MOST),
        ..free
    }
}

/// Copies the guest's image in whole words: with the MMU off, all data accesses are to Device
/// memory, which allows no unaligned access (DDI 0487K.a, B2.12.2).
fn copy_image(file: Region, to: u64) {
    for offset in (0..file.size).step_by(size_of::<u64>()) {
        // SAFETY: the packer fills the file's last page, `place_images` has made sure that the RAM is large enough, and
        // both begin at a page boundary.
        unsafe {
            let word = ((file.base + offset) as *const u64).read();
            ((to + offset) as *mut u64).write(word);
        }
    }
}

/// Writes the description of the machine that the guest needs to `tree` in `ram`.
fn write_description(
    platform: &Platform<'_>,
    arguments: &Arguments<'_, Names>,
    ram: Region,
    initrd: Option<Region>,
    tree: u64,
) {
    // SAFETY: this is free RAM: `place_images` has left memory for the tree next to the guest's image.
    let buffer = unsafe { slice::from_raw_parts_mut(tree as *mut u8, TREE_SIZE) };
    let (first, others) = platform.cpus.split_first().expect("it is running");
    let startable = others.iter().filter(|cpu| cpu.enable == Enable::Psci);
    let cpus = [first].into_iter().chain(startable).map(|cpu| cpu.mpidr);
    let left = platform.cpus.len() - cpus.clone().count();
    if left > 0 {
        say!("{left} CPUs are left out: they are not started by PSCI");
    }
    let states = latencies::idle_states(arguments.guest_states.as_ref());
    let tree = GuestTree {
        cpus,
        memory: ram,
        distributor: platform.gic.distributor,
        version2: platform.gic.version2,
        redistributors: platform.gic.redistributors,
        stride: platform.gic.stride,
        uart: platform.uart,
        timer: platform.timer,
        conduit: platform.psci,
        hypervisor: Some(platform.hypervisor.as_deref().unwrap_or(UNKNOWN)),
        described_by: platform.described_by,
        exits: None,
        idle_states: match platform.psci {
            Some(_) => &states,
            None => &[],
        },
        seed: arguments.seed,
        initrd,
        bootargs: plan::guest_part(platform.bootargs),
    };
    if tree.write(buffer).is_err() {
        refuse!(
            "the guest's device tree has more than {TREE_SIZE} bytes; give fewer boot arguments"
        );
    }
}
