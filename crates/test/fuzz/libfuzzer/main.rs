// SPDX-License-Identifier: MIT OR Apache-2.0
//! One binary per target, with the name of the target.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::run(env!("CARGO_BIN_NAME"), data));
