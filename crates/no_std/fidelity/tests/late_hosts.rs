// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the trials on machines whose CPUs and timers are late in all the ways in which a busy host
//! can make them late: each answer is right, or there is no answer.
//!
//! The machines are modelled here, apart from the code that judges them. A timer's event happens
//! when the host handles it, together with all other events that are due by then. A CPU that waits
//! continues when the host lets it.

use fidelity::{Action, Finding, UNEXPLAINED, Verdict, Wait};

/// Number of machines of each kind.
const MACHINES: u64 = 3000;
/// A millisecond in nanoseconds, the unit of these tests.
const MS: u64 = 1_000_000;

/// Pseudo-random numbers (Marsaglia, Xorshift RNGs, 2003).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

/// How late a host is, besides a small lateness each time.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// The host is never late.
    Idle,
    /// The host is late by a random time up to a limit.
    Uniform(u64),
    /// The host is always late by the same time.
    Fixed(u64),
    /// The host is late by none to four time slices.
    Slices(u64),
    /// The host is late by a fixed time or not at all, equally often.
    Sometimes(u64),
}

const HOSTS: [Late; 13] = [
    Late::Idle,
    Late::Uniform(MS),
    Late::Uniform(4 * MS),
    Late::Uniform(20 * MS),
    Late::Fixed(MS),
    Late::Fixed(2 * MS),
    Late::Fixed(3 * MS),
    Late::Fixed(10 * MS),
    Late::Slices(MS),
    Late::Slices(2 * MS),
    Late::Slices(4 * MS),
    Late::Sometimes(2 * MS),
    Late::Sometimes(6 * MS),
];

impl Late {
    fn draw(self, chance: &mut Chance) -> u64 {
        let little = chance.below(40_000);
        little
            + match self {
                Self::Idle => 0,
                Self::Uniform(most) => chance.below(most),
                Self::Fixed(time) => time,
                Self::Slices(slice) => chance.below(5) * slice,
                Self::Sometimes(time) => chance.below(2) * time,
            }
    }
}

/// A trial: its host, when the wait began and when the alarm is due.
struct Trial<'a> {
    host: Late,
    chance: &'a mut Chance,
    bound: u64,
    start: u64,
    due: u64,
}

impl<'a> Trial<'a> {
    fn begin(host: Late, chance: &'a mut Chance, bound_us: u32) -> Self {
        let bound = u64::from(bound_us) * 1000;
        let set = chance.below(1 << 40);
        // In one trial of eight, the CPU is descheduled between setting the alarm and the wait.
        let away = if chance.below(8) == 0 {
            host.draw(chance)
        } else {
            0
        };
        Self {
            host,
            bound,
            start: set + 500 + away,
            due: set + bound,
            chance,
        }
    }

    /// Returns the times of a wait that ends when the host handles `event`; if there is no event, or the
    /// alarm is earlier, the alarm ends the wait.
    fn wait(&mut self, event: Option<u64>) -> Wait {
        let alarm = self.due.max(self.start) + self.host.draw(self.chance);
        let event = event.map(|event| event.max(self.start) + self.host.draw(self.chance));
        let woken = event.map_or(alarm, |event| event.min(alarm));
        let runs = woken + self.host.draw(self.chance);
        // The host handles all of its due timers together.
        let rings = alarm <= runs || woken >= self.due;
        Wait {
            bound: self.bound,
            at_once: 50_000,
            start: self.start,
            end: runs + 1000,
            due: self.due,
            rang: rings.then_some(runs),
        }
    }
}

fn wfet(host: Late, chance: &mut Chance, honoured: bool) -> Finding {
    fidelity::settle(|bound_us| {
        let mut trial = Trial::begin(host, chance, bound_us);
        let asked = fidelity::deadline(trial.bound);
        let deadline = honoured.then_some(trial.start + asked);
        fidelity::wfet(&trial.wait(deadline), asked)
    })
}

fn action(host: Late, chance: &mut Chance, works: bool) -> Finding {
    fidelity::settle(|bound_us| {
        let mut trial = Trial::begin(host, chance, bound_us);
        let from = trial.start + 100_000 + host.draw(trial.chance);
        let wait = trial.wait(works.then_some(from));
        let action = Action {
            from,
            until: from + 300,
        };
        let in_time = action.from <= wait.end;
        fidelity::by_action(&wait, in_time.then_some(action), UNEXPLAINED)
    })
}

fn masked(host: Late, chance: &mut Chance, wakes: bool) -> Finding {
    fidelity::settle(|bound_us| {
        let mut trial = Trial::begin(host, chance, bound_us);
        let from = trial.start + 2 * trial.bound + host.draw(trial.chance);
        let pends = trial.due.max(trial.start) + host.draw(trial.chance);
        let woken = if wakes { pends.min(from) } else { from };
        let end = woken + host.draw(trial.chance);
        let wait = Wait {
            end,
            rang: None,
            ..trial.wait(None)
        };
        let action = Action {
            from,
            until: from + 300,
        };
        wait.by_masked((from <= end).then_some(action), pends <= end)
    })
}

