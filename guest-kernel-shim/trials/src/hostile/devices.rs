// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries the frames of the distributor, of the redistributors and of the UART: every offset, size,
//! alignment and direction, every register as source and destination, and every shape that a
//! syndrome does not describe.

mod version2;

use arch::insn;

use super::attempt::{Outcome, run_attempt};
use super::shapes::{self, Kind, Shape};
use super::stubs;
use super::tally::Tally;
use super::window::{self, As};
use guest_kernel_shim::interrupts;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::{self, PerCpu};
use sched::random::Random;

/// Offset of PIDR2, which reads as 0x3b: GICv3.
const PIDR2: u64 = 0xffe8;
const GICV3: u64 = 0x3b;
/// The size of a GICv2's distributor, its PIDR2, and that register's value.
const VERSION2_FRAME: u64 = 0x1000;
const VERSION2_PIDR2: u64 = 0xfe8;
const GICV2: u64 = 0x2b;
/// Bytes of a redistributor's frames.
const FRAMES: u64 = 0x2_0000;

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let gic = &platform().gic;
    let me = PerCpu::this();
    if let Some(version2) = gic.version2 {
        let base = gic.distributor.base;
        window::run_with_window(|| {
            try_offsets(tally, random, base, VERSION2_FRAME, is_shared);
            restore_devices(me);
            version2::run(tally, random, version2.gicc);
            try_uart(tally, random);
            for offset in [0x100, 0x200, 0x400, VERSION2_PIDR2 & !15] {
                try_shapes(tally, base + offset);
                try_alignments(tally, base + offset);
            }
            try_registers(tally, base + VERSION2_PIDR2, GICV2);
        });
        return restore_devices(me);
    }
    let redistributors = gic.redistributors[0].base;
    let mine = redistributors + me.index as u64 * FRAMES;
    window::run_with_window(|| {
        try_offsets(tally, random, gic.distributor.base, 0x1_0000, is_shared);
        try_offsets(tally, random, mine, FRAMES, |_| false);
        restore_devices(me);
        try_offsets(tally, random, redistributors, FRAMES, is_of_another_cpu);
        try_uart(tally, random);
        for base in [gic.distributor.base, mine + 0x1_0000] {
            for offset in [0x100, 0x200, 0x400, PIDR2 & !15] {
                try_shapes(tally, base + offset);
                try_alignments(tally, base + offset);
            }
        }
        try_registers(tally, gic.distributor.base + PIDR2, GICV3);
        try_registers(tally, mine + PIDR2, GICV3);
        try_absent_cpu(tally, redistributors + percpu::all().len() as u64 * FRAMES);
    });
    restore_devices(me);
}

/// Tries the frame of the UART, except its data register.
fn try_uart(tally: &mut Tally, random: &mut Random) {
    if let Some(uart) = platform().uart {
        try_offsets(tally, random, uart.base, 0x1000, |offset| offset < 4);
    }
}

/// Whether a register of the distributor serves all CPUs: writing it could turn interrupts off for the other CPUs,
/// which a guest is allowed to do.
fn is_shared(offset: u64) -> bool {
    offset < 8
}

/// Whether a register of another CPU's redistributor would stop that CPU if it changed.
fn is_of_another_cpu(offset: u64) -> bool {
    matches!(offset, 0x14..0x18 | 0x1_0080..0x1_0420 | 0x1_0c00..0x1_0e00)
}

/// Returns the offsets to try: all that have registers, and some that have none. A GICv2's frame has registers almost
/// everywhere.
fn tried_offsets(size: u64) -> impl Iterator<Item = u64> {
    let is_version2 = platform().gic.version2.is_some();
    let dense = move |offset: u64| match offset & 0xffff {
        _ if is_version2 => true,
        0..0x500 | 0xc00..0xd10 | 0x6000..0x6340 | 0xffc0.. => true,
        other => other.is_multiple_of(0x80),
    };
    (0..size).step_by(4).filter(move |&offset| dense(offset))
}

/// Tries loads and stores of every size: the hypervisor serves each, whether or not the offset has a register.
fn try_offsets(
    tally: &mut Tally,
    random: &mut Random,
    base: u64,
    size: u64,
    spare: impl Fn(u64) -> bool,
) {
    for offset in tried_offsets(size) {
        let place = window::map_page(base + offset, As::Device);
        for shape in shapes::all().filter(|shape| is_described(*shape, place)) {
            if shape.kind == Kind::Store && (spare(offset) || spare(offset + shape.size - 1)) {
                continue;
            }
            // SAFETY: these are registers of devices. Effects on this CPU are repaired at the end,
            // and registers that affect other CPUs are left out.
            let outcome = unsafe { run_attempt(shape.code, place, random.draw()) };
            tally.case(
                outcome.returned(),
                format_args!("{} at {:#x}: {outcome}", shape.name, base + offset),
            );
        }
    }
}

/// Whether a syndrome describes the access, and the access is aligned.
fn is_described(shape: Shape, place: u64) -> bool {
    matches!(shape.kind, Kind::Load | Kind::Store) && place.is_multiple_of(shape.size)
}

