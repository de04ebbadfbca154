// SPDX-License-Identifier: MIT OR Apache-2.0
use std::fs;

use cpuidle::Wake;
use proptest::prelude::*;
use serde_json::Value;

use super::trace::Interval;
use super::*;
use shell::args::parse;
use shell::failure::is_bad_input;

fn args(options: &[&str]) -> GovernorsArgs {
    parse(["governors"].iter().chain(options)).unwrap()
}

const FREE: Setting = Setting {
    latency_limit_ns: FOREVER,
    utilisation: 0,
    psd_ms: 0,
};

fn interval(duration_us: u64, timer_us: u64, wake: Wake) -> Interval {
    Interval {
        duration_ns: duration_us * 1000,
        next_timer_ns: timer_us * 1000,
        wake,
        busy_ns: 0,
        utilisation: None,
        io: false,
    }
}

fn trace(intervals: Vec<Interval>) -> Trace {
    let source = "by hand".into();
    Trace { source, intervals }
}

/// Replays fixed:50 with the default states: poll has power 1000, and WFI (5/10 us) has power 400 and a price of 6 us.
///
/// | interval, us | stays | energy, us | late, us | awake, us |
/// |---|---|---|---|---|
/// | 30 | poll 30 | 30 | 0 | 30 |
/// | 150 | poll 50, WFI 100 + 5 | 50 + 6 + 40 = 96 | 5 | 55 |
/// | 9950 | poll 50, WFI 9900 + 5 | 50 + 6 + 3960 = 4016 | 5 | 55 |
///
/// WFI stops the tick, so the tick does not cut the last stay short. The polls of 50 us and 30 us are too shallow,
/// since WFI pays off for stays of at least 10 us. The WFI of 9900 us is too shallow, since standby pays off for stays
/// of at least 200 us. The WFI of 100 us is right.
#[test]
fn a_replay_by_hand() {
    let intervals = vec![
        interval(30, 1000, Wake::Request),
        interval(150, 1000, Wake::Interrupt),
        interval(9950, 9950, Wake::Timer),
    ];
    let states = States::parse_default();
    let name = Setup::new(Name::Fixed, 50);
    let ledger = replay::replay(name, &trace(intervals), &states, &FREE);
    assert_eq!(ledger.energy, (30 + 96 + 4016) * 1_000_000);
    assert_eq!(ledger.lateness_ns, [0, 5000, 5000]);
    assert_eq!(ledger.awake_ns, 140_000);
    let total = ledger.statistics.total();
    assert_eq!((total.usage, total.above, total.below), (5, 0, 4));
    assert_eq!((ledger.timer_asked, ledger.ticks), (0, 0));
}

/// With a timer in 4003 us, the tick is due at 4000 us. teo-6.2 keeps the tick if most wake-ups come before it, but
/// stops it here, since 4003 us is after the tick. With a timer in 3990 us after 200 us of running, the tick comes
/// after 3800 us, before the timer. The CPU leaves deep (400/2000 us) for the tick. The event comes 190 us after the
/// tick, and the CPU notices it only when it has left the state, 210 us late.
#[test]
fn an_event_waits_for_the_exit_that_the_tick_began() {
    let mut beginning = interval(3990, 3990, Wake::Timer);
    beginning.busy_ns = 200_000;
    let states = States::parse_default();
    let cut = replay::replay(
        Setup::new(Name::Teo62, 0),
        &trace(vec![beginning]),
        &states,
        &FREE,
    );
    assert_eq!((cut.ticks, &cut.lateness_ns[..]), (1, &[210_000][..]));
    let deep = states.costs[3];
    // In the 190 us before the event, the CPU runs.
    assert_eq!(cut.energy, deep.cost_of_stay(3_800_000) + 1000 * 190_000);
    let beyond = trace(vec![interval(4003, 4003, Wake::Timer)]);
    let stopped = replay::replay(Setup::new(Name::Teo62, 0), &beyond, &states, &FREE);
    assert_eq!(
        (stopped.ticks, &stopped.lateness_ns[..]),
        (0, &[400_000][..])
    );
}

/// With a timer in 10 ms, the governor stops the tick, and the CPU is awake at 10.4 ms. A task has run by then, so the
/// tick is active again in the next interval, and comes at 12 ms, before the event.
#[test]
fn the_tick_is_started_again_by_a_task() {
    let states = States::parse_default();
    let mut intervals = vec![interval(10_000, 10_000, Wake::Timer)];
    let ticks = |intervals: &[Interval]| {
        let trace = trace(intervals.to_vec());
        replay::replay(Setup::new(Name::Teo, 0), &trace, &states, &FREE).ticks
    };
    assert_eq!(ticks(&intervals), 0);
    intervals.push(interval(3990, 3990, Wake::Timer));
    assert_eq!(ticks(&intervals), 1);
}

