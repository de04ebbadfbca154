// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that workload `linux-exec` may run: a list in JSON, in a file of the initial RAM disk.

use std::fs;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The file's path, from the root of the RAM disk.
pub const FILE: &str = "rouse-commands.json";

/// A command.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Command {
    /// The command's name.
    pub name: String,
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Longest time that a run may take, in seconds.
    pub seconds: u64,
    /// Number of runs before the first sample of a pass.
    pub warm_up: u32,
    /// CPUs on which the command may run; empty means all CPUs.
    pub cpus: Vec<usize>,
}

impl Command {
    /// Returns the longest time that a run may take.
    #[must_use]
    pub const fn time_limit(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Reads the command called `name` from the file.
///
/// # Errors
/// There is no such file, or the file has no such command.
pub fn read_command(name: &str) -> io::Result<Command> {
    let text = fs::read_to_string(format!("/{FILE}"));
    let text = text.map_err(|error| {
        io::Error::other(format!(
            "/{FILE}: {error}; `cargo xtask run --exec` boots with commands"
        ))
    })?;
    let commands: Vec<Command> = serde_json::from_str(&text)?;
    let found = commands.into_iter().find(|one| one.name == name);
    found.ok_or_else(|| io::Error::other(format!("there is no command {name}; use --exec")))
}
