// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch of a vCPU's interrupt delivery, model-checked: loom runs the executions of a vCPU
//! that lets hardware deliver, takes delivery back and turns itself off, while other CPUs write its
//! redistributor and send to it.
//!
//! # Modelled
//!
//! [`vgic::switch`], the requests of [`vgic::Private`] and [`vgic::Delivery`] are the real code
//! that the hypervisor runs. [`machine`] has list registers and a physical redistributor; each
//! access to them is a step. The vCPU takes interrupts and requests between its actions, the
//! doorbell first. It acknowledges no interrupt, so at the end, the state of each interrupt, wherever it is
//! kept, equals the last write to it, as in a redistributor that never changed hands.
//!
//! # Not modelled
//!
//! The registers of groups, enables and priorities are not loom atomics: loom treats each write of
//! them and the next step as one step. Executions have at most [`PREEMPTIONS`] preemptions. Loom
//! itself explores no load buffering, and orders accesses to a device like accesses to one word.
//!
//! [`version2`] models two vCPUs with a GICv2.
//!
//! # Mutants
//!
//! [`mutants`] has the switch with one rule broken at a time. For each mutant, loom must find an execution that
//! fails, in a scenario that the real switch passes.
#![cfg(loom)]

mod machine;
mod mutants;
mod version2;
mod version2_hardware;

use std::panic::catch_unwind;
use std::sync::Arc;

use machine::{Does, Protocol, Target, World, Writes};
use mutants::{
    DROPS, FORGETS_ITS_OWN, KEEPS_AS_REQUEST, LOOKS_UNLOCKED, Mutant, RINGS_ONCE, SERVES_EARLY,
    WORD_FIRST,
};
use vgic::switch::Switch;

/// Preemptions explored per execution if one writer meets a vCPU that switches at most twice;
/// larger scenarios have one fewer.
const PREEMPTIONS: usize = 3;

/// Actions of the vCPU, and actions of each other CPU.
type Scenario = (&'static [Does], &'static [&'static [Writes]]);

/// Checks every execution.
fn check<P: Protocol>((does, writers): Scenario) {
    let mut builder = loom::model::Builder::new();
    let more = writers.len() > 1 || does.len() > 2;
    builder.preemption_bound = Some(PREEMPTIONS - usize::from(more));
    builder.max_branches = 10_000;
    // Limits from the environment do not apply: executions that they cut off would pass.
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.check(move || {
        let world = Arc::new(World::<P>::new());
        let mut target = Target::new(&world);
        target.evaluate();
        let others = writers.iter().map(|&writes| {
            let world = Arc::clone(&world);
            loom::thread::spawn(move || writes.iter().for_each(|&write| world.write(write)))
        });
        let others: Vec<_> = others.collect();
        for &one in does {
            target.does(one);
        }
        for other in others {
            other.join().expect("a writer does not fail");
        }
        target.settle();
        target.compare(writers);
    });
}

use Does::{Direct, Inject, Off};
use Writes::{Activate, Clear, Deactivate, Disable, Enable, SendHigh, SendLow, Set};

const THERE: &[Does] = &[Direct];
const BACK: &[Does] = &[Direct, Inject];
const AGAIN: &[Does] = &[Direct, Inject, Direct];
const TURNED_OFF: &[Does] = &[Direct, Off];

/// Writes by one of the other CPUs, to one interrupt or to several in turn.
const ALONE: &[&[Writes]] = &[
    &[Activate(3)],
    &[Activate(3), Deactivate(3)],
    &[Activate(3), Deactivate(3), Activate(3)],
    &[Set(3)],
    &[Set(3), Clear(3)],
    &[Clear(3), Set(3)],
    &[Set(3), Disable(3), Clear(3)],
    &[Disable(3), Set(3), Enable(3)],
    &[Clear(3), SendLow(3)],
    &[Clear(9), SendHigh(9)],
    &[Activate(3), SendLow(3)],
    &[SendHigh(9), SendLow(3)],
];

/// Declares the tests of the real switch.
macro_rules! holds {
    ($($name:ident: $does:ident;)*) => {$(
        #[test]
        fn $name() {
            for writes in ALONE {
                println!("{:?} against {writes:?}", $does);
                check::<Switch>(($does, std::slice::from_ref(writes)));
            }
        }
    )*};
}

holds! {
    there: THERE;
    back: BACK;
    again: AGAIN;
    turned_off: TURNED_OFF;
}

/// Two writers: with different requests, and with equal ones.
const TWO: &[&[&[Writes]]] = &[
    &[&[Activate(3)], &[SendHigh(9)]],
    &[&[Set(3)], &[Clear(4), SendLow(4)]],
    &[&[SendHigh(9)], &[SendHigh(10)]],
];

#[test]
fn two_writers() {
    for &writers in TWO {
        for does in [BACK, TURNED_OFF] {
            println!("{does:?} against {writers:?}");
            check::<Switch>((does, writers));
        }
    }
}

/// Asserts that loom finds an execution of `scenario` in which the mutant fails with `how`, and
/// none in which the real switch fails.
fn caught<Wrong: Protocol>(scenario: Scenario, how: &str) {
    check::<Switch>(scenario);
    caught_by(catch_unwind(|| check::<Wrong>(scenario)), how);
}

/// Asserts that a check of a mutant failed with `how`.
fn caught_by(found: std::thread::Result<()>, how: &str) {
    let Err(panic) = found else {
        panic!("the model does not see this mutant");
    };
    let message = match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => panic.downcast_ref::<&str>().unwrap_or(&"?").to_string(),
    };
    assert!(message.contains(how), "fails for another reason: {message}");
}

/// An interrupt is active in the machine, and the guest can't end it.
const STRAY: &str = "active in the machine";
/// An interrupt is active where none may be.
const NOT_FREE: &str = "the interface is still held";
/// The state of an interrupt differs from the last write.
const LOST: &str = "is pending";
/// The pending word is not empty although no sender rings.
const LEFT: &str = "left in the word";

/// Declares the tests of the mutants.
macro_rules! caught {
    ($($name:ident: $mutant:ident, $does:ident, $writers:expr, $how:ident;)*) => {
        $(#[test]
        fn $name() {
            caught::<Mutant<$mutant>>(($does, const { $writers }), $how);
        })*
    };
}

caught! {
    mutant_looks_unlocked: LOOKS_UNLOCKED, BACK, &[&[Activate(3)]], STRAY;
    mutant_keeps_as_request: KEEPS_AS_REQUEST, TURNED_OFF, &[&[Activate(3)]], NOT_FREE;
    mutant_word_first: WORD_FIRST, THERE, &[&[SendHigh(9)]], LEFT;
    mutant_drops: DROPS, BACK, &[&[SendHigh(9)]], LOST;
    mutant_serves_early: SERVES_EARLY, THERE, &[&[Clear(3), SendLow(3)]], LOST;
    mutant_forgets_its_own:
        FORGETS_ITS_OWN, THERE, &[&[Clear(3), SendLow(3)], &[SendHigh(9)]], LOST;
    mutant_rings_once: RINGS_ONCE, THERE, &[&[Clear(3), SendLow(3)], &[SendHigh(9)]], LOST;
}
