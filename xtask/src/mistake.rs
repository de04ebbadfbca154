// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong in a TOML file.

/// The mistake in `text`, in one line: its place, its key, and what it is.
pub fn told(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let number = before.map_or(0, |before| before.matches('\n').count());
    let line = text.lines().nth(number).unwrap_or_default();
    let key = line.split('=').next().unwrap_or_default().trim();
    let what = error.message().lines().collect::<Vec<_>>().join("; ");
    let place = format!("line {}", number + 1);
    if key.is_empty() || what.contains(&format!("`{key}`")) {
        return format!("{place}: {what}");
    }
    format!("{place}, `{key}`: {what}")
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
