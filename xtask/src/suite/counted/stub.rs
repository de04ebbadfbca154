// SPDX-License-Identifier: MIT OR Apache-2.0
//! The debugger's stub of QEMU, by which a machine is stopped at an instruction and told
//! what to log (GDB's remote protocol; `qRcmd` is a line for QEMU's own monitor).

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::interrupt;

/// How long a machine may take to get to where it is to stop.
const PATIENCE: Duration = Duration::from_secs(300);
/// How much it may have logged until then; a block of samples takes some megabytes.
const MOST: u64 = 200 << 20;
/// Bytes of what is counted of a file (stat(2)).
const BLOCK: u64 = 512;
const PAUSE: Duration = Duration::from_millis(50);

/// Numbers that the protocol gives to registers.
const X30: u32 = 0x1e;
const PSTATE: u32 = 0x21;

/// A machine that a debugger has stopped.
#[derive(Debug)]
pub struct Stub {
    socket: UnixStream,
    /// What was received and not read yet.
    received: Vec<u8>,
    /// The file that QEMU logs to.
    log: PathBuf,
}

/// Why a machine does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was stopped at a breakpoint.
    Breakpoint,
    /// It has ended.
    Ended,
}

impl Stub {
    /// That of the machine whose socket is at `path`, as soon as it is there, and whose
    /// log is `log`.
    pub fn connect(path: &Path, log: &Path) -> Result<Self> {
        let since = Instant::now();
        let socket = loop {
            match UnixStream::connect(path) {
                Ok(socket) => break socket,
                Err(error) if since.elapsed() > PATIENCE || interrupt::requested() => {
                    return Err(error).context("QEMU lets no debugger in");
                }
                Err(_) => thread::sleep(PAUSE),
            }
        };
        socket.set_read_timeout(Some(PAUSE))?;
        Ok(Self {
            socket,
            received: Vec::new(),
            log: log.into(),
        })
    }

    /// Has QEMU's monitor do `line`, to which it has nothing to say.
    pub fn monitor(&mut self, line: &str) -> Result<()> {
        let digits: String = line.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.send(&format!("qRcmd,{digits}"))?;
        let answer = self.answer()?;
        ensure!(answer == "OK", "QEMU's monitor refuses `{line}`: {answer}");
        Ok(())
    }

    /// Stops the machine wherever a CPU comes to `address` from now on.
    pub fn set_breakpoint(&mut self, address: u64) -> Result<()> {
        self.ask(&format!("Z0,{address:x},4"))
    }

    /// No longer does.
    pub fn clear_breakpoint(&mut self, address: u64) -> Result<()> {
        self.ask(&format!("z0,{address:x},4"))
    }

    /// Lets the machine go to where it stops.
    pub fn go_on(&mut self) -> Result<Stop> {
        self.send("c")?;
        match self.packet() {
            Ok(Some(packet)) if packet.starts_with('T') => Ok(Stop::Breakpoint),
            Ok(None) => Ok(Stop::Ended),
            Ok(Some(packet)) if packet.starts_with('W') => Ok(Stop::Ended),
            Ok(Some(packet)) => bail!("QEMU's stub says `{packet}`"),
            Err(error) => Err(error),
        }
    }

    /// Lets the machine go to `address` at EL1, where the hypervisor may have code as well.
    pub fn go_to(&mut self, address: u64) -> Result<Stop> {
        loop {
            self.set_breakpoint(address)?;
            let stop = self.go_on()?;
            if stop == Stop::Ended {
                return Ok(stop);
            }
            self.clear_breakpoint(address)?;
            if self.level()? == 1 {
                return Ok(stop);
            }
            self.step()?;
        }
    }

    /// Where the function returns to that the stopped CPU is at the beginning of.
    pub fn return_address(&mut self) -> Result<u64> {
        self.register(X30)
    }

