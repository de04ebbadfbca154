// SPDX-License-Identifier: MIT OR Apache-2.0
//! The general rules, through the public interface.

use governors_by_rules::*;

fn state(latency_us: i64, residency_us: i64) -> State {
    State {
        exit_latency_ns: latency_us * 1000,
        target_residency_ns: residency_us * 1000,
        polling: false,
        disabled: false,
    }
}

fn ask(timer_ns: i64) -> Ask {
    Ask {
        timer_ns,
        event_ns: timer_ns,
        tick_stopped: false,
        io_waiters: 0,
        latency_limit_ns: NO_LATENCY_LIMIT,
        utilisation: 0,
    }
}

fn all(tick: i64) -> Vec<Box<dyn Governor>> {
    let menu = |rules| Box::new(Menu::new(rules, tick)) as Box<dyn Governor>;
    let recent =
        |used| Box::new(TeoRecent::new(used, EarlyAnswer::AsAny, tick, 1024)) as Box<dyn Governor>;
    vec![
        menu(MenuRules::V6_2),
        menu(MenuRules::V6_6),
        menu(MenuRules::V6_14),
        menu(MenuRules::V7_1),
        recent(Utilisation::Ignored),
        recent(Utilisation::Posted),
        recent(Utilisation::Corrected),
        Box::new(Teo::new(tick)),
        Box::new(Ladder::new()),
    ]
}

#[test]
fn g1_the_tick() {
    assert_eq!(
        [100, 250, 300, 1000].map(tick_ns),
        [10_000_000, 4_000_000, 3_333_333, 1_000_000]
    );
}

#[test]
fn g3_no_limit() {
    assert_eq!(NO_LATENCY_LIMIT, 2_147_483_647_000);
}

#[test]
fn g9_one_state_is_not_asked_for_since_7_0() {
    let table = Table::new(&[state(1, 1)]);
    let asks = [ask(20_000_000); 3];
    let run = |asked| {
        let mut governor = Menu::new(MenuRules::V6_2, tick_ns(250));
        replay(&mut governor, &table, asked, &asks, |_, _| Event::Refused)
    };
    assert!(run(false).iter().all(|choice| !choice.stop_tick));
    assert!(run(true).iter().all(|choice| choice.stop_tick));
}

/// Every governor survives the limits of every number, and its choice is a state of the table.
#[test]
fn g2_the_limits_of_all_numbers() {
    let times = [i64::MIN, -1, 0, 1, 4_000_000, i64::MAX];
    let poll = State {
        polling: true,
        ..state(0, 0)
    };
    let most = State {
        exit_latency_ns: i64::MAX / 2,
        target_residency_ns: i64::MAX / 2,
        polling: false,
        disabled: false,
    };
    let tables = [
        Table::new(&[poll]),
        Table::new(&[most]),
        Table::new(&[poll, most]),
        Table::new(&[poll, state(2, 10), state(50, 100), most]),
        Table::new(&[state(1, 1); MAX_STATES]),
    ];
    for table in &tables {
        for mut governor in all(tick_ns(1000)) {
            for timer_ns in times {
                for slept_ns in [0, 1, i64::MAX] {
                    for flags in 0..8_u32 {
                        let ask = Ask {
                            tick_stopped: flags & 1 != 0,
                            io_waiters: if flags & 2 != 0 { u32::MAX } else { 0 },
                            latency_limit_ns: if flags & 4 != 0 { 0 } else { NO_LATENCY_LIMIT },
                            utilisation: u64::MAX,
                            ..ask(timer_ns)
                        };
                        let choice = governor.choose(table, &ask);
                        assert!(choice.state < table.states().len(), "{choice:?}");
                        let sleep = Sleep {
                            entered: choice.state,
                            slept_ns,
                            span_ns: slept_ns,
                            by_tick: flags & 2 != 0,
                            poll_limit_hit: flags & 4 != 0,
                        };
                        governor.learn(table, &Event::Slept(sleep));
                    }
                }
            }
        }
    }
}

#[test]
fn p1_the_poll_limit() {
    let poll = State {
        polling: true,
        ..state(0, 0)
    };
    let tick = tick_ns(250);
    let limit = |states: &[State]| poll_limit_ns(&Table::new(states), tick);
    assert_eq!(limit(&[poll]), 250_000);
    assert_eq!(limit(&[poll, state(1, 9), state(9, 40)]), 40_000);
    assert_eq!(limit(&[poll, state(1, 10), state(9, 40)]), 10_000);
    assert_eq!(limit(&[poll, state(1, 251)]), 250_000);
    assert_eq!(limit(&[poll, state(1, 9)]), 250_000);
    let off = State {
        disabled: true,
        ..state(1, 20)
    };
    assert_eq!(limit(&[poll, off, state(9, 40)]), 40_000);
    assert_eq!(
        poll_limit_ns(&Table::new(&[poll, state(9, 900)]), tick_ns(1000)),
        62_500
    );
}

#[test]
#[should_panic(expected = "a table has 1 to 10 states")]
fn g8_no_state() {
    Table::new(&[]);
}
