// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes the execution of every CPU to crate `rules`, and writes the rules' findings to a file.
//!
//! Most instructions do not matter to any rule. These instructions get no callback. Whether an instruction matters
//! is decided when its block is translated. All memory accesses matter, because of their addresses. When a block is
//! translated, PSTATE holds the block's level, because the level is part of the block's translation key. A thread runs
//! only one CPU, so a CPU's state needs no lock. Findings need a lock. Each finding is written to the file at once, so
//! that it is kept whatever happens to the machine.

use std::cell::{Cell, OnceCell, UnsafeCell};
use std::ffi::{CStr, c_int, c_uint};
use std::fs::File;
use std::io::Write;
use std::ptr::{from_ref, null_mut};
use std::sync::{Mutex, OnceLock};

use rules::decode::{Operation, access_alignment, decode, decode_before, is_access};
use rules::gic::{Frame, Mapped};
use rules::{Access, CheckedCpu, Finding, Machine, Place, Shared};

use crate::api;
use crate::per_cpu::{CPUS, PerCpu};
use crate::registers::{self, Value};

/// Number of instructions to examine after the read of a counter.
const AFTER: isize = 16;
/// Bit that is set in addresses translated by TTBR1_EL1 (DDI 0487K.a, D8.2). Only a guest's kernel uses these
/// addresses; Rouse's images do not. The kernel's accesses to memory are left out, because they would be most of what
/// this module handles.
const UPPER: u64 = 1 << 55;

static SHARED: OnceLock<Shared> = OnceLock::new();
static HANDLES: OnceLock<Handles> = OnceLock::new();
static ALL: PerCpu<Option<CheckedCpu>> = PerCpu::new([const { UnsafeCell::new(None) }; CPUS]);

thread_local! {
    /// Buffer for register reads.
    static VALUE: OnceCell<Value> = const { OnceCell::new() };
    /// The number of the CPU that the thread runs.
    static HERE: Cell<Option<c_uint>> = const { Cell::new(None) };
}

/// Handles of the registers that this module reads.
struct Handles {
    pstate: *mut api::Handle,
    general: [*mut api::Handle; 31],
    /// ESR_EL2. This handle and the next one are null if there is no EL2.
    syndrome: *mut api::Handle,
    /// FAR_EL2.
    fault_address: *mut api::Handle,
}

// SAFETY: the handles belong to the emulator, which allows them to be used on each of its
// threads, for the CPU that the thread runs.
unsafe impl Send for Handles {}
// SAFETY: as above, and nothing is written through the handles.
unsafe impl Sync for Handles {}

/// An instruction that matters to a rule.
struct CheckedInstruction {
    step: Option<rules::ExecutedOperation>,
    place: Place,
    word: u32,
    /// See [`rules::Access`].
    alignment: u8,
    exclusive: bool,
    whole: bool,
}

/// Gives the rules access to the machine, and writes findings to the file.
struct Emulator {
    findings: Mutex<File>,
    name: String,
}

impl Machine for Emulator {
    fn read(&self, physical: u64) -> Option<u64> {
        VALUE.with(|value| value.get_or_init(Value::new).read_memory(physical))
    }

    fn locate(&self, address: u64) -> Option<u64> {
        translate_address(address)
    }

    fn find(&self, finding: &Finding) {
        let Ok(mut file) = self.findings.lock() else {
            return;
        };
        if let Err(error) = file.write_all(format!("{finding}\n").as_bytes()) {
            eprintln!("recorder: {}: {error}", self.name);
            std::process::exit(1);
        }
    }
}

