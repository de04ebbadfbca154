// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the list registers against a model of the CPU interface and of the interrupts that the
//! guest is owed.

use super::*;
use ListOperation::{Acknowledge, Activate, Deactivate, End, Inject, Maintenance, Withdraw};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// List registers, and the guest's CPU interface, which uses them.
#[derive(Clone, Debug)]
pub struct Fake {
    pub registers: Vec<ListRegister>,
    pub asked: Asked,
}

impl Fake {
    pub fn new(count: usize) -> Self {
        Self {
            registers: vec![ListRegister::EMPTY; count],
            asked: Asked::default(),
        }
    }

    /// ICC_IAR1: takes the most urgent pending interrupt, if it may preempt the running one.
    fn acknowledge(&mut self, running: u8) -> Option<u32> {
        let pending = self.registers.iter().enumerate();
        let (slot, _) = pending
            .filter(|(_, one)| one.is_pending() && !one.is_active() && one.priority() < running)
            .min_by_key(|(_, one)| one.priority())?;
        let one = self.registers[slot];
        self.registers[slot] = one.with_active().without_pending();
        Some(one.intid())
    }

    /// ICC_EOIR1.
    fn end(&mut self, intid: u32) {
        let mut active = self.registers.iter_mut().filter(|one| one.is_active());
        // Only the state changes (12.4.6): the rest stays in the register.
        active.find(|one| one.intid() == intid).unwrap().0 &= !(1 << 63);
    }

    fn is_waiting(&self) -> bool {
        self.registers.iter().any(|one| one.is_waiting())
    }
}

fn is_used(one: &ListRegister) -> bool {
    one.is_pending() || one.is_active()
}

impl Bank for Fake {
    fn count(&self) -> usize {
        self.registers.len()
    }
    fn empty(&self) -> u32 {
        let empty = self.registers.iter().enumerate();
        empty.fold(0, |bits, (n, one)| bits | u32::from(!is_used(one)) << n)
    }
    fn read(&self, n: usize) -> ListRegister {
        self.registers[n]
    }
    fn write(&mut self, n: usize, value: ListRegister) {
        self.registers[n] = value;
    }
    fn ask(&mut self, asked: Asked) {
        assert_ne!(self.asked, asked, "asked for what is so already");
        self.asked = asked;
    }
}

/// Actions of a guest, and events that can happen to it.
#[derive(Clone, Copy, Debug)]
enum ListOperation {
    Inject(u32),
    Acknowledge,
    End,
    Maintenance,
    Withdraw(u32),
    Activate(u32),
    Deactivate(u32),
}

/// The INTID that is mapped to a physical interrupt.
const TIMER: u32 = 27;
const ACTIVE: State = State {
    pending: false,
    active: true,
};

fn hardware(intid: u32) -> Option<u32> {
    (intid == TIMER).then_some(intid)
}

/// Gives INTIDs different priorities, so that preemption happens.
fn priority(intid: u32) -> u8 {
    (intid % 5 * 8 + 0x40) as u8
}

struct World {
    bank: Fake,
    list: List,
    /// States that the guest has to see.
    owed: BTreeMap<u32, State>,
}

impl World {
    fn new(count: usize) -> Self {
        Self {
            bank: Fake::new(count),
            list: List::new(),
            owed: BTreeMap::new(),
        }
    }

    fn step(&mut self, step: ListOperation) {
        let mut injected = false;
        match step {
            Inject(intid) => injected = self.inject(intid),
            Acknowledge => {
                if let Some(intid) = self.acknowledge() {
                    let state = self.owed.insert(intid, ACTIVE);
                    assert!(
                        state.is_some_and(|one| one.pending),
                        "{intid} was not pending"
                    );
                }
            }
            End => {
                if let Some(intid) = self.innermost() {
                    self.end(intid);
                }
            }
            Maintenance => {
                if self.bank.asked.refill && !self.bank.is_waiting() {
                    self.maintain();
                }
            }
            Withdraw(intid) => {
                let had = self.list.withdraw(&mut self.bank, intid);
                let state = self.owed.entry(intid).or_default();
                assert_eq!(had.is_some(), state.pending);
                state.pending = false;
            }
            Activate(intid) => self.activate(intid),
            Deactivate(intid) => {
                self.list
                    .set_active(&mut self.bank, intid, priority(intid), false);
                self.owed.entry(intid).or_default().active = false;
            }
        }
        self.check(injected);
    }

    /// Serves the maintenance interrupt. The result has to be that of the general search, except that a single
    /// interrupt may be in another register.
    fn maintain(&mut self) {
        let (mut bank, mut list) = (self.bank.clone(), self.list.clone());
        list.refill(&mut bank);
        assert!(self.list.maintain(&mut self.bank));
        let used = |bank: &Fake| {
            let used = bank.registers.iter().copied().filter(is_used);
            let mut used: Vec<u64> = used.map(|one| one.0).collect();
            used.sort_unstable();
            used
        };
        assert_eq!(used(&self.bank), used(&bank));
        assert_eq!(self.bank.asked, bank.asked);
        assert_eq!(self.list.queued(), list.queued());
    }

