// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes more interrupts pending at once than there are list registers: every number of interrupts, with equal, rising,
//! falling and random priorities, acknowledged one after another, or all before the first is ended. No interrupt may be
//! lost, taken twice, or taken before a more urgent one.

use core::ops::Range;

use arch::{gic_cpu, insn};
use arrayvec::ArrayVec;
use gic::Spi;
use plan::Deliver;

use super::tally::Tally;
use guest_kernel_shim::interrupts;
use guest_kernel_shim::machine::platform;
use guest_kernel_shim::percpu::PerCpu;
use sched::random::Random;

/// SGIs that this kernel does not use, and all SPIs.
const SGIS: Range<u32> = 2..16;
const SPIS: Range<u32> = 32..96;
/// Maximum number of interrupts that are pending at once.
const MOST: usize = (SGIS.end - SGIS.start + SPIS.end - SPIS.start) as usize;
/// Number of checks for a due interrupt before it counts as lost.
const PATIENCE: u32 = 10_000;

/// Returns the SGIs that can be delivered in the way `deliver`.
fn usable_sgis(deliver: Deliver) -> Range<u32> {
    match deliver {
        Deliver::Inject => SGIS,
        Deliver::Direct => SGIS.start..interrupts::usable_sgi_count().min(SGIS.end),
    }
}

/// Returns the priority of an interrupt, by its position.
type Priorities = fn(usize, &mut Random) -> u8;
const ORDERS: [(&str, Priorities); 4] = [
    ("equal", |_, _| 0x80),
    ("rising", |n, _| (n % 16) as u8 * 8),
    ("falling", |n, _| (15 - n % 16) as u8 * 8),
    ("random", |_, random| random.below(16) as u8 * 8),
];

type Sources = ArrayVec<(u32, u8), MOST>;

/// Runs the class.
pub fn run(tally: &mut Tally, random: &mut Random) {
    let me = PerCpu::this();
    let most = match tally.deliver() {
        Deliver::Inject => MOST,
        // A virtual SPI can't be delivered directly.
        Deliver::Direct => usable_sgis(tally.deliver()).len(),
    };
    for count in (1..=most).filter(|count| *count < 20 || count.is_multiple_of(13)) {
        for (name, order) in ORDERS {
            let sources = pend_interrupts(me, usable_sgis(tally.deliver()), count, order, random);
            let taken = take_all(&sources);
            tally.case(
                taken.is_ok(),
                format_args!("{count} with {name} priorities: {taken:?}"),
            );
            clear_interrupts(me);
        }
    }
    for count in 1..=16 {
        try_nesting(tally, me, count);
    }
    clear_interrupts(me);
}

/// Makes `count` interrupts pending for this CPU, while it has them masked.
fn pend_interrupts(
    me: &PerCpu,
    sgis: Range<u32>,
    count: usize,
    order: Priorities,
    random: &mut Random,
) -> Sources {
    let gic = &platform().gic;
    let redistributor = interrupts::redistributor(me);
    let mut sources = Sources::new();
    for (n, intid) in sgis.chain(SPIS).take(count).enumerate() {
        let priority = order(n, random);
        sources.push((intid, priority));
        if intid < 32 {
            // SAFETY: this is this CPU's own redistributor.
            unsafe { redistributor.set_priority(intid, priority) };
            redistributor.enable_all(1 << intid);
            continue;
        }
        // SAFETY: the machine's description is true, and nothing else uses SPIs.
        let spi = unsafe { Spi::new(gic, intid) };
        spi.set_group1();
        spi.set_priority(priority);
        spi.route(me.mpidr);
        spi.enable();
    }
    for &(intid, _) in &sources {
        if intid < 32 {
            gic_cpu::send_sgi(intid, me.mpidr);
        } else {
            // SAFETY: as above.
            unsafe { Spi::new(gic, intid) }.set_pending();
        }
    }
    // SGIs that this CPU has sent to itself may still be on their way.
    let sgis = sources.iter().filter(|(intid, _)| *intid < 32);
    let bits = sgis.fold(0, |bits, (intid, _)| bits | 1u32 << intid);
    guest_kernel_shim::clock::wait_for(|| redistributor.pending() & bits == bits);
    sources
}

