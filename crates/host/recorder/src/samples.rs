// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides samples while the machine runs: passes the events to a [`Cutter`].
//!
//! Instructions are counted block by block, by level and bookkeeping. At instructions that matter according to the
//! chart, the rest of the block is subtracted. An instruction that may trap ends its block. Where an access fails or goes
//! to a device in the middle of a block, the rest is taken back. Otherwise, the samples would not add up, which is
//! checked. A block's level is part of its translation key, so PSTATE has this level at the translation.
//!
//! One thread runs all CPUs. In this case, QEMU 11.1 passes the number of the CPU that ran a block first, and code that
//! it adds to blocks itself (inline operations) writes to wrong places for every CPU but the first. Therefore,
//! TPIDR_EL1 identifies CPUs, or TPIDR_EL2 under a hypervisor of others, and a callback counts.

use std::collections::HashSet;
use std::ffi::{c_int, c_uint};
use std::fs;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cost::SampleMark;
use critical::branch;
use critical::{Cause, Chart, Counts, Cutter, Image, Reasons, Tpidr};

use crate::api;
use crate::registers::{self, Value, find};

/// The whole state, once the plugin is installed.
static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Whether the [`Cutter`] is active, which is all that most callbacks check.
static BUSY: AtomicBool = AtomicBool::new(false);

/// Number of instructions that all CPUs have executed, including all of their current blocks; see [`Counts`].
static EXECUTED: [AtomicU64; Counts::LEN] = [const { AtomicU64::new(0) }; Counts::LEN];

/// The block that runs, or null.
static CURRENT: AtomicPtr<CountedBlock> = AtomicPtr::new(null_mut());

/// A translated block.
struct CountedBlock {
    /// Address of its first instruction.
    at: u64,
    /// Its level, and its instructions with their kinds.
    level: u8,
    words: Vec<u32>,
    kinds: Vec<Reasons>,
    /// Counts that it adds to [`EXECUTED`].
    added: Vec<(&'static AtomicU64, u64)>,
}

impl CountedBlock {
    /// Returns the index of the instruction before which it was left, if the next block begins at `next`. An access to a
    /// device has to be the last of its block where instructions are counted. If it was not, the emulator leaves the
    /// block, executes the access alone, without a callback, and begins a block after it. A block that ends by an
    /// indirect branch to after an access of its own looks alike; the sum of a sample would show that.
    fn left_before(&self, next: u64) -> Option<usize> {
        let index = usize::try_from(next.wrapping_sub(self.at) / 4).ok()?;
        let last = self.words.len().checked_sub(1)?;
        if index == 0 || index > last {
            return None;
        }
        let end = self.at + 4 * last as u64;
        let jumped = branch::target(self.words[last], end) == Some(next);
        (branch::is_access(self.words[index - 1]) && !jumped).then_some(index)
    }

