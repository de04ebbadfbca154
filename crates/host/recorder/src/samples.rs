// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides samples while the machine runs: passes the emulator's events to a [`Cutter`](critical::Cutter).
//!
//! Instructions are counted block by block, separately by level and for bookkeeping. At an instruction that matters
//! according to the chart, the count excludes the rest of the instruction's block. An instruction that may trap ends
//! its block. If an access in the middle of a block fails or goes to a device, the counts of the block's later
//! instructions are subtracted again. Otherwise, the parts of a sample would not add up to the sample, which is
//! checked. A block's level is part of its translation key, so PSTATE has this level when the block is translated.
//!
//! An emulator that counts takes much longer. So nothing is counted before a cell begins, and most of a run is its boot:
//! until then, only the marks of cells have a callback. At the first mark, the emulator drops all translated blocks, and
//! this module counts the blocks that it translates from then on. If that missed a sample, the run would fail, since
//! the guest counts its samples too.
//!
//! One thread runs all CPUs. In this case, QEMU 11.1 passes to callbacks the number of the CPU that ran a block first.
//! QEMU's inline operations, which are code that QEMU itself adds to blocks, write to wrong addresses for every CPU but
//! the first. Therefore, this module identifies CPUs by TPIDR_EL1, or by TPIDR_EL2 under another hypervisor, and counts
//! in a callback.

mod counting;
mod state;
mod tracing;

use std::ffi::{c_int, c_uint};
use std::fs;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, MutexGuard, PoisonError};

use critical::{Block, Chart, Counts, Reasons};

use crate::api;
use counting::{CountedBlock, executed_without};
use state::{Registers, State, WatchedInstruction};

/// The plugin's state, once the plugin is installed.
static STATE: Mutex<Option<State>> = Mutex::new(None);
/// Whether a cell has begun, so that blocks are counted.
static COUNTING: AtomicBool = AtomicBool::new(false);
/// The plugin's [`Id`](api::Id).
static ID: AtomicU64 = AtomicU64::new(0);
/// Whether the [`Cutter`](critical::Cutter) is active, which is all that most callbacks check.
static BUSY: AtomicBool = AtomicBool::new(false);
/// Whether the blocks of samples are kept.
static TRACING: AtomicBool = AtomicBool::new(false);

/// Prepares the plugin to divide samples. An error names the missing part.
pub fn install(id: api::Id, chart: &str, out: &str, traces: Option<&str>) -> Result<(), String> {
    let bytes = fs::read(chart).map_err(|error| format!("{chart}: {error}"))?;
    let chart = Chart::from_bytes(&bytes).ok_or_else(|| format!("{chart}: is not a chart"))?;
    TRACING.store(traces.is_some(), Relaxed);
    *lock_state() = Some(State::new(chart, out, traces));
    ID.store(id, Relaxed);
    // SAFETY: the functions have the signatures that the interface asks for.
    unsafe {
        api::qemu_plugin_register_vcpu_init_cb(id, starts, null_mut());
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translates, null_mut());
        api::qemu_plugin_register_atexit_cb(id, finishes, null_mut());
    }
    Ok(())
}

/// The emulator calls this after the first mark of a cell, when it has dropped all blocks and callbacks.
extern "C" fn begins(_: api::Data) {
    COUNTING.store(true, Relaxed);
    let id = ID.load(Relaxed);
    // SAFETY: the functions have the signatures that the interface asks for.
    unsafe {
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translates, null_mut());
        let kinds = api::INTERRUPT | api::EXCEPTION;
        api::qemu_plugin_register_vcpu_discon_cb(id, kinds, excepts, null_mut());
        api::qemu_plugin_register_atexit_cb(id, finishes, null_mut());
    }
}

fn lock_state() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The emulator calls this when a CPU is created. Finds the handles of the CPU's registers.
extern "C" fn starts(_: c_uint, _: api::Data) {
    let mut state = lock_state();
    let Some(state) = state.as_mut() else { return };
    if state.registers.is_none() {
        state.registers = Registers::find();
    }
}

