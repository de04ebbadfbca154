// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls the hypervisor or firmware below: PSCI, and Rouse's hypercalls if Rouse is there.

use abi::{CellWords, ConsoleWords, Counter, Floor, Info, KnobValue, Neighbour, Shared, TimeLog};
use core::arch::asm;
use core::fmt::{self, Write};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;
use plan::{Arguments, Cell, DIMENSIONS, Deliver, Given, Trap, Under};
use platform::{Conduit, Name, name};
use spin::once::Once;

/// PSCI functions (DEN0022F.b, 5.1).
const CPU_OFF: u64 = 0x8400_0002;
const CPU_ON: u64 = 0xc400_0003;
const CPU_SUSPEND: u64 = 0xc400_0001;
const AFFINITY_INFO: u64 = 0xc400_0004;
const PSCI_VERSION: u64 = 0x8400_0000;
const SYSTEM_OFF: u64 = 0x8400_0008;

static CONDUIT: Once<Conduit> = Once::new();
static TOLD: Once<(Option<Under>, Option<Given>)> = Once::new();
static PRESENT: AtomicBool = AtomicBool::new(false);
/// The result of [`other_name`].
static OTHER: Once<Option<Name>> = Once::new();

/// x0 to x17 of a call: the registers that the convention passes and may change.
pub type Registers = [u64; 18];

/// Records how to make calls and finds out who answers them: Rouse, or another hypervisor, whose
/// name `named` holds if the machine's description gives it.
pub fn discover(conduit: Option<Conduit>, named: Option<Name>) {
    let Some(conduit) = conduit else {
        OTHER.call_once(|| named);
        return;
    };
    CONDUIT.call_once(|| conduit);
    let words = read_uid(abi::CALL_UID);
    PRESENT.store(words == abi::UID, Relaxed);
    if exists() {
        OTHER.call_once(|| named);
        return;
    }
    let calls = [words, read_uid(abi::CALL_UID_STANDARD)].into_iter();
    let known = calls.filter_map(abi::uid).find_map(abi::hypervisor);
    OTHER.call_once(|| known.and_then(|known| name(known.as_bytes())).or(named));
}

/// Returns the UID that a call of `function` returns.
fn read_uid(function: u32) -> [u32; 4] {
    let answer = call(u64::from(function), [0; 3]);
    core::array::from_fn(|n| answer[n] as u32)
}

/// Returns the name of a hypervisor other than Rouse, from its UID or else from the machine's description, if any.
pub fn other_name() -> Option<&'static str> {
    OTHER.get()?.as_deref()
}

/// The error for boot arguments that name a hypervisor that is not there.
#[derive(Clone, Copy, Debug)]
pub struct Mistaken(Under);

impl fmt::Display for Mistaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = match exists() {
            true => "Rouse",
            false => other_name().unwrap_or("no hypervisor that names itself"),
        };
        write!(
            f,
            "under={}: below is {found}; leave it out, or boot this under what it names",
            self.0
        )
    }
}

/// Records the hypervisor that the boot arguments name.
///
/// # Errors
/// [`Mistaken`]: the hypervisor that answers has another name.
pub fn record_named(arguments: &Arguments<'_>) -> Result<(), Mistaken> {
    let given = arguments.given_trap.map(|trap| Given {
        trap,
        host_poll_us: arguments.given_host_poll_us.unwrap_or(0) as u32,
        alone: arguments.given_alone,
    });
    if let Some(told) = arguments.under {
        let agrees = match told {
            Under::Rouse => exists(),
            told => !exists() && told.vendor() == other_name(),
        };
        if !agrees {
            return Err(Mistaken(told));
        }
    }
    TOLD.call_once(|| (arguments.under, given));
    Ok(())
}

/// Returns the hypervisor that this guest runs under: Rouse if it answers, otherwise the hypervisor
/// that the boot arguments name.
pub fn hypervisor_below() -> Under {
    match (exists(), TOLD.get()) {
        (true, _) => Under::Rouse,
        (false, Some(&(Some(told), _))) => told,
        (false, _) => Under::None,
    }
}

/// Returns the hypervisor's knobs that the boot arguments give, which stay the same for the whole boot.
pub fn given_knobs() -> Option<Given> {
    TOLD.get()?.1
}

/// Whether Rouse is there.
pub fn exists() -> bool {
    PRESENT.load(Relaxed)
}

