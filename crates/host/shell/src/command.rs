// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands in a shell's syntax.

use std::env;
use std::process::Command;

/// Returns the command that runs, for a shell.
pub fn this_command() -> String {
    let words = env::args().skip(1).map(|word| quoted(&word));
    format!("cargo xtask {}", words.collect::<Vec<_>>().join(" "))
}

/// Returns the command as one would type it into a shell.
pub fn typed(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<String> = words.map(|word| quoted(&word.to_string_lossy())).collect();
    words.join(" ")
}

/// Quotes a word, if a shell needs that.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.contains(foreign::is_hidden) {
        return format!("$'{}'", word.chars().map(typed_as).collect::<String>());
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns a character between `$'` and `'` (bash(1), QUOTING).
fn typed_as(c: char) -> String {
    match c {
        '\'' | '\\' => format!("\\{c}"),
        c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
        c if foreign::is_hidden(c) => format!("\\U{:08x}", u32::from(c)),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_act_on_is_typed_as_its_number() {
        assert_eq!(quoted("a\u{1b}'\\\u{202e}"), r"$'a\x1b\'\\\U0000202e'");
    }

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
