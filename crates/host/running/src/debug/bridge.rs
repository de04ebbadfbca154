// SPDX-License-Identifier: MIT OR Apache-2.0
//! Connects a debugger to QEMU's debugger stub: forwards everything, and detects when the debugger has disconnected,
//! even if it crashed. The stub alone would keep the machine running without its debugger.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

/// Interval between checks of whether the stub exists.
const TICK: Duration = Duration::from_millis(10);

/// Serves debuggers one after another. Reports each debugger that disconnects without detaching.
pub fn serve(listener: TcpListener, stub: PathBuf) -> Receiver<()> {
    let (sender, gone) = channel();
    thread::spawn(move || {
        for debugger in listener.incoming().flatten() {
            let detached = forward(debugger, &stub).unwrap_or(false);
            if !detached && sender.send(()).is_err() {
                break;
            }
        }
    });
    gone
}

/// Forwards data until the debugger disconnects. Returns whether it has detached.
fn forward(mut debugger: TcpStream, stub: &Path) -> io::Result<bool> {
    let mut stub = connect(stub);
    // Packets are small, and the debugger waits for the answer to each, so they must be sent at once.
    debugger.set_nodelay(true)?;
    let (mut from, mut to) = (stub.try_clone()?, debugger.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut packets = Packets::default();
    let mut bytes = [0; 4096];
    loop {
        let length = debugger.read(&mut bytes).unwrap_or(0);
        if length == 0 || stub.write_all(&bytes[..length]).is_err() {
            let _ = stub.shutdown(Shutdown::Both);
            return Ok(packets.last == Some(DETACH));
        }
        packets.follow(&bytes[..length]);
    }
}

/// Connects to the stub once the machine has created it.
fn connect(stub: &Path) -> UnixStream {
    loop {
        match UnixStream::connect(stub) {
            Ok(stub) => return stub,
            Err(_) => thread::sleep(TICK),
        }
    }
}

/// First byte of a packet, which is escaped inside packets (GDB's remote protocol), and the first letter of the packet
/// that detaches.
const START: u8 = b'$';
const DETACH: u8 = b'D';

/// Reads the packets that a debugger sends.
#[derive(Debug, Default)]
struct Packets {
    /// The first letter of the last packet.
    last: Option<u8>,
    /// Whether the next byte is the first letter of a packet.
    begun: bool,
}

impl Packets {
    fn follow(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.begun {
                self.last = Some(byte);
            }
            self.begun = byte == START;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// Sends `said` to a machine that echoes it, and then disconnects. Returns the echo, and whether the debugger
    /// counts as detached.
    fn debug(said: &[u8]) -> (Vec<u8>, bool) {
        let place = tempfile::tempdir().unwrap();
        let stub = place.path().join("stub");
        let machine = UnixListener::bind(&stub).unwrap();
        thread::spawn(move || {
            let (mut machine, _) = machine.accept().unwrap();
            let mut answer = machine.try_clone().unwrap();
            io::copy(&mut machine, &mut answer)
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut debugger = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let passing = thread::spawn(move || forward(socket, &stub).unwrap());
        debugger.write_all(said).unwrap();
        let mut heard = vec![0; said.len()];
        debugger.read_exact(&mut heard).unwrap();
        drop(debugger);
        (heard, passing.join().unwrap())
    }

    #[test]
    fn everything_is_passed_on_and_only_a_detached_debugger_leaves_the_machine() {
        for (said, detached) in [
            (&b"+$g#67+"[..], false),
            (b"+$g#67+$D#44+", true),
            (b"+$D;1#b0+", true),
            (b"+$D#44+$g#67", false),
            (b"+$mD#00", false),
        ] {
            assert_eq!(debug(said), (said.to_vec(), detached));
        }
    }

    #[test]
    fn a_packet_may_come_in_parts() {
        let mut packets = Packets::default();
        packets.follow(b"+$");
        packets.follow(b"D#44");
        assert_eq!(packets.last, Some(DETACH));
    }
}
