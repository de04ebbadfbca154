// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests examples, and checks that parts add up to samples for any notes.

use abi::event_word;
use proptest::prelude::*;

use super::*;
use abi::Traced;

/// ESR_EL2 for a trapped WFI, and for a trapped SGI.
const WFI: u64 = 0x07e0_0000;
const SGI: u64 = 0x623a_3036;

fn index(cause: &str) -> usize {
    3 + CAUSES.iter().position(|name| *name == cause).unwrap()
}

/// The logs of both CPUs.
#[derive(Default)]
struct Logs([[TimeLog; 2]; CPUS]);

impl Logs {
    fn guest(&self, cpu: usize, notes: &[(u64, Guest)]) {
        notes
            .iter()
            .for_each(|&(time, what)| self.0[cpu][0].note(time, what as u64));
    }

    fn el2(&self, cpu: usize, notes: &[(u64, Traced, u64)]) {
        for &(time, what, data) in notes {
            self.0[cpu][1].note(time, event_word(what, data));
        }
    }

    fn account(&self, halts: bool) -> Account<'_> {
        Account::new(self.0.each_ref().map(|logs| logs.each_ref()), halts)
    }
}

fn totals(mut account: Account<'_>, samples: &[(u64, u64)]) -> Totals {
    for &(start, end) in samples {
        account.sample(start, end);
        // Follows CPU 1 only halfway at first, and then both CPUs to the end.
        account.follow(1, (start + end) / 2);
        account.follow(0, end);
        account.follow(1, end);
    }
    account.totals()
}

#[test]
fn what_lies_between_samples_is_in_no_part() {
    let logs = Logs::default();
    logs.guest(0, &[(15, Guest::Poll), (30, Guest::Run)]);
    // CPU 1 is halted from before the sample, through the pause, until after the next has begun.
    logs.guest(1, &[(2, Guest::Wfi), (20, Guest::Run), (25, Guest::Wfi)]);
    logs.guest(1, &[(1007, Guest::Run)]);
    let totals = totals(logs.account(true), &[(10, 30), (1000, 1010)]);
    let [run, poll, wfi] = [0, 1, 2].map(|part| totals.parts[part]);
    assert_eq!((totals.samples, totals.lost, totals.ticks), (2, 0, 60));
    assert_eq!((run, poll, wfi), (5 + 5 + 10 + 3, 15, 10 + 5 + 7));
}

#[test]
fn a_trapped_halt_is_a_halt_and_polling_for_the_guest_is_polling() {
    let logs = Logs::default();
    logs.guest(1, &[(100, Guest::Wfi), (170, Guest::Run)]);
    logs.el2(
        1,
        &[
            (110, Traced::Synchronous, WFI),
            (112, Traced::Poll, 0),
            (130, Traced::Halt, 0),
            (150, Traced::Awake, 0),
            (160, Traced::Resume, 0),
        ],
    );
    logs.el2(
        0,
        &[(101, Traced::Synchronous, SGI), (104, Traced::Sent, 1)],
    );
    logs.el2(0, &[(106, Traced::Resume, 0), (190, Traced::Interrupt, 0)]);
    logs.el2(0, &[(195, Traced::Resume, 0)]);
    let totals = totals(logs.account(false), &[(100, 200)]);
    let parts = totals.parts;
    assert_eq!((parts[1], parts[2]), (18, 20));
    let at_el2 = ["wfi", "sgi", "irq"].map(|cause| parts[index(cause)]);
    assert_eq!(at_el2, [2 + 10, 5, 5]);
    assert_eq!(parts[0], 200 - 18 - 20 - 22);
    assert_eq!(totals.ticks, 200);
}

#[test]
fn samples_whose_notes_were_overwritten_are_lost_and_later_ones_are_not() {
    let logs = Logs::default();
    let mut account = logs.account(true);
    account.sample(10, 20);
    for n in 0..2 * TimeLog::KEPT {
        logs.guest(1, &[(10 + n / 1024, Guest::Poll)]);
    }
    account.follow(1, 20);
    account.follow(0, 20);
    account.sample(30, 40);
    logs.guest(1, &[(30, Guest::Run)]);
    account.follow(1, 40);
    account.follow(0, 40);
    let totals = account.totals();
    assert_eq!((totals.samples, totals.lost), (1, 1));
    assert_eq!(totals.parts.iter().sum::<u64>(), totals.ticks);
}

#[test]
fn a_clock_that_goes_back_loses_the_sample() {
    let logs = Logs::default();
    logs.guest(0, &[(15, Guest::Poll), (12, Guest::Run)]);
    let totals = totals(logs.account(true), &[(10, 20)]);
    assert_eq!((totals.samples, totals.lost), (0, 1));
}

#[test]
fn causes_have_the_names_of_exits() {
    for (esr, name) in [
        (WFI, "wfi"),
        (WFI + 1, "wfe"),
        (WFI + 2, "wfi"),
        (WFI + 3, "wfe"),
        (SGI, "sgi"),
        (0x6230_012f, "sysreg"),
        (0x5a00_0000, "hvc"),
        (0x5e00_0000, "smc"),
        (0x9382_0005, "mmio"),
        (0x8200_0000, "other"),
    ] {
        assert_eq!(CAUSES[cause(esr)], name, "{esr:#x}");
    }
}

/// Generates notes at rising times, with meaningless contents.
fn notes() -> impl Strategy<Value = Vec<(u64, bool, u64)>> {
    prop::collection::vec((0u64..30, any::<bool>(), 0u64..9), 0..200)
}

proptest! {
    #[test]
    fn parts_add_up_to_the_samples(
        cpus in [notes(), notes()],
        lengths in prop::collection::vec((0u64..200, 0u64..200), 1..20),
        halts: bool,
    ) {
        let logs = Logs::default();
        for (cpu, notes) in cpus.iter().enumerate() {
            let mut time = 0;
            for &(after, el2, what) in notes {
                time += after;
                logs.0[cpu][usize::from(el2)].note(time, if el2 { what | WFI << 8 } else { what });
            }
        }
        let mut time = 0;
        let samples: Vec<(u64, u64)> = lengths.iter().map(|&(pause, length)| {
            let start = time + pause;
            time = start + length;
            (start, time)
        }).collect();
        let totals = totals(logs.account(halts), &samples);
        prop_assert_eq!(totals.parts.iter().sum::<u64>(), totals.ticks);
        prop_assert_eq!((totals.samples, totals.lost), (samples.len() as u64, 0));
        let whole: u64 = samples.iter().map(|(start, end)| 2 * (end - start)).sum();
        prop_assert_eq!(totals.ticks, whole);
    }
}
