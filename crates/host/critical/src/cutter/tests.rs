// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use crate::Class;

const NEAR: Tpidr = 0xa2000;
const FAR: Tpidr = 0xab000;
const THIRD: Tpidr = 0xac000;
const WORD: u64 = 0x100;
const SERVED: u64 = 0x200;

/// A machine with one thread, whose counter counts instructions.
#[derive(Default)]
struct OneThread {
    cutter: Cutter,
    now: Counts,
}

impl OneThread {
    fn new() -> Self {
        let mut machine = Self::default();
        machine.cutter.cell(7);
        machine
    }

    /// So many instructions at EL1; the next report is about the last.
    fn el1(&mut self, many: u64) -> &mut Self {
        self.now.levels[0] += many;
        self
    }

    fn el2(&mut self, many: u64) -> &mut Self {
        self.now.levels[1] += many;
        self
    }

    fn count(&mut self, class: Class, many: u64) -> &mut Self {
        self.now.classes[class as usize] += many;
        self
    }

    fn begin(&mut self, tpidr: Tpidr) {
        self.el1(1);
        self.cutter.begins(tpidr, self.now);
        self.cutter.value(tpidr, self.now.total());
    }

    fn end(&mut self, tpidr: Tpidr) {
        self.cutter.ends(tpidr, self.now);
        self.cutter.value(tpidr, self.now.total());
        self.el1(20);
        self.cutter.records(tpidr);
    }

    fn pause(&mut self, tpidr: Tpidr) {
        self.cutter.pauses(tpidr, self.now, true);
    }

    fn run(&mut self, tpidr: Tpidr) {
        self.cutter.runs(tpidr, self.now);
    }

    fn store(&mut self, tpidr: Tpidr, address: u64) {
        self.cutter.stores(tpidr, self.now, address);
    }

    fn load(&mut self, tpidr: Tpidr, address: u64) {
        self.cutter.loads(tpidr, self.now, address);
    }

    fn send(&mut self, tpidr: Tpidr) {
        self.cutter.sends(tpidr, self.now, ALL_OTHERS);
    }

    fn take(&mut self, tpidr: Tpidr) {
        self.cutter.acknowledges(tpidr, self.now);
    }

    fn only(&self) -> Sample {
        let mut samples = self.cutter.samples().iter();
        let (&(cell, sample), &times) = samples.next().expect("a sample");
        assert_eq!((cell, times, samples.next()), (7, 1, None));
        assert_eq!(sample.check(), Ok(()));
        sample
    }
}

/// A round trip by interrupts that are delivered directly, as it is traced.
fn by_interrupt(machine: &mut OneThread) {
    machine.begin(NEAR);
    machine.el1(3).store(NEAR, WORD);
    machine.el1(6).send(NEAR);
    machine.count(Class::Statistics, 3).el1(10).pause(NEAR);
    // The first after the wait, the interrupt's acknowledge, the request.
    machine.el1(1).run(FAR);
    machine.el1(5).take(FAR);
    machine.count(Class::Flags, 2).el1(12).load(FAR, WORD);
    machine.el1(9).store(FAR, WORD + 4);
    machine.el1(4).send(FAR);
    machine.el1(11).pause(FAR);
    machine.el1(1).run(NEAR);
    machine.el1(5).take(NEAR);
    machine.el1(12).load(NEAR, WORD + 4);
    machine.count(Class::Clock, 2).el1(8).end(NEAR);
}

#[test]
fn the_path_leaves_out_what_senders_do_afterwards() {
    let mut machine = OneThread::new();
    by_interrupt(&mut machine);
    let sample = machine.only();
    assert_eq!((sample.value, sample.work.total()), (87, 87));
    assert_eq!(sample.path.total(), 66);
    // The sender's statistics are off the path, what it finds is on it.
    assert_eq!(sample.work.classes, [3, 2, 2, 0]);
    assert_eq!(sample.path.classes, [0, 2, 2, 0]);
}