/// Starts CPU `mpidr` at `entry` with x0 = `context`; returns the status of PSCI.
pub fn cpu_on(mpidr: u64, entry: u64, context: u64) -> i64 {
    call(CPU_ON, [mpidr, entry, context])[0] as i32 as i64
}

/// Turns this CPU off; returns only if PSCI refuses.
pub fn cpu_off() {
    arch::insn::mask_all();
    call(CPU_OFF, [0; 3]);
}

/// Returns the version of PSCI.
pub fn psci_ver() -> u64 {
    call(PSCI_VERSION, [0; 3])[0]
}

/// Returns whether CPU `mpidr` is off (1), on (0) or about to be on (2), or an error of PSCI.
pub fn affinity_info(mpidr: u64) -> i64 {
    call(AFFINITY_INFO, [mpidr, 0, 0])[0] as i32 as i64
}

/// Waits for an interrupt in standby (DEN0022F.b, 5.4): power_state 0, so nothing is lost and the entry point is not
/// used. Returns PSCI's status.
pub fn cpu_suspend() -> i64 {
    call(CPU_SUSPEND, [0; 3])[0] as i32 as i64
}

/// Makes EL2 compare its state of this vCPU's interrupts with the list registers, in a mode of
/// [`abi::audit`]; returns whether the two agree.
pub fn audit_el2(mode: u64) -> bool {
    !exists() || call(abi::Call::Audit.function(), [mode, 0, 0])[0] as i64 == abi::SUCCESS
}

/// Ends the machine with `status`; EL2, if it is there, prints the state of every CPU.
pub fn dump_and_end(status: u64) -> ! {
    if exists() {
        call(abi::Call::Dump.function(), [status, 0, 0]);
    }
    end_machine(status)
}

/// Ends the machine with `status`.
pub fn end_machine(status: u64) -> ! {
    if exists() {
        call(abi::Call::Exit.function(), [status, 0, 0]);
    }
    if CONDUIT.is_completed() {
        crate::output::print(format_args!("rouse: exit status {status}"));
        call(SYSTEM_OFF, [0; 3]);
    } else {
        crate::output::print_last(format_args!("rouse: exit status {status}\n{STAYS_ON}"));
    }
    crate::output::mark_end();
    loop {
        arch::insn::wfi();
    }
}

/// The last line of output if nothing can turn the machine off.
const STAYS_ON: &str = "rouse: stays on: there is no PSCI to turn the machine off";

/// Ends the machine with `status` before the hypervisor below is known, without an atomic
/// operation. Only one CPU may be running.
pub fn end_early(conduit: Option<Conduit>, status: u64) -> ! {
    crate::output::print_unlocked(format_args!("rouse: exit status {status}"));
    if let Some(conduit) = conduit {
        let mut registers: Registers = [0; 18];
        registers[0] = SYSTEM_OFF;
        call_by(conduit, &mut registers);
    } else {
        crate::output::print_unlocked(format_args!("{STAYS_ON}"));
    }
    crate::output::mark_end();
    loop {
        arch::insn::wfi();
    }
}

/// Sets a knob of this vCPU.
///
/// # Panics
/// Panics if the hypervisor refuses because the value makes no sense.
pub fn set_knob(value: KnobValue) {
    if matches!(value, KnobValue::Neighbour(does) if does != Neighbour::None) {
        INVITED.store(true, Relaxed);
    }
    let (knob, word) = value.encode();
    let status = call(abi::Call::Set.function(), [knob as u64, word, 0])[0] as i64;
    assert!(
        status == abi::SUCCESS,
        "hypervisor: knob {} does not take {word:#x}",
        knob.name()
    );
}

/// Whether any CPU has had a neighbour; see [`has_had_neighbour`].
static INVITED: AtomicBool = AtomicBool::new(false);

/// Whether any CPU has had a neighbour.
pub fn has_had_neighbour() -> bool {
    INVITED.load(Relaxed)
}

/// Like [`set_knob`], but the hypervisor may refuse; returns whether the knob was set.
pub fn try_knob(value: KnobValue) -> bool {
    let (knob, word) = value.encode();
    exists() && call(abi::Call::Set.function(), [knob as u64, word, 0])[0] as i64 == abi::SUCCESS
}

/// Sets which waits of this vCPU trap.
pub fn set_trap(trap: Trap) {
    set_knob(KnobValue::Trap(abi::Trap {
        wfi: trap.wfi(),
        wfe: trap.wfe(),
    }));
}

