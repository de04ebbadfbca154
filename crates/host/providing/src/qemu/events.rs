// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a QEMU machine ended, as QEMU itself reports it.
//!
//! Just before QEMU ends, it sends the event SHUTDOWN with its reason to each QMP monitor that has finished its
//! negotiation. A monitor for commands could miss the event: it serves one client at a time, and each client drops the
//! events that arrive between answers. The events therefore have a monitor of their own with a single reader. QEMU
//! starts with its CPUs stopped (`-S`), and only this reader starts them, so a guest can't end before there is a
//! reader.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of the socket to which QEMU connects.
pub const EVENTS: &str = "events";
/// The command that ends the negotiation, then the command that starts the CPUs.
const BEGIN: [&str; 2] = [
    r#"{"execute": "qmp_capabilities"}"#,
    r#"{"execute": "cont"}"#,
];

/// Why a machine ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shutdown {
    /// The guest turned the machine off, or asked for that.
    Off,
    /// The guest reset the machine (`-no-reboot` makes QEMU end at a reset).
    Reset,
    /// The machine ended for another reason, in QEMU's words (ShutdownCause in qapi/run-state.json).
    Other(String),
}

impl Shutdown {
    /// Parses a line from a monitor. Returns `None` unless the line is the event SHUTDOWN.
    fn read(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        if message["event"] != "SHUTDOWN" {
            return None;
        }
        Some(match message["data"]["reason"].as_str() {
            // The second reason comes from the command `quit`, which this program sends if the guest asks for power-off
            // and its hypervisor can't turn the machine off.
            Some("guest-shutdown" | "host-qmp-quit") => Self::Off,
            Some("guest-reset") => Self::Reset,
            other => Self::Other(other.unwrap_or("a reason without a name").into()),
        })
    }
}

/// The reader of a machine's events.
#[derive(Debug)]
pub struct Events {
    socket: PathBuf,
    reader: JoinHandle<Option<Shutdown>>,
}

impl Events {
    /// Listens in `place`. Call this before the emulator starts, because the emulator connects when it starts.
    pub fn listen(place: &Path) -> Result<Self> {
        let socket = place.join(EVENTS);
        let listener = UnixListener::bind(&socket)
            .with_context(|| format!("{}: can't listen for QEMU's events", socket.display()))?;
        let reader = thread::spawn(move || read(listener.accept().ok()?.0));
        Ok(Self { socket, reader })
    }

    /// Returns how the machine ended. Call this after the emulator has ended. Returns `None` if there is no report: the
    /// emulator was killed, could not start, or is not QEMU.
    pub fn read_shutdown(self) -> Option<Shutdown> {
        // A reader that still waits for an emulator gets this connection, which sends nothing. If an emulator
        // connected, its connection came first.
        drop(UnixStream::connect(&self.socket));
        self.reader.join().ok().flatten()
    }
}

/// Starts the machine, and reads until the emulator closes the connection.
fn read(mut stream: UnixStream) -> Option<Shutdown> {
    let lines = BufReader::new(stream.try_clone().ok()?).lines();
    for command in BEGIN {
        writeln!(stream, "{command}").ok()?;
    }
    // The last reason counts. All lines are read, so that QEMU never blocks.
    let shutdowns = lines.map_while(Result::ok);
    shutdowns.filter_map(|line| Shutdown::read(&line)).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the end that a reader reports for an emulator that connects, receives the commands, and sends `said`.
    fn told(said: &[&str]) -> Option<Shutdown> {
        let place = tempfile::tempdir().unwrap();
        let events = Events::listen(place.path()).unwrap();
        let mut emulator = UnixStream::connect(place.path().join(EVENTS)).unwrap();
        writeln!(emulator, r#"{{"QMP": {{"version": {{}}}}}}"#).unwrap();
        let mut commands = BufReader::new(emulator.try_clone().unwrap()).lines();
        for command in BEGIN {
            assert_eq!(commands.next().unwrap().unwrap(), command);
            writeln!(emulator, r#"{{"return": {{}}}}"#).unwrap();
        }
        for line in said {
            writeln!(emulator, "{line}").unwrap();
        }
        drop((commands, emulator));
        events.read_shutdown()
    }

    #[test]
    fn each_end_is_told_from_the_others() {
        let resume = r#"{"timestamp": {"seconds": 1}, "event": "RESUME"}"#;
        for (reason, shutdown) in [
            ("guest-shutdown", Shutdown::Off),
            ("host-qmp-quit", Shutdown::Off),
            ("guest-reset", Shutdown::Reset),
            ("host-signal", Shutdown::Other("host-signal".into())),
            ("guest-panic", Shutdown::Other("guest-panic".into())),
        ] {
            let event = format!(
                r#"{{"event": "SHUTDOWN", "data": {{"guest": true, "reason": "{reason}"}}}}"#
            );
            assert_eq!(told(&[resume, &event]), Some(shutdown.clone()));
            // The event is found despite other output before and after it.
            let noise: Vec<&str> = [resume; 5000]
                .into_iter()
                .chain([&*event, resume])
                .collect();
            assert_eq!(told(&noise), Some(shutdown));
        }
    }

    #[test]
    fn an_emulator_that_says_nothing_has_told_nothing() {
        assert_eq!(told(&[]), None);
        // Another event contains the reason for a reset.
        assert_eq!(
            told(&[r#"{"event": "X", "data": {"reason": "guest-reset"}}"#]),
            None
        );
    }

    #[test]
    fn an_emulator_that_never_connects_is_not_waited_for() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(Events::listen(place.path()).unwrap().read_shutdown(), None);
    }
}
