// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides a sample into the functions that its CPUs executed, in order, each with its callers.

use std::collections::{BTreeMap, HashMap};

use critical::{
    Code, Piece, Pieces, Reasons, Trace, Traces, Via, WRITE_SGIR, Waited, branch_target,
};

use crate::calls::Stacks;
use crate::code::{CodeImage, Function, Places};
use crate::events::{Executed, Instruction};
use crate::step::{Caller, MACHINE, Step};

/// A function's file and name.
pub type Key = (String, String);

/// An instruction's file and function.
#[derive(Clone, Debug)]
struct Place {
    image: String,
    function: Function,
    sends: bool,
}

/// A boot's blocks, and the function of each instruction in them.
pub struct Walker<'t> {
    blocks: &'t [Code],
    places: Vec<Vec<Place>>,
    /// The first instruction of each block, by exception level and address.
    starts: HashMap<(u8, u64), Instruction>,
}

impl<'t> Walker<'t> {
    /// Finds the functions of all blocks.
    pub fn new(traces: &'t Traces, images: &[CodeImage]) -> Self {
        let found = Places::find(images, &traces.blocks);
        let place = |block: &Code| {
            let at = found.find_place(block);
            let of = |n: usize| match at {
                Some((image, address)) => {
                    let function = images[image].function(address + 4 * n as u64);
                    Place {
                        image: images[image].name.into(),
                        sends: sends_interrupt(block.words[n], &function),
                        function,
                    }
                }
                None => unknown_place(block.address + 4 * n as u64),
            };
            (0..block.words.len()).map(of).collect()
        };
        let places: Vec<Vec<Place>> = traces.blocks.iter().map(place).collect();
        let starts = traces.blocks.iter().zip(&places);
        let starts = starts.filter(|(block, _)| !block.words.is_empty());
        let starts = starts.map(|(block, places)| {
            let place = (block.level, block.address);
            (place, instruction(block, places, 0))
        });
        Self {
            blocks: &traces.blocks,
            starts: starts.collect(),
            places,
        }
    }

    /// Returns the minimum, median and maximum of the instructions that each CPU executes in each function on the paths
    /// of `traces`.
    pub fn count_spreads(&self, traces: &[&Trace]) -> BTreeMap<(usize, u8, Key), [u64; 3]> {
        let (mut keys, blocks) = self.index_functions();
        let first_wait = keys.len();
        keys.extend(WAITS.map(|(_, name)| (MACHINE.into(), name.into())));
        // For each function, the counts that it has in samples, and the number of samples with each count.
        let mut counts: BTreeMap<(usize, u8, usize), BTreeMap<u64, u64>> = BTreeMap::new();
        for trace in traces {
            let mut cpus = Vec::new();
            let mut of_trace: BTreeMap<(usize, u8, usize), u64> = BTreeMap::new();
            for piece in &trace.pieces {
                let cpu = cpu_index(&mut cpus, piece.cpu);
                let level = self.blocks[piece.block as usize].level;
                if piece.path.is_none() {
                    continue;
                }
                let wait = piece.timing.and_then(|timing| wait_index(timing.waited?));
                let executed = &blocks[piece.block as usize];
                let executed = &executed[usize::from(piece.first)..usize::from(piece.end)];
                for function in executed {
                    let function = wait.map_or(*function, |wait| first_wait + wait);
                    let cost = piece.timing.map_or(1, |timing| timing.cycles);
                    *of_trace.entry((cpu, level, function)).or_default() += cost;
                }
            }
            for (key, count) in of_trace {
                *counts.entry(key).or_default().entry(count).or_default() += trace.times;
            }
        }
        let all: u64 = traces.iter().map(|trace| trace.times).sum();
        let spread =
            |((cpu, level, function), mut counts): ((usize, u8, usize), BTreeMap<u64, u64>)| {
                let without = all - counts.values().sum::<u64>();
                if without != 0 {
                    counts.insert(0, without);
                }
                let stats = results::Stats::of(&counts);
                let key = (cpu, level, keys[function].clone());
                (key, [stats.min, stats.p50, stats.max])
            };
        counts.into_iter().map(spread).collect()
    }

