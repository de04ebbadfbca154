// SPDX-License-Identifier: MIT OR Apache-2.0

use super::releases::{ALL_OTHERS, sgi_is_for, sgi_of_version2};
use super::*;
use crate::Class;

mod overlap;

const NEAR: Tpidr = 0xa2000;
const FAR: Tpidr = 0xab000;
const THIRD: Tpidr = 0xac000;
const WORD: u64 = 0x100;
const SERVED: u64 = 0x200;

/// A machine whose CPUs run in one thread, and whose counter counts instructions.
#[derive(Default)]
struct OneThread {
    cutter: Cutter,
    now: Counts,
}

impl OneThread {
    fn new() -> Self {
        let mut machine = Self {
            cutter: Cutter::with_stretches(),
            ..Self::default()
        };
        machine.cutter.set_cell(7);
        machine
    }

    /// Executes `many` instructions at EL1. The next report is about the last of them.
    fn el1(&mut self, many: u64) -> &mut Self {
        self.now.levels[1] += many;
        self
    }

    /// Executes the steps in `text`, which are separated by `; `. A step usually has a number of instructions at EL1
    /// (`+`) or EL2 (`2+`), a CPU (N, F or T), and what the CPU then does. Other steps add a number of instructions of
    /// a class.
    fn steps(&mut self, text: &str) {
        text.split("; ").for_each(|step| self.step(step));
    }

    fn step(&mut self, step: &str) {
        let mut words: Vec<&str> = step.split(' ').collect();
        if let Some((level, many)) = words[0].split_once('+') {
            self.now.levels[1 + usize::from(!level.is_empty())] += many.parse::<u64>().unwrap();
            words.remove(0);
        }
        let cpu = match words.first() {
            None => return,
            Some(&"N") => NEAR,
            Some(&"F") => FAR,
            Some(&"T") => THIRD,
            Some(class) => {
                let class = match *class {
                    "statistics" => Class::Statistics,
                    "flags" => Class::Flags,
                    "clock" => Class::Clock,
                    other => panic!("no class {other}"),
                };
                return self.now.classes[class as usize] += words[1].parse::<u64>().unwrap();
            }
        };
        let address = match words.get(2) {
            Some(&"W4") => WORD + 4,
            Some(&"S") => SERVED,
            _ => WORD,
        };
        self.act(words[1], cpu, address);
    }

    /// Makes CPU `cpu` perform the step `what`, at `address` if the step has one.
    fn act(&mut self, what: &str, cpu: Tpidr, address: u64) {
        match what {
            "begin" => {
                self.el1(1);
                self.cutter.record_begin(cpu, self.now);
                self.cutter.record_clock(cpu, self.now.total());
            }
            "end" => {
                self.cutter.record_end(cpu, self.now);
                self.cutter.record_clock(cpu, self.now.total());
                self.el1(20);
                if let Some(recorded) = self.cutter.record_counted(cpu) {
                    add_up(&recorded);
                }
            }
            "pause" => self.cutter.record_pause(cpu, self.now, true),
            "run" => self.cutter.record_run(cpu, self.now, true),
            "go" => self.cutter.record_run(cpu, self.now, false),
            "store" => self.cutter.record_store(cpu, self.now, address),
            "load" => self.cutter.record_load(cpu, self.now, address),
            "send" => self.cutter.record_send(cpu, self.now, ALL_OTHERS),
            "interrupt" => self.cutter.record_interrupt(cpu, self.now),
            "take" => self.cutter.record_acknowledge(cpu, self.now),
            other => panic!("no step {other}"),
        }
    }

    fn sample(&self) -> Sample {
        let mut samples = self.cutter.samples().iter();
        let (&(cell, sample), &times) = samples.next().expect("a sample");
        assert_eq!((cell, times, samples.next()), (7, 1, None));
        assert_eq!(sample.check(), Ok(()));
        sample
    }
}

