// SPDX-License-Identifier: MIT OR Apache-2.0
//! Properties that every governor has for any input.

use cpuidle::{Device, FOREVER, Moment, Name, Outcome, Psd, Setup, State, StateKind, Table, Wake};
use proptest::prelude::*;

/// Times of all magnitudes, with the extremes.
fn time() -> impl Strategy<Value = u64> {
    prop_oneof![
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift),
        Just(FOREVER),
        Just(0)
    ]
}

fn table() -> impl Strategy<Value = Table> {
    let states = prop::collection::vec((time(), time(), any::<bool>()), 1..=8);
    (states, any::<bool>(), time()).prop_filter_map(
        "no state is enabled",
        |(times, polls, tick)| {
            let (mut latencies, mut residencies): (Vec<_>, Vec<_>) = times
                .iter()
                .map(|&(latency, residency, _)| (latency, residency))
                .unzip();
            latencies.sort_unstable();
            residencies.sort_unstable();
            let states: Vec<State> = (0..times.len())
                .map(|index| {
                    let kind = match index {
                        0 if polls => StateKind::Poll,
                        0 | 1 => StateKind::Wfi,
                        _ => StateKind::Standby,
                    };
                    State {
                        enabled: times[index].2,
                        ..State::new("state", kind, latencies[index], residencies[index])
                    }
                })
                .collect();
            Table::new(&states, tick.max(1)).ok()
        },
    )
}

fn name() -> impl Strategy<Value = Setup> {
    let names = prop::sample::select(Name::ALL);
    (names, 0..=Setup::MAX_LIMIT_US).prop_map(|(name, limit_us)| Setup::new(name, limit_us))
}

/// Something that happens to an idle CPU.
#[derive(Clone, Debug)]
enum IdleEvent {
    Idle(Moment, u64, Outcome),
    Enable(usize, bool),
    Submit(u64),
    Rejected(usize),
}

fn step() -> impl Strategy<Value = IdleEvent> {
    const WAKES: &[Wake] = &[
        Wake::Request,
        Wake::Interrupt,
        Wake::Timer,
        Wake::Tick,
        Wake::PollTimeout,
    ];
    let moment = (
        time(),
        time(),
        any::<bool>(),
        time(),
        any::<u32>(),
        any::<u32>(),
    )
        .prop_map(
            |(now_ns, next_tick_ns, tick_stopped, latency_limit_ns, utilisation, io_waiters)| {
                Moment {
                    now_ns,
                    next_tick_ns,
                    tick_stopped,
                    latency_limit_ns,
                    utilisation,
                    io_waiters,
                }
            },
        );
    // Sometimes the reported state is not the chosen state.
    let outcome = (
        prop::option::weighted(0.1, 0usize..20),
        time(),
        prop::sample::select(WAKES),
    )
        .prop_map(|(state, residency_ns, wake)| Outcome {
            state: state.unwrap_or(usize::MAX),
            residency_ns,
            wake,
        });
    prop_oneof![
        8 => (moment, time(), outcome).prop_map(|(moment, timer, outcome)| IdleEvent::Idle(moment, timer, outcome)),
        1 => (0usize..9, any::<bool>()).prop_map(|(index, enabled)| IdleEvent::Enable(index, enabled)),
        1 => time().prop_map(IdleEvent::Submit),
        1 => (0usize..20).prop_map(IdleEvent::Rejected),
    ]
}