#[test]
fn a_store_is_followed_from_the_look_after_the_wait() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(3).store(NEAR, WORD);
    machine.el1(22).pause(NEAR);
    machine.el1(1).run(FAR);
    machine.el1(4).load(FAR, WORD);
    machine.el1(11).store(FAR, WORD + 4);
    machine.el1(24).pause(FAR);
    machine.el1(1).run(NEAR);
    machine.el1(4).load(NEAR, WORD + 4);
    machine.el1(10).end(NEAR);
    let sample = machine.only();
    assert_eq!((sample.value, sample.path.total()), (80, 34));
}

/// A WFE that traps: the CPU stands still at EL2, and at EL1 once more before it looks.
#[test]
fn a_store_is_followed_through_all_stops_since_the_last_look() {
    for in_first in [true, false] {
        let mut machine = OneThread::new();
        machine.begin(NEAR);
        machine.pause(NEAR);
        machine.el1(3).load(FAR, WORD);
        machine.el1(2).pause(FAR);
        machine.el1(8);
        if in_first {
            machine.store(NEAR, WORD);
        }
        machine.el1(20).pause(NEAR);
        machine.el2(6).pause(FAR);
        machine.el1(7);
        if !in_first {
            machine.store(NEAR, WORD);
        }
        machine.el1(1).pause(NEAR);
        machine.el1(4).load(FAR, WORD);
        machine.el1(9).store(FAR, WORD + 4);
        machine.el1(30).pause(FAR);
        machine.el1(8).load(NEAR, WORD + 4);
        machine.el1(2).end(NEAR);
        let sample = machine.only();
        // The sender's way to its store, and the receiver's since the stop in which that came.
        let path = if in_first { 8 + 6 + 4 } else { 28 + 7 + 4 };
        assert_eq!(sample.path.total(), path + 9 + 8 + 2, "{in_first}");
        assert!(!sample.unclear);
    }
}

/// A store that an earlier look has seen is not the cause of what follows a later look.
#[test]
fn a_look_ends_the_wait() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(2).pause(FAR);
    machine.el1(3).store(NEAR, SERVED);
    machine.el1(2).pause(NEAR);
    machine.el1(4).load(FAR, WORD);
    machine.el1(1).pause(FAR);
    machine.el1(2).pause(NEAR);
    machine.el1(6).load(FAR, SERVED);
    machine.el1(5).store(FAR, WORD + 4);
    machine.el1(1).pause(FAR);
    machine.el1(2).load(NEAR, WORD + 4);
    machine.el1(3).end(NEAR);
    // The other one ran in parallel from the beginning.
    assert_eq!(machine.only().path.total(), 2 + 4 + 1 + 6 + 5 + 2 + 3);
}

#[test]
fn only_the_first_thing_that_is_found_is_the_cause() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(3).store(NEAR, WORD);
    // The sender promises to look, in its own word, before it waits.
    machine.el1(19).store(NEAR, WORD + 4);
    machine.el1(3).pause(NEAR);
    machine.el1(1).run(FAR);
    machine.el1(4).load(FAR, WORD);
    // The answer goes to that word, which is read and written.
    machine.el1(9).load(FAR, WORD + 4);
    machine.el1(2).store(FAR, WORD + 4);
    machine.el1(24).pause(FAR);
    machine.el1(5).load(NEAR, WORD + 4);
    machine.el1(10).end(NEAR);
    assert_eq!(machine.only().path.total(), 3 + 16 + 15);
}

#[test]
fn polls_that_found_nothing_are_beside() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    for _ in 0..5 {
        machine.el1(3).load(NEAR, WORD);
        machine.el1(1).pause(NEAR);
    }
    // The first turn of the other one does not show anything yet.
    machine.el1(7).pause(FAR);
    machine.el1(3).load(NEAR, WORD);
    machine.el1(1).pause(NEAR);
    machine.el1(10).store(FAR, WORD);
    machine.el1(2).pause(FAR);
    machine.el1(3).load(NEAR, WORD);
    machine.el1(2).end(NEAR);
    let sample = machine.only();
    // The other one ran in parallel from the beginning: 17, then the look and the end.
    assert_eq!(sample.path.total(), 17 + 5);
    assert_eq!(sample.value, 5 * 4 + 7 + 4 + 12 + 5);
}

