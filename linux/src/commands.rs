// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that workload `linux-exec` may run: a file of the initial RAM disk.
//!
//! Each command is some lines, `key value`, and an empty line. An argument has a line of its own, in which `\n` and `\\`
//! stand for a line's end and a backslash:
//!
//! ```text
//! name perf-pipe
//! seconds 60
//! warm-up 1
//! cpus 0,1
//! arg perf
//! arg bench
//! ```

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::time::Duration;

/// Its place, from the root of the RAM disk.
pub const FILE: &str = "rouse-commands";

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Longest time that a run may take.
    pub limit: Duration,
    /// Runs before the first sample.
    pub warm_up: u32,
    /// CPUs that it may run on; empty is all.
    pub cpus: Vec<usize>,
}

impl Command {
    /// Returns its text in the file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("name {}\n", self.name);
        let cpus: Vec<String> = self.cpus.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "seconds {}", self.limit.as_secs());
        let _ = writeln!(text, "warm-up {}", self.warm_up);
        if !cpus.is_empty() {
            let _ = writeln!(text, "cpus {}", cpus.join(","));
        }
        for argument in &self.arguments {
            let escaped = argument.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = writeln!(text, "arg {escaped}");
        }
        text + "\n"
    }
}

/// Reads the command of this name.
///
/// # Errors
/// There is no such file, or no such command in it.
pub fn named(name: &str) -> io::Result<Command> {
    let text = fs::read_to_string(format!("/{FILE}"))?;
    let found = parse(&text).into_iter().find(|one| one.name == name);
    found.ok_or_else(|| io::Error::other(format!("there is no command {name}; use --exec")))
}

/// Returns the commands in the text of a file. Unknown lines are left out.
#[must_use]
pub fn parse(text: &str) -> Vec<Command> {
    let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
    let command = |block: &str| {
        let mut command = Command::default();
        for (key, value) in block.lines().filter_map(|line| line.split_once(' ')) {
            match key {
                "name" => command.name = value.into(),
                "seconds" => {
                    command.limit = Duration::from_secs(value.parse().unwrap_or_default());
                }
                "warm-up" => command.warm_up = value.parse().unwrap_or_default(),
                "cpus" => {
                    command.cpus = value.split(',').flat_map(str::parse).collect();
                }
                "arg" => command.arguments.push(unescaped(value)),
                _ => {}
            }
        }
        command
    };
    blocks.map(command).collect()
}

fn unescaped(text: &str) -> String {
    let mut whole = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => whole.push(match chars.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            }),
            (c, false) => whole.push(c),
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_read_as_it_was_written() {
        let first = Command {
            name: "perf-pipe".into(),
            arguments: ["sh", "-c", "echo 'a  b' \\n\n\nx=\\", ""]
                .map(Into::into)
                .into(),
            limit: Duration::from_secs(7),
            warm_up: 2,
            cpus: vec![0, 3],
        };
        let second = Command {
            name: "b".into(),
            cpus: Vec::new(),
            ..first.clone()
        };
        let text = first.text() + &second.text();
        assert_eq!(parse(&text), [first, second]);
        assert_eq!(parse(""), []);
    }
}