/// Returns the next interrupt, if one is due.
fn next() -> Option<u32> {
    for _ in 0..PATIENCE {
        let intid = gic_cpu::acknowledge();
        if intid != gic_cpu::SPURIOUS {
            return Some(intid);
        }
        insn::yield_now();
    }
    None
}

/// Takes all of `sources`, one after another.
fn take_all(sources: &Sources) -> Result<(), (&'static str, u32)> {
    let mut left = sources.clone();
    while !left.is_empty() {
        let intid = next().ok_or(("one is lost of", left.len() as u32))?;
        gic_cpu::end(intid);
        remove_most_urgent(&mut left, intid)?;
    }
    match gic_cpu::acknowledge() {
        gic_cpu::SPURIOUS => Ok(()),
        intid => Err(("one too many", intid)),
    }
}

/// Removes `intid` from `left`; it has to be one of the most urgent interrupts there.
fn remove_most_urgent(left: &mut Sources, intid: u32) -> Result<(), (&'static str, u32)> {
    let most = left.iter().map(|(_, priority)| *priority).min();
    let at = left.iter().position(|(one, _)| *one == intid);
    let (_, priority) = left.remove(at.ok_or(("unasked for or twice", intid))?);
    if Some(priority) == most {
        Ok(())
    } else {
        Err(("before a more urgent one", intid))
    }
}

/// Nests interrupts `count` deep: each is more urgent than the previous one, and is taken at once,
/// however many list registers there are.
fn try_nesting(tally: &mut Tally, me: &PerCpu, count: usize) {
    let redistributor = interrupts::redistributor(me);
    let mut active: ArrayVec<u32, 16> = ArrayVec::new();
    let mut due = 0;
    let mut at_once = true;
    let sgis = usable_sgis(tally.deliver()).take(count);
    let count = sgis.len();
    // With two security states, the machine's own interface has only four bits of priority (IHI
    // 0069H, 4.8.1).
    let step = if count < 8 { 16 } else { 8 };
    for (n, intid) in sgis.enumerate() {
        let priority = (count - n) as u8 * step;
        // SAFETY: this is this CPU's own redistributor.
        unsafe { redistributor.set_priority(intid, priority) };
        redistributor.enable_all(1 << intid);
        gic_cpu::send_sgi(intid, me.mpidr);
        due += 1;
        guest_kernel_shim::clock::wait_for(|| redistributor.pending() >> intid & 1 != 0);
        let taken = gic_cpu::acknowledge();
        at_once &= taken == intid;
        if taken != gic_cpu::SPURIOUS {
            active.push(taken);
        }
    }
    let mut ended = 0;
    while let Some(intid) = active.pop() {
        gic_cpu::end(intid);
        ended += 1;
    }
    while ended < due
        && let Some(intid) = next()
    {
        gic_cpu::end(intid);
        ended += 1;
    }
    tally.case(
        at_once && ended == due,
        format_args!("{due} nested, {ended} came, at once: {at_once}"),
    );
    clear_interrupts(me);
}

/// Makes sure that only this kernel's interrupts are pending, active or enabled.
fn clear_interrupts(me: &PerCpu) {
    let redistributor = interrupts::redistributor(me);
    redistributor.clear_pending(u32::MAX);
    redistributor.clear_active(u32::MAX);
    redistributor.disable_all(0xfffc);
    for intid in SGIS {
        // SAFETY: this is this CPU's own redistributor.
        unsafe { redistributor.set_priority(intid, 0xa0) };
    }
    let distributor = platform().gic.distributor.base;
    for word in 1..3 {
        for register in [0x180, 0x280, 0x380] {
            // SAFETY: this only clears the state of SPIs, and this kernel uses no SPI.
            unsafe { ((distributor + register + 4 * word) as *mut u32).write_volatile(u32::MAX) };
        }
    }
}