    /// Returns the counts of its instructions from the `first` on.
    fn rest(&self, first: usize) -> Counts {
        let mut counts = Counts::default();
        for kind in self.kinds.iter().skip(first) {
            counts.levels[usize::from(self.level)] += 1;
            if let Some(class) = kind.class() {
                counts.classes[class as usize] += 1;
            }
        }
        counts
    }
}

/// Offset in EL2's vector table from which on its vectors are for lower levels (DDI 0487K.a, D1.3.1.5).
const FROM_BELOW: u64 = 0x400;

struct State {
    images: Vec<(Image, Option<u64>)>,
    /// The file of the samples.
    out: String,
    cutter: Cutter,
    registers: Option<Registers>,
    /// Addresses after pauses in code of no image.
    resumes: HashSet<u64>,
    /// Whether code of no image ran at EL2: a hypervisor of others.
    foreign: bool,
    /// The CPU of the next memory callbacks, and the instructions that all CPUs had executed by then.
    last: (Tpidr, Counts),
}

// SAFETY: what the pointers lead to belongs to the emulator, which allows its
// functions to be called from each of its threads.
unsafe impl Send for State {}

/// Registers of a CPU, and a buffer for a value. Handles are the same for all CPUs, since these are of one model.
struct Registers {
    value: Value,
    pstate: *mut api::Handle,
    tpidr: *mut api::Handle,
    /// Null if there is no EL2.
    tpidr_el2: *mut api::Handle,
    /// Null if there is no EL2.
    affinity: *mut api::Handle,
    syndrome: *mut api::Handle,
    syndrome_el1: *mut api::Handle,
    general: [*mut api::Handle; 31],
}

/// An instruction that needs an action.
struct WatchedInstruction {
    kind: Reasons,
    word: u32,
    /// The register that the previous instruction wrote, if the kind includes [`Reasons::VALUE`].
    value: u8,
    /// Counts of the rest of the instruction's block.
    rest: Counts,
}

/// Prepares everything; an error names the missing part.
pub fn install(id: api::Id, chart: &str, out: &str) -> Result<(), String> {
    let bytes = fs::read(chart).map_err(|error| format!("{chart}: {error}"))?;
    let chart = Chart::from_bytes(&bytes).ok_or_else(|| format!("{chart}: is not a chart"))?;
    *state() = Some(State {
        images: chart
            .images
            .into_iter()
            .map(|image| (image, None))
            .collect(),
        out: out.into(),
        cutter: Cutter::new(),
        registers: None,
        resumes: HashSet::new(),
        foreign: false,
        last: (0, Counts::default()),
    });
    // SAFETY: the functions have the signatures that the interface asks for.
    unsafe {
        api::qemu_plugin_register_vcpu_init_cb(id, starts, null_mut());
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translates, null_mut());
        let kinds = api::INTERRUPT | api::EXCEPTION;
        api::qemu_plugin_register_vcpu_discon_cb(id, kinds, excepts, null_mut());
        api::qemu_plugin_register_atexit_cb(id, finishes, null_mut());
    }
    Ok(())
}

fn state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A CPU begins to exist: finds the handles of its registers.
extern "C" fn starts(_: c_uint, _: api::Data) {
    let mut state = state();
    let Some(state) = state.as_mut() else { return };
    if state.registers.is_none() {
        state.registers = Registers::find();
    }
}

/// A block is translated: registers the count of its instructions, and callbacks for the instructions that matter.
extern "C" fn translates(block: *mut api::Block, _: api::Data) {
    let mut state = state();
    let Some(state) = state.as_mut() else { return };
    let Some(level) = state.registers.as_ref().and_then(Registers::level) else {
        return;
    };
    // SAFETY: the block is valid during the call, and so are its instructions.
    let instructions: Vec<_> = unsafe {
        let count = api::qemu_plugin_tb_n_insns(block);
        let all = (0..count).map(|n| api::qemu_plugin_tb_get_insn(block, n));
        all.collect()
    };
    let Some(&first) = instructions.first() else {
        return;
    };
    // SAFETY: as above.
    let at = unsafe { api::qemu_plugin_insn_vaddr(first) };
    let words: Vec<u32> = instructions.iter().map(|&one| word(one)).collect();
    let kinds = state.kinds(level, at, &words);
    let mut rest = Counts::default();
    for (n, &instruction) in instructions.iter().enumerate().rev() {
        let (kind, before) = kinds[n];
        if kind.happens() {
            let step = WatchedInstruction {
                kind,
                word: words[n],
                value: before.and_then(Reasons::clock_register).unwrap_or(31),
                rest,
            };
            calls(instruction, step);
        }
        rest.levels[usize::from(level)] += 1;
        if let Some(class) = kind.class() {
            rest.classes[class as usize] += 1;
        }
    }
    // Most blocks have instructions of only one kind.
    let numbers = EXECUTED.iter().zip(rest.to_array());
    let known: &'static CountedBlock = Box::leak(Box::new(CountedBlock {
        at,
        level,
        kinds: kinds.into_iter().map(|(kind, _)| kind).collect(),
        words,
        added: numbers.filter(|(_, many)| *many != 0).collect(),
    }));
    // SAFETY: the block is valid during the call, what is passed for ever.
    unsafe {
        let data = from_ref(known).cast_mut().cast();
        api::qemu_plugin_register_vcpu_tb_exec_cb(block, enters, api::NO_REGISTERS, data);
    }
}