    /// Returns the INTID that the guest acknowledged last.
    fn innermost(&self) -> Option<u32> {
        let active = self.owed.iter().filter(|(_, state)| state.active);
        let active = active.map(|(&intid, _)| intid);
        active.min_by_key(|&intid| priority(intid))
    }

    /// Acknowledges an interrupt. If the access traps, the registers are refilled.
    fn acknowledge(&mut self) -> Option<u32> {
        let taken = self
            .bank
            .acknowledge(self.innermost().map_or(255, priority));
        if self.bank.asked.traps {
            self.list.refill(&mut self.bank);
        }
        taken
    }

    fn end(&mut self, intid: u32) {
        if self.bank.asked.traps {
            assert!(self.list.deactivate(&mut self.bank, intid).is_some());
        } else {
            self.bank.end(intid);
        }
        self.owed.entry(intid).or_default().active = false;
    }

    /// Injects `intid`; returns whether there was an interrupt to inject.
    fn inject(&mut self, intid: u32) -> bool {
        let state = self.owed.entry(intid).or_default();
        // A physical interrupt doesn't arrive while it is active.
        if hardware(intid).is_some() && state.active {
            return false;
        }
        state.pending = true;
        // The hypervisor, too, takes this shortcut if nothing else has to be done.
        if intid < PRIVATE {
            let value = ListRegister::pending(intid, priority(intid), hardware(intid));
            self.list.expect_arrival(intid, Some(value));
            if self.list.arrive(&mut self.bank, intid) {
                return true;
            }
        }
        self.list
            .inject(&mut self.bank, intid, priority(intid), hardware(intid));
        true
    }

    fn activate(&mut self, intid: u32) {
        self.list
            .set_active(&mut self.bank, intid, priority(intid), true);
        let state = self.owed.entry(intid).or_default();
        state.active = true;
        // Only the physical line makes it pending again.
        state.pending &= hardware(intid).is_none();
    }

    fn check(&self, injected: bool) {
        for (&intid, &state) in &self.owed {
            assert_eq!(self.list.state(&self.bank, intid), state, "INTID {intid}");
        }
        let registers = self.bank.registers.iter();
        let listed: Vec<_> = registers.filter(|one| is_used(one)).collect();
        for (n, one) in listed.iter().enumerate() {
            let twice = listed[n + 1..].iter().any(|two| two.intid() == one.intid());
            assert!(!twice, "{} is listed twice", one.intid());
        }
        let both = |one: &&ListRegister| one.is_pending() && one.is_active();
        let both = listed.iter().filter(|one| both(one));
        assert!(both.into_iter().all(|one| one.hw().is_none()));
        let waits = !self.list.queue.is_empty();
        assert_eq!(self.list.straight, if waits { 0 } else { PRIVATE.into() });
        for (first, arrival) in self.list.firsts.iter().zip(&self.list.arrivals) {
            let here = (arrival.slot == 0).then_some(arrival.value);
            assert_eq!(*first, here.unwrap_or(ListRegister::EMPTY));
        }
        let mut queue = self.list.queue.iter();
        let asked = Asked {
            refill: queue.clone().any(|one| one.is_waiting()),
            traps: queue.any(|one| one.is_active()),
        };
        assert_eq!(self.bank.asked, asked);
        if asked.refill && !self.bank.is_waiting() {
            let (mut bank, mut list) = (self.bank.clone(), self.list.clone());
            assert!(list.maintain(&mut bank));
            assert!(bank.is_waiting(), "raised without end");
        }
        if injected {
            let owed = self.owed.iter();
            let best = owed.filter(|(_, state)| state.pending && !state.active);
            let best = best.map(|(&intid, _)| priority(intid)).min();
            let pending = listed.iter().filter(|one| one.is_waiting());
            assert_eq!(pending.map(|one| one.priority()).min(), best);
        }
    }

    /// Lets the guest handle interrupts until no more come.
    fn settle(&mut self) {
        for _ in 0..1000 {
            self.step(End);
            self.step(Maintenance);
            self.step(Acknowledge);
        }
        let done = self.owed.values().all(|state| *state == State::default());
        assert!(done, "lost: {:?}", self.owed);
    }
}

fn step() -> impl Strategy<Value = ListOperation> {
    prop_oneof![
        4 => (0u32..40).prop_map(Inject),
        3 => Just(Acknowledge),
        3 => Just(End),
        2 => Just(Maintenance),
        1 => (0u32..40).prop_map(Withdraw),
        1 => (0u32..40).prop_map(Activate),
        1 => (0u32..40).prop_map(Deactivate),
        1 => Just(Inject(TIMER)),
        1 => prop_oneof![Just(Activate(TIMER)), Just(Withdraw(TIMER))],
    ]
}

