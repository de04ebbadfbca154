// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads any bytes as a configuration file, with any room, and checks that what
//! comes out reads as itself.

#![no_main]

use config::{Defect, LIMIT, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, &[u8])| {
    let (room, file) = input;
    let mut room = vec![0; usize::from(room)];
    match parse(file, &mut room) {
        Ok(text) => assert_eq!(parse(text.as_bytes(), &mut [0; LIMIT]), Ok(text)),
        Err(error) => {
            let _ = error.to_string();
            assert!(error.defect != Defect::NoRoom || room.len() < LIMIT);
        }
    }
});