#[test]
fn exits_and_levels_add_up() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(9).send(NEAR);
    machine.run(NEAR);
    machine.cutter.exits(Cause::Sgi);
    machine.el2(14).send(NEAR);
    machine.el2(8);
    machine.el1(10).pause(NEAR);
    machine.cutter.runs(FAR, machine.now);
    machine.cutter.exits(Cause::Irq);
    machine.el2(3).take(FAR);
    machine.el2(22);
    machine.el1(2).take(FAR);
    machine.el1(9).store(FAR, SERVED);
    machine.el1(4).pause(FAR);
    machine.el1(2).load(NEAR, SERVED);
    machine.el1(2).end(NEAR);
    let sample = machine.only();
    assert_eq!(sample.exits[Cause::Sgi as usize], 1);
    assert_eq!(sample.exits[Cause::Irq as usize], 1);
    assert_eq!(sample.exits.iter().sum::<u64>(), 2);
    assert_eq!(sample.work.levels, [38, 47, 0]);
    // To the physical send, the receiver's way, and the answer's.
    assert_eq!(sample.path.levels, [9 + 11 + 4, 14 + 25, 0]);
}

#[test]
fn of_several_answers_the_latest_counts() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(5).send(NEAR);
    machine.el1(1).pause(NEAR);
    machine.el1(40).take(FAR);
    machine.el1(1).store(FAR, SERVED);
    machine.el1(1).pause(FAR);
    machine.el1(2).load(NEAR, SERVED);
    machine.el1(1).pause(NEAR);
    machine.el1(10).take(THIRD);
    machine.el1(1).store(THIRD, SERVED);
    machine.el1(1).pause(THIRD);
    machine.el1(2).load(NEAR, SERVED);
    machine.el1(3).end(NEAR);
    assert_eq!(machine.only().path.total(), 5 + 41 + 2 + 3);
}

#[test]
fn an_interrupt_is_for_whom_it_names() {
    let list = |aff1: u64, range: u64, bits: u64| aff1 << 16 | range << 44 | bits;
    assert!(is_for(list(0, 0, 2), Some(1)));
    assert!(!is_for(list(0, 0, 2), Some(2)));
    assert!(is_for(list(1, 1, 1), Some(0x110)));
    assert!(!is_for(list(0, 1, 1), Some(0x110)));
    assert!(is_for(ALL_OTHERS, Some(5)));
    assert!(is_for(0, None));

    let mut machine = OneThread::new();
    machine.cutter.affinity(FAR, 1);
    machine.cutter.affinity(THIRD, 2);
    machine.begin(NEAR);
    machine.el1(5);
    machine.cutter.sends(NEAR, machine.now, 1 << 1);
    machine.el1(30);
    machine.cutter.sends(NEAR, machine.now, 1 << 2);
    machine.el1(1).pause(NEAR);
    machine.el1(3).take(FAR);
    machine.el1(1).store(FAR, SERVED);
    machine.el1(1).pause(FAR);
    machine.el1(1).load(NEAR, SERVED);
    machine.el1(1).end(NEAR);
    assert_eq!(machine.only().path.total(), 5 + 4 + 2);
}

#[test]
fn a_change_of_cpus_without_a_pause_is_told() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(9).send(NEAR);
    // The emulator's turn ends in the middle of something.
    machine.el1(5).run(FAR);
    machine.el1(5).pause(FAR);
    machine.el1(5).end(NEAR);
    let sample = machine.only();
    assert!(sample.unclear);
    assert_eq!(sample.work.total(), 24);
}

