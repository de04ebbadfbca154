// SPDX-License-Identifier: MIT OR Apache-2.0
//! Something for each line of memory.

use std::sync::OnceLock;

/// Bytes of a line: the smallest one of the machines that are emulated (CTR_EL0.DminLine).
pub const LINE: u64 = 64;
/// Lines of a part that is made when it is first needed.
const PART: u64 = 1 << 16;
/// Parts: what lies above has no state, so that a wild address takes no memory.
const PARTS: usize = 1 << 14;

/// A value for each line of the first 64 GiB of memory, its default at first.
#[derive(Debug)]
pub struct Lines<T> {
    parts: Box<[OnceLock<Box<[T]>>]>,
}

impl<T: Default> Lines<T> {
    pub fn new() -> Self {
        Self {
            parts: (0..PARTS).map(|_| OnceLock::new()).collect(),
        }
    }

    /// That of the line with physical address `address`.
    #[inline]
    pub fn of(&self, address: u64) -> Option<&T> {
        let line = address / LINE;
        let part = self.parts.get(usize::try_from(line / PART).ok()?)?;
        let values = part.get_or_init(|| (0..PART).map(|_| T::default()).collect());
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
        lines.of(0x4000_0040).unwrap().store(7, Relaxed);
        assert_eq!(lines.of(0x4000_007f).unwrap().load(Relaxed), 7);
        assert_eq!(lines.of(0x4000_0080).unwrap().load(Relaxed), 0);
        assert!(lines.of((1 << 36) - 1).is_some());
        assert!(lines.of(1 << 36).is_none() && lines.of(u64::MAX).is_none());
    }
}
