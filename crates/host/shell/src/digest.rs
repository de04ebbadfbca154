// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the SHA-256 of files.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of `bytes` (FIPS 180-4) in hexadecimal digits.
pub fn sum(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}
