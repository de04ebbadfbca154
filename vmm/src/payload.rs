// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests appended to a program, in one file that can be copied to any machine.
//!
//! ```text
//! 0    the program, as it was linked
//!      the guest, an arm64 Image
//!      the same guest with LSE atomics
//!      what they were built from, JSON
//! -48  magic number, version, three lengths, checksum of everything after the program
//! ```
//!
//! Linux loads only the parts of the file that the program's headers name. So the program
//! does not depend on its guests, no linker is needed to append them, and the trailer shows
//! whether the file was truncated or changed when it was copied.

use std::fmt;

use crc::{CRC_64_XZ, Crc};

/// First bytes of a trailer.
const MAGIC: [u8; 8] = *b"RSEGUEST";
/// Version of the layout above.
const VERSION: u64 = 1;
/// Size of the trailer in bytes: a magic number and five words.
const TRAILER: usize = 48;
const CHECKSUM: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// Guests appended to a program's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'f> {
    /// The guest that every CPU can run.
    pub llsc: &'f [u8],
    /// The guest with LSE atomics.
    pub lse: &'f [u8],
    /// Description of the sources and tools from which the guests were built.
    pub build: &'f str,
}

/// Why a file has no usable guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file has no guests.
    Missing,
    /// The version of the guests' layout is not known here.
    Version(u64),
    /// The guests have changed since they were written.
    Changed,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str(
                "there is no guest in this file; write one that has it by `cargo xtask image --for kvm`, \
                 and copy it whole",
            ),
            Self::Version(found) => write!(
                f,
                "the guests in this file have form {found}, and this program knows {VERSION}; write the file again \
                 by `cargo xtask image --for kvm`"
            ),
            Self::Changed => f.write_str(
                "the guests in this file are not as they were written; copy it again, in binary mode",
            ),
        }
    }
}

impl<'f> Payload<'f> {
    /// Returns the bytes of `program`, with the guests appended.
    #[must_use]
    pub fn behind(&self, program: &[u8]) -> Vec<u8> {
        let mut file = program.to_vec();
        for part in self.parts() {
            file.extend(part);
        }
        file.extend(MAGIC);
        let lengths = self.parts().map(|part| part.len() as u64);
        for word in [VERSION].into_iter().chain(lengths) {
            file.extend(word.to_le_bytes());
        }
        let checksum = CHECKSUM.checksum(&file[program.len()..]);
        file.extend(checksum.to_le_bytes());
        file
    }

    /// Finds the guests after the program in `file`.
    ///
    /// # Errors
    /// [`Damage`] if the file has no guests, or if they are damaged.
    pub fn find(file: &'f [u8]) -> Result<Self, Damage> {
        let at = file.len().checked_sub(TRAILER).ok_or(Damage::Missing)?;
        let (body, trailer) = file.split_at(at);
        let (magic, words) = trailer.split_at(MAGIC.len());
        if magic != MAGIC {
            return Err(Damage::Missing);
        }
        let word = |n: usize| {
            let bytes = words[8 * n..][..8].try_into();
            u64::from_le_bytes(bytes.unwrap_or_default())
        };
        if word(0) != VERSION {
            return Err(Damage::Version(word(0)));
        }
        let mut rest = body;
        let mut part = |n: usize| {
            let length = usize::try_from(word(n)).ok();
            let from = length.and_then(|length| rest.len().checked_sub(length));
            let (before, part) = rest.split_at(from.ok_or(Damage::Changed)?);
            rest = before;
            Ok(part)
        };
        let (build, lse, llsc) = (part(3)?, part(2)?, part(1)?);
        let covered = &file[rest.len()..file.len() - 8];
        if CHECKSUM.checksum(covered) != word(4) {
            return Err(Damage::Changed);
        }
        let build = std::str::from_utf8(build).map_err(|_| Damage::Changed)?;
        Ok(Self { llsc, lse, build })
    }

    fn parts(&self) -> [&'f [u8]; 3] {
        [self.llsc, self.lse, self.build.as_bytes()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: Payload<'_> = Payload {
        llsc: b"one guest",
        lse: b"the other",
        build: "{}",
    };

    #[test]
    fn what_is_put_behind_a_program_is_found_there() {
        let file = PAYLOAD.behind(b"program");
        assert!(file.starts_with(b"program"));
        assert_eq!(file.len(), 7 + 9 + 9 + 2 + TRAILER);
        assert_eq!(Payload::find(&file), Ok(PAYLOAD));
    }

    #[test]
    fn a_program_alone_has_none() {
        for file in [&b""[..], b"program", &[0; 4096]] {
            assert_eq!(Payload::find(file), Err(Damage::Missing));
        }
    }

    /// Changes each byte after the program in turn, and truncates the file to each length.
    #[test]
    fn what_was_changed_on_its_way_is_refused() {
        let file = PAYLOAD.behind(b"program");
        for at in 7..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 0x20;
            assert!(Payload::find(&changed).is_err(), "byte {at}");
        }
        for end in 0..file.len() {
            assert!(Payload::find(&file[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn another_form_is_named() {
        let mut file = PAYLOAD.behind(b"");
        let at = file.len() - TRAILER + 8;
        file[at] = 2;
        assert_eq!(Payload::find(&file), Err(Damage::Version(2)));
    }
}
