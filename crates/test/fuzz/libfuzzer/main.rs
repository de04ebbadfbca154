// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a target under libFuzzer. Each target has a binary with the same name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::run(env!("CARGO_BIN_NAME"), data));
