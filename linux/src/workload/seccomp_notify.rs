// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread makes a system call that a seccomp filter sends to user space, where a supervisor on another CPU answers
//! the call. The answer takes two wake-ups. A sample is one such call.
//!
//! Notifications wake the supervisor in the kernel's default way. The other way,
//! SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP, requests that the supervisor run on the caller's CPU
//! (seccomp_unotify(2)), which is impossible for a supervisor pinned to another CPU.

mod filter;
mod listener;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

pub use filter::missing_need;

use super::SampleBlock;
use crate::{cpus, sample};
use filter::{install, make_call};
use listener::{answer, receive};

/// Calls before the first sample.
const WARM_UP: u32 = 32;
/// The argument of the last call.
const LAST: u64 = u64::MAX;

/// Returns the answer to a call with `token`: a positive number that differs from the kernel's own
/// answer and from the answers to other tokens.
const fn answer_to(token: u64) -> i64 {
    (token ^ 0x5a5a_5a5a) as i64
}

/// Takes the samples of a block. The calling thread keeps the filter until it ends, so each block
/// has its own thread.
pub fn run(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    let [here, there] = block.cpu_pair();
    let (known, listener) = channel();
    thread::scope(|scope| {
        let calls = scope.spawn(move || -> io::Result<u64> {
            cpus::pin(here)?;
            let listener = install()?;
            known.send(listener).map_err(io::Error::other)?;
            let made = take_samples(block);
            // This call tells the supervisor to end, whether the samples succeeded or not.
            make_call(LAST);
            made
        });
        let supervised = supervise(there, listener);
        let made = calls
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")));
        supervised.and(made)
    })
}

fn take_samples(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    block.rounds(WARM_UP, |round| {
        let token = u64::from(round);
        let start = sample::begins();
        let answer = make_call(token);
        let end = sample::ends();
        if answer != answer_to(token) {
            return Err(io::Error::other(format!(
                "call {round}: the answer is {answer}, and {} was due",
                answer_to(token)
            )));
        }
        Ok(end - start)
    })
}

/// Answers calls up to the last call. If it ends early, it closes the listener, and the kernel answers the remaining
/// calls with an error.
fn supervise(cpu: usize, listener: Receiver<OwnedFd>) -> io::Result<()> {
    cpus::pin(cpu)?;
    // If there is no listener, the calling thread returns the reason.
    let Ok(listener) = listener.recv() else {
        return Ok(());
    };
    loop {
        let call = receive(&listener)?;
        let token = call.argument();
        answer(&listener, &call, answer_to(token))?;
        if token == LAST {
            return Ok(());
        }
    }
}