/// Prepares the plugin to check rules. An error names the missing part.
pub fn install(id: api::Id, findings: &str) -> Result<(), String> {
    let file = File::create(findings).map_err(|error| format!("{findings}: {error}"))?;
    SHARED.get_or_init(|| {
        Shared::new(Emulator {
            findings: Mutex::new(file),
            name: findings.into(),
        })
    });
    // SAFETY: the functions have the signatures that the interface asks for.
    unsafe {
        api::qemu_plugin_register_vcpu_init_cb(id, starts, null_mut());
        api::qemu_plugin_register_vcpu_tb_trans_cb(id, translates, null_mut());
        let kinds = api::INTERRUPT | api::EXCEPTION;
        api::qemu_plugin_register_vcpu_discon_cb(id, kinds, excepts, null_mut());
    }
    Ok(())
}

/// The emulator calls this when a CPU is created.
extern "C" fn starts(index: c_uint, _: api::Data) {
    if let (Some(pstate), Some(general)) = (registers::find("cpsr"), registers::find_general()) {
        let find = |name| registers::find(name).unwrap_or(null_mut());
        HANDLES.get_or_init(|| Handles {
            pstate,
            general,
            syndrome: find("ESR_EL2"),
            fault_address: find("FAR_EL2"),
        });
    }
    // A CPU is created on its own thread.
    HERE.set(Some(index));
    // SAFETY: this callback has no other reference to the value.
    *unsafe { ALL.value_of_cpu(index) } = Some(CheckedCpu::new(index as u16));
}

/// Reads a register of the CPU that this thread runs. `of` selects the register's handle.
fn read_register(of: impl Fn(&Handles) -> *mut api::Handle) -> Option<u64> {
    let handle = of(HANDLES.get()?);
    VALUE.with(|value| value.get_or_init(Value::new).read(handle))
}

/// Returns the value of a general register; register 31 is zero.
fn general_register(number: u8) -> Option<u64> {
    match number {
        31 => Some(0),
        _ => read_register(|handles| handles.general[usize::from(number)]),
    }
}

/// Returns the exception level of the CPU that this thread runs.
fn current_level() -> Option<u8> {
    read_register(|handles| handles.pstate).map(registers::level_in_pstate)
}

/// The emulator calls this when it translates a block. Registers callbacks for the instructions that matter. The
/// callbacks' arguments are kept for ever, since the emulator may execute the block for ever.
extern "C" fn translates(block: *mut api::Block, _: api::Data) {
    let Some(level) = current_level() else { return };
    // SAFETY: the block is valid during the call, and so are its instructions.
    let instructions: Vec<_> = unsafe {
        let count = api::qemu_plugin_tb_n_insns(block);
        let all = (0..count).map(|n| api::qemu_plugin_tb_get_insn(block, n));
        all.collect()
    };
    let words: Vec<u32> = instructions
        .iter()
        .map(|&one| instruction_word(one))
        .collect();
    report_fetch(level, &instructions);
    let mut before = None;
    for (n, &instruction) in instructions.iter().enumerate() {
        // SAFETY: the instruction is valid during the call.
        let pc = unsafe { api::qemu_plugin_insn_vaddr(instruction) };
        let place = Place { level, pc };
        // The emulator may end a block anywhere, for example after a read whose value a rule wants.
        if n == 0 {
            before = word_near(instruction, -1).and_then(decode);
        }
        let after = (1..=AFTER).map_while(|n| word_near(instruction, n));
        let operation = decode_before(words[n], after);
        if let Some(Operation::Read { into, .. }) = before
            && before.is_some_and(CheckedCpu::wants_value)
        {
            // The pointer's value is a register number, so it may be null.
            let data = usize::from(into) as api::Data;
            add_callback(instruction, brought, data);
        }
        before = operation;
        let ours = level > 1 || pc & UPPER == 0;
        let accesses = ours && (is_access(words[n]) || operation == Some(Operation::Zero));
        if operation.is_none() && !accesses {
            continue;
        }
        let whole = operation == Some(Operation::Zero);
        let step: &'static CheckedInstruction = Box::leak(Box::new(CheckedInstruction {
            step: operation.map(|operation| rules::ExecutedOperation { place, operation }),
            place,
            word: words[n],
            alignment: if whole { 0 } else { access_alignment(words[n]) },
            whole,
            exclusive: matches!(
                operation,
                Some(Operation::LoadExclusive | Operation::StoreExclusive | Operation::Atomic)
            ),
        }));
        let data = from_ref(step).cast_mut().cast();
        if operation.is_some() {
            add_callback(instruction, executes, data);
        }
        if accesses {
            // SAFETY: the instruction is valid during the call, and the argument for ever. The function has the
            // signature that the interface asks for.
            unsafe {
                let (flags, which) = (api::NO_REGISTERS, api::LOADS_AND_STORES);
                api::qemu_plugin_register_vcpu_mem_cb(instruction, accessed, flags, which, data);
            }
        }
    }
}

