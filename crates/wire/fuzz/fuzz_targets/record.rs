// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads any bytes as a record, and checks that what is read can be written
//! again and then says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Line, Record, Unescape};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for line in text.lines() {
        read(line);
    }
    // Nearly no input has the right checksum, so one is written around it.
    write(&text);
});

/// Reads a line in every way that there is.
fn read(line: &str) {
    let Ok(record) = Record::parse(line) else {
        return;
    };
    for (key, value) in record.fields() {
        let _ = Unescape(value).to_string();
        let _ = record.number(key);
        let _ = record.text(key).map(|text| text.to_string());
    }
}

/// A value that fits into a line comes out as it went in, text around it or not.
fn write(value: &str) {
    let Some(line) = Line::new(7, "note")
        .field("id", 1)
        .field("text", value)
        .finish()
    else {
        return;
    };
    for line in [
        line.to_string(),
        format!("noise {line}\r"),
        format!("{line}noise"),
    ] {
        let record = Record::parse(&line).expect("what was written is a record");
        assert_eq!(
            (record.seq, record.kind, record.number("id")),
            (7, "note", Some(1))
        );
        let text = record.text("text").expect("the field").to_string();
        if value.is_ascii() {
            assert_eq!(text, value);
        }
    }
}
