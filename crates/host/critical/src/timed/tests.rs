// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::{Image, Reasons};
use cost::SampleMark;

const NOP: u32 = 0xd503_201f;
const WFI: u32 = 0xd503_207f;
const WFE: u32 = 0xd503_205f;
/// The instructions LDXR X1, [X2]; LDR X1, [X2]; STR X1, [X2].
const LDXR: u32 = 0xc85f_7c41;
const LDR: u32 = 0xf940_0041;
const STR: u32 = 0xf900_0041;
/// The instruction MRS X8, CNTVCT_EL0.
const READ: u32 = 0xd53b_e048;
/// Address of the program that marks its samples.
const PROGRAM: u64 = 0x20_0000;
const KERNEL: u64 = 0xffff_8000_0000_0000;
const WORD: u64 = 0x9000;

/// Returns a chart of the program, with the mark of a cell, the two clock reads, and the mark of a counted sample.
fn chart() -> Chart {
    let word = |mark: SampleMark| 0xd280_001f | u32::from(mark.immediate()) << 5;
    let words = vec![
        word(SampleMark::Cell),
        NOP,
        READ,
        NOP,
        READ,
        word(SampleMark::Record),
    ];
    let kinds = [
        Reasons::CELL,
        Reasons::NONE,
        Reasons::BEGIN,
        Reasons::NONE,
        Reasons::END,
        Reasons::RECORD,
    ];
    Chart {
        images: vec![Image {
            level: 0,
            address: PROGRAM,
            words,
            kinds: kinds.to_vec(),
        }],
        ..Chart::default()
    }
}

/// A core that executes instructions of the program, which are given by index, and instructions of a kernel.
#[derive(Clone, Default)]
struct Script(Core);

impl Script {
    fn program(mut self, tick: u64, n: u64) -> Self {
        let word = chart().images[0].words[n as usize];
        self.0.commits(tick, 0, PROGRAM + 4 * n, word);
        self
    }

    /// Commits instruction number `place` of the kernel.
    fn kernel(mut self, tick: u64, place: u64, word: u32) -> Self {
        self.0.commits(tick, 1, KERNEL + 4 * place, word);
        self
    }

    fn loads(mut self, address: u64) -> Self {
        self.0.accesses(address, false);
        self
    }

    fn stores(mut self, address: u64) -> Self {
        self.0.accesses(address, true);
        self
    }

    fn sends(mut self, value: u64) -> Self {
        self.0.writes("icc_sgi1r_el1", value);
        self
    }

    fn end(mut self) -> Core {
        self.0.finish();
        self.0
    }
}

/// Returns a core that begins cell 7, and then begins a sample at tick 100.
fn measuring() -> Script {
    let mut script = Script::default().kernel(5, 0, NOP);
    script.0.writes("X0", 7);
    script.program(10, 0).program(100, 2)
}

fn waits(trace: &Trace) -> Vec<(Waited, u64, u64)> {
    let timings = trace.pieces.iter().filter_map(|piece| piece.timing);
    let waits = timings.filter_map(|one| Some((one.waited?, one.at, one.cycles)));
    waits.collect()
}

/// Returns the only sample, after checking what must be true of every sample.
fn only_trace(cores: &[Core]) -> Trace {
    let traces = timed(cores, chart(), 2);
    let [trace] = &traces.traces[..] else {
        panic!("{:?}", traces.traces);
    };
    let on_path = trace.pieces.iter().filter(|piece| piece.path.is_some());
    assert_eq!(on_path.map(Piece::cost).sum::<u64>(), trace.sample.value);
    assert_eq!(trace.sample.path.total(), trace.sample.value);
    assert_eq!(trace.cell, 7);
    trace.clone()
}

#[test]
fn a_core_alone_has_all_on_its_path() {
    let core = measuring()
        .kernel(120, 20, NOP)
        .program(140, 4)
        .program(150, 5);
    let trace = only_trace(&[core.end()]);
    assert_eq!(trace.sample.value, 20);
    assert_eq!(
        trace.pieces.iter().map(Piece::cost).collect::<Vec<_>>(),
        [10, 10]
    );
    assert!(waits(&trace).is_empty());
}

#[test]
fn a_sample_that_is_not_counted_is_none() {
    let core = measuring().program(140, 4).kernel(150, 20, NOP);
    assert!(timed(&[core.end()], chart(), 2).traces.is_empty());
}