    /// Returns all functions, and the function index of each instruction in each block.
    fn index_functions(&self) -> (Vec<Key>, Vec<Vec<usize>>) {
        let mut keys = Vec::new();
        let mut numbers: HashMap<Key, usize> = HashMap::new();
        let mut number = |place: &Place| {
            let key = (place.image.clone(), place.function.name.clone());
            *numbers.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                keys.len() - 1
            })
        };
        let blocks = self.places.iter();
        let blocks = blocks.map(|places| places.iter().map(&mut number).collect());
        let blocks = blocks.collect();
        (keys, blocks)
    }

    /// Returns the steps of a sample.
    pub fn steps(&self, pieces: &Pieces) -> Vec<Step> {
        let mut cpus = Vec::new();
        let mut stacks: HashMap<u16, Stacks> = HashMap::new();
        let mut steps: Vec<Step> = Vec::new();
        let mut executed = 0;
        for piece in pieces {
            let cpu = cpu_index(&mut cpus, piece.cpu);
            let stack = stacks.entry(piece.cpu).or_default();
            let begin = piece.timing.map_or(executed, |timing| timing.at);
            let mut via = piece.path.and_then(via_name);
            let wait = piece.timing.and_then(|timing| wait_index(timing.waited?));
            for n in usize::from(piece.first)..usize::from(piece.end) {
                let at = begin + (n - usize::from(piece.first)) as u64;
                let mut step = self.step_of_instruction(piece, n, stack);
                (step.cpu, step.at, step.via) = (cpu, at, via.take());
                // The time before the instruction belongs to the wait, and not to the instruction.
                if let (Some(place), Some(timing)) = (wait, piece.timing) {
                    steps.push(step.wait_step(WAITS[place].1, timing.cycles));
                    (step.at, step.count, step.via) = (at + timing.cycles, 0, None);
                }
                let function = &self.places[piece.block as usize][n].function;
                let is_new = n == usize::from(piece.first) && (n == 0 || piece.timing.is_none());
                add_step(&mut steps, step, is_new, function);
            }
            executed += piece.cost();
        }
        steps
    }

    /// Returns the instructions of a sample.
    pub fn executed_instructions(&self, pieces: &'t Pieces) -> impl Iterator<Item = Executed<'_>> {
        pieces.iter().flat_map(move |piece| {
            let code = &self.blocks[piece.block as usize];
            let places = &self.places[piece.block as usize];
            let range = usize::from(piece.first)..usize::from(piece.end);
            range.map(move |n| Executed {
                cpu: piece.cpu,
                level: code.level,
                pc: code.address + 4 * n as u64,
                instruction: instruction(code, places, n),
                next: self.followers(code, places, n),
                image: &places[n].image,
            })
        })
    }

    /// Returns the instructions that may follow instruction `n` of a block: the next in memory, and the target of a direct
    /// branch.
    fn followers(&self, code: &Code, places: &[Place], n: usize) -> [Option<Instruction>; 2] {
        if n + 1 < code.words.len() {
            return [Some(instruction(code, places, n + 1)), None];
        }
        let pc = code.address + 4 * n as u64;
        let start = |pc| self.starts.get(&(code.level, pc)).copied();
        [
            start(pc + 4),
            branch_target(code.words[n], pc).and_then(start),
        ]
    }

    /// Returns the step of instruction `n` of a block.
    fn step_of_instruction(&self, piece: &Piece, n: usize, stack: &mut Stacks) -> Step {
        let block = &self.blocks[piece.block as usize];
        let Place {
            image, function, ..
        } = &self.places[piece.block as usize][n];
        let pc = block.address + 4 * n as u64;
        let callers = stack.callers(block.level, pc, &function.symbol.0);
        let inlined = function.callers.iter().map(|function| Caller {
            level: block.level,
            function: function.clone(),
        });
        let step = Step {
            cpu: 0,
            level: block.level,
            image: image.clone(),
            function: function.name.clone(),
            on_path: piece.path.is_some(),
            via: None,
            at: 0,
            count: piece.timing.map_or(1, |timing| timing.cycles),
            instructions: 1,
            callers: callers.chain(inlined).collect(),
            blocks: Vec::new(),
        };
        stack.record_instruction(pc, block.words[n]);
        step
    }
}

/// The waits, with their names: a store or an interrupt is on its way, or a CPU halts until its own timer or event ends
/// the halt.
const WAITS: [(Waited, &str); 3] = [
    (Waited::For(Via::Store), "(store on its way)"),
    (Waited::For(Via::Interrupt), "(interrupt on its way)"),
    (Waited::Halted, "(halted)"),
];

/// Returns the index of a wait in [`WAITS`].
fn wait_index(waited: Waited) -> Option<usize> {
    WAITS.iter().position(|(known, _)| *known == waited)
}

/// Adds an instruction of `function`. If the instruction continues the last step, it becomes a part of that step. If it
/// also continues the step's last block, it becomes a part of that block.
fn add_step(steps: &mut Vec<Step>, step: Step, is_new: bool, function: &Function) {
    let place = || {
        let (symbol, distance) = &function.symbol;
        (format!("{symbol}+{distance:#x}"), step.count)
    };
    match steps.last_mut().filter(|last| last.is_continued_by(&step)) {
        Some(last) => {
            last.count += step.count;
            last.instructions += step.instructions;
            match last.blocks.last_mut().filter(|_| !is_new) {
                Some((_, count)) => *count += step.count,
                None => last.blocks.push(place()),
            }
        }
        None => steps.push(Step {
            blocks: vec![place()],
            ..step
        }),
    }
}

/// Returns the number of a CPU, in the order in which CPUs executed their first instruction.
fn cpu_index(cpus: &mut Vec<u16>, cpu: u16) -> usize {
    let known = cpus.iter().position(|one| *one == cpu);
    known.unwrap_or_else(|| {
        cpus.push(cpu);
        cpus.len() - 1
    })
}

fn unknown_place(address: u64) -> Place {
    let page = format!("{:#x}", address & !0xfff);
    Place {
        image: "?".into(),
        function: Function {
            name: page.clone(),
            callers: Vec::new(),
            symbol: (page, address & 0xfff),
        },
        sends: false,
    }
}

/// Returns instruction `n` of a block.
fn instruction(code: &Code, places: &[Place], n: usize) -> Instruction {
    Instruction {
        word: code.words[n],
        sends: places[n].sends,
    }
}

/// Whether `word` in `function` sends an interrupt.
fn sends_interrupt(word: u32, function: &Function) -> bool {
    let mut functions = function.callers.iter().chain([&function.name]);
    Reasons::of_word(word).has(Reasons::SEND)
        || Reasons::sends_by_store(word) && functions.any(|name| name == WRITE_SGIR)
}

fn via_name(via: Via) -> Option<String> {
    match via {
        Via::Own => None,
        Via::Store => Some("store".into()),
        Via::Interrupt => Some("interrupt".into()),
    }
}
