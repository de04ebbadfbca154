// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tries PSCI: on CPUs that run, on CPUs that do not exist, and on this CPU; with entry points
//! outside of memory; CPU_ON while the target turns itself off, in any state; and functions with
//! arguments that make no sense (DEN0022F.b, 5.1).

use super::tally::Tally;
use super::victims::{self, AFFINITY_INFO, CPU_ON};
use guest_kernel_shim::boot;
use guest_kernel_shim::hypervisor::call;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::{self, PerCpu};
use sched::random::Random;

const SUCCESS: i64 = 0;
const NOT_SUPPORTED: i64 = -1;
const INVALID_PARAMETERS: i64 = -2;
const ALREADY_ON: i64 = -4;
const ON_PENDING: i64 = -5;
const INVALID_ADDRESS: i64 = -9;
const WIDE: u64 = 1 << 30;

/// Number of rounds in which a CPU is turned on while it turns itself off.
const RACES: u64 = 200;

fn call_psci(function: u64, arguments: [u64; 3]) -> i64 {
    call(function, arguments)[0] as i64
}

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let victim = victims::all_victims()[0];
    tally.case(victims::take_cpu(victim), format_args!("CPU_OFF"));
    try_targets(tally, random);
    try_entries(tally, victim, random);
    try_other_functions(tally, random);
    try_affinity_info(tally, victim);
    try_races(tally, victim);
    for (act, name) in [
        (victims::off(), "plainly"),
        (victims::off_active(), "with interrupts active"),
        (
            victims::off_direct(),
            "owning the interface, with interrupts active",
        ),
        (victims::off(), "plainly again"),
    ] {
        check_comes_back(tally, victim, act, name);
    }
}

/// Tries CPUs that can't be turned on.
fn try_targets(tally: &mut Tally, random: &mut Random) {
    let entry = boot::secondary_entry();
    let running = [percpu::all()[0], percpu::all()[1], PerCpu::this()];
    for function in [CPU_ON, CPU_ON & !WIDE] {
        for cpu in running {
            let answer = call_psci(function, [cpu.mpidr, entry, 0]);
            tally.case(
                answer == ALREADY_ON,
                format_args!("CPU_ON of {:#x}, which runs: {answer}", cpu.mpidr),
            );
        }
        let absent = [
            percpu::all().len() as u64,
            0xff,
            0x100,
            0x1_0000,
            0xff_ff00,
            0xff_fffe,
        ];
        for mpidr in absent
            .into_iter()
            .chain((0..8).map(|_| 0x10 + random.below(0xf0_0000)))
        {
            let answer = call_psci(function, [mpidr, entry, 0]);
            tally.case(
                answer == INVALID_PARAMETERS,
                format_args!("CPU_ON of {mpidr:#x}, which is not there: {answer}"),
            );
        }
        // These bits of the target have to be zero.
        for bit in 24..32 {
            let answer = call_psci(function, [1 << bit | 1, entry, 0]);
            tally.case(
                answer == INVALID_PARAMETERS,
                format_args!("CPU_ON with bit {bit}: {answer}"),
            );
        }
    }
    for bit in 32..64 {
        let answer = call_psci(CPU_ON, [1 << bit | 1, entry, 0]);
        tally.case(
            answer == INVALID_PARAMETERS,
            format_args!("CPU_ON with bit {bit}: {answer}"),
        );
    }
}

/// Tries entry points outside this guest's memory, with which the CPU must stay off.
fn try_entries(tally: &mut Tally, victim: &'static PerCpu, random: &mut Random) {
    let ram = platform().memory[0];
    let base = guest_kernel_shim::hypervisor::info(abi::Info::Base);
    let mut places = [
        0,
        0x1000,
        platform().gic.distributor.base,
        ram.base - 4,
        ram.end(),
        ram.base + 1,
        ram.base + 2,
        ram.base + 3,
        base + (1 << 40),
        1 << 39,
        1 << 47,
        u64::MAX,
        u64::MAX - 3,
        0,
        0,
        0,
    ];
    for place in &mut places[13..] {
        *place = random.draw() | 1 << 45;
    }
    for place in places {
        let answer = call_psci(CPU_ON, [victim.mpidr, place, 0]);
        tally.case(
            answer == INVALID_ADDRESS,
            format_args!("CPU_ON at {place:#x}: {answer}"),
        );
        tally.case(
            victims::is_off(victim),
            format_args!("it is on at {place:#x}"),
        );
    }
}

