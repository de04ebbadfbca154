// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header in front of the guest's images.

use abi::PayloadHeader;

use crate::bytes::Bytes;

/// A length is believed only behind the magic, and where there is room for it.
pub fn read(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (magic, length, room) = (bytes.u64(), bytes.u64(), bytes.u64());
    let lse = bytes.u64();
    let header = PayloadHeader { magic, length, lse };
    match header.images(room) {
        Ok(images) => {
            assert_eq!(header.magic, u64::from_le_bytes(*b"RSEPAYLD"));
            assert_eq!((images.llsc.offset, images.llsc.length), (0, header.length));
            assert_eq!(images.lse.map_or(0, |lse| lse.length), header.lse);
            // One behind the other, and nothing of them outside.
            let second = images.lse.map_or(header.length, |lse| lse.offset);
            assert!(header.length > 0 && header.length <= second && images.length() <= room);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let length = u128::from(header.length);
    let end = match header.lse {
        0 => length,
        lse => length.next_multiple_of(4096) + u128::from(lse),
    };
    let expected = header.magic == PayloadHeader::MAGIC && length > 0 && end <= u128::from(room);
    assert_eq!(header.images(room).is_ok(), expected);
}
