// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries calls through HVC and SMC: every class of function numbers, with random arguments, and the
//! hypervisor's own calls with values that make no sense.

use abi::{Call, Knob};
use platform::Conduit;

use super::neighbour;
use super::tally::Tally;
use guest_kernel_shim::clock;
use guest_kernel_shim::hypervisor::{self, Registers, call};
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu;
use sched::random::Random;

const NOT_SUPPORTED: u64 = u64::MAX;
const INVALID: u64 = abi::INVALID as u64;
const SUCCESS: u64 = abi::SUCCESS as u64;
/// Function numbers that are tried for each owner.
const NUMBERS: [u64; 10] = [0, 1, 2, 3, 0x1f, 0x20, 0xff00, 0xff01, 0xff03, 0xffff];

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    for conduit in [Conduit::Hvc, Conduit::Smc] {
        for owner in 0..64 {
            for fast in [0, 1] {
                for wide in [0, 1] {
                    for number in NUMBERS.into_iter().chain([random.below(0x1_0000)]) {
                        let function = fast << 31 | wide << 30 | owner << 24 | number;
                        check_unknown(tally, random, conduit, function);
                        // Bits 23:16 are zero in every function that exists.
                        let reserved = (1 + random.below(255)) << 16;
                        check_unknown(tally, random, conduit, function | reserved);
                    }
                }
            }
        }
    }
    check_known(tally, random);
    check_knobs(tally, random);
    check_watches(tally);
    check_long_period(tally);
}

/// Checks that a watch whose period is beyond the counter's range never ends: no wake-up counts as lost.
fn check_long_period(tally: &mut Tally) {
    let watch = |period| {
        let place = platform().memory[0].base;
        call(Call::Watch.function(), [place, period, 0])[0]
    };
    let now = clock::now();
    let long = [
        1 << 62,
        (1 << 63) - 1,
        1 << 63,
        u64::MAX - 2 * now,
        u64::MAX - now,
    ];
    for period in long.into_iter().chain([u64::MAX - 1, u64::MAX]) {
        let answer = watch(period);
        clock::pause(clock::us_to_ticks(10));
        tally.case(
            answer == SUCCESS,
            format_args!("watch for {period:#x}: {answer:#x}"),
        );
    }
    tally.case(watch(0) == SUCCESS, format_args!("watch no longer"));
}

/// Whether the function is served here. The functions of PSCI belong to another class.
fn is_known(function: u64) -> bool {
    let function = function as u32;
    matches!(function, 0x8000_0000 | 0x8000_0001 | abi::CALL_UID)
        || Call::of(function).is_some()
        || matches!(function >> 24, 0x84 | 0xc4) && function & 0xff_ffff < 0x20
}

/// Checks that a function that is not served is refused, and that no register changes.
fn check_unknown(tally: &mut Tally, random: &mut Random, conduit: Conduit, function: u64) {
    if is_known(function) {
        return;
    }
    let mut registers: Registers = core::array::from_fn(|_| random.draw());
    // EL2 has to ignore the upper half of x0.
    registers[0] = registers[0] << 32 | function;
    let before = registers;
    hypervisor::call_by(conduit, &mut registers);
    let good = registers[0] == NOT_SUPPORTED && registers[1..] == before[1..];
    tally.case(
        good,
        format_args!("{conduit:?} {function:#x} answers {:#x}", registers[0]),
    );
}

/// Checks that existing functions return their defined values, whatever the other registers hold.
fn check_known(tally: &mut Tally, random: &mut Random) {
    for conduit in [Conduit::Hvc, Conduit::Smc] {
        for _ in 0..16 {
            let mut registers: Registers = core::array::from_fn(|_| random.draw());
            registers[0] = random.draw() << 32 | 0x8000_0000;
            hypervisor::call_by(conduit, &mut registers);
            tally.case(registers[0] == 0x1_0002, format_args!("SMCCC_VERSION"));
            let mut registers: Registers = core::array::from_fn(|_| random.draw());
            registers[0] = 0x8000_0001;
            hypervisor::call_by(conduit, &mut registers);
            tally.case(
                registers[0] == NOT_SUPPORTED,
                format_args!("SMCCC_ARCH_FEATURES of anything: {:#x}", registers[0]),
            );
        }
    }
    for vcpu in [percpu::all().len() as u64, 64, 1 << 32, u64::MAX] {
        let answer = call(Call::Trace.function(), [vcpu, 0, 0])[0];
        tally.case(answer == INVALID, format_args!("events of vCPU {vcpu}"));
    }
    check_evictions(tally);
    check_empty_text(tally, random);
}

