// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes hashes of bytes: SHA-256, and XXH3 where nobody has an interest in a collision.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use twox_hash::XxHash3_128;

/// Returns the SHA-256 of `bytes` (FIPS 180-4) in hexadecimal digits.
pub fn sum(bytes: &[u8]) -> String {
    let mut digits = String::new();
    for byte in Sha256::digest(bytes) {
        // Writing to a string does not fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Returns the 128-bit XXH3 hash of `bytes` (xxHash, doc/xxhash_spec.md), which is not cryptographic.
pub fn xxh3_hex(bytes: &[u8]) -> String {
    format!("{:032x}", XxHash3_128::oneshot(bytes))
}
