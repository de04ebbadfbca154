// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers that were worked out by hand: the pace of cells, the time that they may take, periods at
//! the edge of what a counter can make, and sets of CPUs, bit by bit.

use plan::*;

const MACHINE: Machine = Machine {
    ecv: false,
    caches: false,
    ..Machine::COMPLETE
};

/// Returns the plan of `text` and the first of its cells.
fn first_cell(text: &str) -> (Plan, Cell) {
    let plan = Arguments::parse(text).unwrap().plan;
    let cell = plan.cells(&MACHINE).next().unwrap();
    (plan, cell)
}

fn limits(iterations: u32, budget: u64) -> Limits {
    Limits {
        iterations,
        settle: false,
        budget,
        pause: 0,
        unrecorded: 0,
        first: 20,
    }
}

/// The blocks of each pass of a cell whose wake-up number n takes `cost(n)`.
fn blocks(limits: &Limits, cost: impl Fn(u32) -> u64) -> Vec<Vec<u32>> {
    let (mut pace, mut passes) = (Pace::default(), Vec::new());
    while pace.ended.is_none() {
        let mut blocks = Vec::new();
        while let Some(count) = pace.next(limits) {
            let ticks = (pace.done..pace.done + count).map(&cost).sum();
            pace.add(limits, count, ticks);
            blocks.push(count);
        }
        pace.end_pass(limits, false);
        passes.push(blocks);
    }
    passes
}

#[test]
fn passes_run_there_and_back_and_back_and_there() {
    let directions: Vec<bool> = (0..8).map(is_forwards).collect();
    let (there, back) = (true, false);
    assert_eq!(
        directions,
        [there, back, back, there, there, back, back, there]
    );
}

#[test]
fn the_first_block_tells_what_one_costs() {
    let quick = blocks(&limits(2002, 1_000_000), |_| 100);
    assert_eq!(quick, [vec![20, 481], vec![501], vec![500], vec![500]]);
    // A quarter of the budget is 200 000: 50 wake-ups at 4000 each.
    let slow = blocks(&limits(2000, 800_000), |_| 4000);
    assert_eq!(slow, [vec![20, 30], vec![50], vec![50], vec![50]]);
    // The first block has all wake-ups that fit into the first pass, or one fewer.
    assert_eq!(
        blocks(&limits(2000, 80_000), |_| 1000),
        [[20], [20], [20], [20]]
    );
    assert_eq!(
        blocks(&limits(2000, 84_000), |_| 1000),
        [vec![20, 1], vec![21], vec![21], vec![21]]
    );
    // Fewer wake-ups are requested than the first block has.
    let few = blocks(&limits(10, 1_000_000), |_| 100);
    assert_eq!(few, [[3], [3], [2], [2]]);
    let free = blocks(&limits(2000, 40), |_| 0);
    assert_eq!(free, [[20], [10], [10], [10]]);
    // Whatever a wake-up costs, each pass has at least one.
    assert_eq!(blocks(&limits(4, 10), |_| 1000), [[1], [1], [1], [1]]);
    assert_eq!(blocks(&limits(2000, 10), |_| 1000), [[20], [1], [1], [1]]);
}

/// Each pass is planned as 50 wake-ups at 1000 each. From number 50 on, each costs 2000: the second
/// pass takes 100 000, and the third can have only one wake-up. Then the mean is 1504, and the last
/// pass has 48 000 left.
#[test]
fn what_gets_dearer_makes_later_passes_shorter() {
    let dearer = blocks(&limits(2000, 200_000), |n| if n < 50 { 1000 } else { 2000 });
    assert_eq!(dearer, [vec![20, 30], vec![50], vec![1], vec![31]]);
    // A pass that turns out cheaper is not made longer while it runs.
    let cheaper = blocks(&limits(2000, 200_000), |n| match n {
        0..50 => 1000,
        50..101 => 2000,
        _ => 100,
    });
    assert_eq!(cheaper, dearer);
    // Neither a pass with fewer wake-ups than the first block nor the first pass itself gets longer.
    let much = blocks(&limits(2000, 200_000), |n| match n {
        0..50 => 1000,
        50..101 => 2500,
        _ => 100,
    });
    assert_eq!(much, [vec![20, 30], vec![50], vec![1], vec![12]]);
    let first = blocks(&limits(2000, 200_000), |n| match n {
        0 => 1019,
        1..20 => 1000,
        _ => 100,
    });
    assert_eq!(first, [vec![20, 29], vec![50], vec![50], vec![50]]);
}