/// Performs `step`, and returns the choice if the step makes one.
fn perform(device: &mut Device, step: &IdleEvent) -> Option<(usize, bool, u64)> {
    match *step {
        IdleEvent::Idle(moment, timer_ns, outcome) => {
            let choice = device.select(&moment, || timer_ns);
            let chosen = outcome.state == usize::MAX;
            let state = if chosen { choice.state } else { outcome.state };
            device.reflect(&Outcome { state, ..outcome });
            return Some((choice.state, choice.stop_tick, choice.poll_limit_ns));
        }
        IdleEvent::Enable(index, enabled) => drop(device.set_enabled(index, enabled)),
        IdleEvent::Submit(now_ns) => device.submitted(now_ns),
        IdleEvent::Rejected(index) => device.count_rejection(index),
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    /// No governor chooses a disabled state, or one that exceeds the latency limit if some state
    /// meets it; only polls have a poll limit; nothing panics or overflows. Some governors exceed
    /// the limit, as in Linux: early releases of `menu` if the tick is stopped, `teo` with
    /// utilisation if there are two states; `ladder` and `haltpoll` halt under every limit but 0.
    /// If there is only one state, some governors are not asked.
    #[test]
    fn choices_are_allowed(
        table in table(),
        name in name(),
        limit_ns in time(),
        psd_ms in 0u32..100,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut device = Device::new(table, name);
        device.set_latency_limit(limit_ns);
        let mut psd = Psd::new(psd_ms, table.tick_ns());
        device.set_psd(psd);
        for step in &steps {
            if let IdleEvent::Submit(now_ns) = *step {
                psd.submitted(now_ns);
            }
            let before = *device.states();
            let Some((index, _, poll_ns)) = perform(&mut device, step) else { continue };
            let IdleEvent::Idle(moment, ..) = *step else { unreachable!() };
            let state = before.states()[index];
            prop_assert!(state.enabled, "{name}: {index} of {before:?}");
            let limit_ns = psd.applied_limit(moment.now_ns, limit_ns.min(moment.latency_limit_ns));
            let keeps = |state: &State| state.enabled && state.exit_latency_ns <= limit_ns;
            let excused = match name.name() {
                Name::Menu62 | Name::Menu614 => moment.tick_stopped,
                Name::TeoUtilV6 | Name::TeoUtil65 => before.count() == 2,
                Name::Ladder | Name::Haltpoll => limit_ns > 0 || !before.at(0).enabled,
                _ => false,
            };
            prop_assert!(
                excused || keeps(&state) || !before.states().iter().any(keeps) && index == before.shallowest(),
                "{name}: {index} of {before:?} with limit {limit_ns}"
            );
            prop_assert!(state.polls() || poll_ns == 0);
        }
    }

    /// Equal steps give equal choices and counts.
    #[test]
    fn choices_repeat(table in table(), name in name(), steps in prop::collection::vec(step(), 1..60)) {
        let run = || {
            let mut device = Device::new(table, name);
            let choices: Vec<_> = steps.iter().map(|step| perform(&mut device, step)).collect();
            (choices, *device.statistics())
        };
        prop_assert_eq!(run(), run());
    }

    /// Every stay is counted once, and at most one of "too deep" and "too shallow" is true of it.
    #[test]
    fn stays_are_counted(table in table(), name in name(), steps in prop::collection::vec(step(), 1..60)) {
        let mut device = Device::new(table, name);
        let stays = steps.iter().filter_map(|step| perform(&mut device, step)).count() as u64;
        let total = device.statistics().total();
        prop_assert_eq!(total.usage, stays);
        prop_assert!(total.above + total.below <= stays);
    }
}

/// Every governor stays shallow while the PSD window is open, but not after the window closes.
#[test]
fn a_psd_window_makes_every_governor_poll() {
    const MS: u64 = 1_000_000;
    let states = [
        State::new("poll", StateKind::Poll, 0, 0),
        State::new("wfi", StateKind::Wfi, 2_000, 10_000),
        State::new("standby", StateKind::Standby, 40_000, 200_000),
    ];
    let table = Table::new(&states, MS).unwrap();
    for name in Setup::all(0).filter(|setup| !setup.name().limited()) {
        let mut device = Device::new(table, name);
        device.set_psd(Psd::new(Psd::DEFAULT_MS, MS));
        device.submitted(5 * MS);
        let idle = |device: &mut Device, now_ns| {
            let state = device.select(&Moment::quiet_at(now_ns), || 50 * MS).state;
            device.reflect(&Outcome {
                state,
                residency_ns: MS,
                wake: Wake::PollTimeout,
            });
            state
        };
        assert_eq!(idle(&mut device, 8 * MS - 1), 0, "{name}");
        assert_ne!(idle(&mut device, 8 * MS), 0, "{name}");
    }
}
