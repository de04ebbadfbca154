// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that workload `linux-exec` may run: a file of the initial RAM disk, a list in JSON.

use std::fs;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Its place, from the root of the RAM disk.
pub const FILE: &str = "rouse-commands.json";

/// A command.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Longest time that a run may take, in seconds.
    pub seconds: u64,
    /// Runs before the first sample of a pass.
    pub warm_up: u32,
    /// CPUs that it may run on; empty is all.
    pub cpus: Vec<usize>,
}

impl Command {
    /// Returns the longest time that a run may take.
    #[must_use]
    pub const fn limit(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }
}

/// Reads the command of this name.
///
/// # Errors
/// There is no such file, or no such command in it.
pub fn named(name: &str) -> io::Result<Command> {
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