#[test]
fn a_pause_that_was_asked_for_costs_nothing() {
    let paused = Limits {
        pause: 900,
        ..limits(2000, 20_000)
    };
    let with = blocks(&paused, |_| 1000);
    assert_eq!(with, [vec![20, 30], vec![50], vec![50], vec![50]]);
    assert_eq!(with, blocks(&limits(2000, 20_000), |_| 100));
    // A block that ends before its pauses are over gives no credit.
    let mut pace = Pace::default();
    pace.add(&paused, 20, 100);
    pace.add(&paused, 20, 20 * 1900);
    assert_eq!(pace.next(&paused), None);
}

#[test]
fn a_cell_has_the_time_that_is_named_and_its_own_pauses() {
    let of = |text: &str, frequency, instructions| {
        let (plan, cell) = first_cell(text);
        let limits = Limits::of(&plan, &cell, frequency, instructions);
        (limits.iterations, limits.budget, limits.pause)
    };
    // 10 ms of instructions, 500 ms of time.
    let mhz = 62_500_000;
    assert_eq!(of("", mhz, true), (2000, 625_000, 0));
    assert_eq!(of("", mhz, false), (2000, 31_250_000, 0));
    let named = "rouse.cell-ms=2 rouse.gap-us=8 rouse.iterations=7";
    assert_eq!(of(named, mhz, false), (7, 125_000, 500));
    let device = "rouse.workload=io rouse.wait=wfi rouse.device-us=16";
    assert_eq!(of(device, mhz, true).2, 1000);
    assert_eq!(of(&format!("{device} rouse.gap-us=8"), mhz, true).2, 1500);
    assert_eq!(of("rouse.workload=timer", mhz, true).2, 62_500);
    let notify = "rouse.workload=notify rouse.service-us=4";
    assert_eq!(of(&format!("{notify} rouse.gap-us=7"), mhz, true).2, 687);
    // If two times overlap, only the longer one counts.
    let open = of(
        &format!("{notify} rouse.gap-us=7 rouse.arrival-us=20"),
        mhz,
        true,
    );
    assert_eq!(open.2, 1250);
}

#[test]
fn raw_samples_and_named_numbers_are_all_taken() {
    for (text, settles) in [
        ("", true),
        ("rouse.max-iterations=400", true),
        ("rouse.raw", false),
        ("rouse.iterations=400", false),
    ] {
        let (plan, cell) = first_cell(text);
        let limits = Limits::of(&plan, &cell, MACHINE.frequency, true);
        assert_eq!(limits.settle, settles, "{text}");
    }
}

/// The time of a pass of 500 wake-ups, with 60 us to begin and to report it.
fn pass_time(text: &str, budget: u64, instructions: bool) -> PassTime {
    let (plan, cell) = first_cell(text);
    let limits = Limits {
        budget,
        ..Limits::of(&plan, &cell, MACHINE.frequency, instructions)
    };
    cell.pass_time(&limits, MACHINE.frequency, instructions)
}

/// Paths of 300 instructions, executed six times as fast as pauses.
#[test]
fn what_is_expected_of_a_pass_is_what_it_executes() {
    let of = |text: &str| pass_time(text, 0, true).expected_us;
    assert_eq!(of(""), 60 + 25);
    // The leader of a round trip is awake during its pause.
    assert_eq!(of("rouse.gap-us=7"), 60 + 25 + 3500);
    assert_eq!(
        of("rouse.workload=overshoot rouse.wait=spin rouse.poll-limit-us=20"),
        60 + 25 + 10_000
    );
    assert_eq!(
        of("rouse.workload=stream rouse.wait=wfe rouse.event-stream-us=30"),
        60 + 25 + 15_000
    );
    // A CPU that waits for a device or a timer halts, or polls.
    for (wait, executed) in [
        ("wfi", 0),
        ("spin", 40),
        ("poll-wfi rouse.poll-limit-us=20", 20),
    ] {
        let text = format!("rouse.workload=io rouse.device-us=40 rouse.wait={wait}");
        assert_eq!(of(&text), 60 + 25 + executed * 500, "{wait}");
    }
    assert_eq!(of("rouse.workload=timer rouse.wait=wfi"), 60 + 25);
    assert_eq!(
        of("rouse.workload=timer rouse.wait=governor:menu rouse.standby-us=0 rouse.idle-poll=0"),
        60 + 25 + 500_000
    );
    // A CPU that leaves a deep state executes instructions for the exit latency.
    assert_eq!(
        of("rouse.workload=timer rouse.wait=governor:menu rouse.standby-us=60"),
        60 + (150 + 60 * 500) / 6
    );
    // Polls of other workloads end with the wake-up, and deep states are for long waits.
    for text in [
        "rouse.workload=pingpong rouse.wait=poll-wfi rouse.poll-limit-us=20",
        "rouse.workload=pingpong rouse.wait=governor:teo rouse.standby-us=10",
    ] {
        assert_eq!(of(text), 60 + 25, "{text}");
    }
    // A counter of time counts pauses, even if every CPU sleeps.
    let time = |text: &str| pass_time(text, 0, false).expected_us;
    assert_eq!(
        time("rouse.workload=timer rouse.wait=wfi"),
        60 + 2500 + 500_000
    );
    // A quarter of the budget bounds the pass, not counting the pauses.
    assert_eq!(pass_time("", 60_000, true).expected_us, 60 + 15 / 6);
    let paused = pass_time("rouse.workload=pingpong rouse.gap-us=2", 4_000_000, false);
    assert_eq!(paused.expected_us, 60 + 1000 + 1000);
}