#[test]
fn an_interrupt_leads_to_its_sender() {
    let core = measuring()
        .kernel(110, 20, WFI)
        .kernel(300, 21, NOP)
        .program(320, 4)
        .program(330, 5);
    let other = Script::default()
        .kernel(90, 40, NOP)
        .kernel(150, 41, NOP)
        // This core sends one SGI to core 1, which is itself, and then another one to core 0.
        .kernel(200, 42, NOP)
        .sends(0b10)
        .kernel(260, 43, NOP)
        .sends(0b01)
        .kernel(280, 44, NOP);
    let trace = only_trace(&[core.end(), other.end()]);
    let interrupt = Waited::For(Via::Interrupt);
    assert_eq!(waits(&trace), [(interrupt, 80, 20)]);
    // The sender's instructions up to the SGI are on the path, and its later ones are not.
    let of_other = trace.pieces.iter().filter(|piece| piece.cpu == 1);
    let ways: Vec<bool> = of_other.map(|piece| piece.path.is_some()).collect();
    assert_eq!(ways, [true, true, true, false]);
    // The work of core 0 before its wait is off the path.
    let first = trace.pieces.iter().find(|piece| piece.cpu == 0).unwrap();
    assert_eq!((first.path, first.cost()), (None, 5));
}

#[test]
fn an_interrupt_that_came_before_the_halt_is_no_wait() {
    let core = measuring()
        .kernel(110, 20, NOP)
        .kernel(200, 21, WFI)
        .kernel(202, 22, NOP)
        .program(320, 4)
        .program(330, 5);
    let other = Script::default().kernel(150, 43, NOP).sends(0b01);
    let trace = only_trace(&[core.end(), other.end()]);
    assert!(
        trace
            .pieces
            .iter()
            .all(|piece| piece.path.is_some() == (piece.cpu == 0))
    );
}

/// Returns a core that loads a word, halts with `halt`, and continues at tick 300.
fn halts(halt: u32) -> Core {
    let core = measuring().kernel(110, 20, LDXR).loads(WORD);
    let core = core.kernel(112, 21, halt).kernel(300, 22, NOP);
    core.program(320, 4).program(330, 5).end()
}

/// Returns a core that stores to `word` at tick 250.
fn stores(word: u64) -> Script {
    let core = Script::default().kernel(90, 40, NOP);
    core.kernel(250, 41, STR).stores(word)
}

#[test]
fn a_store_leads_to_the_core_that_halted_for_it() {
    let trace = only_trace(&[halts(WFE), stores(WORD + 4).end()]);
    assert_eq!(waits(&trace), [(Waited::For(Via::Store), 75, 25)]);
    // If the store is to another word, or there is no store, the halt was not ended by another core.
    for other in [stores(WORD + 8).end(), Script::default().end()] {
        let trace = only_trace(&[halts(WFE), other]);
        assert_eq!(waits(&trace), [(Waited::Halted, 6, 94)]);
    }
}

#[test]
fn a_store_does_not_end_a_wfi() {
    let other = stores(WORD).kernel(280, 42, NOP).sends(0b01);
    let trace = only_trace(&[halts(WFI), other.end()]);
    assert_eq!(waits(&trace), [(Waited::For(Via::Interrupt), 90, 10)]);
}

#[test]
fn a_store_leads_to_the_loop_that_polls_for_it() {
    let mut core = measuring();
    for round in 0..5 {
        core = core
            .kernel(110 + 20 * round, 20, LDR)
            .loads(WORD)
            .kernel(112 + 20 * round, 21, NOP);
    }
    let core = core.program(320, 4).program(330, 5).end();
    let other = Script::default().kernel(90, 40, NOP).kernel(135, 41, STR);
    let trace = only_trace(&[core, other.stores(WORD).end()]);
    assert_eq!(waits(&trace), [(Waited::For(Via::Store), 17, 8)]);
}

#[test]
fn a_loop_that_pauses_may_be_long_and_go_on_too_early() {
    let core = |pause: u32| {
        let mut core = measuring()
            .kernel(110, 20, LDXR)
            .loads(WORD)
            .kernel(112, 21, pause);
        for n in 0..100 {
            core = core.kernel(200 + n, 22 + n, NOP);
        }
        let core = core.kernel(310, 20, LDXR).loads(WORD);
        core.program(320, 4).program(330, 5).end()
    };
    let other = stores(WORD).end();
    let trace = only_trace(&[core(WFE), other.clone()]);
    assert_eq!(waits(&trace), [(Waited::For(Via::Store), 75, 30)]);
    // Without a pause between two loads, or with code at another level between them, the second load does not
    // continue the first load's wait. The second load is a separate execution of the same code.
    let trace = only_trace(&[core(NOP), other.clone()]);
    assert!(waits(&trace).is_empty());
    let mut core = measuring()
        .kernel(110, 20, LDXR)
        .loads(WORD)
        .kernel(112, 21, WFI);
    for n in 0..20 {
        core = core.kernel(114 + n, 22 + n, NOP);
    }
    let core = core
        .program(140, 3)
        .kernel(310, 20, LDXR)
        .loads(WORD)
        .program(320, 4)
        .program(330, 5);
    assert_eq!(waits(&only_trace(&[core.end(), other])).first(), None);
}

#[test]
fn a_cell_may_begin_on_another_core() {
    let mut other = Script::default().kernel(5, 0, NOP);
    other.0.writes("X0", 7);
    let other = other.program(10, 0).end();
    let core = Script::default()
        .program(100, 2)
        .program(140, 4)
        .program(150, 5);
    assert_eq!(only_trace(&[core.end(), other]).sample.value, 20);
}
