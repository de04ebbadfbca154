// SPDX-License-Identifier: MIT OR Apache-2.0
//! Synchronizes all threads at the beginning and the end of a round.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use rustix::io::Errno;
use rustix::thread::futex;

/// The round number that stands for the end of all rounds.
const OVER: u32 = u32::MAX;
/// Bit that is set in the number of finished receivers if a thread has failed.
const FAILED: u32 = 1 << 31;

/// The current round.
pub struct Round {
    number: AtomicU32,
    /// Number of receivers that have every message.
    done: AtomicU32,
    receivers: u32,
    why: Mutex<Option<io::Error>>,
}

impl Round {
    /// Creates the state before the first round, for `receivers` receivers.
    pub const fn new(receivers: usize) -> Self {
        Self {
            number: AtomicU32::new(0),
            done: AtomicU32::new(0),
            receivers: receivers as u32,
            why: Mutex::new(None),
        }
    }

    /// Releases all senders.
    pub fn begin_round(&self) -> io::Result<()> {
        // A failure since the last round must stay visible.
        self.done.fetch_and(FAILED, Relaxed);
        self.number.fetch_add(1, Release);
        wake(&self.number)
    }

    /// Ends the rounds.
    pub fn end_rounds(&self) {
        self.number.store(OVER, Release);
        let _ = wake(&self.number);
    }

    /// Waits for the round after `last`, where 0 stands for the beginning. Returns `None` after the last round.
    pub fn wait_for_round_after(&self, last: u32) -> io::Result<Option<u32>> {
        loop {
            match self.number.load(Acquire) {
                OVER => return Ok(None),
                number if number != last => return Ok(Some(number)),
                number => sleep(&self.number, number)?,
            }
        }
    }

    /// Notes that a receiver has every message.
    pub fn receiver_done(&self) {
        let before = self.done.fetch_add(1, AcqRel);
        if before + 1 == self.receivers {
            let _ = wake(&self.done);
        }
    }

    /// Waits until all receivers have every message.
    pub fn wait_for_receivers(&self) -> io::Result<()> {
        loop {
            let done = self.done.load(Acquire);
            if done & FAILED != 0 {
                let why = self.why.lock().ok().and_then(|mut why| why.take());
                return Err(why.unwrap_or_else(|| io::Error::other("a thread has failed")));
            }
            if done == self.receivers {
                return Ok(());
            }
            sleep(&self.done, done)?;
        }
    }

    /// Notes how a thread has ended.
    pub fn note_end(&self, ended: io::Result<()>) {
        let Err(error) = ended else {
            return;
        };
        if let Ok(mut why) = self.why.lock() {
            why.get_or_insert(error);
        }
        self.done.fetch_or(FAILED, Release);
        let _ = wake(&self.done);
    }
}

fn wake(word: &AtomicU32) -> io::Result<()> {
    futex::wake(word, futex::Flags::PRIVATE, i32::MAX as u32)?;
    Ok(())
}

/// Sleeps while `word` is `value`, and may return earlier (a spurious wake-up).
fn sleep(word: &AtomicU32, value: u32) -> io::Result<()> {
    match futex::wait(word, futex::Flags::PRIVATE, value, None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
