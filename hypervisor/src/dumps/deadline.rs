// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits the time of a run, and of each pass of a cell (`rouse.deadline`, `rouse.cell-deadline`): when either time is
//! over, EL2 reports what it knows and turns the machine off. A deadline ends anything that hangs: a guest, a wait, or
//! one CPU at EL2.
//!
//! If EL2 keeps a CPU for itself (`rouse.keep-cpu`), only that CPU checks; otherwise every CPU
//! does. A CPU checks when the run's time is over, and at least once in the time that a cell may
//! take: at each check, it sets the next check for the end of the running cell. So no CPU has to
//! set its timer when a cell begins.
//!
//! | what hangs | what ends it |
//! |---|---|
//! | a guest, interrupts masked or not | EL2's timer on any CPU of the guest: EL2 takes the timer's interrupt |
//! | a guest that owns its interrupts and does not mask them | EL2's timer, whose interrupt the guest passes on to EL2 |
//! | the same guest with interrupts masked | a CPU whose interrupts EL2 takes: it unmaps the guest's memory (`dump`) |
//! | every CPU at once in such a guest | only the timer of the CPU that EL2 keeps |
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

/// The time at which EL2 started, in ticks of the physical count.
static START: AtomicU64 = AtomicU64::new(0);
/// Ticks that the run may take; [`NEVER`] if unlimited.
static RUN: AtomicU64 = AtomicU64::new(NEVER);
/// Ticks that a pass of a cell may take; [`NEVER`] if unlimited.
static CELL: AtomicU64 = AtomicU64::new(NEVER);
/// Number of the running cell + 1, and from bit 32 on, its pass; 0 if no cell runs.
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// The words that describe the cell in reports. A CPU that reads them while the next cell begins
/// may see a mix of the two cells' words.
static WORDS: [AtomicU64; CellWords::REGISTERS] = [const { AtomicU64::new(0) }; _];
/// The time at which the pass of the cell began, in ticks of the physical count.
static SINCE: AtomicU64 = AtomicU64::new(0);

/// Whether the guest makes an [`abi::Call::Timer`] when it gets the interrupt of EL2's timer on a
/// CPU whose interrupts it owns.
static HANDS_ON: AtomicBool = AtomicBool::new(false);

/// Number of bits of [`RUNNING`] below the pass.
const PASS: u32 = 32;

/// Starts timing the run, and sets limits in seconds for the run and for a pass of a cell.
pub fn set_deadlines(run: Option<u64>, cell: Option<u64>) {
    insn::isb();
    START.store(CNTPCT_EL0.get(), Relaxed);
    RUN.store(seconds_to_ticks(run), Relaxed);
    CELL.store(seconds_to_ticks(cell), Relaxed);
}

fn seconds_to_ticks(seconds: Option<u64>) -> u64 {
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

/// Records that, from now on, the guest passes on the interrupts of EL2's timer.
pub fn note_timer_handed_on() {
    HANDS_ON.store(true, Relaxed);
}

/// Returns the words of the running cell.
fn cell_words() -> CellWords {
    Words(core::array::from_fn(|n| WORDS[n].load(Relaxed)))
}

/// Records that the guest begins pass `pass` of cell `cell` - 1, which `words` describe; if `cell` is 0, records that
/// no cell runs.
#[inline(never)]
pub fn begin_cell(cell: u64, pass: u64, words: CellWords) {
    for (place, word) in WORDS.iter().zip(words.0) {
        place.store(word, Relaxed);
    }
    // strict counter-in-order: an ISB would lengthen a path that a cell measures, and a deadline takes at least
    // milliseconds.
    SINCE.store(CNTPCT_EL0.get(), Relaxed);
    // A CPU that sees the new cell also sees its start. A CPU that still sees the previous cell may
    // see the new start, which only delays its check.
    RUNNING.store(u64::from(cell as u32) | pass << PASS, Release);
}

/// Returns the time at which the run has to end.
fn run_end() -> u64 {
    START.load(Relaxed).saturating_add(RUN.load(Relaxed))
}

/// Returns the time at which the running cell has to end; [`NEVER`] if no cell runs, or if its time is unlimited.
fn cell_end() -> u64 {
    match RUNNING.load(Acquire) {
        0 => NEVER,
        _ => SINCE.load(Relaxed).saturating_add(CELL.load(Relaxed)),
    }
}

/// Whether `cpu` checks: every CPU does, unless EL2 keeps a CPU, which then checks alone. A CPU whose guest owns
/// the interrupts checks only if the guest passes on the interrupt of EL2's timer; otherwise the guest would get
/// that interrupt again and again.
fn has_to_check(cpu: &PerCpu) -> bool {
    let kept = vm::is_created().then(|| vm::vm().kept).flatten();
    kept.map_or(
        !cpu.vcpu.switch.is_direct() || HANDS_ON.load(Relaxed),
        |kept| core::ptr::eq(kept, cpu),
    )
}

/// Returns the time of `cpu`'s next check: the end of the run's time or of the cell's, whichever is earlier. If no
/// cell runs, the result is as if a cell began now.
pub fn next_check(cpu: &PerCpu) -> u64 {
    if !has_to_check(cpu) {
        return NEVER;
    }
    let cell = match cell_end() {
        NEVER => CNTPCT_EL0.get().saturating_add(CELL.load(Relaxed)),
        end => end,
    };
    run_end().min(cell)
}

/// Ends the machine if the time of the run or of the cell is over. Does nothing if the machine has
/// ended already and firmware did not turn it off: the last line must stay the last.
pub fn end_if_over(cpu: &PerCpu, now: u64) {
    if power::has_ended() {
        return;
    }
    if now >= run_end() {
        dump::end_at_deadline(cpu, format_args!("{}", Late::Run));
    }
    if now >= cell_end() {
        dump::end_at_deadline(cpu, format_args!("{}", Late::Cell));
    }
}

/// Which of the two times is over, for the report.
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
                cell_words(),
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