/// Reports that a block is fetched. The emulator translates a block again when the block's memory has changed.
fn report_fetch(level: u8, instructions: &[*mut api::Instruction]) {
    let Some(&first) = instructions.first() else {
        return;
    };
    // SAFETY: the instruction is valid during the translation.
    let pc = unsafe { api::qemu_plugin_insn_vaddr(first) };
    let bytes = 4 * instructions.len() as u64;
    if let Some(address) = translate_address(pc)
        && let Some(index) = HERE.get()
    {
        on_cpu(index, |cpu, shared| {
            cpu.note_fetch(shared, Place { level, pc }, address, bytes);
        });
    }
}

/// Registers `function` as a callback that runs before `instruction`.
fn add_callback(
    instruction: *mut api::Instruction,
    function: extern "C" fn(c_uint, api::Data),
    data: api::Data,
) {
    // SAFETY: the instruction is valid during the call; the functions have the signature
    // that the interface asks for.
    unsafe {
        let flags = api::READS_REGISTERS;
        api::qemu_plugin_register_vcpu_insn_exec_cb(instruction, function, flags, data);
    }
}

/// Returns the encoding of the instruction that is `by` instructions after `instruction`, if it is in the same page.
fn word_near(instruction: *const api::Instruction, by: isize) -> Option<u32> {
    const PAGE: usize = 0x1000;
    // SAFETY: the instruction is valid during the translation.
    let here = unsafe { api::qemu_plugin_insn_haddr(instruction) }.cast::<u32>();
    let there = here.wrapping_offset(by);
    let same = here.addr() / PAGE == there.addr() / PAGE;
    // SAFETY: the emulator has the instruction's whole page in its memory, with the same alignment as in the
    // machine.
    (!here.is_null() && same).then(|| u32::from_le(unsafe { there.read_unaligned() }))
}

fn instruction_word(instruction: *const api::Instruction) -> u32 {
    let mut bytes = [0u8; 4];
    // SAFETY: the buffer has as many bytes as are requested.
    unsafe {
        api::qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), bytes.len());
    }
    u32::from_le_bytes(bytes)
}

/// Calls `tell` with the state of CPU `index`, for which this callback runs.
fn on_cpu(index: c_uint, tell: impl FnOnce(&mut CheckedCpu, &Shared)) {
    // SAFETY: this callback has no other reference to the value.
    if let (Some(cpu), Some(shared)) = (unsafe { ALL.value_of_cpu(index) }.as_mut(), SHARED.get()) {
        tell(cpu, shared);
    }
}

/// The emulator calls this before it executes an instruction that matters.
extern "C" fn executes(index: c_uint, data: api::Data) {
    // SAFETY: `data` is the pointer that `translates` registered with this callback.
    let step = unsafe { &*data.cast::<CheckedInstruction>() };
    let Some(told) = step.step else { return };
    let value = match told.operation {
        Operation::Write { from, .. } => general_register(from),
        Operation::Clean(_) | Operation::InvalidateCode { all: false } => {
            general_register((step.word & 0x1f) as u8).and_then(translate_address)
        }
        _ => None,
    };
    on_cpu(index, |cpu, shared| {
        cpu.note_instruction(shared, told, value)
    });
}

