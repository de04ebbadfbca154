// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes a trace's file to text, or names the file's actual format if it is not text. CSV traces and Linux's
//! recordings are both parsed from this text, so only this module recognises formats of files.

use std::borrow::Cow;

/// Largest number of a file's characters that a message quotes. The function that prints the message escapes them.
const QUOTED: usize = 200;

/// First bytes of files that are not UTF-8 text, with their format and the command that converts them to text.
const OTHERS: [(&[u8], &str); 15] = [
    (b"PERFILE2", PERF),
    (b"2ELIFREP", PERF),
    (b"PERFFILE", PERF),
    (
        b"\x17\x08\x44tracing",
        "it is a recording of trace-cmd, not text; `trace-cmd report -i FILE > TEXT` makes text of it",
    ),
    (b"\x1f\x8b", "it is compressed; `gunzip` makes a text of it"),
    (
        b"\x28\xb5\x2f\xfd",
        "it is compressed; `unzstd` makes a text of it",
    ),
    (b"\xfd7zXZ\0", "it is compressed; `unxz` makes a text of it"),
    (b"BZh", "it is compressed; `bunzip2` makes a text of it"),
    (
        b"\x04\x22\x4d\x18",
        "it is compressed; `unlz4` makes a text of it",
    ),
    (
        b"PK\x03\x04",
        "it is an archive; `unzip` takes the text out of it",
    ),
    (
        b"\x7fELF",
        "it is a program; name a recording that is text, or a CSV file",
    ),
    // UTF-32 has to come before UTF-16, because its byte order mark begins with UTF-16's.
    (b"\xff\xfe\0\0", UTF_32),
    (b"\0\0\xfe\xff", UTF_32),
    (b"\xff\xfe", UTF_16),
    (b"\xfe\xff", UTF_16),
];
const PERF: &str = "it is a recording of perf, not text; `perf script --ns --show-lost-events -i FILE > TEXT` makes text of it";
const UTF_16: &str =
    "it is text in UTF-16; `iconv -f UTF-16 -t UTF-8 FILE > TEXT` makes it readable";
const UTF_32: &str =
    "it is text in UTF-32; `iconv -f UTF-32 -t UTF-8 FILE > TEXT` makes it readable";

/// Returns the text of a file without UTF-8's byte order mark, or the file's format if it is not text.
pub fn decode_text(bytes: &[u8]) -> Result<Cow<'_, str>, String> {
    if let Some((_, what)) = OTHERS.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        return Err((*what).into());
    }
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        // Without a mark, UTF-16 of ASCII has a zero in each pair of bytes.
        let wide =
            bytes.get(at ^ 2) == Some(&0) && bytes.get(at ^ 1).is_some_and(|&byte| byte != 0);
        return Err(match wide && at < 2 {
            true => UTF_16.into(),
            false => format!(
                "it is binary (a zero at byte {at}) and of an unknown kind; name a text file"
            ),
        });
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    Ok(String::from_utf8_lossy(bytes))
}

/// Shortens a part of a file for a message, since it may be megabytes long.
pub fn quote_shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("`{}...` ({} bytes)", &text[..end], text.len()),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_with_and_without_a_mark() {
        assert_eq!(decode_text(b"").unwrap(), "");
        assert_eq!(decode_text(b"\xef\xbb\xbfwake\r\n").unwrap(), "wake\r\n");
        assert_eq!(decode_text("\u{e4}\t1".as_bytes()).unwrap(), "\u{e4}\t1");
    }

    #[test]
    fn what_is_no_text_is_named_with_the_remedy() {
        for (bytes, told) in [
            (
                &b"PERFILE2\x01"[..],
                "perf script --ns --show-lost-events -i",
            ),
            (b"\x17\x08Dtracing", "trace-cmd report -i"),
            (b"\x1f\x8b\x08", "gunzip"),
            (b"\x28\xb5\x2f\xfd$", "unzstd"),
            (b"\xfd7zXZ\0", "unxz"),
            (b"BZh91AY", "bunzip2"),
            (b"PK\x03\x04", "unzip"),
            (b"\xff\xfed\0u\0", "UTF-16"),
            (b"\xfe\xff\0d\0u", "UTF-16"),
            (b"d\0u\0r\0", "UTF-16"),
            (b"\0d\0u\0r", "UTF-16"),
            (b"\xff\xfe\0\0d\0\0\0", "UTF-32"),
            (b"wake\0", "binary (a zero at byte 4)"),
        ] {
            let why = decode_text(bytes).unwrap_err();
            assert!(why.contains(told), "{told}: {why}");
        }
    }

    #[test]
    fn a_quote_is_cut() {
        assert_eq!(quote_shortened(" a b\r"), "`a b`");
        let long = quote_shortened(&"\u{e4}".repeat(3_000_000));
        assert!(
            long.len() < 450 && long.ends_with("...` (6000000 bytes)"),
            "{long}"
        );
    }
}