/// Checks that the hypervisor refuses an access with an abort if neither syndrome nor instruction describes the access,
/// and serves any other access.
fn try_shapes(tally: &mut Tally, address: u64) {
    for shape in shapes::all() {
        let place = window::map_page(address, As::Normal);
        // SAFETY: as above; these registers ignore the value, which is zero.
        let outcome = unsafe { run_attempt(shape.code, place, 0) };
        let good = match shape.kind {
            Kind::Load | Kind::Store | Kind::DecodedLoad | Kind::DecodedStore => outcome.returned(),
            Kind::Maintenance | Kind::Harmless => true,
            // SIMD is disabled in this kernel.
            _ => outcome.abort_at(place) || outcome.trap().is_some_and(|trap| trap.class() == 0x07),
        };
        tally.case(
            good,
            format_args!("{} at {address:#x}: {outcome}", shape.name),
        );
    }
}

/// Checks that an unaligned access causes an alignment fault if the guest maps the page as a
/// device, and is served or refused if the page is mapped as memory.
fn try_alignments(tally: &mut Tally, address: u64) {
    for how in [As::Device, As::Normal] {
        for skew in 1..8 {
            for shape in shapes::all() {
                let place = window::map_page(address & !7, how) + skew;
                if !matches!(shape.kind, Kind::Load) || place.is_multiple_of(shape.size) {
                    continue;
                }
                // SAFETY: these are reads of registers, and reading them changes nothing.
                let outcome = unsafe { run_attempt(shape.code, place, 0) };
                let misaligned = outcome
                    .trap()
                    .is_some_and(|trap| trap.class() == 0x25 && trap.fault() == 0x21);
                let good = match how {
                    As::Device => misaligned,
                    _ => misaligned || outcome.returned() || outcome.abort_at(place),
                };
                tally.case(
                    good,
                    format_args!(
                        "{} at {address:#x} + {skew} as {how:?}: {outcome}",
                        shape.name
                    ),
                );
            }
        }
    }
}

/// Loads a device's identification, which is `value`, into every general register, with every width and extension.
fn try_registers(tally: &mut Tally, address: u64, value: u64) {
    /// Position of Rn, the register with the address.
    const RN: u32 = 5;
    /// Loads of PIDR2's byte, halfword and word, in all their forms.
    const LOADS: [u32; 7] = [
        0x3940_0000,
        0x3980_0000,
        0x39c0_0000,
        0x7940_0000,
        0x7980_0000,
        0xb940_0000,
        0xb980_0000,
    ];
    let place = window::map_page(address, As::Device);
    for load in LOADS {
        for register in 0..32 {
            // X16 and X17 hold the address and the return address. If one of the two is tested, two other registers hold them.
            let [address, back] = if matches!(register, 16 | 17) {
                [9, 10]
            } else {
                [16, 17]
            };
            let code = [
                0xaa00_03e0 | address,           // mov xA, x0
                0xaa1e_03e0 | back,              // mov xB, x30
                load | address << RN | register, // ldr wN, [xA]
                0xaa00_03e0 | register << 16,    // mov x0, xN
                0xd65f_0000 | back << RN,        // ret xB
            ];
            // SAFETY: the registers of the calling convention are restored.
            let outcome = unsafe { stubs::run_code(&code, place, 0) };
            let expected = if register == 31 { 0 } else { value };
            // Byte and halfword accesses to a 32-bit register may read as zero, because the architecture leaves this
            // open.
            let word = load >> 30 == 2;
            let good =
                outcome.returned() && (outcome.value == expected || !word && outcome.value == 0);
            tally.case(
                good,
                format_args!("load {load:#x} to register {register}: {outcome}"),
            );
        }
    }
}

/// Tries the redistributor of a CPU that does not exist.
fn try_absent_cpu(tally: &mut Tally, base: u64) {
    for offset in [0, 8, 0x14, 0x1_0000, 0x1_0100, PIDR2] {
        let place = window::map_page(base + offset, As::Device);
        for shape in shapes::all().filter(|shape| is_described(*shape, place)) {
            // SAFETY: no CPU has this redistributor, so an access changes nothing.
            let outcome: Outcome = unsafe { run_attempt(shape.code, place, 0) };
            tally.case(
                outcome.abort_at(place),
                format_args!("{} at an absent redistributor: {outcome}", shape.name),
            );
        }
    }
}

/// Restores this CPU's redistributor and the distributor's SPIs.
fn restore_devices(me: &PerCpu) {
    let redistributor = interrupts::redistributor(me);
    redistributor.disable_all(u32::MAX);
    redistributor.clear_pending(u32::MAX);
    redistributor.clear_active(u32::MAX);
    let distributor = platform().gic.distributor.base;
    for word in 1..3 {
        for register in [0x180, 0x280, 0x380] {
            // SAFETY: this only clears the state of SPIs, and this kernel uses no SPI.
            unsafe { ((distributor + register + 4 * word) as *mut u32).write_volatile(u32::MAX) };
        }
    }
    // SAFETY: this is this CPU's own redistributor.
    unsafe { redistributor.set_up() };
    redistributor.enable_all(1 << interrupts::RESCHED | 1 << interrupts::CALL);
    insn::isb();
}
