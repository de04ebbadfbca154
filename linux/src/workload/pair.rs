// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two threads on two CPUs wake each other with the mechanism after which the workload is named. A sample is a round
//! trip of two wake-ups.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use rustix::pipe::pipe;
use rustix::thread::futex;

use super::SampleBlock;
use crate::{cpus, sample};

/// Number of round trips before the first sample. After them, both threads have run on their CPUs, and governors have
/// seen waits of this length.
const WARM_UP: u32 = 32;

/// One side of a pair. The other side waits for this side's tokens. When a side is dropped, the other side finds out
/// that it is gone.
trait Side: Send {
    /// Gives the other thread a token, which wakes it.
    fn send(&self, token: u8) -> io::Result<()>;
    /// Waits for a token. Returns `None` if the other side is gone.
    fn receive(&self) -> io::Result<Option<u8>>;
}

/// Takes the samples through two pipes, in the same way as `perf bench sched pipe`.
pub fn by_pipes(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    let ((request, ask), (answer, reply)) = (pipe()?, pipe()?);
    let near = Pipes(answer, ask);
    run(block, near, Pipes(request, reply))
}

/// Takes the samples through two eventfds.
pub fn by_eventfds(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    let [request, answer] = [
        eventfd(0, EventfdFlags::empty())?,
        eventfd(0, EventfdFlags::empty())?,
    ];
    let near = Events(&answer, &request);
    run(block, near, Events(&request, &answer))
}

/// Takes the samples through two futexes.
pub fn by_futexes(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    let [request, answer] = [AtomicU32::new(NO_TOKEN), AtomicU32::new(NO_TOKEN)];
    let near = Words(&answer, &request);
    run(block, near, Words(&request, &answer))
}

/// Takes the samples of a block.
fn run<S: Side>(block: &mut SampleBlock<'_>, near: S, far: S) -> io::Result<u64> {
    let [here, there] = block.cpu_pair();
    thread::scope(|scope| {
        let other = scope.spawn(move || -> io::Result<()> {
            cpus::pin(there)?;
            while let Some(token) = far.receive()? {
                far.send(token)?;
            }
            Ok(())
        });
        let made = cpus::pin(here).and_then(|()| take_samples(block, &near));
        drop(near);
        let ended = other
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a thread has panicked")));
        ended.and(made)
    })
}

fn take_samples(block: &mut SampleBlock<'_>, near: &impl Side) -> io::Result<u64> {
    block.rounds(WARM_UP, |round| {
        let token = round as u8;
        let start = sample::begins();
        near.send(token)?;
        let back = near.receive()?;
        let end = sample::ends();
        if back != Some(token) {
            return Err(io::Error::other(format!(
                "round {round}: {token} was sent, and {back:?} came back"
            )));
        }
        Ok(end - start)
    })
}

/// Pipes to read from and to write to.
struct Pipes(OwnedFd, OwnedFd);

impl Side for Pipes {
    fn send(&self, token: u8) -> io::Result<()> {
        write(&self.1, &[token])?;
        Ok(())
    }

    fn receive(&self) -> io::Result<Option<u8>> {
        let mut token = [0];
        Ok((read(&self.0, &mut token)? == 1).then_some(token[0]))
    }
}

/// Eventfds to read from and to write to. The eventfds hold the token plus one, since 0 means empty.
struct Events<'e>(&'e OwnedFd, &'e OwnedFd);

/// Minimum value of an eventfd's counter when the other side is gone.
const GONE: u64 = 1 << 32;

impl Side for Events<'_> {
    fn send(&self, token: u8) -> io::Result<()> {
        write(self.1, &(u64::from(token) + 1).to_ne_bytes())?;
        Ok(())
    }

    fn receive(&self) -> io::Result<Option<u8>> {
        let mut count = [0; size_of::<u64>()];
        read(self.0, &mut count)?;
        let count = u64::from_ne_bytes(count);
        // Tokens that were not read in time add up, and the caller rejects the sum as a wrong token.
        Ok((count < GONE).then(|| (count - 1) as u8))
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        let _ = write(self.1, &GONE.to_ne_bytes());
    }
}

/// Words to read from and to write to.
struct Words<'w>(&'w AtomicU32, &'w AtomicU32);

const NO_TOKEN: u32 = u32::MAX;
const NO_SIDE: u32 = u32::MAX - 1;

impl Words<'_> {
    fn store_and_wake(&self, word: u32) -> io::Result<()> {
        self.1.store(word, Release);
        futex::wake(self.1, futex::Flags::PRIVATE, 1)?;
        Ok(())
    }
}

impl Side for Words<'_> {
    fn send(&self, token: u8) -> io::Result<()> {
        self.store_and_wake(token.into())
    }

    fn receive(&self) -> io::Result<Option<u8>> {
        loop {
            let word = self.0.load(Acquire);
            match word {
                NO_SIDE => return Ok(None),
                NO_TOKEN => {}
                token => {
                    self.0.store(NO_TOKEN, Release);
                    return Ok(Some(token as u8));
                }
            }
            // After a signal, or if the word had already changed, check the word again.
            match futex::wait(self.0, futex::Flags::PRIVATE, NO_TOKEN, None) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Words<'_> {
    fn drop(&mut self) {
        let _ = self.store_and_wake(NO_SIDE);
    }
}
