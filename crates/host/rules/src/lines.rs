// SPDX-License-Identifier: MIT OR Apache-2.0
//! A value for each line of memory.

use std::sync::OnceLock;

/// Bytes of a line: the smallest line size among the emulated machines (CTR_EL0.DminLine).
pub const LINE: u64 = 64;
/// Number of lines in a part. A part is allocated on first use.
const PART: u64 = 1 << 16;
/// Number of parts in a region. A region is also allocated on first use.
const PARTS: u64 = 1 << 14;
/// Number of regions. Together they cover 48 bits of physical address, the maximum without FEAT_LPA.
const REGIONS: u64 = 1 << 12;

/// Values that are allocated on first use.
type Made<T> = Box<[OnceLock<T>]>;

/// A value for each line of memory, initially the default value.
#[derive(Debug)]
pub struct Lines<T> {
    regions: Made<Made<Box<[T]>>>,
}

fn make_empty<T>(many: u64) -> Made<T> {
    (0..many).map(|_| OnceLock::new()).collect()
}

impl<T: Default> Lines<T> {
    pub fn new() -> Self {
        Self {
            regions: make_empty(REGIONS),
        }
    }

    /// Returns the value of the line with physical address `address`.
    #[inline]
    pub fn value_of_line(&self, address: u64) -> Option<&T> {
        let line = address / LINE;
        let part = line / PART;
        let region = self.regions.get(usize::try_from(part / PARTS).ok()?)?;
        let parts = region.get_or_init(|| make_empty(PARTS));
        let values = parts[(part % PARTS) as usize]
            .get_or_init(|| (0..PART).map(|_| T::default()).collect());
        values.get((line % PART) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU8;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn each_line_has_its_own() {
        let lines = Lines::<AtomicU8>::new();
        lines.value_of_line(0x4000_0040).unwrap().store(7, Relaxed);
        assert_eq!(lines.value_of_line(0x4000_007f).unwrap().load(Relaxed), 7);
        assert_eq!(lines.value_of_line(0x4000_0080).unwrap().load(Relaxed), 0);
        // The RAM of board `sbsa-ref` begins at 1 TiB.
        lines
            .value_of_line(0x100_0000_0000)
            .unwrap()
            .store(9, Relaxed);
        assert!(lines.value_of_line((1 << 48) - 1).is_some());
        assert!(lines.value_of_line(1 << 48).is_none() && lines.value_of_line(u64::MAX).is_none());
    }
}
