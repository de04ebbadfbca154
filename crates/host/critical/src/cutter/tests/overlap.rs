// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samples of several CPUs that overlap.

use super::*;
use crate::clock::Via;

#[test]
fn samples_of_two_cpus_may_overlap() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +4 N pause; +1");
    machine.cutter.record_begin(FAR, machine.now);
    machine.cutter.record_clock(FAR, machine.now.total());
    machine.steps("+6 F store W; +3 F pause; +2 N load W; +1 N end");
    machine.cutter.record_pause(NEAR, machine.now, false);
    machine.steps("+2 F end");
    let samples = machine.cutter.samples().keys();
    let found: Vec<_> = samples
        .map(|(_, one)| (one.value, one.path.total()))
        .collect();
    // The first path has seven instructions of the other CPU, and this CPU's look and the end of its sample. The second
    // path has only instructions of the other CPU.
    assert_eq!(found, [(17, 10), (34, 11)]);
}

/// Samples of two CPUs overlap. Instructions that the other CPU executed before this sample began are not on the
/// sample's path. This holds whichever of the two CPUs had executed more instructions.
#[test]
fn the_path_begins_with_the_sample_on_whichever_cpu() {
    for before in [2, 500] {
        let mut machine = OneThread::new();
        machine.steps(&format!(
            "F begin; +{before} F run; statistics {before}; +1 F pause; +50 N run; N begin"
        ));
        machine.steps("+1 N pause; +4 F store W; +1 F pause; +1 N load W; +1 N end");
        let sample = machine.sample();
        assert!(!sample.unclear);
        assert_eq!(
            (sample.path.total(), sample.path.classes),
            (4 + 1 + 1, [0; 4])
        );
    }
}

/// If there are two causes, the later one within the sample is taken, however much was executed before the sample.
#[test]
fn of_two_causes_the_later_in_the_sample_counts() {
    for begun in [
        "F begin; +500 F store W; +1 F pause; +1 N load W; N begin",
        "F begin; +500 F run; +1 F pause; N begin; +1 N pause; +1 F store W; +1 F pause; +1 N load W",
    ] {
        let mut machine = OneThread::new();
        machine.steps(begun);
        machine.steps("+1 N pause; +10 T store W4; +1 T pause; +2 N load W4; +3 N end");
        assert_eq!(machine.sample().path.total(), 10 + 2 + 3, "{begun}");
    }
}

/// The cause of another CPU's wake-up happened before this sample began, and was found after that.
#[test]
fn a_cause_that_is_older_than_the_sample_is_before_its_path() {
    let mut machine = OneThread::new();
    machine.steps("T begin; +8 F pause; +90 T store W; +1 T pause; +1 N begin; +3 N pause");
    machine.steps("+5 F load W; +6 F store W4; +1 F pause; +2 N load W4; +3 N end");
    assert_eq!(machine.sample().path.total(), 5 + 6 + 2 + 3);
}

proptest::proptest! {
    /// However samples overlap, each sample has a possible path, which begins with the sample.
    #[test]
    fn overlapping_samples_have_possible_paths(
        steps in proptest::collection::vec((0..3_usize, 0..9_usize, 1..60_u64, 0..20_u64), 1..120)
    ) {
        let mut machine = OneThread::new();
        for (cpu, what, many, marked) in steps {
            let cpu = [NEAR, FAR, THIRD][cpu];
            let address = if many % 2 == 0 { WORD } else { SERVED };
            machine.el1(many);
            machine.now.classes[0] += marked.min(many);
            let what = ["begin", "end", "pause", "store", "load", "send", "interrupt", "take", "run"][what];
            let open = machine.cutter.index_of(cpu);
            let open = machine.cutter.cpus[open].open.as_ref();
            let begin = open.map_or(0, |open| open.work.total());
            if what == "end" {
                machine.cutter.record_end(cpu, machine.now);
                machine.cutter.record_clock(cpu, machine.now.total());
                let Some(recorded) = machine.cutter.record_counted(cpu) else { continue };
                add_up(&recorded);
                assert_eq!(Sample { halted: true, ..recorded.sample }.check(), Ok(()));
                let first = recorded.path.first();
                let begins = |first: &Stretch| first.from >= begin && first.via == Via::Own;
                assert!(first.is_none_or(begins), "{begin}: {recorded:?}");
            } else {
                machine.act(what, cpu, address);
            }
        }
    }
}

/// A CPU begins a sample after its wait, and before its look. The cause of its wake-up is not part of the sample.
#[test]
fn a_sample_that_begins_after_the_wait_is_without_its_cause() {
    let mut machine = OneThread::new();
    machine.steps("T begin; +9 T pause; +10 N pause; +40 F store W; +1 F pause; +2 N run; N begin");
    machine.steps("+3 N load W; +4 N end");
    let sample = machine.sample();
    assert!(!sample.unclear);
    assert_eq!((sample.path.total(), sample.work.total()), (7, 7));
}

/// The chain of causes leads to another CPU and back, through a sample of that CPU. The path of the older sample
/// contains the whole chain.
#[test]
fn a_sample_within_another_has_a_part_of_its_path() {
    let mut machine = OneThread::new();
    machine.steps("N begin; +3 N store W; +2 N pause; +1 F run; F begin; +4 F load W; +5 F store W4; +6 F end");
    machine.steps("+1 F pause; +1 N run; +2 N load W4; +3 N end");
    let paths = machine.cutter.samples().keys();
    let paths: Vec<(bool, u64)> = paths
        .map(|(_, sample)| (sample.unclear, sample.path.total()))
        .collect();
    assert_eq!(paths, [(false, 15), (false, 3 + 1 + 1 + 4 + 5 + 1 + 2 + 3)]);
}