/// A block is about to be executed: counts it. Only one thread counts, so nothing comes between load and store.
extern "C" fn enters(_: c_uint, data: api::Data) {
    // SAFETY: the data of the registration in `translates`.
    let block = unsafe { &*data.cast::<CountedBlock>() };
    let before = CURRENT.swap(from_ref(block).cast_mut(), Relaxed);
    // SAFETY: null, or one of the blocks that are kept for ever.
    if let Some(before) = unsafe { before.as_ref() }
        && let Some(first) = before.left_before(block.at)
    {
        take_back(before.rest(first));
    }
    for (all, many) in &block.added {
        all.store(all.load(Relaxed) + many, Relaxed);
    }
}

/// Returns the instructions that all CPUs have executed, without the `rest` of a block.
fn executed(rest: Counts) -> Counts {
    let all = EXECUTED.each_ref().map(|number| number.load(Relaxed));
    Counts::from_array(all).since(rest)
}

fn word(instruction: *const api::Instruction) -> u32 {
    let mut bytes = [0u8; 4];
    // SAFETY: the place has as many bytes as are asked for.
    unsafe {
        api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len());
    }
    u32::from_le_bytes(bytes)
}

/// Registers the callback for `instruction`. Its argument is kept for ever, since the emulator may execute the
/// instruction for ever.
fn calls(instruction: *mut api::Instruction, step: WatchedInstruction) {
    let synchronises = step.kind.has(Reasons::SYNC);
    let step: &'static WatchedInstruction = Box::leak(Box::new(step));
    // SAFETY: the instruction is valid during the translation, what is passed for
    // ever; the functions have the signatures that the interface asks for.
    unsafe {
        let data = from_ref(step).cast_mut().cast();
        let flags = api::READS_REGISTERS;
        api::qemu_plugin_register_vcpu_insn_exec_cb(instruction, executes, flags, data);
        if synchronises {
            api::qemu_plugin_register_vcpu_mem_cb(
                instruction,
                accesses,
                api::NO_REGISTERS,
                api::LOADS_AND_STORES,
                null_mut(),
            );
        }
    }
}

/// An instruction with a callback is about to be executed, and has already been counted.
extern "C" fn executes(_: c_uint, data: api::Data) {
    // SAFETY: the data of the registration in `calls`.
    let step = unsafe { &*data.cast::<WatchedInstruction>() };
    let always = step.kind.has(Reasons::BEGIN) || step.kind.has(Reasons::CELL);
    if !always && !BUSY.load(Relaxed) {
        return;
    }
    let mut state = state();
    if let Some(state) = state.as_mut() {
        state.executes(step);
        let cutter = &state.cutter;
        let busy = cutter.is_open() || cutter.has_ended() || cutter.wants_value();
        BUSY.store(busy, Relaxed);
    }
}

/// An instruction has accessed memory.
extern "C" fn accesses(_: c_uint, info: u32, address: u64, _: api::Data) {
    if !BUSY.load(Relaxed) {
        return;
    }
    let mut state = state();
    let Some(state) = state.as_mut().filter(|state| state.cutter.is_open()) else {
        return;
    };
    let (tpidr, now) = state.last;
    // SAFETY: a pure function of the access.
    match unsafe { api::qemu_plugin_mem_is_store(info) } {
        true => state.cutter.stores(tpidr, now, address),
        false => state.cutter.loads(tpidr, now, address),
    }
}

/// A CPU has taken an exception or an interrupt, from `from` to `vector`.
extern "C" fn excepts(_: c_uint, kind: c_int, from: u64, vector: u64, _: api::Data) {
    if !BUSY.load(Relaxed) {
        return;
    }
    let mut state = state();
    if let Some(state) = state.as_mut().filter(|state| state.cutter.is_open()) {
        if kind == api::EXCEPTION && state.is_data_abort() {
            leaves_block(from);
            state.cutter.fails(executed(Counts::default()));
        }
        if kind == api::INTERRUPT {
            interrupts_block(from);
        }
        state.excepts(kind, from, vector);
    }
}

/// The running block ends before the instruction at `from`, whose access failed. The emulator does not count this
/// instruction either.
fn leaves_block(from: u64) {
    // SAFETY: null, or one of the blocks that are kept for ever.
    if let Some(block) = unsafe { CURRENT.swap(null_mut(), Relaxed).as_ref() } {
        let first = (from.wrapping_sub(block.at) / 4) as usize;
        take_back(block.rest(first));
    }
}

