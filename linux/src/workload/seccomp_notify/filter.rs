// SPDX-License-Identifier: MIT OR Apache-2.0
//! The filter of system calls, and the call that it sends to user space (seccomp(2)).

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::thread::set_no_new_privs;

use crate::workload::system_call::system_call;

/// Numbers of system calls on arm64 (Linux, include/uapi/asm-generic/unistd.h).
const SECCOMP: u64 = 277;
/// The system call getppid. Nothing else in this program uses it, and getppid ignores the token in its argument.
const CALL: u64 = 173;

const SET_MODE_FILTER: u64 = 1;
const GET_ACTION_AVAIL: u64 = 2;
const NEW_LISTENER: u64 = 1 << 3;
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;

/// An instruction of a filter.
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

impl Instruction {
    const fn new(code: u16, value: u32) -> Self {
        Self {
            code,
            if_true: 0,
            if_false: 0,
            value,
        }
    }
}

/// BPF_LD | BPF_W | BPF_ABS.
const LOAD: u16 = 0x20;
/// BPF_JMP | BPF_JEQ | BPF_K.
const IF_EQUAL: u16 = 0x15;
/// BPF_RET | BPF_K.
const RETURN: u16 = 0x06;

/// Sends a notification for the measured system call, and allows all other calls. The filter need not check the
/// architecture, since threads of this program make only arm64 system calls.
static PROGRAM: [Instruction; 4] = [
    // The system call's number is the first word.
    Instruction::new(LOAD, 0),
    Instruction {
        if_false: 1,
        ..Instruction::new(IF_EQUAL, CALL as u32)
    },
    Instruction::new(RETURN, NOTIFY),
    Instruction::new(RETURN, ALLOW),
];

#[repr(C)]
struct Program {
    length: u16,
    first: *const Instruction,
}

/// If this kernel has no notifications, returns the reason.
pub fn missing_need() -> Option<String> {
    let action = NOTIFY;
    // SAFETY: the call reads one word, which exists.
    let known = unsafe { system_call(SECCOMP, [GET_ACTION_AVAIL, 0, &raw const action as u64]) };
    (known != 0).then(|| {
        format!(
            "the kernel sends no system calls to user space ({}); it needs CONFIG_SECCOMP_FILTER, and Linux 5.0",
            io::Error::from_raw_os_error(-known as i32)
        )
    })
}

/// Installs the filter for this thread. Returns the descriptor that receives its notifications.
pub fn install() -> io::Result<OwnedFd> {
    // Without this, the filter would need a privilege. The setting only affects this thread.
    set_no_new_privs(true)?;
    let program = Program {
        length: PROGRAM.len() as u16,
        first: PROGRAM.as_ptr(),
    };
    let arguments = [SET_MODE_FILTER, NEW_LISTENER, &raw const program as u64];
    // SAFETY: the call reads the program, which exists.
    let listener = unsafe { system_call(SECCOMP, arguments) };
    match listener {
        // SAFETY: the descriptor was opened by this call, and belongs to nothing else.
        0.. => Ok(unsafe { OwnedFd::from_raw_fd(listener as RawFd) }),
        error => Err(io::Error::from_raw_os_error(-error as i32)),
    }
}

/// Makes the call with `token`. Returns the call's answer.
#[inline(always)]
pub fn make_call(token: u64) -> i64 {
    // SAFETY: whether it is answered or not, the call changes nothing.
    unsafe { system_call(CALL, [token, 0, 0]) }
}
