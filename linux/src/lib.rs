// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures the cost of wake-ups on Linux. This user-space program runs workloads on pinned threads, and writes the
//! same records as Rouse's own guest.
//!
//! When the program is the first process of an initramfs, it mounts the file systems that it needs, reads its options
//! from the kernel's command line, and turns the machine off at the end. When a user starts it on any arm64 Linux, it
//! writes the records to standard output. docs/linux.md has the details.

pub mod commands;
pub mod counts;
pub mod hypervisor;
pub mod idle;
pub mod neighbour_memory;
pub mod options;
pub mod output;
pub mod report;
pub mod wait_state;

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub mod bench;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod clock;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod cpus;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
pub mod init;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod page;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod program;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod sample;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod soak;
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
mod workload;
