// SPDX-License-Identifier: MIT OR Apache-2.0
//! A browser's process, and the DevTools protocol to control it.
//!
//! With `--remote-debugging-pipe`, the browser reads messages from descriptor 3 and writes messages to descriptor 4.
//! Each message is JSON, followed by a zero byte. So there is no port and no WebSocket, and the browser ends when this
//! program ends.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A shell command that runs the browser: it moves the pipes from standard input and output to the protocol's
/// descriptors.
const MOVED: &str = r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>&2"#;
/// The browser's options. The sandbox is off, because root can't use it. The pages are our own and load nothing.
const OPTIONS: [&str; 10] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-extensions",
    "--no-first-run",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
    "about:blank",
];

/// A running browser.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    next: u64,
    /// Events: messages that are not the answer to a call.
    events: Vec<Value>,
    /// The folder with the browser's profile and output.
    place: TempDir,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Errors
    ///
    /// If the browser can't be started, or does not answer.
    pub fn start(program: &Path) -> Result<Self> {
        let place = tempfile::tempdir().context("no folder for the browser's profile")?;
        let log = File::create(place.path().join("log"))?;
        let mut profile = std::ffi::OsString::from("--user-data-dir=");
        profile.push(place.path());
        let process = Command::new("sh")
            .args(["-c", MOVED])
            .arg(program)
            .arg(profile)
            .args(OPTIONS)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn();
        let mut process = process.context("sh can't be started")?;
        let to = process.stdin.take();
        let from = process.stdout.take().context("its output is not a pipe")?;
        let mut browser = Self {
            process,
            to,
            from: BufReader::new(from),
            next: 0,
            events: Vec::new(),
            place,
        };
        let version = browser.call("", "Browser.getVersion", json!({}));
        version.with_context(|| format!("{} is not a browser that starts", program.display()))?;
        Ok(browser)
    }

    /// Returns a folder that is deleted together with the browser.
    pub fn folder(&self) -> PathBuf {
        self.place.path().to_owned()
    }

    /// Calls a method of the browser, or of a session's page.
    ///
    /// # Errors
    ///
    /// If the browser refuses, or has ended.
    pub fn call(&mut self, session: &str, method: &str, params: Value) -> Result<Value> {
        self.next += 1;
        let number = self.next;
        let mut message = json!({ "id": number, "method": method, "params": params });
        if !session.is_empty() {
            message["sessionId"] = session.into();
        }
        let mut bytes = serde_json::to_vec(&message)?;
        bytes.push(0);
        let to = self.to.as_mut().context("the browser was ended")?;
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            return Err(self.end_error());
        }
        loop {
            let mut message = self.read()?;
            if message["id"] == number {
                return match &message["error"] {
                    Value::Null => Ok(message["result"].take()),
                    error => bail!("{method}: {error}"),
                };
            }
            self.events.push(message);
        }
    }

    /// Waits for the event `method` in a session.
    ///
    /// # Errors
    ///
    /// If the browser has ended.
    pub fn wait_for(&mut self, session: &str, method: &str) -> Result<()> {
        let wanted =
            |message: &Value| message["sessionId"] == session && message["method"] == method;
        while !self.events.iter().any(wanted) {
            let message = self.read()?;
            self.events.push(message);
        }
        Ok(())
    }

    /// Returns the events of a session, and removes them from the list.
    pub fn events(&mut self, session: &str) -> Vec<Value> {
        let events = std::mem::take(&mut self.events).into_iter();
        let (own, others) = events.partition(|message| message["sessionId"] == session);
        self.events = others;
        own
    }

    fn read(&mut self) -> Result<Value> {
        let mut bytes = Vec::new();
        match self.from.read_until(0, &mut bytes) {
            Ok(1..) => {}
            _ => return Err(self.end_error()),
        }
        bytes.pop();
        serde_json::from_slice(&bytes).context("the browser speaks no JSON")
    }

    /// Returns the error that the browser has ended, with the last lines that it printed.
    fn end_error(&self) -> anyhow::Error {
        let said = fs::read(self.place.path().join("log")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        anyhow::anyhow!("the browser has ended; it printed:\n{last}")
    }
}

impl Drop for Browser {
    /// Closes the pipe, which ends the browser and its processes.
    fn drop(&mut self) {
        let _ = self.call("", "Browser.close", json!({}));
        self.to = None;
        let _ = self.process.wait();
    }
}
