// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time that a run may take, and a pass of a cell in it (`rouse.deadline`,
//! `rouse.cell-deadline`): when it is over, the machine is turned off, with what is known. It
//! is the end of whatever hangs: a guest, a wait, one CPU of EL2.
//!
//! Each CPU looks, or only the one that EL2 has kept for itself (`rouse.keep-cpu`). A CPU looks
//! when the run's time is over, and at least as often as a cell may take: at each look it
//! sets the next one for the end of the cell that runs. So a cell that begins sets no
//! timer, on no CPU.
//!
//! | what hangs | what ends it |
//! |---|---|
//! | a guest, interrupts masked or not | EL2's timer on any of its CPUs: the interrupt is EL2's |
//! | a guest that owns its interrupts, unmasked | the same interrupt, which the guest hands on |
//! | the same, masked | a CPU whose interrupts are EL2's: its stage 2 is taken away (`dump`) |
//! | every CPU so | the CPU that was kept, as the last line |
//! | a CPU at EL2 | another CPU's timer, from boot stage `smp` on |

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU64};

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTPCT_EL0, Readable};
use abi::{CellWords, Words};
use arch::insn;

use crate::cpu::percpu::PerCpu;
use crate::dumps::dump;
use crate::dumps::own_timer::NEVER;
use crate::machine::{power, vm};

/// When EL2 has begun, in ticks of the physical count.
static START: AtomicU64 = AtomicU64::new(0);
/// Ticks that the run may take; [`NEVER`] is any.
static RUN: AtomicU64 = AtomicU64::new(NEVER);
/// Ticks that a pass of a cell may take; [`NEVER`] is any.
static CELL: AtomicU64 = AtomicU64::new(NEVER);
/// The cell that runs + 1, and its pass from bit 32 on; 0 is none.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// Its words, for people. A CPU that looks while the next one begins may see some of both.
static WORDS: [AtomicU64; CellWords::REGISTERS] = [const { AtomicU64::new(0) }; _];
/// When it began.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Whether the guest makes [`abi::Call::Timer`] of EL2's interrupt on a CPU whose interrupts it owns.
static HANDS_ON: AtomicBool = AtomicBool::new(false);

/// Bits of [`RUNNING`] below the pass.
const PASS: u32 = 32;

/// The time starts: these many seconds for the run and for a pass of a cell.
pub fn set(run: Option<u64>, cell: Option<u64>) {
    insn::isb();
    START.store(CNTPCT_EL0.get(), Relaxed);
    RUN.store(ticks(run), Relaxed);
    CELL.store(ticks(cell), Relaxed);
}

fn ticks(seconds: Option<u64>) -> u64 {
    match seconds {
        None | Some(0) => NEVER,
        Some(seconds) => seconds.saturating_mul(CNTFRQ_EL0.get()),
    }
}

/// Whether there is a deadline.
#[inline(never)]
pub fn is_set() -> bool {
    RUN.load(Relaxed).min(CELL.load(Relaxed)) != NEVER
}

/// The guest hands on what it gets of EL2's timer, from now on.
pub fn is_handed_on() {
    HANDS_ON.store(true, Relaxed);
}

/// The words of the cell that runs.
fn words() -> CellWords {
    Words(core::array::from_fn(|n| WORDS[n].load(Relaxed)))
}

/// The guest begins pass `pass` of cell `cell` - 1, which `words` describe, or, with 0, none.
#[inline(never)]
pub fn begin_cell(cell: u64, pass: u64, words: CellWords) {
    for (place, word) in WORDS.iter().zip(words.0) {
        place.store(word, Relaxed);
    }
    // strict counter-in-order: a deadline has milliseconds at least, and this path is a cell's.
    SINCE.store(CNTPCT_EL0.get(), Relaxed);
    // A CPU that sees the cell sees since when. Of the one before it may see a later time,
    // which just puts its look off.
    RUNNING.store(u64::from(cell as u32) | pass << PASS, Release);
}

/// When the run's time is over.
fn run_ends() -> u64 {
    START.load(Relaxed).saturating_add(RUN.load(Relaxed))
}

/// When the time of the cell that runs is over. [`NEVER`]: none runs, or it may take any.
fn cell_ends() -> u64 {
    match RUNNING.load(Acquire) {
        0 => NEVER,
        _ => SINCE.load(Relaxed).saturating_add(CELL.load(Relaxed)),
    }
}

/// Whether `cpu` looks: every CPU, unless one was kept; and one whose guest owns the interrupts
/// only if that hands EL2's on, or it would get this one again and again.
fn looks(cpu: &PerCpu) -> bool {
    let kept = vm::exists().then(|| vm::vm().kept).flatten();
    kept.map_or(
        !cpu.vcpu.switch.is_direct() || HANDS_ON.load(Relaxed),
        |kept| core::ptr::eq(kept, cpu),
    )
}

/// When `cpu` has to look next: at the end of the run's time, or of the cell's, be it of one that
/// begins only now.
pub fn next(cpu: &PerCpu) -> u64 {
    if !looks(cpu) {
        return NEVER;
    }
    let cell = match cell_ends() {
        NEVER => CNTPCT_EL0.get().saturating_add(CELL.load(Relaxed)),
        end => end,
    };
    run_ends().min(cell)
}

/// Ends the machine if a time is over, unless it has ended and firmware did not turn it off: what
/// was said last is to stay so.
pub fn look(cpu: &PerCpu, now: u64) {
    if power::has_ended() {
        return;
    }
    if now >= run_ends() {
        dump::late(cpu, format_args!("{}", Late::Run));
    }
    if now >= cell_ends() {
        dump::late(cpu, format_args!("{}", Late::Cell));
    }
}

/// Which time is over, for people.
enum Late {
    Run,
    Cell,
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let now = CNTPCT_EL0.get();
        let seconds = |ticks: u64| ticks / CNTFRQ_EL0.get().max(1);
        let (what, limit, option) = match self {
            Self::Run => ("the run", &RUN, plan::DEADLINE),
            Self::Cell => ("a pass of a cell", &CELL, plan::CELL_DEADLINE),
        };
        write!(f, "{what} may take {} s; ", seconds(limit.load(Relaxed)))?;
        match RUNNING.load(Acquire) {
            0 => f.write_str("no cell runs")?,
            running => write!(
                f,
                "cell {} ({}), pass {} has run for {} s",
                (running as u32) - 1,
                words(),
                (running >> PASS) + 1,
                seconds(now - SINCE.load(Relaxed).min(now))
            )?,
        }
        write!(
            f,
            ", {} s after the start; if nothing hangs, give it longer by {}{option}=SECONDS",
            seconds(now - START.load(Relaxed)),
            plan::PREFIX
        )
    }
}
