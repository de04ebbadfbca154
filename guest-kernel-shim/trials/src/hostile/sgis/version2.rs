// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries the SGIs of a GICv2: every INTID with every filter and target list (IHI 0048B, 4.3.15), each pending state of
//! each sender (4.3.16, 4.3.17), and the reserved bits.

use arch::gicv2::REGISTERS;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::PerCpu;
use sched::random::Random;

use super::super::attempt::{Outcome, run_attempt};
use super::super::bystanders::others_go_on;
use super::super::stubs;
use super::super::tally::Tally;
use super::{clear_pending, is_pending};

const GICD_SGIR: u64 = 0xf00;
const GICD_CPENDSGIR: u64 = 0xf10;
const GICD_SPENDSGIR: u64 = 0xf20;
/// GICD_SGIR: all CPU interfaces but the sender's.
const ALL_OTHERS: u64 = 1 << 24;
/// Loads W0 from the address in X0, and stores W1 there.
const LOAD: u32 = 0xb940_0000;
const STORE: u32 = 0xb900_0001;

/// Writes GICD's register at `offset`.
fn write(offset: u64, value: u64) -> Outcome {
    // SAFETY: this sends interrupts that every CPU of this kernel takes, or changes this CPU's own SGIs.
    unsafe {
        run_attempt(
            stubs::place() + 8,
            platform().gic.distributor.base + offset,
            value,
        )
    }
}

/// Reads GICD's register at `offset`.
fn read(offset: u64) -> Outcome {
    // SAFETY: the read changes nothing.
    unsafe { run_attempt(stubs::place(), platform().gic.distributor.base + offset, 0) }
}

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let me = PerCpu::this();
    let interface = REGISTERS.interface_of(me.mpidr).unwrap_or(0);
    stubs::write_code(&[LOAD, stubs::RET, STORE, stubs::RET]);
    for intid in 0..16 {
        for (form, value, due) in targets(1 << interface, random) {
            clear_pending(me);
            let outcome = write(GICD_SGIR, value | intid);
            let got = is_pending(me, intid, due);
            tally.case(
                outcome.returned() && got == due,
                format_args!("SGI {intid} to {form}, {value:#x}: {outcome}, pending here: {got}"),
            );
        }
        for sender in 0..8 {
            try_sender(tally, me, intid, sender);
        }
    }
    send_storm(tally, random);
    clear_pending(me);
}

/// Returns the targets, in the form of GICD_SGIR, and whether they include this CPU, whose bit is `mine`.
fn targets(mine: u64, random: &mut Random) -> [(&'static str, u64, bool); 14] {
    let list = |bits: u64| bits << 16;
    let chance = random.below(0x100);
    [
        ("itself", list(mine), true),
        ("nobody", 0, false),
        ("the whole list", list(0xff), true),
        ("the others of the list", list(0xff & !mine), false),
        ("CPUs by chance", list(chance), chance & mine != 0),
        ("everybody but this one", ALL_OTHERS, false),
        ("everybody, and a list", ALL_OTHERS | list(0xff), false),
        ("itself by filter", 2 << 24, true),
        (
            "itself by filter, and a list",
            2 << 24 | list(0xff & !mine),
            true,
        ),
        ("the reserved filter", 3 << 24, false),
        (
            "the reserved filter, and a list",
            3 << 24 | list(0xff),
            false,
        ),
        // NSATT (15) has no effect with one security state, and bits 14:4 and 31:26 are reserved.
        ("itself in the other group", list(mine) | 1 << 15, true),
        ("itself with reserved bits", list(mine) | 0xfc00_7ff0, true),
        ("nobody with reserved bits", 0xfc00_fff0, false),
    ]
}

/// Makes SGI `intid` pending from `sender`, whether or not that CPU exists, and withdraws it.
fn try_sender(tally: &mut Tally, me: &PerCpu, intid: u64, sender: u64) {
    clear_pending(me);
    let (register, byte) = (intid & !3, 8 * (intid & 3));
    let set = write(GICD_SPENDSGIR + register, 1 << (byte + sender));
    let shown = read(GICD_SPENDSGIR + register);
    let pending = is_pending(me, intid, false);
    let cleared = write(GICD_CPENDSGIR + register, 1 << (byte + sender));
    let gone = !is_pending(me, intid, false);
    // A sender without an interface may be ignored.
    let kept = shown.value >> byte & 0xff;
    let consistent = (kept == 1 << sender) == pending && (kept == 0) != pending;
    tally.case(
        set.returned() && cleared.returned() && consistent && gone,
        format_args!("SGI {intid} from {sender}: {set}, {shown}, pending {pending}, gone {gone}"),
    );
}

/// Sends as many SGIs as possible, to any CPU; the other CPUs must still make progress.
fn send_storm(tally: &mut Tally, random: &mut Random) {
    for _ in 0..20 {
        for _ in 0..200 {
            let value = match random.below(4) {
                0 => ALL_OTHERS,
                1 => 0xff << 16,
                2 => random.below(0x100_0000),
                _ => random.draw(),
            };
            write(GICD_SGIR, value);
        }
        tally.case(others_go_on(1), format_args!("nobody measures in a storm"));
    }
}
