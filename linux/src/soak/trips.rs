// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake-ups between CPUs: round trips through pipes and futexes between all pairs of CPUs, and
//! memory barriers.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use fastrand::Rng;
use rustix::io::{Errno, read, write};
use rustix::pipe::pipe;
use rustix::thread::{MembarrierCommand, futex, membarrier};

use super::timers::{self, microseconds};
use super::{Soak, clock};
use crate::wait_state::What;

const MS: u64 = 1_000_000;
/// Maximum number of round trips in a row.
const MOST: u64 = 8;

/// The two ends of a pipe: reader, writer.
type Pipe = (OwnedFd, OwnedFd);

/// Requests to each CPU, and their answers.
#[derive(Debug)]
pub struct Mail {
    boxes: Vec<Letters>,
}

/// Requests to one CPU, and their answers.
#[derive(Debug)]
struct Letters {
    /// Pipe for requests, each with the asking CPU and a token.
    asked: Pipe,
    /// Pipe for answers. Each answer is a token.
    answered: Pipe,
    /// The token of each CPU's request through a futex; 0 if there is no request.
    asked_by: Vec<AtomicU32>,
    /// A number that changes with each new request through a futex.
    bell: AtomicU32,
    /// The token of the latest answered request through a futex.
    answer: AtomicU32,
}

impl Mail {
    /// Creates the requests and answers for each CPU number below `cpus`.
    pub fn new(cpus: usize) -> io::Result<Self> {
        let one = |_| {
            Ok(Letters {
                asked: pipe()?,
                answered: pipe()?,
                asked_by: (0..cpus).map(|_| AtomicU32::new(0)).collect(),
                bell: AtomicU32::new(0),
                answer: AtomicU32::new(0),
            })
        };
        let boxes = (0..cpus).map(one).collect::<io::Result<_>>()?;
        Ok(Self { boxes })
    }
}

/// Asks other CPUs until the soak is over, as a thread of the `index`th CPU.
pub fn run(soak: &Soak, index: usize, mut random: Rng) -> io::Result<()> {
    let (waiter, me) = (index * 2 + 1, soak.cpus[index]);
    membarrier(MembarrierCommand::RegisterPrivateExpedited)?;
    let mut token = 0;
    while !soak.is_over() {
        timers::wait_with_deadline(soak, waiter, random.u64(10 * MS..=2000 * MS))?;
        let others = soak.cpus.len() as u64;
        let other = soak.cpus[(index + random.u64(1..=others - 1) as usize) % soak.cpus.len()];
        let how = random.u64(0..=4);
        for _ in 0..random.u64(1..=MOST) {
            token = token % u32::from(u8::MAX) + 1;
            let (what, count) = match how {
                0 => (What::Barrier, &soak.tally.barriers),
                1 | 2 => (What::Pipe(other), &soak.tally.pipes),
                _ => (What::Futex(other), &soak.tally.futexes),
            };
            let trip = || match what {
                What::Pipe(_) => trip_by_pipe(&soak.mail, me, other, token as u8),
                What::Futex(_) => trip_by_futex(&soak.mail, me, other, token),
                _ => Ok(membarrier(MembarrierCommand::PrivateExpedited)?),
            };
            let (done, ticks) = soak.watch.watch_wait(waiter, what, clock::now(), trip);
            done?;
            soak.tally
                .longest_us
                .fetch_max(microseconds(ticks), Relaxed);
            count.fetch_add(1, Relaxed);
        }
    }
    Ok(())
}

fn trip_by_pipe(mail: &Mail, me: usize, other: usize, token: u8) -> io::Result<()> {
    write(&mail.boxes[other].asked.1, &[me as u8, token])?;
    let mut back = [0];
    receive(&mail.boxes[me].answered, &mut back)?;
    check_token(other, token.into(), back[0].into())
}

/// Answers requests through the pipe, for ever.
pub fn answer_pipe(soak: &Soak, me: usize) -> io::Result<()> {
    let boxes = &soak.mail.boxes;
    loop {
        let mut request = [0; 2];
        receive(&boxes[me].asked, &mut request)?;
        let [from, token] = request;
        write(&boxes[usize::from(from)].answered.1, &[token])?;
    }
}

fn receive(pipe: &Pipe, bytes: &mut [u8]) -> io::Result<()> {
    loop {
        match read(&pipe.0, &mut *bytes) {
            // A read returns all bytes of one write.
            Ok(count) if count == bytes.len() => return Ok(()),
            Ok(count) => {
                return Err(io::Error::other(format!(
                    "{count} bytes have come by a pipe"
                )));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn trip_by_futex(mail: &Mail, me: usize, other: usize, token: u32) -> io::Result<()> {
    let (mine, its) = (&mail.boxes[me], &mail.boxes[other]);
    let before = mine.answer.load(Acquire);
    its.asked_by[me].store(token, Release);
    // SeqCst orders this write after the write of the token. The order matters: the other CPU reads the tokens and then
    // sleeps on the bell.
    its.bell.fetch_add(1, SeqCst);
    futex::wake(&its.bell, futex::Flags::PRIVATE, 1)?;
    loop {
        match mine.answer.load(Acquire) {
            same if same == before => sleep(&mine.answer, same)?,
            back => return check_token(other, token, back),
        }
    }
}

/// Answers requests through futexes, for ever.
pub fn answer_futex(soak: &Soak, me: usize) -> io::Result<()> {
    let mine = &soak.mail.boxes[me];
    loop {
        let bell = mine.bell.load(SeqCst);
        for (from, asked) in mine.asked_by.iter().enumerate() {
            let token = asked.swap(0, Acquire);
            if token != 0 {
                let answer = &soak.mail.boxes[from].answer;
                answer.store(token, Release);
                futex::wake(answer, futex::Flags::PRIVATE, 1)?;
            }
        }
        sleep(&mine.bell, bell)?;
    }
}

/// Sleeps while `word` is `value`, and may return earlier (a spurious wake-up).
fn sleep(word: &AtomicU32, value: u32) -> io::Result<()> {
    match futex::wait(word, futex::Flags::PRIVATE, value, None) {
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn check_token(other: usize, token: u32, back: u32) -> io::Result<()> {
    match token == back {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{token} was sent to CPU {other}, and {back} came back"
        ))),
    }
}
