// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands in a shell's syntax.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

/// Returns the command of this program in a shell's syntax.
pub fn this_command() -> String {
    this_command_by(|word| quoted(word)).join(" ")
}

/// Returns the words of this program's command in plain ASCII and in a shell's syntax, for texts that people wrap,
/// send and paste.
pub fn this_command_in_ascii() -> Vec<String> {
    this_command_by(quoted_in_ascii)
}

fn this_command_by(quoted: fn(&OsStr) -> String) -> Vec<String> {
    let given = env::args_os().skip(1).map(|word| quoted(&word));
    ["cargo", "xtask"]
        .map(String::from)
        .into_iter()
        .chain(given)
        .collect()
}

/// Returns the command as a user would type it into a shell.
pub fn typed(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// Quotes a word, if a shell needs quotes.
pub fn quoted(word: impl AsRef<OsStr>) -> String {
    quote_escaping(word.as_ref(), foreign::is_hidden)
}

/// Quotes a word in ASCII only.
fn quoted_in_ascii(word: &OsStr) -> String {
    quote_escaping(word, |c| !c.is_ascii() || c.is_control())
}

/// Quotes a word. Each character for which `must_escape` is true becomes the numbers of its bytes.
fn quote_escaping(word: &OsStr, must_escape: fn(char) -> bool) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if !text.contains(must_escape) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let chunks = word.as_bytes().utf8_chunks();
            let typed = chunks.map(|chunk| {
                let valid = chunk.valid().chars().map(|c| escaped_char(c, must_escape));
                valid.collect::<String>() + &byte_numbers(chunk.invalid())
            });
            format!("$'{}'", typed.collect::<String>())
        }
    }
}

/// Returns a character in the form that it has between `$'` and `'` (bash(1), QUOTING).
fn escaped_char(c: char, must_escape: fn(char) -> bool) -> String {
    match c {
        '\'' | '\\' => format!("\\{c}"),
        c if must_escape(c) => byte_numbers(c.encode_utf8(&mut [0; 4]).as_bytes()),
        c => c.into(),
    }
}

/// Writes bytes as numbers, because the meaning of `\u` depends on the shell's locale.
fn byte_numbers(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use page::document::Document;
    use proptest::prelude::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn what_a_terminal_would_act_on_is_typed_as_its_number() {
        assert_eq!(
            quoted("a\u{1b}'\\\u{202e}\u{e4}"),
            "$'a\\x1b\\'\\\\\\xe2\\x80\\xae\u{e4}'"
        );
        assert_eq!(quoted_in_ascii("a \u{e4}".as_ref()), r"$'a \xc3\xa4'");
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

    /// Returns the words that bash reads from `text`, which is the end of a mail or a command, in the locale `C`.
    fn read_by_bash(text: &str) -> Vec<OsString> {
        let words = Command::new("bash")
            .args(["-c", &format!(r"printf '%s\0' {text}")])
            .env("LC_ALL", "C")
            .output()
            .unwrap();
        assert!(words.status.success(), "{text}: {words:?}");
        let words = words.stdout.strip_suffix(b"\0").unwrap();
        let words = words.split(|byte| *byte == 0);
        words.map(|word| OsString::from_vec(word.into())).collect()
    }

    /// Returns a word of a path: with quotes, blanks, line ends, letters of other languages, or bytes that are not
    /// text.
    fn word() -> impl Strategy<Value = OsString> {
        prop_oneof![
            "[a-z/.=-]{1,90}".prop_map(OsString::from),
            "[ -~\n\t\u{e9}\u{202e}\u{4e16}]{0,120}".prop_map(OsString::from),
            proptest::collection::vec(1u8..=255, 0..40).prop_map(OsString::from_vec),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_command_of_a_mail_can_be_pasted(given in proptest::collection::vec(word(), 1..9)) {
            let ascii: Vec<String> = given.iter().map(|word| quoted_in_ascii(word)).collect();
            let mail = Document::default().mail(&ascii);
            prop_assert!(mail.is_ascii());
            let (_, command) = mail.rsplit_once("\n$ ").unwrap();
            prop_assert_eq!(&read_by_bash(command), &given, "{}", mail);
            let one_line: Vec<String> = given.iter().map(quoted).collect();
            prop_assert_eq!(&read_by_bash(&one_line.join(" ")), &given);
        }
    }
}
