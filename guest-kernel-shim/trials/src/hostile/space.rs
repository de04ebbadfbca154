// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries all intermediate physical addresses that do not belong to this guest: the machine's devices, the hypervisor
//! itself and other RAM, and the edges of these.

use abi::Info;
use arrayvec::ArrayVec;
use platform::Region;

use super::attempt::{Outcome, run_attempt, with_simd};
use super::shapes::{self, Kind, Shape};
use super::tally::Tally;
use super::window::{self, As};
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::{hypervisor, percpu};
use sched::random::Random;

/// Devices of QEMU's `virt`, and the addresses before and after them.
const PLACES: [u64; 26] = [
    0,
    0x1000,
    0x0400_0000,
    0x07ff_f000,
    0x0801_0000,
    0x0802_0000,
    0x0808_0000,
    0x0809_f000,
    0x0900_1000,
    EXITS,
    0x0901_1000,
    0x0902_0000,
    0x0903_0000,
    0x0904_0000,
    0x0905_0000,
    0x0907_0000,
    0x0908_0000,
    0x0909_0000,
    0x0a00_0000,
    0x0a00_3e00,
    0x0c00_0000,
    0x0e00_0000,
    0x1000_0000,
    0x3eff_0000,
    0x3f00_0000,
    0x3fff_f000,
];
/// The page of `abi::exits`, which every guest has, and its size: accesses that a syndrome describes
/// are served there, and an access whose size or alignment is not a register's reads zero.
const EXITS: u64 = 0x0901_0000;
const EXITS_SIZE: u64 = 0x1_0000;
/// Number of random addresses.
const RANDOM: usize = 48;
/// The largest RAM that is searched for the hypervisor, in bytes.
const RAM: u64 = 1 << 30;
const BLOCK: u64 = 2 << 20;

/// Whether this guest has memory or a device at `address`.
fn is_of_guest(address: u64) -> bool {
    let platform = platform();
    let devices = platform.gic.redistributors.iter();
    let mut all = platform
        .memory
        .iter()
        .chain(devices)
        .copied()
        .chain([platform.gic.distributor])
        .chain(platform.gic.version2.map(|version2| version2.gicc))
        .chain(platform.uart.map(|uart| Region {
            base: uart.base,
            size: 0x1000,
        }));
    all.any(|region| region.contains(address))
}

/// Returns every address to try.
fn tried_addresses(random: &mut Random) -> impl Iterator<Item = u64> {
    let platform = platform();
    let ram = platform.memory[0];
    let behind = 0x080a_0000 + percpu::all().len() as u64 * 0x2_0000;
    let after_interface = platform.gic.version2.map(|version2| version2.gicc.end());
    let powers = (31..48).flat_map(|n| [1u64 << n, (1 << n) - 0x1000]);
    let search = (0..(RAM - ram.size.min(RAM)) / BLOCK).map(move |n| ram.end() + n * BLOCK);
    let hypervisor = hypervisor::info(Info::Base);
    let random: ArrayVec<u64, RANDOM> = (0..RANDOM)
        .map(|_| random.below(1 << 32) << 16 | random.below(16) << 12)
        .collect();
    PLACES
        .into_iter()
        .chain([
            behind,
            ram.end(),
            hypervisor,
            hypervisor - 0x1000,
            (1 << 48) - 0x1000,
        ])
        .chain(after_interface)
        .chain(powers)
        .chain(search)
        .chain(random)
        .filter(|&address| !is_of_guest(address))
}

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let everything = || {
        for address in tried_addresses(random) {
            for shape in shapes::all() {
                try_access(tally, address, shape, As::Normal);
                if matches!(shape.kind, Kind::Load | Kind::Store) {
                    try_access(tally, address, shape, As::Device);
                }
            }
            try_fetch(tally, address);
        }
        check_own_memory(tally);
    };
    with_simd(|| window::run_with_window(everything));
}

fn try_access(tally: &mut Tally, address: u64, shape: Shape, how: As) {
    let place = window::map_page(address, how);
    // SAFETY: the instruction accesses only the page in the window.
    let outcome = unsafe { run_attempt(shape.code, place, 0) };
    let answered = (EXITS..EXITS + EXITS_SIZE).contains(&address) && outcome.returned();
    let good = answered || is_expected(shape.kind, &outcome, place);
    tally.case(
        good,
        format_args!("{} at IPA {address:#x} as {how:?}: {outcome}", shape.name),
    );
}

/// Whether the outcome is right for an unmapped address: a synchronous external abort with the
/// right direction and address.
pub fn is_expected(kind: Kind, outcome: &Outcome, place: u64) -> bool {
    const WNR: u64 = 1 << 6;
    const CM: u64 = 1 << 8;
    let bits = outcome.trap().map_or(0, |trap| trap.esr & (WNR | CM));
    match kind {
        Kind::Load | Kind::DecodedLoad | Kind::OtherLoad => outcome.abort_at(place) && bits == 0,
        Kind::Store | Kind::DecodedStore | Kind::OtherStore => {
            outcome.abort_at(place) && bits == WNR
        }
        Kind::Atomic => outcome.abort_at(place) && bits & CM == 0,
        Kind::Maintenance => outcome.returned() || outcome.abort_at(place) && bits & CM != 0,
        Kind::Harmless => outcome.returned(),
    }
}

fn try_fetch(tally: &mut Tally, address: u64) {
    let place = window::map_page(address, As::Code);
    // SAFETY: nothing there can be executed.
    let outcome = unsafe { run_attempt(place, 0, 0) };
    let good = outcome.trap().is_some_and(|trap| {
        trap.class() == 0x21 && trap.fault() == 0x10 && trap.far == place && trap.elr == place
    });
    tally.case(good, format_args!("fetch from IPA {address:#x}: {outcome}"));
}

/// Checks that reads of the guest's memory at its address and through the window return equal values.
fn check_own_memory(tally: &mut Tally) {
    let base = arch::layout::base();
    for page in 0..8 {
        let address = base + page * 0x1000;
        let place = window::map_page(address, As::Normal);
        // SAFETY: the two addresses are this kernel's own code, which nothing changes.
        let (here, there) = unsafe {
            (
                (address as *const u64).read_volatile(),
                (place as *const u64).read_volatile(),
            )
        };
        tally.case(here == there, format_args!("own memory at {address:#x}"));
    }
}
