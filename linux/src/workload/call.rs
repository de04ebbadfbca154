// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread reads a perf counter that counts on another CPU. The kernel makes the other CPU execute a function, and
//! waits until it has done so (Linux, `kernel/events/core.c`). The other CPU is idle, since nothing else runs there. A
//! sample is one such read.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use super::SampleBlock;
use super::system_call::system_call_of_five;
use crate::{cpus, sample};

/// Number of the system call on arm64 (Linux, include/uapi/asm-generic/unistd.h).
const PERF_EVENT_OPEN: u64 = 241;
/// Calls before the first sample.
const WARM_UP: u32 = 32;

/// The beginning of `struct perf_event_attr`, which is as long as the struct's first version; the rest is zero
/// (perf_event_open(2)).
#[repr(C)]
struct Attributes {
    /// PERF_TYPE_SOFTWARE.
    kind: u32,
    size: u32,
    /// PERF_COUNT_SW_CPU_CLOCK.
    event: u64,
    rest: [u64; 6],
}

const CPU_CLOCK: Attributes = Attributes {
    kind: 1,
    size: size_of::<Attributes>() as u32,
    event: 0,
    rest: [0; 6],
};
/// PERF_FLAG_FD_CLOEXEC.
const CLOSE_ON_EXEC: u64 = 1 << 3;
/// The argument -1, which means every process, or no group.
const ANY: u64 = u64::MAX;

/// Opens a counter of everything that runs on `cpu`.
fn open_perf_counter(cpu: usize) -> io::Result<OwnedFd> {
    let attributes = CPU_CLOCK;
    let arguments = [
        &raw const attributes as u64,
        ANY,
        cpu as u64,
        ANY,
        CLOSE_ON_EXEC,
    ];
    // SAFETY: the call reads the attributes, which have the size that they state.
    let counter = unsafe { system_call_of_five(PERF_EVENT_OPEN, arguments) };
    match counter {
        // SAFETY: the descriptor was opened here, and belongs to nothing else.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(counter as RawFd) }),
        error => Err(io::Error::from_raw_os_error(-error as i32)),
    }
}

/// If this kernel has no such counter, returns the reason.
pub fn missing_need() -> Option<String> {
    let error = open_perf_counter(0).err()?;
    Some(format!(
        "the kernel has no counter of perf ({error}); it needs CONFIG_PERF_EVENTS"
    ))
}

/// Takes the samples of a block.
pub fn run(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    let [here, there] = block.cpu_pair();
    cpus::pin(here)?;
    let counter = open_perf_counter(there)?;
    let mut last = 0;
    block.rounds(WARM_UP, |_| {
        let mut value = [0; 8];
        let start = sample::begins();
        let read = rustix::io::read(&counter, &mut value)?;
        let end = sample::ends();
        // The clock of a CPU that did not execute the function would stand still.
        let now = u64::from_ne_bytes(value);
        if read != value.len() || now <= last {
            return Err(io::Error::other("the other CPU's counter does not advance"));
        }
        last = now;
        Ok(end - start)
    })
}