/// An interrupt comes before the instruction at `from`, maybe before the block after an access to a device.
fn interrupts_block(from: u64) {
    // SAFETY: null, or one of the blocks that are kept for ever.
    if let Some(block) = unsafe { CURRENT.load(Relaxed).as_ref() }
        && let Some(first) = block.left_before(from)
    {
        CURRENT.store(null_mut(), Relaxed);
        take_back(block.rest(first));
    }
}

/// Takes back the counts of instructions that were not executed.
fn take_back(rest: Counts) {
    for (all, many) in EXECUTED.iter().zip(rest.to_array()) {
        all.store(all.load(Relaxed) - many, Relaxed);
    }
}

/// The emulator ends: writes the samples.
extern "C" fn finishes(_: api::Data) {
    let state = state();
    let Some(state) = state.as_ref() else { return };
    let text = critical::to_text(state.cutter.samples());
    if let Err(error) = fs::write(&state.out, text) {
        eprintln!("recorder: {}: {error}", state.out);
    }
}

impl State {
    /// Finds the place of `words`, found at address `at` and executed at `level`, in an image.
    fn place(&mut self, level: u8, at: u64, words: &[u32]) -> Option<(&Image, usize)> {
        let of_level = |(image, _): &&mut (Image, _)| image.level == u64::from(level);
        let (image, base) = self.images.iter_mut().find(of_level)?;
        match level {
            // Other programs have some of the same code, from libraries. Only this one has the mark of a cell.
            0 => {
                let cell = |word: &u32| SampleMark::decode(*word) == Some(SampleMark::Cell);
                let at = words.iter().position(cell).map(|n| at + 4 * n as u64);
                *base = at.and_then(|at| image.base_of_cell(at)).or(*base);
            }
            _ if base.is_none() => *base = image.base(at, words),
            _ => {}
        }
        let index = image.place(*base, at, words)?;
        Some((image, index))
    }

    /// Returns the kind of each instruction of a block, and the word before it if it is known. Code of an image has the
    /// kinds of the chart, other code those that follow from the instructions.
    fn kinds(&mut self, level: u8, at: u64, words: &[u32]) -> Vec<(Reasons, Option<u32>)> {
        if let Some((image, index)) = self.place(level, at, words) {
            let of = |n: usize| {
                let before = (index + n).checked_sub(1).map(|n| image.words[n]);
                (image.kinds[index + n], before)
            };
            return (0..words.len()).map(of).collect();
        }
        let is_ours = |(image, _): &(Image, _)| image.level == 2;
        self.foreign |= level == 2 && !self.images.iter().any(is_ours);
        let mut resumes = self.resumes.contains(&at);
        let mut kinds = Vec::with_capacity(words.len());
        for (n, &word) in words.iter().enumerate() {
            let mut kind = Reasons::of_word(word);
            if resumes {
                kind = kind.and(Reasons::RESUME);
            }
            resumes = kind.has(Reasons::PAUSE);
            if resumes {
                self.resumes.insert(at + 4 * (n as u64 + 1));
            }
            kinds.push((kind, n.checked_sub(1).map(|n| words[n])));
        }
        kinds
    }

    /// Returns the current CPU, and reports its affinity if it is new. A hypervisor of others changes TPIDR_EL1 with its
    /// vCPUs, and the affinity that they see; its own TPIDR_EL2 belongs to the CPU.
    fn tpidr(&mut self) -> Option<Tpidr> {
        let registers = self.registers.as_ref()?;
        if self.foreign
            && let Some(tpidr) = registers
                .read(registers.tpidr_el2)
                .filter(|&tpidr| tpidr != 0)
        {
            return Some(tpidr);
        }
        let tpidr = registers.read(registers.tpidr)?;
        if !self.foreign
            && !self.cutter.knows(tpidr)
            && let Some(affinity) = registers.read(registers.affinity)
            // The register reads as zero where it does not exist; otherwise, bit 31 is one.
            && affinity >> 31 & 1 != 0
        {
            self.cutter.affinity(tpidr, affinity & 0xffff);
        }
        Some(tpidr)
    }