proptest! {
    #[test]
    fn nothing_is_lost_or_doubled(count in 1usize..=16, steps in proptest::collection::vec(step(), 1..120)) {
        let mut world = World::new(count);
        steps.into_iter().for_each(|step| world.step(step));
        world.settle();
    }
}

/// Every sequence of 7 steps on one and two registers with three INTIDs.
#[test]
fn short_sequences_exhaustively() {
    let steps = [
        Inject(0),
        Inject(1),
        Inject(4),
        Acknowledge,
        End,
        Maintenance,
    ];
    const DEPTH: u32 = if cfg!(miri) { 2 } else { 7 };
    for count in 1..=2 {
        for sequence in 0..steps.len().pow(DEPTH) {
            let mut world = World::new(count);
            let mut rest = sequence;
            for _ in 0..DEPTH {
                world.step(steps[rest % steps.len()]);
                rest /= steps.len();
            }
        }
    }
}

#[test]
fn a_hardware_interrupt_is_never_active_and_pending() {
    let mut world = World::new(2);
    world.list.inject(&mut world.bank, 27, 0x80, Some(27));
    assert_eq!(world.bank.acknowledge(255), Some(27));
    // The interrupt arrives while still active: its deactivation is under way.
    world.list.inject(&mut world.bank, 27, 0x80, Some(27));
    let both = |one: &ListRegister| one.is_active() && one.is_pending();
    assert!(!world.bank.registers.iter().any(both));
    // The guest's end also ends the physical interrupt, whose line then raises it again.
    assert_eq!(world.bank.asked, Asked::default());
    world.bank.end(27);
    assert_eq!(world.bank.acknowledge(255), None);
}

#[test]
fn a_more_urgent_one_takes_the_register_of_the_innermost() {
    let mut world = World::new(2);
    // Each INTID is more urgent than the one before.
    for intid in [4, 3, 2, 1, 0] {
        world.step(Inject(intid));
        assert_eq!(world.acknowledge(), Some(intid));
        world.owed.insert(intid, ACTIVE);
    }
    let listed: Vec<u32> = world.bank.registers.iter().map(|one| one.intid()).collect();
    assert_eq!((listed, world.list.queue.len()), (vec![4, 0], 3));
    for intid in [0, 1, 2, 3, 4] {
        assert_eq!(world.bank.asked.traps, intid < 4, "{intid}");
        world.step(End);
        assert!(!world.list.state(&world.bank, intid).active);
    }
}

#[test]
fn an_active_one_keeps_its_priority_in_its_register() {
    let mut world = World::new(2);
    world.step(Inject(2));
    world.step(Acknowledge);
    // The INTID arrives again with another priority, with which hardware could not end the active interrupt.
    world.list.inject(&mut world.bank, 2, 0x10, None);
    assert!(world.bank.asked.traps && world.list.state(&world.bank, 2).active);
    assert_eq!(world.bank.empty() & 0b11, 0b11);
    let old = world.list.deactivate(&mut world.bank, 2);
    assert!(old.is_some_and(|one| one.is_pending()));
    assert_eq!(world.bank.acknowledge(255), Some(2));
}

/// Returns a bank of two full registers, after the guest has acknowledged both interrupts and ended
/// the second, with the interrupts `waiting` in the queue.
fn second_ended(waiting: &[u32]) -> World {
    let mut world = World::new(2);
    for &intid in [0, 5].iter().chain(waiting) {
        world
            .list
            .inject(&mut world.bank, intid, priority(intid), None);
    }
    for intid in [0, 5] {
        assert_eq!(world.bank.acknowledge(255), Some(intid));
    }
    world.bank.end(5);
    world
}

#[test]
fn the_only_one_that_waits_takes_its_last_register() {
    let mut world = second_ended(&[6]);
    world.list.remember_slot(6, 1);
    assert!(world.list.maintain(&mut world.bank));
    assert_eq!(world.bank.registers[1].intid(), 6);
    assert!(world.bank.registers[1].is_waiting());
    assert_eq!(world.bank.asked, Asked::default());
    assert!(!world.list.maintain(&mut world.bank), "nothing waits");
}

#[test]
fn the_only_one_that_waits_takes_another_register_if_its_last_is_in_use() {
    let mut world = second_ended(&[6]);
    world.list.remember_slot(6, 0);
    assert!(world.list.maintain(&mut world.bank));
    let intids: Vec<u32> = world.bank.registers.iter().map(|one| one.intid()).collect();
    assert_eq!((intids, world.list.queue.len()), (vec![0, 6], 0));
}

#[test]
fn the_most_urgent_of_several_that_wait_is_listed() {
    // Priorities 0x58, 0x48 and 0x50.
    let mut world = second_ended(&[8, 11, 7]);
    assert!(world.list.maintain(&mut world.bank));
    assert_eq!(world.bank.registers[1].intid(), 11);
    let waiting: Vec<u32> = world.list.queue.iter().map(|one| one.intid()).collect();
    assert_eq!(waiting.len(), 2);
    assert!(waiting.contains(&8) && waiting.contains(&7) && world.bank.asked.refill);
}
