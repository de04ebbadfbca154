// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes noise: CPUs that take no part in a measurement disturb it. The CPUs make noise in rounds, from before a
//! block's first sample until after its last one.
//!
//! An SGI is sent only when the previous SGI has been taken: an SGI that is sent while another SGI with
//! the same INTID is pending causes no further interrupt (IHI 0069H, 4.1.2). So each bystander has
//! an SGI on its way all the time, and none is left when all have stopped.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use arch::{gic_cpu, insn};
use pages::Pool;
use plan::{Cell, Noise};
use platform::MAX_CPUS;
use spin::once::Once;

use super::post::wait_until;
use crate::entry::Rounds;
use crate::percpu::{self, PerCpu};
use crate::{clock, interrupts};

/// The SGI that bystanders send each other: the only enabled SGI besides this kernel's own.
const SGI: u32 = 3;

/// Memory that noise streams through; empty if no cell of the plan streams.
static MEMORY: Once<&'static [AtomicU64]> = Once::new();
/// Number of rounds that each CPU has made in this block.
static ROUNDS: [AtomicU64; MAX_CPUS] = [const { AtomicU64::new(0) }; MAX_CPUS];
/// Number of SGIs from the previous bystander that each CPU has taken since the start.
static TAKEN: [AtomicU32; MAX_CPUS] = [const { AtomicU32::new(0) }; MAX_CPUS];
/// Number of bystanders that have stopped.
static STOPPED: AtomicUsize = AtomicUsize::new(0);

/// Takes `bytes` of memory from `pool`. Cells with noise stream through this memory.
pub fn place_memory(pool: &mut Pool, bytes: u64) {
    let words = bytes as usize / size_of::<AtomicU64>();
    MEMORY.call_once(|| pool.fill((0..words).map(|_| AtomicU64::new(0))));
}

/// Returns the bystanders of `cell`.
pub fn bystanders(cell: &Cell) -> impl Iterator<Item = &'static PerCpu> + Clone {
    let cpus = percpu::online().count();
    let (leader, members) = (super::leader_cpu(cell), super::member_cpus(cell));
    let takes_part =
        move |cpu: &PerCpu| core::ptr::eq(cpu, leader) || super::has_cpu(members.clone(), cpu);
    let others = percpu::online().filter(move |cpu| !takes_part(cpu));
    others.take(cell.bystanders(cpus))
}

/// Prepares a block, before the bystanders begin.
pub fn prepare_block(cell: &Cell) {
    STOPPED.store(0, Release);
    ROUNDS.iter().for_each(|rounds| rounds.store(0, Release));
    if cell.noise == Noise::Sgi {
        interrupts::set_listener(Some(receive_interrupt));
    }
}

/// Adds the noise rounds of `cell`'s finished block to `sum`.
pub fn add_rounds(cell: &Cell, sum: &mut Rounds) {
    if cell.noise == Noise::Sgi {
        interrupts::set_listener(None);
    }
    for (sum, rounds) in sum.iter_mut().zip(&ROUNDS) {
        *sum += rounds.load(Acquire);
    }
}

/// Makes the noise of `cell` until `over` returns true; calls `begun` after the first round.
pub fn make_noise(me: &PerCpu, cell: &Cell, begun: impl FnOnce(), over: impl Fn() -> bool) {
    match cell.noise {
        Noise::None => begun(),
        Noise::Stream => run_rounds(me, begun, over, stream_round(me)),
        Noise::Tlbi => run_rounds(me, begun, over, invalidate_tlbs),
        Noise::Sgi => {
            let redistributor = interrupts::redistributor(me);
            redistributor.enable_all(1 << SGI);
            run_rounds(me, begun, over, interrupt_round(me, cell));
            // The next bystander has taken this CPU's last SGI; the previous bystander's SGI may still be on its way.
            STOPPED.fetch_add(1, AcqRel);
            let all = bystanders(cell).count();
            wait_until(|| STOPPED.load(Acquire) == all);
            redistributor.disable_all(1 << SGI);
            // An interrupt that the handler has ended may read as active for a while, because the
            // CPU interface and the redistributor are separate (IHI 0069H, 12.1.6).
            let none = || (redistributor.pending() | redistributor.active()) & 1 << SGI == 0;
            assert!(clock::wait_for(none), "noise has left an interrupt behind");
        }
    }
}

fn run_rounds(me: &PerCpu, begun: impl FnOnce(), over: impl Fn() -> bool, mut round: impl FnMut()) {
    let mut rounds = 0;
    let mut again = || {
        round();
        rounds += 1;
    };
    again();
    begun();
    while !over() {
        again();
    }
    ROUNDS[me.index].store(rounds, Release);
}

/// Returns a round that reads and writes a page, one word of each line of 64 bytes. CPUs begin at different pages, and
/// each CPU goes through all of the memory.
fn stream_round(me: &PerCpu) -> impl FnMut() {
    /// Number of words in a cache line, and in a page.
    const LINE: usize = 8;
    const PAGE: usize = 512;
    let memory = MEMORY.get().copied().unwrap_or_default();
    let mut pages = memory.chunks_exact(PAGE).cycle();
    let begin = memory.len() / PAGE / percpu::all().len() * me.index;
    let mut first = Some(begin);
    move || {
        let page = match first.take() {
            Some(begin) => pages.nth(begin),
            None => pages.next(),
        };
        for word in page.into_iter().flatten().step_by(LINE) {
            word.store(word.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }
}

/// Invalidates the TLB entries of all CPUs for a page that none of them uses: the other CPUs only receive the
/// broadcast, which they have to complete.
fn invalidate_tlbs() {
    /// The last page below 2^48, which is never mapped.
    const UNUSED: u64 = (1 << 48) - 0x1000;
    insn::tlbi_vaae1is(UNUSED);
    insn::dsb_ish();
}

/// Returns a round that interrupts the next bystander, and waits until that bystander has taken the interrupt.
fn interrupt_round(me: &PerCpu, cell: &Cell) -> impl FnMut() {
    let next = bystanders(cell).find(|other| other.index > me.index);
    let next = next
        .or(bystanders(cell).next())
        .unwrap_or(percpu::all()[me.index]);
    let value = gic_cpu::sgi_value(SGI, next.mpidr);
    let taken = &TAKEN[next.index];
    move || {
        let before = taken.load(Acquire);
        gic_cpu::send_sgi_value(value);
        wait_until(|| taken.load(Acquire) != before);
    }
}

/// Receives, in the interrupt handler, the interrupts that the kernel does not expect.
fn receive_interrupt(me: &PerCpu, intid: u32) {
    if intid == SGI {
        TAKEN[me.index].fetch_add(1, AcqRel);
    }
}
