// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares the virtual GIC with the specification, over random sequences of a guest's steps; `fuzz::gic` contains both
//! sides.

mod regressions;

use fuzz::gic::{Bits, CPUS, GuestAction, World};
use proptest::collection::vec;
use proptest::prelude::*;

/// INTIDs that steps use. There are so few that several steps affect one interrupt.
const PRIVATE: [u32; 8] = [0, 1, 7, 15, 16, 27, 30, 31];
/// The INTIDs in [`PRIVATE`] that have an interrupt line.
const TIMERS: [u32; 2] = [27, 30];
const SHARED: [u32; 5] = [32, 33, 63, 64, 95];

fn cpu() -> impl Strategy<Value = usize> {
    0..CPUS
}

fn intid() -> impl Strategy<Value = u32> {
    prop_oneof![
        2 => prop::sample::select(&PRIVATE[..]),
        3 => prop::sample::select(&SHARED[..]),
    ]
}

/// Draws a set of INTIDs for a step: a block of 32 INTIDs, and a bit for each INTID in the block.
fn intids() -> impl Strategy<Value = (u32, u32)> {
    let block = prop::sample::select(vec![0u32, 0, 32, 64]);
    (block, any::<u16>()).prop_map(|(first, choice)| {
        let all = PRIVATE.iter().chain(&SHARED);
        let block = all.filter(|&&intid| intid / 32 == first / 32);
        let chosen = block
            .enumerate()
            .filter(|(n, _)| choice >> n & 1 != 0)
            .fold(0, |bits, (_, intid)| bits | 1 << (intid % 32));
        (first, chosen)
    })
}

fn write() -> impl Strategy<Value = GuestAction> {
    let bits = prop::sample::select(vec![
        Bits::Group,
        Bits::SetEnable,
        Bits::SetEnable,
        Bits::ClearEnable,
        Bits::SetPending,
        Bits::SetPending,
        Bits::SetPending,
        Bits::ClearPending,
        Bits::SetActive,
        Bits::ClearActive,
        Bits::ClearActive,
    ]);
    (cpu(), cpu(), bits, intids()).prop_map(|(by, of, bits, (first, value))| GuestAction::Write {
        by,
        of,
        bits,
        first,
        value,
    })
}

fn step() -> impl Strategy<Value = GuestAction> {
    let priority = prop::sample::select(vec![0x40u8, 0x60, 0x80, 0x80, 0xa0, 0xf8]);
    let mask = prop::sample::select(vec![0xf8u8, 0xff, 0x80, 0x40]);
    prop_oneof![
        8 => cpu().prop_map(GuestAction::Acknowledge),
        6 => cpu().prop_map(GuestAction::End),
        2 => (cpu(), 0usize..4).prop_map(|(cpu, which)| GuestAction::Deactivate(cpu, which)),
        4 => (prop::sample::select(&PRIVATE[..4]), 0u8..8).prop_map(|(intid, targets)| GuestAction::Send(intid, targets)),
        6 => write(),
        2 => (cpu(), cpu(), intid(), priority).prop_map(|(by, of, intid, priority)| GuestAction::Priority(by, of, intid, priority)),
        2 => (cpu(), prop::sample::select(&SHARED[..]), 0..=CPUS).prop_map(|(by, intid, to)| GuestAction::Route(by, intid, to)),
        1 => (cpu(), prop::bool::weighted(0.7)).prop_map(|(by, on)| GuestAction::Forward(by, on)),
        1 => (cpu(), mask).prop_map(|(cpu, mask)| GuestAction::Mask(cpu, mask)),
        1 => (cpu(), any::<bool>()).prop_map(|(cpu, split)| GuestAction::Split(cpu, split)),
        1 => (cpu(), prop::bool::weighted(0.7)).prop_map(|(cpu, on)| GuestAction::Enable(cpu, on)),
        1 => cpu().prop_map(GuestAction::Drain),
        6 => (cpu(), prop::sample::select(&TIMERS[..]), any::<bool>())
            .prop_map(|(cpu, intid, high)| GuestAction::Line(cpu, intid, high)),
        4 => (cpu(), cpu(), prop::sample::select(&Bits::ALL[..]), prop::sample::select(vec![0u32, 32, 64]))
            .prop_map(|(by, of, bits, first)| GuestAction::Read { by, of, bits, first }),
    ]
}

/// Requests `cases` sequences; under Miri, which takes a thousand times as long, only two.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { cases },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(100))]

    /// Compares every register after every step.
    #[test]
    fn what_a_guest_sees_is_what_the_specification_says(
        registers in 1usize..=5,
        steps in vec(step(), 1..80),
    ) {
        let mut world = World::started(registers);
        for step in steps {
            world.step(&step);
            world.compare();
        }
        world.settle();
    }
}

proptest! {
    #![proptest_config(config(400))]

    /// Compares only registers that the guest happens to read. So the steps between these reads need not exit, and the
    /// GIC must work without these exits.
    #[test]
    fn nothing_depends_on_exits(
        registers in 1usize..=5,
        steps in vec(step(), 1..120),
    ) {
        let mut world = World::started(registers);
        steps.iter().for_each(|step| world.step(step));
        world.settle();
        world.compare();
    }

    /// Starts after reset, with everything disabled.
    #[test]
    fn from_reset(registers in 1usize..=4, steps in vec(step(), 1..60)) {
        let mut world = World::new(registers);
        steps.iter().for_each(|step| world.step(step));
        world.settle();
        world.compare();
    }
}
