// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognizes verbs of earlier versions.

/// Verbs that version 0.2 removed, and the words that replace them.
const RENAMED: [(&str, &str); 14] = [
    ("asm", "cost --asm"),
    ("boards", "doctor --boards"),
    ("book", "dev book"),
    ("build", "dev build"),
    ("completions", "dev completions"),
    ("debug", "run --debug"),
    ("dist", "dev dist"),
    ("history", "compare --over-time"),
    ("hypervisors", "run --under all"),
    ("man", "dev man"),
    ("pages", "dev pages"),
    ("publish", "dev publish"),
    ("results", "dev publish"),
    ("soak", "dev soak"),
];

/// Returns the answer to a verb that has been renamed; `None` if the verb has not been renamed.
pub fn answer_to_old_verb(verb: &str) -> Option<String> {
    let (_, now) = RENAMED.iter().find(|(old, _)| *old == verb)?;
    Some(format!("`{verb}` is `cargo xtask {now}` now"))
}

#[cfg(test)]
mod tests {
    use super::super::Cli;
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn old_verbs_are_not_verbs_and_new_ones_are() {
        let command = Cli::command();
        for (old, now) in RENAMED {
            let verb = now.split(' ').next().unwrap();
            assert!(command.find_subcommand(old).is_none(), "{old}");
            assert!(command.find_subcommand(verb).is_some(), "{now}");
        }
        assert_eq!(
            answer_to_old_verb("asm").unwrap(),
            "`asm` is `cargo xtask cost --asm` now"
        );
        assert_eq!(answer_to_old_verb("run"), None);
    }
}
