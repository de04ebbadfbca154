// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages of the same size as hackbench's, which carry numbers that identify them.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, read, write};

/// Size of a message in bytes.
const SIZE: usize = 100;
const NUMBERS: usize = 3;
const WORD: usize = size_of::<u32>();

/// Sends a message with `numbers`.
pub fn send(socket: &OwnedFd, numbers: [u32; NUMBERS]) -> io::Result<()> {
    let message = encode(numbers);
    let mut sent = 0;
    while sent < SIZE {
        match write(socket, &message[sent..]) {
            Ok(bytes) => sent += bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Receives the next message and returns its numbers, or `None` after the last message.
pub fn receive(socket: &OwnedFd) -> io::Result<Option<[u32; NUMBERS]>> {
    let mut message = [0; SIZE];
    let mut have = 0;
    while have < SIZE {
        match read(socket, &mut message[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => have += bytes,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let numbers = decode(&message);
    match encode(numbers) == message {
        true => Ok(Some(numbers)),
        false => Err(io::Error::other("a message is damaged")),
    }
}

/// Encodes the numbers, and fills the rest with a byte that depends on all of them.
fn encode(numbers: [u32; NUMBERS]) -> [u8; SIZE] {
    let rest = numbers.iter().fold(1, |rest: u32, number| {
        rest.wrapping_mul(31).wrapping_add(*number)
    });
    let mut message = [rest as u8; SIZE];
    for (bytes, number) in message.chunks_exact_mut(WORD).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    message
}

fn decode(message: &[u8; SIZE]) -> [u32; NUMBERS] {
    let mut numbers = [0; NUMBERS];
    for (number, bytes) in numbers.iter_mut().zip(message.as_chunks::<WORD>().0) {
        *number = u32::from_le_bytes(*bytes);
    }
    numbers
}
