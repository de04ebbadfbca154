// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of boots in addition to the log of their consoles, for people who look for the cause of a failure.

use std::env;

use super::{Ending, Outcome, Show};
use providing::toolchain;
use shell::command;
use shell::folder::Folder;
use shell::terminal::{self, note};

/// Number of output lines to show if the emulator died.
const SAID_SHOWN: usize = 10;

#[derive(Debug, Default)]
pub struct TextFiles {
    /// The commands of this program and of each machine, in the form in which a user would type them.
    commands: String,
    dump: String,
    survey: String,
    /// The emulators' output.
    said: String,
}

impl TextFiles {
    /// Creates the files with only this program's command and the emulator.
    pub fn new(emulator: &str) -> Self {
        Self {
            commands: heading(emulator),
            ..Self::default()
        }
    }

    /// Appends the texts of further boots.
    pub fn append(&mut self, further: &Self) {
        self.commands += &further.commands;
        self.dump += &further.dump;
        self.survey += &further.survey;
        self.said += &further.said;
    }

    /// Notes the command of a machine.
    pub fn add_command(&mut self, title: &str, command: &str) {
        self.commands += &format!("\n# {title}\n{command}\n");
    }

    /// Adds the boot `title`, which has ended, and shows its lines on the terminal.
    pub fn add_boot(&mut self, title: &str, outcome: &Outcome, show: Show) {
        if let Some(done) = outcome.disturbed {
            self.commands += &format!("# disturbed: {done}\n");
        }
        for line in outcome.console.crash.iter().chain(&outcome.registers) {
            self.dump += line;
            self.dump.push('\n');
        }
        for line in &outcome.console.survey {
            self.survey += line;
            self.survey.push('\n');
        }
        if !outcome.said.is_empty() {
            self.said += &format!("# {title}\n{}\n", outcome.said.join("\n"));
        }
        if show >= Show::Dumps {
            outcome.registers.iter().for_each(|line| note!("{line}"));
            show_last_words(outcome);
        }
    }

    pub fn commands(&self) -> &str {
        &self.commands
    }

    /// Writes a file for each text that is not empty.
    pub fn write(&self, folder: &mut Folder) {
        for (name, text) in [
            ("command.txt", &self.commands),
            ("dump.txt", &self.dump),
            ("survey.txt", &self.survey),
            ("emulator.log", &self.said),
        ] {
            if !text.is_empty() {
                folder.write(name, text);
            }
        }
    }
}

/// Shows the end of the emulator's output if nothing else explains why it
/// died.
fn show_last_words(outcome: &Outcome) {
    if matches!(outcome.ending, Ending::Died(..)) {
        let shown = outcome.said.len().saturating_sub(SAID_SHOWN);
        let last = outcome.said[shown..].iter();
        last.for_each(|line| note!("emulator: {}", terminal::strip_sequences(line)));
    }
}

/// Returns the start of command.txt: the command of this program, and the emulator.
fn heading(emulator: &str) -> String {
    let words: Vec<String> = env::args().skip(1).map(command::quoted).collect();
    let commit = toolchain::tree().unwrap_or_else(|| "unknown".into());
    let rustc = toolchain::rustc_version().unwrap_or_else(|| "rustc unknown".into());
    format!(
        "cargo xtask {}\n\n# rouse {} (commit {commit})\n# {rustc}\n# {emulator}\n",
        words.join(" "),
        env!("CARGO_PKG_VERSION"),
    )
}
