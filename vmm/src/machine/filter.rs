// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits the system calls of this program while the guest runs.
//!
//! The program often runs as root. A guest that took the program over through an emulated device could only enter
//! vCPUs, read their registers, raise an interrupt line, write to open files, and exit. The guest could not open a file
//! or a socket, start a program or map executable memory.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::Obstacle;

/// Calls that are allowed with any arguments. These calls read open files (KVM's statistics), manage threads with their
/// signals and locks, return the time, free memory, write output, and exit.
const ANY: [i64; 21] = [
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_tkill,
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// Allowed ioctls: KVM_RUN, KVM_GET_ONE_REG, KVM_IRQ_LINE, KVM_ENABLE_CAP, and the ioctl that tcdrain issues.
const IOCTLS: [u64; 5] = [0xae80, 0x4010_aeab, 0x4008_ae61, 0x4068_aea3, 0x5409];

/// Applies the filter to every thread of this program. From then on, any other call ends the program with SIGSYS.
pub fn install() -> Result<(), Obstacle> {
    program()
        .map_err(|error| error.to_string())
        .and_then(|program| {
            seccompiler::apply_filter_all_threads(&program).map_err(|error| error.to_string())
        })
        .map_err(|error| {
            Obstacle(format!(
                "the host's kernel does not bound this program ({error}); use one with CONFIG_SECCOMP_FILTER"
            ))
        })
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: Vec<(i64, Vec<SeccompRule>)> =
        ANY.iter().map(|&call| (call, Vec::new())).collect();
    let ioctls = IOCTLS.map(|ioctl| argument_rule(1, SeccompCmpOp::Eq, ioctl));
    rules.push((
        libc::SYS_ioctl,
        ioctls.into_iter().collect::<Result<_, _>>()?,
    ));
    let executable = libc::PROT_EXEC as u64;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        let without = argument_rule(2, SeccompCmpOp::MaskedEq(executable), 0)?;
        rules.push((call, vec![without]));
    }
    let filter = SeccompFilter::new(
        rules.into_iter().collect(),
        SeccompAction::KillProcess,
        SeccompAction::Allow,
        seccompiler::TargetArch::aarch64,
    )?;
    filter.try_into()
}

/// Returns a rule with one condition on an argument of a call.
fn argument_rule(
    index: u8,
    op: SeccompCmpOp,
    value: u64,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(index, SeccompCmpArgLen::Dword, op, value)?;
    SeccompRule::new(vec![condition])
}
