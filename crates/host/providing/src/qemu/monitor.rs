// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends commands to a running QEMU (QMP): read the CPUs' registers, stop, continue, quit.
//!
//! This client drops events that arrive between answers, because events have their own monitor,
//! [`events`](super::events).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Name of the monitor's socket.
pub const MONITOR: &str = "qmp";
/// Limit of each wait for an answer, because the emulator may hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the registers of every CPU, one line each, as QEMU prints them; QEMU's monitor is in `place`.
pub fn registers(place: &Path) -> Result<Vec<String>> {
    let mut monitor = Monitor::connect(place).context("no monitor of QEMU answers")?;
    // While the machine is stopped, all registers are from the same moment.
    monitor.execute("stop", json!({}))?;
    let command = json!({ "command-line": "info registers -a" });
    let answer = monitor.execute("human-monitor-command", command)?;
    let text = answer.as_str().unwrap_or_default();
    // QEMU ends its lines with CR LF.
    Ok(text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !is_vector(line))
        .collect())
}

/// Whether the machine was stopped by its monitor or a debugger; `false` if there is no monitor in `place`, or if the
/// monitor does not report this.
pub fn is_paused(place: &Path) -> bool {
    let asked =
        Monitor::connect(place).and_then(|mut monitor| monitor.execute("query-status", json!({})));
    asked.is_ok_and(|status| matches!(status["status"].as_str(), Some("paused" | "debug")))
}

/// Ends the QEMU whose monitor is in `place` with the command `quit`.
///
/// # Errors
/// There is no monitor in `place`, or it does not answer.
pub fn quit(place: &Path) -> Result<()> {
    Monitor::connect(place)?
        .execute("quit", json!({}))
        .map(drop)
}

/// Whether a line shows vector or predicate registers, which neither image uses.
fn is_vector(line: &str) -> bool {
    let mut start = line.chars();
    let kind = start.next();
    let numbered = start.next().is_some_and(|digit| digit.is_ascii_digit());
    line.starts_with("FFR=") || matches!(kind, Some('P' | 'Q' | 'Z')) && numbered
}

/// Pauses a machine. QEMU serves one client at a time: while this client is connected, no other client of the same
/// monitor gets an answer.
#[derive(Debug)]
pub struct Pauser(Monitor);

impl Pauser {
    /// Connects to the QEMU whose monitor is in `place`.
    pub fn connect(place: &Path) -> Result<Self> {
        Monitor::connect(place).map(Self)
    }

    /// Stops all CPUs and the machine's clocks.
    pub fn stop(&mut self) -> Result<()> {
        self.0.execute("stop", json!({})).map(drop)
    }

    /// Starts all CPUs and the machine's clocks again.
    pub fn go_on(&mut self) -> Result<()> {
        self.0.execute("cont", json!({})).map(drop)
    }
}

#[derive(Debug)]
struct Monitor {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Monitor {
    /// Connects to the monitor in `place`, and prepares it for commands.
    fn connect(place: &Path) -> Result<Self> {
        let writer = UnixStream::connect(place.join(MONITOR))?;
        writer.set_read_timeout(Some(PATIENCE))?;
        let reader = BufReader::new(writer.try_clone()?);
        let mut monitor = Self { reader, writer };
        monitor.next()?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Reads the next message: the greeting, an answer or an event.
    fn next(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            bail!("QEMU has closed its monitor");
        }
        Ok(serde_json::from_str(&line)?)
    }

    fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let request = json!({ "execute": command, "arguments": arguments });
        writeln!(self.writer, "{request}")?;
        loop {
            let mut answer = self.next()?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                bail!("QEMU's monitor refuses {command}: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread;

    /// Whether a machine counts as stopped if its monitor reports `status`.
    fn taken_for_paused(status: &'static str) -> bool {
        let place = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(place.path().join(MONITOR)).unwrap();
        let monitor = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            writeln!(stream, r#"{{"QMP": {{}}}}"#).unwrap();
            let mut commands = BufReader::new(stream.try_clone().unwrap()).lines();
            for answer in ["{}", status] {
                commands.next().unwrap().unwrap();
                writeln!(stream, r#"{{"event": "NOISE"}}"#).unwrap();
                writeln!(stream, r#"{{"return": {answer}}}"#).unwrap();
            }
        });
        let paused = is_paused(place.path());
        monitor.join().unwrap();
        paused
    }

    #[test]
    fn a_machine_that_was_stopped_is_told_from_one_that_hangs() {
        assert!(taken_for_paused(
            r#"{"status": "paused", "running": false}"#
        ));
        assert!(taken_for_paused(r#"{"status": "debug", "running": false}"#));
        assert!(!taken_for_paused(
            r#"{"status": "running", "running": true}"#
        ));
        assert!(!taken_for_paused(
            r#"{"status": "shutdown", "running": false}"#
        ));
        assert!(!is_paused(Path::new("/nonexistent")));
    }
}