/// Checks that the stretches of a sample add up to the sample's numbers of instructions.
fn add_up(recorded: &Recorded) {
    let sum = |stretches: &[Stretch]| stretches.iter().map(Stretch::len).sum::<u64>();
    let Recorded {
        sample, path, work, ..
    } = recorded;
    assert_eq!(sum(path), sample.path.total(), "{recorded:?}");
    assert_eq!(sum(work), sample.work.total(), "{recorded:?}");
    let mut next = path.windows(2);
    assert!(next.all(|pair| pair[0].to <= pair[1].from), "{recorded:?}");
}

/// Makes a round trip by interrupts that are delivered directly, with the steps of a recorded round trip.
fn by_interrupt(machine: &mut OneThread) {
    machine.steps("N begin; +3 N store W; +6 N send; statistics 3; +10 N pause");
    // F executes its first instruction after the wait, acknowledges the interrupt, and finds the request.
    machine.steps("+1 F run; +5 F take; flags 2; +12 F load W; +9 F store W4; +4 F send");
    machine.steps("+11 F pause; +1 N run; +5 N take; +12 N load W4; clock 2; +8 N end");
}

#[test]
fn the_path_leaves_out_what_senders_do_afterwards() {
    let mut machine = OneThread::new();
    by_interrupt(&mut machine);
    let sample = machine.sample();
    assert_eq!((sample.value, sample.work.total()), (87, 87));
    assert_eq!(sample.path.total(), 66);
    // The sender updates its statistics after sending, so this work is off the path. The flags and the clock read are
    // on the path.
    assert_eq!(sample.work.classes, [3, 2, 2, 0]);
    assert_eq!(sample.path.classes, [0, 2, 2, 0]);
}

#[test]
fn a_store_is_followed_from_the_look_after_the_wait() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +3 N store W; +22 N pause; +1 F run; +4 F load W; +11 F store W4");
    machine.steps("+24 F pause; +1 N run; +4 N load W4; +10 N end");
    let sample = machine.sample();
    assert_eq!((sample.value, sample.path.total()), (80, 34));
}

/// A WFE traps: the CPU stops at EL2, and once more at EL1, before it looks for stores.
#[test]
fn a_store_is_followed_through_all_stops_since_the_last_look() {
    for in_first in [true, false] {
        let mut machine = OneThread::new();
        machine.steps("N begin; N pause; +3 F load W; +2 F pause; +8");
        if in_first {
            machine.steps("N store W");
        }
        machine.steps("+20 N pause; 2+6 F pause; +7");
        if !in_first {
            machine.steps("N store W");
        }
        machine
            .steps("+1 N pause; +4 F load W; +9 F store W4; +30 F pause; +8 N load W4; +2 N end");
        let sample = machine.sample();
        // The path has the sender's instructions up to its store, and the receiver's instructions since the stop during
        // which the store happened.
        let path = if in_first { 8 + 6 + 4 } else { 28 + 7 + 4 };
        assert_eq!(sample.path.total(), path + 9 + 8 + 2, "{in_first}");
        assert!(!sample.unclear);
    }
}

/// A hypervisor's handler takes a lock before it acknowledges the interrupt. The sender released this lock before it
/// sent the interrupt.
#[test]
fn an_interrupt_ends_the_wait_before_what_its_handler_loads() {
    for (interrupted, path) in [(true, 3 + 5 + 7), (false, 3 + 7)] {
        let mut machine = OneThread::new();
        machine.steps("F pause; N begin; +3 N store S; +5 N send; +4 N pause");
        if interrupted {
            machine.steps("F interrupt");
        }
        machine.steps("+2 F load S; +2 F take; +3 F store W; +9 F pause; +1 N load W; +2 N end");
        assert_eq!(machine.sample().path.total(), path + 1 + 2, "{interrupted}");
    }
}

/// If a CPU has already seen a store, the store is not the cause of what the CPU finds later.
#[test]
fn a_look_ends_the_wait() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +2 F pause; +3 N store S; +2 N pause; +4 F load W; +1 F pause");
    machine.steps("+2 N pause; +6 F load S; +5 F store W4; +1 F pause; +2 N load W4; +3 N end");
    // The other CPU executed in parallel from the beginning.
    assert_eq!(machine.sample().path.total(), 2 + 4 + 1 + 6 + 5 + 2 + 3);
}