/// The CPU polls within a window of 3 ms after each submission.
#[test]
fn io_in_a_trace_opens_the_window() {
    let mut io = interval(500, 500, Wake::Interrupt);
    io.io = true;
    let intervals = trace(vec![io]);
    let states = States::parse_default();
    let lateness = |psd_ms| {
        let setting = Setting { psd_ms, ..FREE };
        replay::replay(Setup::new(Name::Teo, 0), &intervals, &states, &setting).lateness_ns
    };
    assert_eq!((lateness(0), lateness(3)), (vec![50_000], vec![0]));
}

/// The utilisation in a line of the trace overrides the option.
#[test]
fn utilisation_is_that_of_the_line() {
    let mut busy = interval(9950, 9950, Wake::Timer);
    busy.utilisation = Some(17);
    let intervals = trace(vec![busy]);
    let states = States::parse_default();
    let ledger = replay::replay(Setup::new(Name::TeoUtil65, 0), &intervals, &states, &FREE);
    assert_eq!(ledger.statistics.of(3).usage, 0);
}

fn any_states() -> impl Strategy<Value = States> {
    let state = (
        0u64..500,
        0u64..3000,
        0u64..=1000,
        prop::bool::weighted(0.2),
    );
    let states = prop::collection::vec(state, 1..=8);
    (states, any::<bool>()).prop_filter_map("no state is enabled", |(mut states, polls)| {
        let sorted = |values: Vec<u64>| {
            let mut values = values;
            values.sort_unstable();
            values
        };
        let latencies = sorted(states.iter().map(|state| state.0).collect());
        let residencies = sorted(states.iter().map(|state| state.1).collect());
        let powers = sorted(states.iter().map(|state| state.2).collect());
        let count = states.len();
        let mut text = "tick_us = 1000\n".to_owned();
        for (index, (.., disabled)) in states.drain(..).enumerate() {
            let kind = match index {
                0 if polls => "poll",
                _ => "standby",
            };
            text += &format!(
                "[[state]]\nname = \"s\"\nkind = \"{kind}\"\nexit_latency_us = {}\n\
                 target_residency_us = {}\npower = {}\ndisabled = {disabled}\n",
                latencies[index],
                residencies[index],
                powers[count - 1 - index]
            );
        }
        States::parse(&text).ok()
    })
}

fn any_interval() -> impl Strategy<Value = Interval> {
    let wakes = prop::sample::select(&[Wake::Timer, Wake::Request, Wake::Interrupt][..]);
    let times = (1u64..5_000_000, 0u64..8_000_000, 0u64..2_000_000);
    (times, wakes, 0u32..100, any::<bool>()).prop_map(|(times, wake, util, io)| Interval {
        duration_ns: times.0,
        next_timer_ns: if wake == Wake::Timer {
            times.0
        } else {
            times.1
        },
        wake,
        busy_ns: times.2,
        utilisation: Some(util),
        io,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The oracle never takes more energy than any governor, is never too deep, and without a latency limit is never
    /// too shallow.
    #[test]
    fn nothing_is_better_than_the_oracle(
        states in any_states(),
        intervals in prop::collection::vec(any_interval(), 1..60),
        limit_us in prop::option::of(0u64..600),
        psd_ms in 0u32..4,
        limit in 0u32..300,
    ) {
        let trace = trace(intervals);
        let latency_limit_ns = limit_us.map_or(FOREVER, |us| us * 1000);
        let setting = Setting { latency_limit_ns, utilisation: 0, psd_ms };
        let best = oracle::oracle(&trace, &states, &setting);
        let misses = best.statistics.total();
        prop_assert_eq!(misses.above, 0);
        prop_assert!(limit_us.is_some() || misses.below == 0);
        for name in Setup::all(limit) {
            let ledger = replay::replay(name, &trace, &states, &setting);
            // If a latency limit applies, only governors that respect it are compared; some of Linux's governors ignore
            // it.
            let keeps = matches!(name.name(), Name::Menu | Name::Teo | Name::Teo62 | Name::Fixed);
            let limited = limit_us.is_some() || psd_ms > 0;
            prop_assert!(limited && !keeps || best.energy <= ledger.energy, "{}", name);
            prop_assert_eq!(ledger.lateness_ns.len(), trace.intervals.len());
        }
    }
}

/// Two runs write equal files, whose contents agree with docs/governors.md.
#[test]
fn results_repeat() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let (json, save) = (folder.path().join(name), folder.path().join("trace.csv"));
        let options = [
            "--generate",
            "mixed",
            "--count",
            "2000",
            "--latency-limit-us",
            "60",
            "--json",
            json.to_str().unwrap(),
            "--save",
            save.to_str().unwrap(),
        ];
        replay_to_governors(&args(&options)).unwrap();
        fs::read_to_string(json).unwrap()
    };
    let text = run("a.json");
    assert_eq!(text, run("b.json"));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["latency_limit_us"], 60);
    let rows = value["governors"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["governor"].as_str().unwrap())
        .collect();
    let all = [
        "oracle",
        "menu",
        "menu-6.14",
        "menu-6.2",
        "teo",
        "teo-6.2",
        "teo-util-v6",
        "teo-util-6.5",
        "ladder",
        "haltpoll",
        "fixed:50",
    ];
    assert_eq!(names, all);
    // Leaving the deepest state takes 400 us.
    assert!(rows.iter().all(|row| row["states"][3]["usage"] == 0));
    // The saved trace gives the same numbers.
    let saved = folder.path().join("trace.csv");
    let request = |options: &[&str]| Request::new(&args(options)).unwrap().trace.intervals;
    assert_eq!(
        request(&["--trace", saved.to_str().unwrap()]),
        request(&["--generate", "mixed", "--count", "2000"])
    );
}

