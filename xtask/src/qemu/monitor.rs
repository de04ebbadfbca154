// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asking a running QEMU where its CPUs are (QMP).

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Name of its socket.
pub const MONITOR: &str = "qmp";
/// An emulator that hangs itself must not make us hang.
const PATIENCE: Duration = Duration::from_secs(5);

/// The registers of every CPU, one line each as QEMU prints them; its monitor is in
/// `place`.
pub fn registers(place: &Path) -> Result<Vec<String>> {
    let mut monitor = Monitor::connect(place).context("no monitor of QEMU answers")?;
    // All at one moment.
    monitor.execute("stop", json!({}))?;
    let command = json!({ "command-line": "info registers -a" });
    let answer = monitor.execute("human-monitor-command", command)?;
    let text = answer.as_str().unwrap_or_default();
    // QEMU ends its lines as terminals want it.
    Ok(text
        .lines()
        .map(|line| line.trim_end().to_owned())
        .filter(|line| !is_vector(line))
        .collect())
}

/// Whether a line shows vector or predicate registers, which neither image uses.
fn is_vector(line: &str) -> bool {
    let mut start = line.chars();
    let kind = start.next();
    let numbered = start.next().is_some_and(|digit| digit.is_ascii_digit());
    line.starts_with("FFR=") || matches!(kind, Some('P' | 'Q' | 'Z')) && numbered
}

/// Pauses a machine. QEMU talks to one at a time: while there is this, nobody else
/// gets an answer.
#[derive(Debug)]
pub struct Pauser(Monitor);

impl Pauser {
    /// That of the QEMU whose monitor is in `place`.
    pub fn connect(place: &Path) -> Result<Self> {
        Monitor::connect(place).map(Self)
    }

    /// Stops all CPUs, and the clocks.
    pub fn stop(&mut self) -> Result<()> {
        self.0.execute("stop", json!({})).map(drop)
    }

    /// Lets them go on.
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
    /// The monitor in `place`, ready for commands.
    fn connect(place: &Path) -> Result<Self> {
        let writer = UnixStream::connect(place.join(MONITOR))?;
        writer.set_read_timeout(Some(PATIENCE))?;
        let reader = BufReader::new(writer.try_clone()?);
        let mut monitor = Self { reader, writer };
        monitor.next()?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// The next message: the greeting, an answer or an event.
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
