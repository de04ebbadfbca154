// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes QEMU's event loop wait with ppoll(2) instead of io_uring(7).
//!
//! With io_uring, the loop can lose a wake-up of QEMU's main thread, for instance with QEMU 11.1.3 on Linux 6.18. The
//! thread that executes the guest then waits for the main thread for ever, and with `-icount sleep=off`, no timer of
//! the guest fires: the guest hangs in WFI. This only happens if the guest writes to flash, as UEFI firmware does for
//! its variables, because such a write runs the event loop in the thread of the CPUs. 4 of 140 boots of such a firmware
//! hung, and continued as soon as something wrote to an eventfd of the main thread; without io_uring, none of 220 hung.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod filter {
    use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter};

    /// The error of a kernel without io_uring. QEMU then silently uses ppoll(2).
    const ANSWER: SeccompAction = SeccompAction::Errno(libc::ENOSYS as u32);

    #[cfg(target_arch = "x86_64")]
    const HERE: seccompiler::TargetArch = seccompiler::TargetArch::x86_64;
    #[cfg(target_arch = "aarch64")]
    const HERE: seccompiler::TargetArch = seccompiler::TargetArch::aarch64;

    /// Returns a filter that allows all system calls except io_uring_setup(2).
    pub fn build_filter() -> Result<BpfProgram, BackendError> {
        let calls = [(libc::SYS_io_uring_setup, Vec::new())];
        let calls = calls.into_iter().collect();
        SeccompFilter::new(calls, SeccompAction::Allow, ANSWER, HERE)?.try_into()
    }
}

/// Denies io_uring to all programs that this thread and its future threads start from now on. Does nothing on a kernel
/// without seccomp filters. The defect is rare even there, and a run that hangs reports it.
pub fn without_io_uring() {
    #[cfg(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    ))]
    if let Ok(program) = filter::build_filter() {
        let _ = seccompiler::apply_filter(&program);
    }
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use std::io::{Seek, Write};
    use std::process::Command;
    use std::thread;

    use super::*;
    use crate::qemu::{self, Found};

    /// Returns the number of filters in a program that the calling thread starts.
    fn count_filters() -> u32 {
        let status = Command::new("cat").arg("/proc/self/status").output();
        let status = String::from_utf8(status.unwrap().stdout).unwrap();
        let count = |line: &str| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok();
        status.lines().find_map(count).unwrap()
    }

    /// Whether the emulator gets an io_uring for a disk; `None` if there is no emulator yet.
    fn gets_ring() -> Option<bool> {
        let Found::Usable(emulator) = qemu::find() else {
            return None;
        };
        let disk = tempfile::NamedTempFile::new().unwrap();
        disk.as_file().set_len(1 << 20).unwrap();
        let node = format!(
            "driver=file,aio=io_uring,node-name=disk,filename={}",
            disk.path().display()
        );
        let mut command = emulator.command();
        command.args(["-machine", "none", "-display", "none", "-blockdev", &node]);
        command.args(["-monitor", "stdio", "-serial", "none", "-parallel", "none"]);
        let mut orders = tempfile::tempfile().unwrap();
        orders.write_all(b"quit\n").unwrap();
        orders.rewind().unwrap();
        let ended = command.stdin(orders).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        if !ended.status.success() {
            assert!(told.contains("io_uring"), "{told}");
        }
        Some(ended.status.success())
    }

    #[test]
    fn an_emulator_gets_no_ring() {
        let within = thread::spawn(|| {
            let before = count_filters();
            without_io_uring();
            assert_eq!(count_filters(), before + 1);
            gets_ring()
        });
        let ring = within.join().unwrap();
        assert_ne!(ring, Some(true));
    }
}