#[test]
fn the_table_has_a_line_for_each() {
    let options = [
        "--generate",
        "periodic",
        "--count",
        "10",
        "--governor",
        "teo,fixed:7,teo",
    ];
    let answer = Answer::new(Request::new(&args(&options)).unwrap());
    let lines = table::document(&answer).terminal(None).join("\n");
    for told in [
        "periodic, mean 500 us, seed 1, 10 intervals",
        "wfi 5/10, standby 50/200",
        "\noracle ",
        "\nteo ",
        "\nfixed:7 ",
    ] {
        assert!(lines.contains(told), "{lines}");
    }
    assert_eq!(answer.governors.len(), 2);
}

/// Governors with equal figures share a row, and an energy that looks wrong has its explanation next to it.
#[test]
fn equal_rows_are_one_and_an_energy_above_all_is_explained() {
    let table = |states: &str| {
        let options = [
            "--generate",
            "bursty",
            "--count",
            "2000",
            "--states",
            states,
        ];
        let answer = Answer::new(Request::new(&args(&options)).unwrap());
        table::document(&answer).terminal(None).join("\n")
    };
    let deep = table("poll+wfi+deep");
    assert!(
        deep.contains("bursty, mean 500 us, seed 1, 2,000 intervals"),
        "{deep}"
    );
    assert!(
        deep.contains("\nteo-6.2, teo-util-v6, teo-util-6.5 "),
        "{deep}"
    );
    assert_eq!(deep.matches("teo-util-v6").count(), 1, "{deep}");
    assert!(
        deep.contains("energy above 100:") && deep.contains("\nmenu-6.14 "),
        "{deep}"
    );
    let shallow = table("poll+wfi");
    assert!(!shallow.contains("above 100"), "{shallow}");
}

/// Returns the error for `options`.
fn refused(options: &[&str]) -> anyhow::Error {
    match replay_to_governors(&args(options)) {
        Err(error) => error,
        Ok(_) => panic!("{options:?} are accepted"),
    }
}

/// The timer expires in 3990 us, and 300 us of the tick's period have passed. At 250 Hz, the tick comes in 3700 us,
/// before the timer. At 100 Hz, the tick comes in 9700 us, after the timer. At 1000 Hz, the tick would come in 700 us,
/// and governors stop it.
#[test]
fn the_tick_of_hz_is_that_of_the_replay() {
    let mut busy = interval(3990, 3990, Wake::Timer);
    busy.busy_ns = 300_000;
    let intervals = trace(vec![busy]);
    let ticks = |options: &[&str]| {
        let line = [&["--generate", "periodic"], options].concat();
        let states = Request::new(&args(&line)).unwrap().states;
        let ledger = replay::replay(Setup::new(Name::Teo, 0), &intervals, &states, &FREE);
        (states.table.tick_ns(), ledger.ticks)
    };
    assert_eq!(ticks(&[]), (4_000_000, 1));
    assert_eq!(ticks(&["--hz", "100"]), (10_000_000, 0));
    assert_eq!(ticks(&["--hz", "300"]), (3_333_333, 0));
    assert_eq!(ticks(&["--hz", "1000"]), (1_000_000, 0));
}

