// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that a supervisor receives, and its answers (seccomp_unotify(2)).

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};

/// A call that waits for its answer: `struct seccomp_notif`.
#[repr(C)]
#[derive(Default)]
pub struct Call {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    architecture: u32,
    address: u64,
    arguments: [u64; 6],
}

impl Call {
    /// Returns the call's first argument.
    pub const fn argument(&self) -> u64 {
        self.arguments[0]
    }
}

/// The answer to a call: `struct seccomp_notif_resp`.
#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const GROUP: u8 = b'!';
const RECEIVE: Opcode = opcode::read_write::<Call>(GROUP, 0);
const SEND: Opcode = opcode::read_write::<Answer>(GROUP, 1);

/// Waits for a call.
pub fn receive(listener: &OwnedFd) -> io::Result<Call> {
    loop {
        // The kernel accepts only a zeroed structure.
        let mut call = Call::default();
        // SAFETY: the operation fills the structure that the opcode's type describes.
        let received = unsafe { ioctl(listener, Updater::<RECEIVE, _>::new(&mut call)) };
        match received {
            Ok(()) => return Ok(call),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Makes `call` return `value`.
pub fn answer(listener: &OwnedFd, call: &Call, value: i64) -> io::Result<()> {
    let mut answer = Answer {
        id: call.id,
        value,
        error: 0,
        flags: 0,
    };
    // SAFETY: the operation reads the structure that the opcode's type describes.
    Ok(unsafe { ioctl(listener, Updater::<SEND, _>::new(&mut answer)) }?)
}
