// SPDX-License-Identifier: MIT OR Apache-2.0
//! A QEMU plugin that observes what the CPUs execute, in one of three modes.
//!
//! With option `out=FILE`, it records every instruction and every memory access of a CPU from one mark to the next: see
//! crate `cost` for marks and trace. The plugin counts nothing, and knows nothing about paths. The program that reads
//! the trace interprets it, because that program can be tested. This mode is for multi-threaded emulation only: with
//! one thread, QEMU 11.1 charges code that CPUs share to the CPU that ran it first.
//!
//! With options `chart=FILE,samples=FILE`, it divides the samples of a run as crate `critical` defines: see `samples`.
//! With `traces=FILE` too, it writes the blocks that each sample consists of. This mode is for single-threaded
//! emulation only.
//!
//! With option `findings=FILE`, it records violations of the rules of crate `rules`: see `check`. This mode is for
//! multi-threaded emulation only, like the first mode.

#![allow(unsafe_code)]

mod api;
mod check;
mod per_cpu;
mod registers;
mod samples;

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, OnceLock};

use cost::{Edge, Level, Mark, TraceEntry};
use per_cpu::{CPUS, PerCpu};
use registers::Value;

/// The version of the interface for which this plugin is written.
#[unsafe(export_name = "qemu_plugin_version")]
pub static VERSION: c_int = api::VERSION;

/// A CPU counts as spinning after it has executed this many instructions at one level without an exception. Further
/// instructions are only counted.
const MOST: usize = 1 << 14;
/// Distance between vectors (DDI 0487K.a, D1.3.1.5).
const VECTOR: u64 = 0x80;

static OUT: OnceLock<Mutex<File>> = OnceLock::new();

/// A translated block. The exception level is part of the block's translation key, so it is the same each time the
/// block runs.
struct TranslatedBlock {
    /// A [`Level`], or [`UNKNOWN`] before the block first runs.
    level: AtomicU8,
}

const UNKNOWN: u8 = 0xff;

/// An instruction of a block.
struct TracedInstruction {
    block: &'static TranslatedBlock,
    word: u32,
    pc: u64,
    mark: Option<Mark>,
}

/// Known state of a CPU.
struct TracedCpu {
    /// The handle of PSTATE, and the buffer for its value.
    pstate: *mut api::Handle,
    value: Value,
    /// Number of instructions that the CPU has executed; `None` once the CPU has reached EL1.
    before: Option<u64>,
    /// The path that began at the last mark, and the entries since then.
    window: Option<Mark>,
    entries: Vec<TraceEntry>,
    /// Level and address of the last instruction.
    last: (Level, u64),
    /// Number of instructions executed since the level changed or a vector was reached.
    run: usize,
}

static ALL: PerCpu<TracedCpu> = PerCpu::new(
    [const {
        UnsafeCell::new(TracedCpu {
            pstate: null_mut(),
            value: Value::NONE,
            before: Some(0),
            window: None,
            entries: Vec::new(),
            last: (Level::El3, 0),
            run: 0,
        })
    }; CPUS],
);

/// The emulator calls this when it loads the plugin. Returns 0 if the plugin can work.
///
/// # Safety
/// The caller is the emulator, and `arguments` are `count` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: api::Id,
    _: *const c_void,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: as the emulator promises.
    let arguments = (0..count as usize).map(|n| unsafe { CStr::from_ptr(*arguments.add(n)) });
    let arguments: Vec<&str> = arguments.filter_map(|one| one.to_str().ok()).collect();
    let option = |name| arguments.iter().find_map(|one| one.strip_prefix(name));
    if let (Some(chart), Some(samples)) = (option("chart="), option("samples=")) {
        return match samples::install(id, chart, samples, option("traces=")) {
            Ok(()) => 0,
            Err(why) => {
                eprintln!("recorder: {why}");
                1
            }
        };
    }
    if let Some(findings) = option("findings=") {
        return match check::install(id, findings) {
            Ok(()) => 0,
            Err(why) => {
                eprintln!("recorder: {why}");
                1
            }
        };
    }
    let Some(path) = option("out=") else {
        eprintln!("recorder: no option out=FILE, findings=FILE, nor chart=FILE and samples=FILE");
        return 1;
    };
    match File::create(path) {
        Ok(file) => OUT.get_or_init(|| Mutex::new(file)),
        Err(error) => {
            eprintln!("recorder: {path}: {error}");
            return 1;
        }
    };
    // SAFETY: the functions have the signatures that the interface asks for.
    unsafe {
        api::qemu_plugin_register_vcpu_init_cb(id, starts, null_mut());
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translates, null_mut());
    }
    0
}

/// The emulator calls this when a CPU is created. Finds the handle of the CPU's PSTATE.
extern "C" fn starts(index: c_uint, _: api::Data) {
    // SAFETY: this callback has no other reference to the value.
    let cpu = unsafe { ALL.value_of_cpu(index) };
    cpu.pstate = registers::find("cpsr").unwrap_or(null_mut());
    cpu.value = Value::new();
}

