// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the state of each vCPU that the guest keeps in its own memory for EL2: the requests that the vCPU has
//! received, the requests that it waits for, and its last operations.

use core::sync::atomic::Ordering::{Acquire, Relaxed};
use core::sync::atomic::{AtomicU32, AtomicU64};

use abi::{OperationLog, WatchPoint};
use platform::Region;

use crate::cpu::percpu::PerCpu;
use crate::machine::machine;
use crate::machine::vm::{RAM, ram_pointer, vm};

/// Guest physical address of the watch points; 0 if there are none.
static POINTS: AtomicU64 = AtomicU64::new(0);

/// Sets the guest physical `address` of the watch points, one per vCPU; `None` if they are not in RAM.
pub fn set_points(address: u64) -> Option<()> {
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
    Some(())
}

/// Returns the watch point of vCPU `number`.
fn watch_point(number: usize) -> &'static WatchPoint {
    let place = POINTS.load(Relaxed) as *const WatchPoint;
    // SAFETY: `set_points` checked that the points of all vCPUs are in the guest's RAM, which is mapped and stays
    // mapped; every field is an atomic.
    unsafe { &*place.add(number) }
}

/// Sums the events that all vCPUs have received.
pub fn total_events() -> u64 {
    let points = (0..vm().cpus.len()).map(watch_point);
    points.map(|point| point.progress.load(Acquire)).sum()
}

/// Returns the request word of a vCPU, if the word is in RAM.
fn request_word(point: &WatchPoint) -> Option<u32> {
    let word = ram_pointer::<AtomicU32>(point.request.load(Relaxed))?;
    // SAFETY: `ram_pointer` checked the address, and any bits are a valid word.
    Some(unsafe { (*word).load(Relaxed) })
}

/// Returns the log of each vCPU that keeps one in RAM.
pub fn vcpu_logs() -> impl Iterator<Item = (&'static PerCpu, &'static OperationLog)> {
    let watched = POINTS.load(Relaxed) != 0;
    let cpus = vm().cpus.iter().enumerate().filter(move |_| watched);
    cpus.filter_map(|(number, cpu)| {
        let log = ram_pointer::<OperationLog>(watch_point(number).log.load(Relaxed))?;
        // SAFETY: `ram_pointer` checked the address, and every field is an atomic.
        Some((*cpu, unsafe { &*log }))
    })
}

/// Prints every watch point, and names the vCPUs for which a request waits.
pub struct Stuck;

impl core::fmt::Display for Stuck {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (number, cpu) in vm().cpus.iter().enumerate() {
            let point = watch_point(number);
            let waiting = point.waiting.load(Relaxed);
            let progress = point.progress.load(Relaxed);
            let stuck = if waiting != 0 { "STUCK, " } else { "" };
            write!(
                f,
                " vCPU {number} ({:#x}) {stuck}received {progress}, waiting {waiting}",
                cpu.mpidr
            )?;
            match request_word(point) {
                Some(word) => write!(f, " [request {word:#x}]")?,
                None => write!(f, " [request at {:#x}]", point.request.load(Relaxed))?,
            }
        }
        Ok(())
    }
}
