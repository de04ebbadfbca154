// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes calls that the filter forbids, to show that the filter works.

use std::fs::File;
use std::io;
use std::net::UdpSocket;
use std::process::Command;

use rustix::termios::tcgetattr;
use vm_memory::mmap::MmapRegionBuilder;

use super::Obstacle;
use crate::options::Breach;

/// Makes the call. If this program survives the call, the filter does not work, and the returned obstacle says so.
pub fn make_call(breach: Breach) -> Obstacle {
    let executable = libc::PROT_READ | libc::PROT_EXEC;
    // The result does not matter, since the call must not complete.
    match breach {
        Breach::Open => drop(File::open("/proc/version")),
        Breach::Socket => drop(UdpSocket::bind("127.0.0.1:0")),
        Breach::Start => drop(Command::new("/proc/self/exe").arg("--version").status()),
        Breach::Execute => drop(
            MmapRegionBuilder::<()>::new(1 << 16)
                .with_mmap_prot(executable)
                .with_mmap_flags(libc::MAP_ANONYMOUS | libc::MAP_PRIVATE)
                .build(),
        ),
        Breach::Ioctl => drop(tcgetattr(io::stdout())),
    }
    Obstacle(format!(
        "--break-bound: this program was not ended for it ({breach:?})"
    ))
}