/// The emulator calls this when it translates a block. Registers a callback for each instruction of the block. The
/// callbacks' arguments are kept for ever, since the emulator may run the block for ever.
extern "C" fn translates(block: *mut api::Block, _: api::Data) {
    let known: &'static TranslatedBlock = Box::leak(Box::new(TranslatedBlock {
        level: AtomicU8::new(UNKNOWN),
    }));
    // SAFETY: the block is valid during the call, and the arguments for ever.
    unsafe {
        let data = std::ptr::from_ref(known).cast_mut().cast();
        api::qemu_plugin_register_vcpu_tb_exec_cb(block, enters, api::READS_REGISTERS, data);
        for n in 0..api::qemu_plugin_tb_n_insns(block) {
            let instruction = api::qemu_plugin_tb_get_insn(block, n);
            let mut bytes = [0u8; 4];
            api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len());
            let word = u32::from_le_bytes(bytes);
            let step = Box::leak(Box::new(TracedInstruction {
                block: known,
                word,
                pc: api::qemu_plugin_insn_vaddr(instruction),
                mark: Mark::decode(word),
            }));
            let data = std::ptr::from_ref(step).cast_mut().cast();
            api::qemu_plugin_register_vcpu_insn_exec_cb(
                instruction,
                executes,
                api::NO_REGISTERS,
                data,
            );
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

/// The emulator calls this before it runs a block. Notes the block's level if the block runs for the first time.
extern "C" fn enters(index: c_uint, data: api::Data) {
    // SAFETY: `data` is the pointer that `translates` registered with this callback.
    let block = unsafe { &*data.cast::<TranslatedBlock>() };
    if block.level.load(Relaxed) != UNKNOWN {
        return;
    }
    // SAFETY: this callback has no other reference to the value.
    let cpu = unsafe { ALL.value_of_cpu(index) };
    if let Some(pstate) = cpu.value.read(cpu.pstate) {
        let level = Level::of_pstate(pstate);
        block.level.store(level as u8, Relaxed);
    }
}

/// The emulator calls this before it executes an instruction.
extern "C" fn executes(index: c_uint, data: api::Data) {
    // SAFETY: `data` is the pointer that `translates` registered with this callback.
    let step = unsafe { &*data.cast::<TracedInstruction>() };
    // SAFETY: this callback has no other reference to the value.
    let cpu = unsafe { ALL.value_of_cpu(index) };
    let level = Level::of_pstate(u64::from(step.block.level.load(Relaxed)) << 2);
    match &mut cpu.before {
        Some(before) if level == Level::El1 => {
            let before = *before;
            cpu.before = None;
            let cpu = index as u16;
            append_entries(&[TraceEntry::Entered { cpu, before }]);
        }
        Some(before) => *before += 1,
        None => {}
    }
    match step.mark {
        Some(mark) => cpu.handle_mark(index, mark),
        None if cpu.window.is_some() => cpu.record_instruction(level, step),
        None => {}
    }
}

/// The emulator calls this after an instruction has accessed memory.
extern "C" fn accesses(index: c_uint, info: u32, address: u64, _: api::Data) {
    // SAFETY: this callback has no other reference to the value.
    let cpu = unsafe { ALL.value_of_cpu(index) };
    if cpu.window.is_some() && cpu.run < MOST {
        // SAFETY: the functions only compute values from the access's description.
        let (store, size) = unsafe {
            let store = api::qemu_plugin_mem_is_store(info);
            (store, api::qemu_plugin_mem_size_shift(info) as u8)
        };
        cpu.entries.push(TraceEntry::Accessed {
            store,
            size,
            address,
        });
    }
}

impl TracedCpu {
    /// Notes that the CPU executes an instruction within the window.
    fn record_instruction(&mut self, level: Level, step: &TracedInstruction) {
        let (last_level, last_pc) = self.last;
        self.last = (level, step.pc);
        let jumped = step.pc != last_pc.wrapping_add(4);
        if level != last_level || (jumped && step.pc.is_multiple_of(VECTOR)) {
            self.run = 0;
        }
        self.run += 1;
        if self.run < MOST {
            self.entries.push(TraceEntry::Executed {
                level,
                word: step.word,
                pc: step.pc,
            });
        } else if let Some(TraceEntry::LeftOut { count }) = self.entries.last_mut() {
            *count += 1;
        } else {
            self.entries.push(TraceEntry::LeftOut { count: 1 });
        }
    }

    /// Handles a mark: begins a window, or ends a window and writes its entries. Drops a window without an end, and
    /// ignores an end without a beginning.
    fn handle_mark(&mut self, index: c_uint, mark: Mark) {
        let begun = self.window.take();
        let path = mark.path as u8;
        match (mark.edge, begun) {
            (Edge::Begin, _) => self.window = Some(mark),
            (Edge::End, Some(begin)) if begin.path == mark.path => {
                let window = TraceEntry::Window {
                    path,
                    cpu: index as u16,
                    count: self.entries.len() as u64,
                };
                self.entries.insert(0, window);
                append_entries(&self.entries);
            }
            (Edge::End, _) => {}
        }
        self.entries.clear();
        self.run = 0;
    }
}

/// Appends entries to the trace, without entries of other CPUs between them.
fn append_entries(entries: &[TraceEntry]) {
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_bytes()).collect();
    let Some(out) = OUT.get() else { return };
    let Ok(mut file) = out.lock() else { return };
    if let Err(error) = file.write_all(&bytes) {
        eprintln!("recorder: the trace can't be written: {error}");
        std::process::exit(1);
    }
}