#[test]
fn only_the_first_thing_that_is_found_is_the_cause() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +3 N store W");
    // Before the sender waits, it announces, by a store to W4, that it will look for an answer there.
    machine.steps("+19 N store W4; +3 N pause; +1 F run; +4 F load W");
    // The answer is stored to this word, from which F loads first.
    machine.steps("+9 F load W4; +2 F store W4; +24 F pause; +5 N load W4; +10 N end");
    assert_eq!(machine.sample().path.total(), 3 + 16 + 15);
}

#[test]
fn polls_that_found_nothing_are_beside() {
    let mut machine = OneThread::new();
    machine.steps("N begin");
    for _ in 0..5 {
        machine.steps("+3 N load W; +1 N pause");
    }
    // After the other CPU's first turn, there is no store to be found yet.
    machine.steps("+7 F pause; +3 N load W; +1 N pause; +10 F store W; +2 F pause; +3 N load W");
    machine.steps("+2 N end");
    let sample = machine.sample();
    // The other CPU executed in parallel from the beginning. The path is its 17 instructions, and then the look and the
    // end of the sample.
    assert_eq!(sample.path.total(), 17 + 5);
    assert_eq!(sample.value, 5 * 4 + 7 + 4 + 12 + 5);
}

#[test]
fn exits_and_levels_add_up() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +9 N send; N run");
    machine.cutter.record_exit(Cause::Sgi);
    machine.steps("2+14 N send; 2+8; +10 N pause");
    machine.cutter.record_run(FAR, machine.now, true);
    machine.cutter.record_exit(Cause::Irq);
    machine.steps("2+3 F take; 2+22; +2 F take; +9 F store S; +4 F pause; +2 N load S; +2 N end");
    let sample = machine.sample();
    assert_eq!(sample.exits[Cause::Sgi as usize], 1);
    assert_eq!(sample.exits[Cause::Irq as usize], 1);
    assert_eq!(sample.exits.iter().sum::<u64>(), 2);
    assert_eq!(sample.work.levels, [0, 38, 47, 0]);
    // The three terms are the instructions up to the write that really sends the SGI, the receiver's instructions, and
    // the instructions from the answer to the end of the sample.
    assert_eq!(sample.path.levels, [0, 9 + 11 + 4, 14 + 25, 0]);
}

#[test]
fn of_several_answers_the_latest_counts() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +5 N send; +1 N pause; +40 F take; +1 F store S; +1 F pause");
    machine.steps("+2 N load S; +1 N pause; +10 T take; +1 T store S; +1 T pause; +2 N load S");
    machine.steps("+3 N end");
    assert_eq!(machine.sample().path.total(), 5 + 41 + 2 + 3);
}

#[test]
fn an_interrupt_is_for_whom_it_names() {
    let list = |aff1: u64, range: u64, bits: u64| aff1 << 16 | range << 44 | bits;
    assert!(sgi_is_for(list(0, 0, 2), 1));
    assert!(!sgi_is_for(list(0, 0, 2), 2));
    assert!(sgi_is_for(list(1, 1, 1), 0x110));
    assert!(!sgi_is_for(list(0, 1, 1), 0x110));
    assert!(sgi_is_for(ALL_OTHERS, 5));
    let is_for = |value, cpu| sgi_of_version2(value).is_some_and(|value| sgi_is_for(value, cpu));
    assert!(is_for(1 << 18 | 7, 2) && !is_for(1 << 18 | 7, 1));
    assert!(is_for(1 << 24 | 7, 5));
    assert_eq!(sgi_of_version2(2 << 24 | 7), None);

    let mut machine = OneThread::new();
    machine.cutter.set_affinity(FAR, 1);
    machine.cutter.set_affinity(THIRD, 2);
    machine.steps("N begin; +5");
    machine.cutter.record_send(NEAR, machine.now, 1 << 1);
    machine.steps("+30");
    machine.cutter.record_send(NEAR, machine.now, 1 << 2);
    machine.steps("+1 N pause; +3 F take; +1 F store S; +1 F pause; +1 N load S; +1 N end");
    assert_eq!(machine.sample().path.total(), 5 + 4 + 2);
}