/// The emulator calls this when it translates a block. Registers a callback that counts the block's instructions, and
/// callbacks for the instructions that matter.
extern "C" fn translates(block: *mut api::Block, _: api::Data) {
    let mut state = lock_state();
    let Some(state) = state.as_mut() else { return };
    let Some(level) = state.registers.as_ref().and_then(Registers::current_level) else {
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
    let words: Vec<u32> = instructions
        .iter()
        .map(|&one| instruction_word(one))
        .collect();
    let kinds = state.code.kinds_of_block(level, at, &words);
    let counting = COUNTING.load(Relaxed);
    let mut rest = Counts::default();
    for (n, &instruction) in instructions.iter().enumerate().rev() {
        let (kind, before) = kinds[n];
        if kind.has(Reasons::CELL) || counting && kind.must_be_reported() {
            let step = WatchedInstruction {
                kind,
                word: words[n],
                value: before.and_then(Reasons::clock_register).unwrap_or(31),
                rest,
            };
            add_callback(instruction, step);
        }
        rest.levels[usize::from(level)] += 1;
        if let Some(class) = kind.class() {
            rest.classes[class as usize] += 1;
        }
    }
    if !counting {
        return;
    }
    let kinds = kinds.into_iter().map(|(kind, _)| kind).collect();
    let known = CountedBlock::keep_forever(Block::new(at, level, words, kinds), at);
    // SAFETY: the block is valid during the call, and the arguments for ever.
    unsafe {
        let data = from_ref(known).cast_mut().cast();
        api::qemu_plugin_register_vcpu_tb_exec_cb(block, enters, api::NO_REGISTERS, data);
    }
}

/// The emulator calls this before it executes a block. Counts the block.
extern "C" fn enters(_: c_uint, data: api::Data) {
    // SAFETY: `data` is the pointer that `translates` registered with this callback.
    let block: &'static CountedBlock = unsafe { &*data.cast::<CountedBlock>() };
    block.count_entry();
    if !TRACING.load(Relaxed) || !BUSY.load(Relaxed) {
        return;
    }
    let mut state = lock_state();
    if let Some(tracing) = state.as_mut().and_then(|state| state.tracing.as_mut())
        && let Some((from, block)) = counting::running_block()
    {
        tracing.note_block(from, block);
    }
}

fn instruction_word(instruction: *const api::Instruction) -> u32 {
    let mut bytes = [0u8; 4];
    // SAFETY: the buffer has as many bytes as are requested.
    unsafe {
        api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len());
    }
    u32::from_le_bytes(bytes)
}

/// Registers the callback for `instruction`. The callback's argument is kept for ever, since the emulator may execute
/// the instruction for ever.
fn add_callback(instruction: *mut api::Instruction, step: WatchedInstruction) {
    let synchronises = step.kind.has(Reasons::SYNC);
    let step: &'static WatchedInstruction = Box::leak(Box::new(step));
    // SAFETY: the instruction is valid during the translation, and the arguments for ever. The functions have the
    // signatures that the interface asks for.
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

/// The emulator calls this before it executes an instruction with a callback, whose block has already been counted.
extern "C" fn executes(_: c_uint, data: api::Data) {
    // SAFETY: `data` is the pointer that `add_callback` registered with this callback.
    let step = unsafe { &*data.cast::<WatchedInstruction>() };
    let always = step.kind.has(Reasons::BEGIN) || step.kind.has(Reasons::CELL);
    if !always && !BUSY.load(Relaxed) {
        return;
    }
    let mut state = lock_state();
    let Some(state) = state.as_mut() else { return };
    if COUNTING.load(Relaxed) {
        state.handle_instruction(step);
        let cutter = &state.cutter;
        let busy = cutter.is_open() || cutter.has_ended() || cutter.wants_value();
        BUSY.store(busy, Relaxed);
    } else {
        state.handle_cell();
        // SAFETY: the function has the signature that the interface asks for. The emulator calls it once, after it has
        // left the block, and ignores further requests until then.
        unsafe { api::qemu_plugin_reset(ID.load(Relaxed), begins, null_mut()) };
    }
}

/// The emulator calls this after an instruction has accessed memory.
extern "C" fn accesses(_: c_uint, info: u32, address: u64, _: api::Data) {
    if !BUSY.load(Relaxed) {
        return;
    }
    let mut state = lock_state();
    let Some(state) = state.as_mut().filter(|state| state.cutter.is_open()) else {
        return;
    };
    let (tpidr, now) = state.last;
    // SAFETY: the function only computes a value from the access's description.
    match unsafe { api::qemu_plugin_mem_is_store(info) } {
        true => state.cutter.record_store(tpidr, now, address),
        false => state.cutter.record_load(tpidr, now, address),
    }
}

/// The emulator calls this after a CPU has taken an exception or an interrupt, from `from` to `vector`.
extern "C" fn excepts(_: c_uint, kind: c_int, from: u64, vector: u64, _: api::Data) {
    if !BUSY.load(Relaxed) {
        return;
    }
    let mut state = lock_state();
    if let Some(state) = state.as_mut().filter(|state| state.cutter.is_open()) {
        if kind == api::EXCEPTION && state.is_data_abort() {
            counting::end_before_failed(from);
            state
                .cutter
                .record_failed_access(executed_without(Counts::default()));
        }
        if kind == api::INTERRUPT {
            counting::end_before_interrupt(from);
        }
        state.handle_exception(kind, from, vector);
    }
}

/// The emulator calls this when it ends. Writes the samples.
extern "C" fn finishes(_: api::Data) {
    let mut state = lock_state();
    let Some(state) = state.as_mut() else { return };
    let text = critical::to_text(state.cutter.samples());
    write_file(&state.out, &text);
    if let Some(tracing) = &mut state.tracing {
        let text = tracing.take_text();
        write_file(&tracing.out, &text);
    }
}

fn write_file(out: &str, text: &str) {
    if let Err(error) = fs::write(out, text) {
        eprintln!("recorder: {out}: {error}");
    }
}
