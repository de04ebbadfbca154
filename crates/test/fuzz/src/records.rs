// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses lines of a console, which may be records.

use wire::{Line, MARK, Record};

/// Parses each line of the text once unchanged, and once as a record with a correct checksum.
pub fn read(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines().take(32) {
        parse(line);
        let body = line.split(" #").next().unwrap_or("");
        let body = format!("{MARK}{}", body.trim_start_matches(MARK));
        parse(&format!("{body} #{:08x}", crc(body.as_bytes())));
    }
}

/// Checks that a record that can be parsed can be written, and that the written record parses to an equal one.
fn parse(line: &str) {
    let Ok(record) = Record::parse(line) else {
        return;
    };
    let mut again = Line::new(record.seq, record.kind);
    for (key, _) in record.fields() {
        let text = record.text(key).expect("it was just listed");
        again = again.field(key, text);
    }
    let Some(again) = again.finish() else {
        return;
    };
    let read = Record::parse(&again).expect("what was written can be read");
    assert_eq!((read.seq, read.kind), (record.seq, record.kind));
    assert_eq!(read.fields().count(), record.fields().count());
    for (key, _) in record.fields() {
        let [before, after] =
            [record, read].map(|record| record.text(key).map(|text| text.to_string()));
        // Only ASCII text is written unchanged.
        let ascii = before.as_ref().is_some_and(|text| text.is_ascii());
        assert!(
            before == after || !ascii,
            "{key}: {before:?} became {after:?}"
        );
    }
}

/// Computes CRC-32 (ISO-HDLC), bit by bit.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            crc >> 1 ^ if crc & 1 != 0 { 0xedb8_8320 } else { 0 }
        })
    })
}
