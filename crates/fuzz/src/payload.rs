// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header in front of the guest's image.

use abi::PayloadHeader;

use crate::bytes::Bytes;

/// A length is believed only behind the magic, and where there is room for it.
pub fn read(data: &[u8]) {
    let mut bytes = Bytes(data);
    let header = PayloadHeader {
        magic: bytes.u64(),
        length: bytes.u64(),
    };
    let room = bytes.u64();
    let believed = header.image(room);
    let expected =
        header.magic == u64::from_le_bytes(*b"RSEPAYLD") && (1..=room).contains(&header.length);
    assert_eq!(believed.ok(), expected.then_some(header.length));
    if let Err(error) = believed {
        assert!(!error.to_string().is_empty());
    }
}
