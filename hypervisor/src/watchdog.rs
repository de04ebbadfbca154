// SPDX-License-Identifier: MIT OR Apache-2.0
//! A watchdog over wake-ups: the guest shows where each vCPU counts what it
//! received, and EL2 looks there now and then. If nothing moves anywhere, a
//! wake-up was lost, which is the worst thing that can happen here: the machine
//! stops and shows everything.
//!
//! It looks from the first CPU, on EL2's own timer, so that CPU has to be one
//! whose interrupts come to EL2.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicU64};

use aarch64_cpu::registers::{CNTPCT_EL0, Readable};
use abi::{OperationLog, WatchPoint};
use arch::insn;
use arch::regs::{CNTHP_CTL_EL2, CNTHP_CVAL_EL2};
use platform::Region;

use crate::dump;
use crate::percpu::PerCpu;
use crate::start::machine;
use crate::vm::{RAM, vm};

/// CNTHP_CTL_EL2.ENABLE.
const TIMER_ON: u64 = 1;

/// Where the guest has its watch points, physical; 0 is nowhere.
static POINTS: AtomicU64 = AtomicU64::new(0);
/// Ticks between two looks; 0 is off.
static PERIOD: AtomicU64 = AtomicU64::new(0);
/// When the next look is due, ticks of the physical count.
static NEXT: AtomicU64 = AtomicU64::new(0);
/// Sum of all progress at the last look.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Watches the points at guest physical `address`, one per vCPU, every
/// `period` ticks; 0 ends it. `None` if they are not in RAM.
pub fn watch(address: u64, period: u64) -> Option<()> {
    let size = (vm().cpus.len() * size_of::<WatchPoint>()) as u64;
    let points = Region {
        base: address,
        size,
    };
    let ram = vm().ram;
    let inside = ram.contains(points.base) && points.end() <= ram.end();
    if !inside || !address.is_multiple_of(align_of::<WatchPoint>() as u64) {
        return None;
    }
    POINTS.store(machine().guest.base + (address - RAM), Relaxed);
    LAST.store(u64::MAX, Relaxed);
    NEXT.store(CNTPCT_EL0.get() + period, Relaxed);
    PERIOD.store(period, Release);
    rearm(None);
    Some(())
}

/// The watch point of vCPU `number`.
fn point(number: usize) -> &'static WatchPoint {
    let place = POINTS.load(Relaxed) as *const WatchPoint;
    // SAFETY: `watch` checked that one per vCPU lies in the guest's RAM, which
    // is mapped and stays so; every field is an atomic.
    unsafe { &*place.add(number) }
}

/// Sets this CPU's EL2 timer for `deadline`, or for the next look if it has
/// one, or off.
pub fn rearm(deadline: Option<u64>) {
    let period = PERIOD.load(Acquire);
    let mine = period != 0 && core::ptr::eq(PerCpu::this(), vm().cpus[0]);
    let look = mine.then(|| NEXT.load(Relaxed));
    // Whichever comes first: a guest that waits with deadlines again and again
    // must not put the look off.
    match deadline.into_iter().chain(look).min() {
        Some(at) => {
            CNTHP_CVAL_EL2.set(at);
            CNTHP_CTL_EL2.set(TIMER_ON);
        }
        None => CNTHP_CTL_EL2.set(0),
    }
    insn::isb();
}

/// EL2's timer has expired: looks, if this CPU is the one that does.
pub fn expired(cpu: &PerCpu) {
    let period = PERIOD.load(Relaxed);
    let mine = period != 0 && core::ptr::eq(cpu, vm().cpus[0]);
    let due = mine && CNTPCT_EL0.get() >= NEXT.load(Relaxed);
    if due {
        NEXT.store(CNTPCT_EL0.get() + period, Relaxed);
    }
    rearm(None);
    if !due {
        return;
    }
    let points = || (0..vm().cpus.len()).map(point);
    let sum = points().map(|point| point.progress.load(Acquire)).sum();
    if LAST.swap(sum, Relaxed) == sum {
        dump::fail(format_args!("wake-up lost:{}", Stuck));
    }
}

/// The request word of a vCPU, if it is in RAM.
fn request(point: &WatchPoint) -> Option<u32> {
    let word = in_ram::<AtomicU32>(point.request.load(Relaxed))?;
    // SAFETY: `in_ram` checked it, and any bits are a valid word.
    Some(unsafe { (*word).load(Relaxed) })
}

/// The log of each vCPU that keeps one in RAM.
pub fn logs() -> impl Iterator<Item = (&'static PerCpu, &'static OperationLog)> {
    let watched = POINTS.load(Relaxed) != 0;
    let cpus = vm().cpus.iter().enumerate().filter(move |_| watched);
    cpus.filter_map(|(number, cpu)| {
        let log = in_ram::<OperationLog>(point(number).log.load(Relaxed))?;
        // SAFETY: `in_ram` checked it, and every field is an atomic.
        Some((*cpu, unsafe { &*log }))
    })
}

/// Where the `T` at guest physical `address` is; `None` unless it is aligned and
/// lies in RAM, which is mapped and stays so.
fn in_ram<T>(address: u64) -> Option<*const T> {
    let last = address.checked_add(size_of::<T>() as u64 - 1)?;
    let inside = vm().ram.contains(address) && vm().ram.contains(last);
    (inside && address.is_multiple_of(align_of::<T>() as u64))
        .then(|| (machine().guest.base + (address - RAM)) as *const T)
}

/// Shows every watch point, and names the vCPUs for which something waits.
struct Stuck;

impl core::fmt::Display for Stuck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (number, cpu) in vm().cpus.iter().enumerate() {
            let point = point(number);
            let waiting = point.waiting.load(Relaxed);
            let progress = point.progress.load(Relaxed);
            let stuck = if waiting != 0 { "STUCK, " } else { "" };
            write!(
                f,
                " vCPU {number} ({:#x}) {stuck}received {progress}, waiting {waiting}",
                cpu.mpidr
            )?;
            match request(point) {
                Some(word) => write!(f, " [request {word:#x}]")?,
                None => write!(f, " [request at {:#x}]", point.request.load(Relaxed))?,
            }
        }
        Ok(())
    }
}