/// Sets which side owns the CPU interface of this vCPU. The hypervisor refuses while an interrupt
/// is active here that another vCPU made active through a register; `soak` does this for a while.
///
/// # Panics
/// Panics if the hypervisor still refuses after a while.
pub fn set_deliver(deliver: Deliver) {
    let value = KnobValue::Deliver(match deliver {
        Deliver::Inject => abi::Deliver::Inject,
        Deliver::Direct => abi::Deliver::Direct,
    });
    let taken = crate::clock::wait_for(|| try_knob(value));
    assert!(taken, "hypervisor: an interrupt of this vCPU stays active");
}

/// Makes EL2 watch the watch points at `address`; see [`abi::Call::Watch`].
///
/// # Panics
/// Panics if the hypervisor refuses.
pub fn set_watch(address: u64, period: u64) {
    let status = call(abi::Call::Watch.function(), [address, period, 0])[0] as i64;
    assert!(
        status == abi::SUCCESS,
        "hypervisor: no watch at {address:#x}"
    );
}

/// Announces the beginning of pass `pass` of `cell`, whose number is `id`; see [`abi::Call::Cell`].
pub fn begin_cell(id: usize, pass: u32, cell: &Cell) {
    let mut words = CellWords::default();
    let names = DIMENSIONS.iter().filter(|info| info.names(cell));
    for (place, info) in names.enumerate() {
        let space = if place == 0 { "" } else { " " };
        // Writing can't fail: it truncates words that are too long.
        let _ = write!(words, "{space}{}", info.text(cell));
    }
    announce_cell(id as u64 + 1, pass, words);
}

/// Announces that cells no longer run.
pub fn end_cells() {
    announce_cell(0, 0, CellWords::default());
}

/// Returns the function that prints text without the UART, if there is one; see [`abi::Call::Console`].
pub fn print_function() -> Option<fn(&ConsoleWords)> {
    (exists() && print_words(&ConsoleWords::default())).then_some(|words| {
        print_words(words);
    })
}

/// Prints `words` on the console by a call; returns whether the call exists.
fn print_words(words: &ConsoleWords) -> bool {
    let mut registers: Registers = [0; 18];
    registers[0] = abi::Call::Console.function();
    registers[1..1 + ConsoleWords::REGISTERS].copy_from_slice(&words.0);
    call_by(conduit(), &mut registers);
    registers[0] as i64 == abi::SUCCESS
}

fn announce_cell(number: u64, pass: u32, words: CellWords) {
    let mut registers: Registers = [0; 18];
    registers[0] = abi::Call::Cell.function();
    registers[1] = number;
    registers[2] = u64::from(pass);
    registers[3..3 + CellWords::REGISTERS].copy_from_slice(&words.0);
    call_by(conduit(), &mut registers);
}

/// Passes on to EL2 an interrupt of EL2's timer that this CPU has taken; see [`abi::Call::Timer`].
pub fn hand_on_timer() {
    call(abi::Call::Timer.function(), [0; 3]);
}

/// Returns this vCPU's counters. The syndrome identifies the call; see [`abi::COUNTING`].
pub fn read_counters() -> [u64; Counter::COUNT] {
    let mut registers: Registers = [0; 18];
    registers[0] = abi::Call::Counters.function();
    let pointer = registers.as_mut_ptr();
    // SAFETY: for the same reasons as in `call_by`.
    unsafe {
        match conduit() {
            Conduit::Hvc => invoke_counting_hvc(pointer),
            Conduit::Smc => invoke_counting_smc(pointer),
        }
    }
    core::array::from_fn(|n| registers[1 + n])
}

/// Returns the counts of this vCPU's neighbour.
pub fn neighbour_counts() -> [u64; Shared::COUNT] {
    let answer = call(abi::Call::Shared.function(), [0; 3]);
    core::array::from_fn(|n| answer[1 + n])
}

/// Makes EL2 also log this vCPU's traced events in `log`; `None` ends this logging.
///
/// # Panics
/// Panics if the hypervisor refuses.
pub fn set_log(log: Option<&'static TimeLog>) {
    let address = log.map_or(0, |log| core::ptr::from_ref(log) as u64);
    let status = call(abi::Call::Log.function(), [address, 0, 0])[0] as i64;
    assert!(status == abi::SUCCESS, "hypervisor: no log at {address:#x}");
}