#[test]
fn what_is_not_counted_by_the_guest_is_no_sample() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(3);
    machine.cutter.ends(NEAR, machine.now);
    machine.cutter.value(NEAR, machine.now.total());
    assert!(machine.cutter.has_ended());
    by_interrupt(&mut machine);
    assert!(!machine.cutter.has_ended() && !machine.cutter.is_open());
    assert_eq!(machine.only().value, 87);
}

#[test]
fn what_another_part_of_the_harness_counts_is_no_sample_of_a_pass() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(5);
    machine.cutter.ends(NEAR, machine.now);
    machine.cutter.value(NEAR, machine.now.total());
    assert!(machine.cutter.has_ended());
    machine.cutter.cell(NO_CELL);
    assert!(!machine.cutter.has_ended());
    machine.cutter.records(NEAR);
    machine.begin(NEAR);
    machine.el1(5);
    machine.end(NEAR);
    assert!(machine.cutter.samples().is_empty());
}

#[test]
fn samples_of_two_cpus_may_overlap() {
    let mut machine = OneThread::new();
    machine.begin(NEAR);
    machine.el1(4).pause(NEAR);
    machine.el1(1);
    machine.cutter.begins(FAR, machine.now);
    machine.cutter.value(FAR, machine.now.total());
    machine.el1(6).store(FAR, WORD);
    machine.el1(3).pause(FAR);
    machine.el1(2).load(NEAR, WORD);
    machine.el1(1).end(NEAR);
    machine.cutter.pauses(NEAR, machine.now, false);
    machine.el1(2).end(FAR);
    let paths: Vec<u64> = machine
        .cutter
        .samples()
        .keys()
        .map(|(_, sample)| sample.path.total())
        .collect();
    let values: Vec<u64> = machine
        .cutter
        .samples()
        .keys()
        .map(|(_, sample)| sample.value)
        .collect();
    // The first one's: the other's seven, the look, the end. The other's own.
    assert_eq!(values, [17, 34]);
    assert_eq!(paths, [10, 11]);
}

#[test]
fn the_work_of_bystanders_is_not_that_of_the_parties() {
    const TARGET: Tpidr = 0xad000;
    for bystanders in [0, 1, 6] {
        let mut machine = OneThread::new();
        machine.begin(NEAR);
        machine.el1(3).store(NEAR, WORD);
        machine.el1(5).pause(NEAR);
        for n in 0..bystanders {
            let bystander = THIRD + 0x10000 * (n + 1);
            // It looks at a word of its own, and changes it.
            machine.el1(4).load(bystander, SERVED + 0x100 * n);
            machine.el1(4).store(bystander, SERVED + 0x100 * n);
            machine.el1(1).pause(bystander);
        }
        // A turn before it finds the store is its own as well.
        machine.el1(2).pause(TARGET);
        machine.el1(4).load(TARGET, WORD);
        machine.el1(7).store(TARGET, WORD + 4);
        // Work after its answer is not on the path, but keeps it from the next call.
        machine.el1(50).pause(TARGET);
        machine.el1(2).load(NEAR, WORD + 4);
        machine.el1(3).end(NEAR);
        let sample = machine.only();
        assert_eq!(sample.parties.total(), 8 + 2 + 61 + 5);
        assert_eq!(sample.work.total(), 76 + 9 * bystanders);
        assert_eq!(sample.path.total(), 3 + 4 + 7 + 2 + 2 + 3);
    }
}

#[test]
fn a_cpu_that_was_told_something_before_the_sample_is_no_party() {
    let mut machine = OneThread::new();
    machine.begin(THIRD);
    machine.el1(2).store(NEAR, WORD);
    machine.el1(1).pause(NEAR);
    machine.begin(NEAR);
    machine.el1(1).pause(NEAR);
    machine.el1(5).load(FAR, WORD);
    machine.el1(1).pause(FAR);
    machine.el1(1).end(NEAR);
    assert_eq!(machine.only().parties.total(), 2);
}