/// Tries the remaining functions: existing functions are served, and all others are refused.
fn try_other_functions(tally: &mut Tally, random: &mut Random) {
    /// VERSION, SUSPEND, OFF, ON, AFFINITY_INFO, MIGRATE_INFO_TYPE, SYSTEM_OFF,
    /// SYSTEM_RESET, FEATURES.
    const SERVED: [u64; 9] = [0, 1, 2, 3, 4, 6, 8, 9, 0xa];
    for number in (0..0x20).filter(|number| !SERVED.contains(number)) {
        for wide in [0, WIDE] {
            let function = 0x8400_0000 | wide | number;
            let answer = call_psci(function, [random.draw(), random.draw(), random.draw()]);
            tally.case(
                answer == NOT_SUPPORTED || answer == INVALID_PARAMETERS,
                format_args!("PSCI {function:#x}: {answer}"),
            );
        }
    }
    for number in 0..0x20 {
        for wide in [0, WIDE] {
            let function = 0x8400_0000 | wide | number;
            let answer = call_psci(0x8400_000a, [function, random.draw(), random.draw()]);
            let served = SERVED.contains(&number);
            let good = answer == NOT_SUPPORTED || served && answer >= 0;
            tally.case(
                good,
                format_args!("PSCI_FEATURES of {function:#x}: {answer}"),
            );
        }
    }
    for _ in 0..16 {
        let answer = call_psci(0x8400_000a, [random.draw() | 1 << 29, 0, 0]);
        tally.case(
            answer == NOT_SUPPORTED || answer == INVALID_PARAMETERS,
            format_args!("PSCI_FEATURES of nonsense: {answer}"),
        );
        // The value sets reserved bits of the power state; a refused call does not wait.
        let state = random.draw() as u32 | 1 << 31;
        let answer = call_psci(0xc400_0001, [u64::from(state), 0, 0]);
        tally.case(
            answer == INVALID_PARAMETERS,
            format_args!("CPU_SUSPEND {state:#x}: {answer}"),
        );
    }
}

/// Calls AFFINITY_INFO for levels and CPUs that do not exist.
fn try_affinity_info(tally: &mut Tally, victim: &PerCpu) {
    for level in [4, 5, 1 << 31, u64::from(u32::MAX)] {
        let answer = call_psci(AFFINITY_INFO, [0, level, 0]);
        tally.case(
            answer == INVALID_PARAMETERS,
            format_args!("AFFINITY_INFO of level {level}: {answer}"),
        );
    }
    for level in 0..4 {
        let answer = call_psci(AFFINITY_INFO, [0, level, 0]);
        tally.case(
            answer == 0,
            format_args!("AFFINITY_INFO of level {level}: {answer}"),
        );
        let answer = call_psci(AFFINITY_INFO, [0xfe_0000_0000, level, 0]);
        let expected = if level == 3 {
            answer
        } else {
            INVALID_PARAMETERS
        };
        tally.case(
            answer == expected,
            format_args!("AFFINITY_INFO of nobody, level {level}: {answer}"),
        );
    }
    let answer = call_psci(AFFINITY_INFO, [victim.mpidr, 0, 0]);
    tally.case(
        answer == 1,
        format_args!("AFFINITY_INFO of one that is off: {answer}"),
    );
}

/// Calls CPU_ON repeatedly, while the target turns itself off as soon as it runs: after every success of CPU_ON, the
/// target must have run.
fn try_races(tally: &mut Tally, victim: &'static PerCpu) {
    let counter = victims::reset_counts();
    let mut started = 0;
    while started < RACES {
        let answer = victims::start_victim(victim, victims::off(), counter) as i64;
        tally.check_part(
            matches!(answer, SUCCESS | ALREADY_ON | ON_PENDING),
            format_args!("CPU_ON in a race: {answer}"),
        );
        if answer == SUCCESS {
            started += 1;
        } else {
            arch::insn::yield_now();
        }
    }
    tally.case(
        victims::is_off_soon(victim),
        format_args!("it does not turn off"),
    );
    let count = victims::visit_count();
    tally.case(
        count == started,
        format_args!("turned on {started} times and ran {count} times"),
    );
}

/// Checks that a CPU that has turned itself off in any state can be turned on again, and runs.
fn check_comes_back(tally: &mut Tally, victim: &'static PerCpu, act: u64, name: &str) {
    let counter = victims::reset_counts();
    let answer = victims::start_victim(victim, act, counter) as i64;
    tally.case(
        answer == SUCCESS,
        format_args!("CPU_ON before it goes off {name}: {answer}"),
    );
    tally.case(
        victims::is_off_soon(victim),
        format_args!("it does not go off {name}"),
    );
    let answer = victims::start_victim(victim, victims::off(), counter) as i64;
    tally.case(
        answer == SUCCESS,
        format_args!("CPU_ON after it went off {name}: {answer}"),
    );
    tally.case(
        victims::is_off_soon(victim),
        format_args!("it does not go off again {name}"),
    );
    // The count is read only when the CPU is off: it counts with caches off, perhaps between our invalidation and our read.
    tally.case(
        victims::visit_count() == 2,
        format_args!("it does not run after it went off {name}"),
    );
}
