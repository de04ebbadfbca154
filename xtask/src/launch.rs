// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator's command line for a job.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use plan::Under;

use crate::job::Job;
use crate::pack::Images;
use crate::qemu::Emulator;

/// The command that boots `job` under `under`.
pub fn command(job: &Job, under: Under, emulator: &Emulator, images: &Images) -> Result<Command> {
    let image = match under {
        Under::Rouse => &images.packed,
        Under::None => &images.guest,
    };
    let mut command = emulator.command();
    command
        .args(["-M", job.board.machine(under)?])
        .args(["-cpu", &job.cpu])
        .args(["-smp", &job.cpus.to_string()])
        .args(["-m", &job.board.qemu.memory])
        .args(["-nic", "none", "-display", "none", "-monitor", "none"])
        .args(["-serial", "stdio", "-no-reboot"])
        .args(&job.board.mode(job.metric)?.args)
        .arg("-kernel")
        .arg(image)
        .args(["-append", &job.boot_arguments()]);
    Ok(command)
}

/// Lets the emulator be asked through `socket`, and end when we do.
pub fn supervise(command: &mut Command, socket: &Path) {
    command
        .arg("-qmp")
        .arg(format!("unix:{},server=on,wait=off", socket.display()));
    if cfg!(any(target_os = "linux", target_os = "macos")) {
        command.args(["-run-with", "exit-with-parent=on"]);
    }
}

/// The command as it would be typed into a shell.
pub fn typed(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// A word in single quotes, if a shell needs them.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_read_back_what_was_typed() {
        let mut command = Command::new("qemu");
        command.args(["-append", "a=1 b='2'", "-m", "512M", ""]);
        assert_eq!(
            typed(&command),
            r"qemu -append 'a=1 b='\''2'\''' -m 512M ''"
        );
    }
}