/// Makes EL2 evict `what` from the caches: [`abi::EVICT_IMAGE`], or a vCPU by its number; returns
/// whether `what` exists.
pub fn evict(what: u64) -> bool {
    call(abi::Call::Evict.function(), [what, 0, 0])[0] as i64 == abi::SUCCESS
}

/// Makes this vCPU's exits use the minimal vectors `which`; returns whether that is allowed.
pub fn use_floor(which: Floor) -> bool {
    call(abi::Call::Floor.function(), [which as u64, 0, 0])[0] as i64 == abi::SUCCESS
}

/// Whether there are minimal vectors: with them, an unknown number is INVALID; without them, the call itself is unknown.
pub fn has_floors() -> bool {
    call(abi::Call::Floor.function(), [u64::MAX, 0, 0])[0] as i64 == abi::INVALID
}

/// Returns the last events of a vCPU at EL2, the newest first, as time and kind.
pub fn last_events(vcpu: usize) -> [(u64, u64); abi::EVENTS] {
    let answer = call(abi::Call::Trace.function(), [vcpu as u64, 0, 0]);
    core::array::from_fn(|n| (answer[1 + 2 * n], answer[2 + 2 * n]))
}

/// Returns the hypervisor's value of `info`.
pub fn info(info: Info) -> u64 {
    call(abi::Call::Info.function(), [0; 3])[1 + info as usize]
}

/// Makes a call through the machine's conduit, and returns the registers after it.
pub fn call(function: u64, arguments: [u64; 3]) -> Registers {
    let mut registers: Registers = [0; 18];
    registers[0] = function;
    registers[1..4].copy_from_slice(&arguments);
    call_by(conduit(), &mut registers);
    registers
}

/// Returns this machine's conduit.
fn conduit() -> Conduit {
    CONDUIT.get().copied().unwrap_or(Conduit::Smc)
}

/// Makes a call through `conduit` with all of `registers`, which then hold the result.
pub fn call_by(conduit: Conduit, registers: &mut Registers) {
    let pointer = registers.as_mut_ptr();
    // SAFETY: the pointer points to 18 registers that the block loads and stores; under the convention, the
    // call changes no register but x0 to x17, which are declared, and no memory of this image (DEN0028F,
    // 2.6).
    unsafe {
        match conduit {
            Conduit::Hvc => invoke_hvc(pointer),
            Conduit::Smc => invoke_smc(pointer),
        }
    }
}

/// Defines a function that makes a call with one instruction.
macro_rules! invoke {
    ($name:ident, $instruction:literal, $immediate:expr) => {
        /// Loads x0 to x17 from `registers`, makes the call, and stores them back.
        ///
        /// # Safety
        /// `registers` must point to 18 writable words.
        unsafe fn $name(registers: *mut u64) {
            // SAFETY: as the caller promises; the call keeps x18 to x30, and x20, which holds the
            // pointer, is saved around it.
            unsafe {
                asm!(
                    "stp x20, xzr, [sp, #-16]!",
                    "mov x20, x0",
                    "ldp x2, x3, [x20, #16]",
                    "ldp x4, x5, [x20, #32]",
                    "ldp x6, x7, [x20, #48]",
                    "ldp x8, x9, [x20, #64]",
                    "ldp x10, x11, [x20, #80]",
                    "ldp x12, x13, [x20, #96]",
                    "ldp x14, x15, [x20, #112]",
                    "ldp x16, x17, [x20, #128]",
                    "ldp x0, x1, [x20]",
                    concat!($instruction, " #{immediate}"),
                    "stp x0, x1, [x20]",
                    "stp x2, x3, [x20, #16]",
                    "stp x4, x5, [x20, #32]",
                    "stp x6, x7, [x20, #48]",
                    "stp x8, x9, [x20, #64]",
                    "stp x10, x11, [x20, #80]",
                    "stp x12, x13, [x20, #96]",
                    "stp x14, x15, [x20, #112]",
                    "stp x16, x17, [x20, #128]",
                    "ldp x20, xzr, [sp], #16",
                    immediate = const $immediate,
                    inout("x0") registers => _,
                    clobber_abi("C"),
                );
            }
        }
    };
}

invoke!(invoke_hvc, "hvc", 0);
invoke!(invoke_smc, "smc", 0);
invoke!(invoke_counting_hvc, "hvc", abi::COUNTING);
invoke!(invoke_counting_smc, "smc", abi::COUNTING);