/// With the table `arm_poll_idle`, a CPU polls as in the guest. With a limit of 300 us, a CPU polls for 250 us at 250
/// Hz. With a limit of 100 us, it polls for 62.5 us at 1000 Hz. After that, the governor chooses again.
///
/// | limit, HZ | timer, us | polls, us |
/// |---|---|---|
/// | 300, 250 | 280 | 250, 30 |
/// | 200, 250 | 190 | 190 |
/// | 100, 1000 | 95 | 62.5, 32.5 |
/// | 5, 250: WFI pays at once | 95 | none |
#[test]
fn a_named_table_polls_by_the_rules_of_the_kernel() {
    let polls = |states: &str, hz: &str, timer_us: u64| {
        let line = ["--generate", "periodic", "--states", states, "--hz", hz];
        let states = Request::new(&args(&line)).unwrap().states;
        let intervals = trace(vec![interval(timer_us, timer_us, Wake::Timer)]);
        let ledger = replay::replay(Setup::new(Name::Menu, 0), &intervals, &states, &FREE);
        let tally = *ledger.statistics.of(0);
        (tally.usage, tally.time_ns, ledger.statistics.of(1).usage)
    };
    assert_eq!(polls("arm_poll_idle:300", "250", 280), (2, 280_000, 0));
    assert_eq!(polls("arm_poll_idle:200", "250", 190), (1, 190_000, 0));
    assert_eq!(polls("arm_poll_idle:100", "1000", 95), (2, 95_000, 0));
    assert_eq!(polls("arm_poll_idle:5", "250", 95), (0, 0, 1));
}

/// Without a polling state, every governor halts.
#[test]
fn a_table_without_poll_halts() {
    let line = [
        "--generate",
        "mixed",
        "--count",
        "300",
        "--states",
        "wfi+deep",
    ];
    let answer = Answer::new(Request::new(&args(&line)).unwrap());
    let lines = table::document(&answer).terminal(None).join("\n");
    assert!(
        lines.contains("wfi 2/10, deep 400/2000; tick 4000 us"),
        "{lines}"
    );
    for (name, ledger) in answer.rows() {
        assert!(
            ledger.lateness_ns.iter().all(|&late| late >= 2000),
            "{name}"
        );
    }
    // The default file has the powers 400 and 30.
    let powers: Vec<u64> = answer
        .request
        .states
        .costs
        .iter()
        .map(|cost| cost.power)
        .collect();
    assert_eq!(powers, [400, 30]);
}

#[test]
fn bad_options_are_refused_by_name() {
    let generate = ["--generate", "mixed"];
    for (options, told) in [
        (
            &["--trace", "/nonexistent"][..],
            "--trace: /nonexistent can't be read",
        ),
        (
            &["--governor", "best"],
            "--governor: there is no `best`; use all, menu,",
        ),
        (&["--governor", "fixed:1000001"], "at most 1000000 us"),
        (
            &["--count", "0"],
            "--count: 0 is not within 1 to 10000000; the nearest is 1",
        ),
        (&["--mean-us", "0"], "--mean-us: 0"),
        (&["--util", "1025"], "--util: 1025 is not within 0 to 1024"),
        (&["--psd-ms", "10001"], "--psd-ms: 10001"),
        (
            &["--latency-limit-us", "1000000001"],
            "--latency-limit-us: 1000000001",
        ),
        (
            &["--states", "/nonexistent"],
            "--states: /nonexistent can't be read",
        ),
        (
            &["--states", "poll+c1"],
            "--states: there is no state `c1`; use poll,",
        ),
        (
            &["--states", "wfi:500:900+standby"],
            "`standby` has a lower exit latency",
        ),
        (&["--json", "/"], "--json: / is a folder"),
        (
            &["--save", "/nonexistent/x"],
            "--save: /nonexistent/x can't be written",
        ),
    ] {
        let base = if options[0] == "--trace" {
            &[][..]
        } else {
            &generate
        };
        let error = refused(&[base, options].concat());
        assert!(is_bad_input(&error), "{options:?}");
        assert!(format!("{error:#}").contains(told), "{error:#}");
    }
    let error = refused(&[]);
    assert!(format!("{error:#}").contains("use --trace FILE or --generate"));
    for options in [
        ["--generate", "chaos"].as_slice(),
        &["--trace", "x", "--seed", "1"],
        &["--hz", "50"],
    ] {
        let line = ["governors"].iter().chain(options);
        let told = request::one_line(&parse::<GovernorsArgs>(line).unwrap_err());
        assert!(told.contains(options[0]), "{told}");
    }
}