#[test]
fn a_pass_takes_at_most_its_budget_and_all_pauses() {
    let of = |text: &str, budget| pass_time(text, budget, true).most_us;
    assert_eq!(of("", 40_000), 60 + 10);
    assert_eq!(
        of("rouse.workload=timer rouse.wait=wfi", 40_000),
        60 + 10 + 500_000
    );
    assert_eq!(of("rouse.workload=pingpong rouse.wait=wfi", 0), 60 + 150);
    // Ticks are not nanoseconds.
    let (plan, cell) = first_cell("rouse.workload=pingpong rouse.gap-us=8");
    let limits = Limits {
        budget: 1000,
        ..Limits::of(&plan, &cell, 62_500_000, true)
    };
    let time = cell.pass_time(&limits, 62_500_000, true);
    assert_eq!((time.expected_us, time.most_us), (60 + 4000, 60 + 4000 + 4));
}

#[test]
fn names_of_ends_stay() {
    let padded = End::ALL.iter().map(|end| {
        let padded = format!("{end:>8}");
        (end.name(), padded.trim_start() == end.name(), padded.len())
    });
    assert_eq!(
        Vec::from_iter(padded),
        ["settled", "samples", "budget"].map(|name| (name, true, 8))
    );
}

/// Without FEAT_ECV, the last bit is 15: the longest period is 65 us at 1 GHz. The shortest is two
/// ticks: 20 us at 100 kHz.
#[test]
fn a_period_within_a_factor_of_four_is_taken() {
    let skipped = |period: u32, frequency| {
        let text = format!("rouse.wait=wfe rouse.event-stream-us={period}");
        let machine = Machine {
            frequency,
            ..MACHINE
        };
        first_cell(&text).1.skip_reason(&machine)
    };
    let off = |nearest_us| Some(SkipReason::StreamPeriod { nearest_us });
    assert_eq!(skipped(260, 1_000_000_000), None);
    assert_eq!(skipped(261, 1_000_000_000), off(65));
    assert_eq!(skipped(5, 100_000), None);
    assert_eq!(skipped(4, 100_000), off(20));
}

#[test]
fn every_cpu_by_itself() {
    for cpu in 0..512 {
        let one = CpuSet::one(cpu);
        assert!((0..600).all(|other| one.has(other) == (other == cpu)));
        assert_eq!(one.to_string(), cpu.to_string());
        assert_eq!(CpuSet::parse(&cpu.to_string()), Some(one));
        let digit = 1 << (cpu % 4);
        let mask = format!("0x{digit}{}", "0".repeat(cpu / 4));
        assert_eq!(CpuSet::parse(&mask), Some(one));
        assert!(!one.is_empty() && one.iter(512).eq([cpu]) && one.iter(cpu).next().is_none());
        // A machine with `cpu` CPUs has no CPU of that number.
        assert_eq!((one.beyond(cpu), one.beyond(cpu + 1)), (Some(cpu), None));
    }
    assert!(CpuSet::NONE.is_empty() && CpuSet::ALL.iter(3).eq(0..3));
    for (text, shown) in [
        ("0+2+4", "0+2+4"),
        ("62-63", "62-63"),
        ("0-1+62-63", "0-1+62-63"),
        ("0-63", "0-63"),
        ("0-511", "all"),
        ("0x0", "none"),
        ("0-62", "0-62"),
    ] {
        assert_eq!(CpuSet::parse(text).unwrap().to_string(), shown);
    }
}