    fn level(&mut self) -> Result<u64> {
        Ok(self.register(PSTATE)? >> 2 & 3)
    }

    fn step(&mut self) -> Result<()> {
        self.send("s")?;
        let answer = self.answer()?;
        ensure!(answer.starts_with('T'), "QEMU's stub says `{answer}`");
        Ok(())
    }

    fn register(&mut self, number: u32) -> Result<u64> {
        self.send(&format!("p{number:x}"))?;
        let answer = self.answer()?;
        little_endian(&answer).with_context(|| format!("QEMU's stub says `{answer}`"))
    }

    fn ask(&mut self, packet: &str) -> Result<()> {
        self.send(packet)?;
        let answer = self.answer()?;
        ensure!(answer == "OK", "QEMU's stub says `{answer}` to `{packet}`");
        Ok(())
    }

    fn send(&mut self, packet: &str) -> Result<()> {
        let sum = packet.bytes().fold(0u8, u8::wrapping_add);
        let sent = write!(self.socket, "${packet}#{sum:02x}");
        sent.context("QEMU's stub is gone")
    }

    fn answer(&mut self) -> Result<String> {
        self.packet()?.context("QEMU has ended")
    }

    /// The next packet, acknowledged; `None` at the end.
    fn packet(&mut self) -> Result<Option<String>> {
        loop {
            if let Some((length, packet)) = next(&self.received) {
                self.received.drain(..length);
                // A machine that has ended does not want to know.
                let _ = self.socket.write_all(b"+");
                return Ok(Some(packet));
            }
            if !self.receive()? {
                return Ok(None);
            }
        }
    }

    /// Waits for more; `false` at the end.
    fn receive(&mut self) -> Result<bool> {
        let since = Instant::now();
        let mut bytes = [0; 4096];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    self.received.extend(&bytes[..length]);
                    return Ok(true);
                }
                Err(error) => match error.kind() {
                    ErrorKind::ConnectionReset => return Ok(false),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(error).context("QEMU's stub can't be read"),
                },
            }
            if interrupt::requested() {
                bail!("interrupted");
            }
            // What was read before has no blocks any more.
            let logged = fs::metadata(&self.log).map_or(0, |log| log.blocks() * BLOCK);
            if logged > MOST {
                bail!("the machine did not stop within {logged} bytes of QEMU's log");
            }
            if since.elapsed() > PATIENCE {
                bail!("the machine did not stop within {} s", PATIENCE.as_secs());
            }
        }
    }
}

/// The first packet in `bytes`, and where it ends there.
fn next(bytes: &[u8]) -> Option<(usize, String)> {
    let start = bytes.iter().position(|&byte| byte == b'$')? + 1;
    let length = bytes[start..].iter().position(|&byte| byte == b'#')?;
    let end = start + length;
    // Two digits of a checksum.
    (bytes.len() >= end + 3).then(|| {
        let packet = String::from_utf8_lossy(&bytes[start..end]);
        (end + 3, packet.into_owned())
    })
}

/// A register as the protocol writes it.
fn little_endian(digits: &str) -> Option<u64> {
    let mut value = 0;
    for at in (0..digits.len()).step_by(2).rev() {
        let byte = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
        value = value << 8 | u64::from(byte);
    }
    (!digits.is_empty() && digits.len() <= 16).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_however_they_come() {
        assert_eq!(next(b"+$OK#9a+$T05#b9"), Some((7, "OK".into())));
        assert_eq!(next(b"+$OK#9"), None);
        assert_eq!(next(b"+$O"), None);
        assert_eq!(next(b"+"), None);
    }

    #[test]
    fn registers_are_little_endian() {
        assert_eq!(little_endian("d414234000000000"), Some(0x4023_14d4));
        assert_eq!(little_endian("45030080"), Some(0x8000_0345));
        for text in ["", "E01", "d4142340000000000", "xx"] {
            assert_eq!(little_endian(text), None, "{text}");
        }
    }
}