/// Walks over lines that are cached or not; the CPU is away during one walk in eight. Without
/// caches, the code that ran before a walk changes the time of the walk a little.
fn colder(host: Late, chance: &mut Chance, caches: bool) -> Finding {
    fidelity::settle(|_| {
        let mut walk = |time: u64| {
            let away = match chance.below(8) {
                0 => host.draw(chance),
                _ => 0,
            };
            time + chance.below(time / 8 + 1) + away
        };
        let warm = std::array::from_fn(|_| walk(200));
        let cold = std::array::from_fn(|_| walk(if caches { 2000 } else { 250 }));
        fidelity::colder(warm, cold)
    })
}

/// Counts the wrong and the missing answers of a kind of trial on many machines whose right answer is `truth`.
fn tally(kind: fn(Late, &mut Chance, bool) -> Finding, truth: bool, host: Late) -> (usize, usize) {
    let mut counts = (0, 0);
    for seed in 1..=MACHINES {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        match kind(host, &mut chance, truth) {
            Finding::Yes(_) if !truth => counts.0 += 1,
            Finding::No(_) if truth => counts.0 += 1,
            Finding::NotSure(_) => counts.1 += 1,
            _ => {}
        }
    }
    counts
}

#[test]
fn no_late_host_makes_a_wrong_answer() {
    let mut bad = Vec::new();
    for host in HOSTS {
        for truth in [true, false] {
            for (name, kind) in [
                ("wfet", wfet as fn(_, &mut _, _) -> _),
                ("action", action),
                ("masked", masked),
                ("colder", colder),
            ] {
                let (wrong, unsure) = tally(kind, truth, host);
                println!("{name} {truth} {host:?}: {wrong} wrong, {unsure} not sure");
                if wrong > 0 {
                    bad.push((name, truth, host, wrong));
                }
            }
        }
    }
    assert!(bad.is_empty(), "wrong answers of {MACHINES}: {bad:?}");
}

#[test]
fn an_idle_host_is_always_answered() {
    for truth in [true, false] {
        assert_eq!(tally(wfet, truth, Late::Idle), (0, 0));
        assert_eq!(tally(action, truth, Late::Idle), (0, 0));
        assert_eq!(tally(masked, truth, Late::Idle), (0, 0));
        assert_eq!(tally(colder, truth, Late::Idle), (0, 0));
    }
}

/// The times of an emulator that counts instructions, and of a counter slower than the core.
#[test]
fn walks_that_take_the_same_show_no_caches_and_few_ticks_are_enough() {
    let same = fidelity::colder([450; fidelity::WALKS], [450; fidelity::WALKS]);
    assert_eq!(same, Verdict::No(450));
    let none = fidelity::colder([0; fidelity::WALKS], [0; fidelity::WALKS]);
    assert_eq!(none, Verdict::No(0));
    let coarse = fidelity::colder([2; fidelity::WALKS], [90; fidelity::WALKS]);
    assert_eq!(coarse, Verdict::Yes(90));
    let half = std::array::from_fn(|n| if n % 3 == 0 { 100 } else { 900 });
    let mixed = fidelity::colder([100; fidelity::WALKS], half);
    assert!(matches!(mixed, Verdict::Void(_)), "{mixed:?}");
}

#[test]
fn five_in_doubt_are_an_answer_and_a_void_one_between_is_none() {
    let mut trials = 0;
    let finding = fidelity::settle(|_| {
        trials += 1;
        Verdict::Doubt(7)
    });
    assert_eq!((finding, trials), (Finding::No(7), 5));
    let mut trials = 0;
    let finding = fidelity::settle(|_| {
        trials += 1;
        if trials % 5 == 0 {
            Verdict::Void("away")
        } else {
            Verdict::Doubt(7)
        }
    });
    assert!(matches!(finding, Finding::NotSure(_)), "{finding:?}");
}

#[test]
fn three_that_agree_are_an_answer_with_the_shortest() {
    let mut left = [
        Verdict::No(3),
        Verdict::Yes(9),
        Verdict::Void("away"),
        Verdict::Yes(5),
        Verdict::Yes(8),
    ]
    .into_iter();
    let finding = fidelity::settle(|_| left.next().expect("no more than five"));
    assert_eq!(finding, Finding::Yes(5));
}

#[test]
fn every_trial_has_another_bound() {
    let mut bounds = Vec::new();
    fidelity::settle(|bound| {
        bounds.push(bound);
        Verdict::Void("away")
    });
    assert_eq!(bounds.len(), 40);
    assert_eq!(bounds.first(), Some(&2000));
    assert!(
        bounds.windows(2).all(|pair| pair[0] < pair[1]),
        "{bounds:?}"
    );
}