#[test]
fn a_change_of_cpus_without_a_pause_is_told() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +9 N send");
    // The emulator ends N's turn in the middle of an instruction sequence.
    machine.steps("+5 F run; +5 F pause; +5 N end");
    let sample = machine.sample();
    assert!(sample.unclear);
    assert_eq!(sample.work.total(), 24);
}

#[test]
fn what_is_not_counted_by_the_guest_is_no_sample() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +3");
    machine.cutter.record_end(NEAR, machine.now);
    machine.cutter.record_clock(NEAR, machine.now.total());
    assert!(machine.cutter.has_ended());
    by_interrupt(&mut machine);
    assert!(!machine.cutter.has_ended() && !machine.cutter.is_open());
    assert_eq!(machine.sample().value, 87);
}

#[test]
fn what_another_part_of_the_harness_counts_is_no_sample_of_a_pass() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +5");
    machine.cutter.record_end(NEAR, machine.now);
    machine.cutter.record_clock(NEAR, machine.now.total());
    assert!(machine.cutter.has_ended());
    machine.cutter.set_cell(NO_CELL);
    assert!(!machine.cutter.has_ended());
    machine.cutter.record_counted(NEAR);
    machine.steps("N begin; +5; N end");
    assert!(machine.cutter.samples().is_empty());
}

#[test]
fn the_work_of_bystanders_is_not_that_of_the_parties() {
    for bystanders in [0, 1, 6] {
        let mut machine = OneThread::new();
        machine.steps("N begin; +3 N store W; +5 N pause");
        for n in 0..bystanders {
            let bystander = THIRD + 0x10000 * (n + 1);
            // The bystander loads its own word, and changes it.
            let word = SERVED + 0x100 * n;
            machine.el1(4).act("load", bystander, word);
            machine.el1(4).act("store", bystander, word);
            machine.el1(1).act("pause", bystander, word);
        }
        // F's turn before it finds the store also counts as work of F.
        machine.steps("+2 F pause; +4 F load W; +7 F store W4");
        // Work after F's answer is not on this path, but delays F's next answer.
        machine.steps("+50 F pause; +2 N load W4; +3 N end");
        let sample = machine.sample();
        assert_eq!(sample.parties.total(), 8 + 2 + 61 + 5);
        assert_eq!(sample.work.total(), 76 + 9 * bystanders);
        assert_eq!(sample.path.total(), 3 + 4 + 7 + 2 + 2 + 3);
    }
}

#[test]
fn a_cpu_that_was_told_something_before_the_sample_is_no_party() {
    let mut machine = OneThread::new();
    machine
        .steps("T begin; +2 N store W; +1 N pause; N begin; +1 N pause; +5 F load W; +1 F pause");
    machine.steps("+1 N end");
    assert_eq!(machine.sample().parties.total(), 2);
}

/// An access that fails is reported once, and is executed again after its exception.
#[test]
fn an_access_that_failed_counts_once() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +3 N load W");
    machine.now.levels[1] -= 1;
    machine.cutter.record_failed_access(machine.now);
    machine.steps("N go; +20 N go; +1 N load W; +2 N end");
    let sample = machine.sample();
    assert_eq!((sample.work.total(), sample.path.total()), (25, 25));
    assert_eq!(sample.value, 25);
}

/// The CPU's turn had ended in the middle of its code, so it was not waiting, whatever it finds later.
#[test]
fn a_cpu_that_was_stopped_in_its_code_makes_the_sample_unclear() {
    for (first, unclear) in [("run", false), ("go", true)] {
        let mut machine = OneThread::new();
        machine.steps("N begin; +3 N store W; +22 N pause");
        machine.steps(&format!(
            "+1 F {first}; +4 F load W; +11 F store W4; +24 F pause"
        ));
        machine.steps("+1 N go; +4 N load W4; +10 N end");
        assert_eq!(machine.sample().unclear, unclear);
    }
}