/// Checks that a text whose first byte ends it is empty, whatever follows, and that only the result registers
/// change.
fn check_empty_text(tally: &mut Tally, random: &mut Random) {
    for conduit in [Conduit::Hvc, Conduit::Smc] {
        let mut registers: Registers = core::array::from_fn(|_| random.draw());
        registers[0] = random.draw() << 32 | Call::Console.function();
        registers[1] &= !0xff;
        let before = registers;
        hypervisor::call_by(conduit, &mut registers);
        let good = registers[0] == SUCCESS && registers[1..] == before[1..];
        tally.case(good, format_args!("no text: {:#x}", registers[0]));
    }
}

/// Checks that everything that exists can be evicted, again and again while other CPUs run, that
/// nothing else can be evicted, and that no other argument matters.
fn check_evictions(tally: &mut Tally) {
    let cpus = percpu::all().len() as u64;
    let evict = |what| call(Call::Evict.function(), [what, u64::MAX, 1 << 40])[0];
    let common = [[abi::EVICT_IMAGE, abi::EVICT_TRANSLATIONS]; 4];
    for what in (0..cpus).chain(common.into_iter().flatten()) {
        let answer = evict(what);
        tally.case(
            answer == SUCCESS,
            format_args!("evict {what:#x}: {answer:#x}"),
        );
    }
    for what in [cpus, 64, 1 << 32, 1 << 63, u64::MAX - 2] {
        let answer = evict(what);
        tally.case(
            answer == INVALID,
            format_args!("evict {what:#x}: {answer:#x}"),
        );
    }
}

/// Checks that knobs refuse invalid values; knobs that took valid values are reset afterwards.
fn check_knobs(tally: &mut Tally, random: &mut Random) {
    let turn = |knob: u64, value: u64| call(Call::Set.function(), [knob, value, 0])[0];
    for knob in 0..Knob::COUNT as u64 + 8 {
        for value in [2, 3, 4, 1 << 31, 1 << 32, u64::MAX, random.draw() | 1 << 40] {
            // Valid values are skipped: only the code that reads interrupts may change how they are delivered.
            if knob == Knob::Deliver as u64 && value < 2 {
                continue;
            }
            let answer = turn(knob, value);
            let good = answer == INVALID || answer == SUCCESS && knob < Knob::COUNT as u64;
            tally.case(good, format_args!("knob {knob} = {value:#x}: {answer:#x}"));
            if knob < Knob::COUNT as u64 && knob != Knob::Deliver as u64 {
                turn(knob, 0);
            }
        }
    }
    // The knobs that were reset include the neighbour's knobs.
    neighbour::give_neighbour();
    for knob in [u64::MAX, 1 << 32, 1 << 63] {
        tally.case(turn(knob, 0) == INVALID, format_args!("knob {knob:#x}"));
    }
}

/// Checks that EL2 watches and logs nothing outside this guest's memory.
fn check_watches(tally: &mut Tally) {
    let ram = platform().memory[0];
    let places = [
        0,
        0x1000,
        ram.base - 64,
        ram.end() - 64,
        ram.end(),
        ram.base + 1,
        ram.base + 32,
        1 << 39,
        u64::MAX - 63,
        u64::MAX,
        hypervisor::info(abi::Info::Base) + (1 << 40),
    ];
    for place in places {
        let answer = call(Call::Watch.function(), [place, 1, 0])[0];
        tally.case(
            answer == INVALID,
            format_args!("watch at {place:#x}: {answer:#x}"),
        );
        // An address of 0 ends the log.
        let wanted = if place == 0 { SUCCESS } else { INVALID };
        let answer = call(Call::Log.function(), [place, 0, 0])[0];
        tally.case(
            answer == wanted,
            format_args!("log at {place:#x}: {answer:#x}"),
        );
    }
}