/// The emulator calls this before the instruction that follows a read into general register number `data`.
extern "C" fn brought(index: c_uint, data: api::Data) {
    if let Some(value) = general_register(data as usize as u8) {
        on_cpu(index, |cpu, shared| cpu.note_read_value(shared, value));
    }
}

/// Translates a virtual address of the CPU that this thread runs to a physical address.
fn translate_address(address: u64) -> Option<u64> {
    let mut physical = 0;
    // SAFETY: the function writes only `physical`.
    unsafe { api::qemu_plugin_translate_vaddr(address, &raw mut physical) }.then_some(physical)
}

/// Returns the register of the interrupt controller that a device access read or wrote.
///
/// # Safety
/// Call this only in the access's own callback, with the `place` that belongs to the access.
unsafe fn gic_register(info: u32, place: *const api::Place) -> Option<Mapped> {
    // SAFETY: as the caller promises; the name is a string that the emulator keeps.
    let (name, physical, stored) = unsafe {
        (
            CStr::from_ptr(api::qemu_plugin_hwaddr_device_name(place)),
            api::qemu_plugin_hwaddr_phys_addr(place),
            api::qemu_plugin_mem_get_value(info),
        )
    };
    let (frame, offset) = Frame::locate(name.to_str().ok()?, physical)?;
    let bits = 8_u32.checked_shl(stored.size as u32)?;
    let value = stored.value[0] & (u64::MAX >> u64::BITS.saturating_sub(bits));
    Some(Mapped {
        frame,
        offset,
        value,
    })
}

/// The emulator calls this after an instruction has accessed memory.
extern "C" fn accessed(index: c_uint, info: u32, address: u64, data: api::Data) {
    // SAFETY: `data` is the pointer that `translates` registered with this callback.
    let step = unsafe { &*data.cast::<CheckedInstruction>() };
    // SAFETY: the functions are called in the callback of the access, with the access's own arguments.
    let (store, size, physical, gic) = unsafe {
        let place = api::qemu_plugin_get_hwaddr(info, address);
        let device = !place.is_null() && api::qemu_plugin_hwaddr_is_io(place);
        let memory = !place.is_null() && !device;
        let gic = device.then(|| gic_register(info, place)).flatten();
        let physical = memory.then(|| api::qemu_plugin_hwaddr_phys_addr(place));
        let size = api::qemu_plugin_mem_size_shift(info);
        (api::qemu_plugin_mem_is_store(info), size, physical, gic)
    };
    let access = Access {
        place: step.place,
        address,
        physical,
        gic,
        size: size as u8,
        store,
        alignment: step.alignment,
        exclusive: step.exclusive,
        whole: step.whole,
    };
    on_cpu(index, |cpu, shared| cpu.note_access(shared, &access));
}

/// The emulator calls this after a CPU has taken an exception or an interrupt whose return address is `from`.
extern "C" fn excepts(index: c_uint, kind: c_int, from: u64, _: u64, _: api::Data) {
    let Some(level) = current_level() else { return };
    let failed = (kind == api::EXCEPTION && level == 2)
        .then(failed_access)
        .flatten();
    on_cpu(index, |cpu, shared| {
        if let Some(address) = failed {
            cpu.note_failed_access(shared, from, address);
        }
        match kind {
            api::INTERRUPT => cpu.note_interrupt(shared, from, level),
            _ => cpu.note_exception(shared, from, level),
        }
    });
}

/// Returns the virtual address of the access that failed below EL2, if the CPU has taken an exception to EL2 because of
/// it (DDI 0487K.a, ESR_EL2, EC).
fn failed_access() -> Option<u64> {
    const DATA_ABORT_LOWER: u64 = 0x24;
    let syndrome = read_register(|handles| handles.syndrome)?;
    (syndrome >> 26 & 0x3f == DATA_ABORT_LOWER)
        .then(|| read_register(|handles| handles.fault_address))
        .flatten()
}