    fn executes(&mut self, step: &WatchedInstruction) {
        let kind = step.kind;
        if kind.has(Reasons::CELL)
            && let Some(id) = self.general(0)
        {
            self.cutter.cell(id);
        }
        let Some(tpidr) = self.tpidr() else { return };
        let now = executed(step.rest);
        if kind.has(Reasons::VALUE)
            && let Some(ticks) = self.general(step.value)
        {
            self.cutter.value(tpidr, ticks);
        }
        if kind.has(Reasons::RECORD) && self.cutter.has_ended() {
            self.cutter.records(tpidr);
        }
        if kind.has(Reasons::BEGIN) {
            self.cutter.begins(tpidr, now);
        }
        if !self.cutter.is_open() {
            return;
        }
        self.cutter.runs(tpidr, now, kind.has(Reasons::RESUME));
        self.last = (tpidr, now);
        if kind.has(Reasons::ACKNOWLEDGE) {
            self.cutter.acknowledges(tpidr, now);
        }
        if kind.has(Reasons::SEND)
            && let Some(value) = self.general((step.word & 0x1f) as u8)
        {
            self.cutter.sends(tpidr, now, value);
        }
        if kind.has(Reasons::END) {
            self.cutter.ends(tpidr, now);
        }
        if kind.has(Reasons::PAUSE) {
            self.cutter.pauses(tpidr, now, kind.has(Reasons::HALT));
        }
    }

    /// Whether the exception that was just taken is an access that failed (DDI 0487K.a, ESR_EL1, EC).
    fn is_data_abort(&self) -> bool {
        let syndrome = self.registers.as_ref().and_then(|registers| {
            let handle = match registers.level()? {
                1 => registers.syndrome_el1,
                2 => registers.syndrome,
                _ => return None,
            };
            registers.read(handle)
        });
        syndrome.is_some_and(|syndrome| matches!(syndrome >> 26 & 0x3f, 0x24 | 0x25))
    }

    /// Whether the instruction at `pc` follows a pause.
    fn is_after_pause(&self, pc: u64) -> bool {
        let in_image = |(image, base): &(Image, Option<u64>)| {
            let offset = base.map(|base| pc.wrapping_sub(base).wrapping_sub(image.address) / 4);
            let index = offset.and_then(|offset| usize::try_from(offset).ok());
            let kind = index.and_then(|index| image.kinds.get(index));
            kind.is_some_and(|kind| kind.has(Reasons::RESUME))
        };
        self.resumes.contains(&pc) || self.images.iter().any(in_image)
    }

    fn excepts(&mut self, kind: c_int, from: u64, vector: u64) {
        let Some(tpidr) = self.tpidr() else { return };
        let now = executed(Counts::default());
        let after_pause = self.cutter.is_unmet(tpidr) && self.is_after_pause(from);
        self.cutter.runs(tpidr, now, after_pause);
        let Some(registers) = &self.registers else {
            return;
        };
        if registers.level() != Some(2) || vector & FROM_BELOW == 0 {
            return;
        }
        let cause = match kind {
            api::INTERRUPT => Cause::Irq,
            _ => Cause::of_syndrome(registers.read(registers.syndrome).unwrap_or(0)),
        };
        self.cutter.exits(cause);
    }

    /// Returns the value of a general register; register 31 is zero.
    fn general(&self, number: u8) -> Option<u64> {
        let registers = self.registers.as_ref()?;
        match registers.general.get(usize::from(number)) {
            Some(&handle) => registers.read(handle),
            None => Some(0),
        }
    }
}

impl Registers {
    /// Finds the registers by name; `None` if a mandatory register is missing.
    fn find() -> Option<Self> {
        Some(Self {
            value: Value::new(),
            pstate: find("cpsr")?,
            tpidr: find("TPIDR_EL1")?,
            tpidr_el2: find("TPIDR_EL2").unwrap_or(null_mut()),
            affinity: find("VMPIDR_EL2").unwrap_or(null_mut()),
            syndrome: find("ESR_EL2").unwrap_or(null_mut()),
            syndrome_el1: find("ESR_EL1").unwrap_or(null_mut()),
            general: registers::general()?,
        })
    }

    /// Returns the value of a register of the emulator's current CPU.
    fn read(&self, handle: *mut api::Handle) -> Option<u64> {
        self.value.read(handle)
    }

    /// Returns the current CPU's exception level.
    fn level(&self) -> Option<u8> {
        self.read(self.pstate).map(registers::level)
    }
}
