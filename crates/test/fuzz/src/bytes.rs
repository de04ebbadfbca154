// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes values from the bytes of an input. After the end of the input, every byte reads as zero.

/// The rest of an input.
#[derive(Clone, Debug)]
pub struct Bytes<'d>(pub &'d [u8]);

impl Bytes<'_> {
    /// Returns whether no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the next byte.
    pub fn u8(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    /// Takes a number below `bound` from the next byte. `bound` is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.u8()) % bound
    }

    /// Chooses an element of a list by the next byte.
    pub fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Takes the next four bytes as a number.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes([(); 4].map(|()| self.u8()))
    }

    /// Takes the next eight bytes as a number.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes([(); 8].map(|()| self.u8()))
    }
}
