// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of senders and receivers that communicate through sockets, as in `perf bench sched messaging` and hackbench.
//! A sample is a round, in which each sender sends a message to each receiver of its group. The round lasts from the
//! release of the senders until every receiver has all its messages. The scheduler chooses where threads run.

mod message;
mod round;

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::io::Errno;
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};

use super::SampleBlock;
use crate::{clock, cpus};
use message::{receive, send};
use round::Round;

/// Rounds before the first sample.
const WARM_UP: u32 = 4;
/// Number of senders in a group, and also of receivers.
const THREADS: usize = 4;
/// CPUs per group, and the maximum number of groups, since a process may have no more than 1024 open files.
const CPUS: usize = 2;
const MOST_GROUPS: usize = 64;

/// Ends of a socket: a receiver reads from the first, and all senders of its group write to the second.
type Socket = (OwnedFd, OwnedFd);

/// If this kernel has no sockets, returns the reason.
pub fn missing_need() -> Option<String> {
    match socket() {
        Err(error @ (Errno::AFNOSUPPORT | Errno::NOSYS)) => Some(format!(
            "the kernel has no sockets between threads ({error}); it needs CONFIG_UNIX"
        )),
        _ => None,
    }
}

fn socket() -> Result<Socket, Errno> {
    socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::empty(),
        None,
    )
}

/// Takes the samples of a block.
pub fn run(block: &mut SampleBlock<'_>) -> io::Result<u64> {
    // Threads inherit this affinity.
    cpus::unpin(block.cpus)?;
    let groups = block.cpus.len().div_ceil(CPUS).min(MOST_GROUPS);
    let group = || (0..THREADS).map(|_| socket()).collect();
    let groups: Vec<Vec<Socket>> = (0..groups).map(|_| group()).collect::<Result<_, _>>()?;
    let round = Round::new(groups.len() * THREADS);
    thread::scope(|scope| {
        for group in &groups {
            for (number, (socket, _)) in group.iter().enumerate() {
                let round = &round;
                scope.spawn(move || round.note_end(run_receiver(number, socket, round)));
                scope.spawn(move || round.note_end(run_sender(number, group, round)));
            }
        }
        let made = take_samples(block, &round);
        round.end_rounds();
        for (_, socket) in groups.iter().flatten() {
            shutdown(socket, Shutdown::Write)?;
        }
        made
    })
}

fn take_samples(block: &mut SampleBlock<'_>, round: &Round) -> io::Result<u64> {
    for number in 0..WARM_UP + block.count {
        if number == WARM_UP {
            block.begin_block()?;
        }
        let start = clock::now();
        round.begin_round()?;
        round.wait_for_receivers()?;
        let end = clock::now();
        if number >= WARM_UP {
            block.record(end - start);
        }
    }
    block.end_block()
}

/// Sends a message to each receiver in each round.
fn run_sender(number: usize, group: &[Socket], round: &Round) -> io::Result<()> {
    let mut last = 0;
    while let Some(this) = round.wait_for_round_after(last)? {
        for (to, (_, socket)) in group.iter().enumerate() {
            send(socket, [number as u32, to as u32, this])?;
        }
        last = this;
    }
    Ok(())
}

/// Receives one message from each sender in each round.
fn run_receiver(me: usize, socket: &OwnedFd, round: &Round) -> io::Result<()> {
    for this in 1.. {
        let mut missing: Vec<u32> = (0..THREADS as u32).collect();
        while !missing.is_empty() {
            let Some(message @ [from, to, of]) = receive(socket)? else {
                // The sockets must not close in the middle of a round.
                let over = missing.len() == THREADS;
                return if over {
                    Ok(())
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            };
            let due = missing.iter().position(|&sender| sender == from);
            let Some(due) = due.filter(|_| (to, of) == (me as u32, this)) else {
                return Err(io::Error::other(format!(
                    "receiver {me}, round {this}: {message:?} has come (sender, receiver, round), and senders {missing:?} are missing"
                )));
            };
            missing.swap_remove(due);
        }
        round.receiver_done();
    }
    Ok(())
}
