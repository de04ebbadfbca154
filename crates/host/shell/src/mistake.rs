// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes mistakes in TOML and JSON files.

use std::fmt::Display;

use foreign::Quoted;

/// Largest number of characters in a message. The longest message lists all allowed values.
const LONG: usize = 1000;

/// Describes the mistake in a JSON file.
pub fn of_json(error: &serde_json::Error) -> String {
    shorten(error)
}

/// Shortens serde's message, which quotes the whole value.
fn shorten(error: &impl Display) -> String {
    let mut text = error.to_string();
    for mark in ['"', '`'] {
        let ends = text.rfind(&format!("{mark}, expected"));
        if let (Some(begin), Some(end)) = (text.find(mark), ends)
            && begin < end
        {
            let quoted = Quoted::new(&text[begin + 1..end]).to_string();
            text.replace_range(begin + 1..end, &quoted);
        }
    }
    Quoted::up_to(LONG, &text).to_string()
}

/// Describes the mistake in `text`, in one line: its place, its key, and the reason.
pub fn told(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let number = before.map_or(0, |before| before.matches('\n').count());
    let line = text.lines().nth(number).unwrap_or_default();
    let key = line.split('=').next().unwrap_or_default().trim();
    let what = shorten(&error.message().lines().collect::<Vec<_>>().join("; "));
    let place = format!("line {}", number + 1);
    if key.is_empty() || what.contains(&format!("`{key}`")) {
        return format!("{place}: {what}");
    }
    format!("{place}, `{}`: {what}", Quoted::new(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "to be read")]
    struct File {
        one: u32,
        two: Option<String>,
    }

    #[test]
    fn what_is_quoted_is_cut() {
        let long = "a \u{1b}".repeat(100_000);
        let texts = [
            format!("one = {long:?}\n"),
            format!("{long:?} = 1\n"),
            format!("{long}\n"),
        ];
        for text in texts {
            let told = told(&text, &toml::from_str::<File>(&text).unwrap_err());
            assert!(told.len() < 800 && !told.contains('\u{1b}'), "{told}");
        }
        let text = serde_json::to_string(&long).unwrap();
        let told = of_json(&serde_json::from_str::<u32>(&text).unwrap_err());
        assert!(
            told.contains(" characters)\", expected u32 at line 1 column"),
            "{told}"
        );
    }

    #[test]
    fn place_and_key_are_told_once() {
        for (text, expected) in [
            (
                "\none = \"1\"\n",
                "line 2, `one`: invalid type: string \"1\", expected u32",
            ),
            (
                "one = 1\ntoo = 2",
                "line 2: unknown field `too`, expected `one` or `two`",
            ),
            ("", "line 1: missing field `one`"),
        ] {
            let error = toml::from_str::<File>(text).unwrap_err();
            assert_eq!(told(text, &error), expected);
        }
    }
}
