// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the header in front of the guest's images.

use abi::PayloadHeader;

use crate::bytes::Bytes;

/// Checks that a length is used only after the magic number was found, and only if it fits.
pub fn read(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (magic, llsc, room) = (bytes.u64(), bytes.u64(), bytes.u64());
    let (lse, initrd) = (bytes.u64(), bytes.u64());
    let header = PayloadHeader {
        magic,
        llsc,
        lse,
        initrd,
        source: 0,
    };
    match header.images(room) {
        Ok(images) => {
            assert_eq!(header.magic, u64::from_le_bytes(*b"RSEPAYLD"));
            let parts = [images.llsc, images.lse, images.initrd];
            let lengths = parts.map(|part| part.map_or(0, |part| part.length));
            assert_eq!(lengths, [llsc, lse, initrd]);
            // The parts follow one another, and end within the available memory.
            let mut end = 0u64;
            for part in parts.into_iter().flatten() {
                assert!(part.length > 0 && part.offset == end.next_multiple_of(4096));
                end = part.offset + part.length;
            }
            assert!(end == images.length() && end <= room);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let mut end = 0u128;
    for more in [llsc, lse, initrd].into_iter().filter(|&more| more > 0) {
        end = end.next_multiple_of(4096) + u128::from(more);
    }
    let expected =
        magic == PayloadHeader::MAGIC && (llsc > 0 || lse > 0) && end <= u128::from(room);
    assert_eq!(header.images(room).is_ok(), expected);
}
