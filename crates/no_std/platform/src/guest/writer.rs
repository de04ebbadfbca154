// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a flattened device tree: the header, an empty reservation map, the structure block and
//! the strings block (Devicetree Specification, release 0.4, chapter 5).

use arrayvec::ArrayVec;

use super::BufferTooSmall;
use crate::Region;

const HEADER_SIZE: usize = 40;
const RESERVATION_MAP_SIZE: usize = 16;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const END: u32 = 9;

/// Writes the structure block and gathers the property names.
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    at: usize,
    names: ArrayVec<u8, 512>,
}

impl<'b> Writer<'b> {
    pub fn new(buffer: &'b mut [u8]) -> Result<Self, BufferTooSmall> {
        let start = HEADER_SIZE + RESERVATION_MAP_SIZE;
        buffer.get_mut(..start).ok_or(BufferTooSmall)?.fill(0);
        Ok(Self {
            buffer,
            at: start,
            names: ArrayVec::new(),
        })
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> Result<(), BufferTooSmall> {
        let end = self.at + bytes.len();
        let place = self.buffer.get_mut(self.at..end).ok_or(BufferTooSmall)?;
        place.copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    fn write_word(&mut self, word: u32) -> Result<(), BufferTooSmall> {
        self.write_bytes(&word.to_be_bytes())
    }

    fn pad_to_word(&mut self) -> Result<(), BufferTooSmall> {
        let padding = self.at.next_multiple_of(4) - self.at;
        self.write_bytes(&[0; 3][..padding])
    }

    pub fn begin_node(&mut self, name: &str) -> Result<(), BufferTooSmall> {
        self.write_word(BEGIN_NODE)?;
        self.write_bytes(name.as_bytes())?;
        self.write_bytes(&[0])?;
        self.pad_to_word()
    }

    pub fn end_node(&mut self) -> Result<(), BufferTooSmall> {
        self.write_word(END_NODE)
    }

    fn begin_property(&mut self, name: &str, size: usize) -> Result<(), BufferTooSmall> {
        let name = self.name_offset(name)?;
        self.write_word(PROPERTY)?;
        self.write_word(size as u32)?;
        self.write_word(name)
    }

    /// Returns the offset of `name` in the strings block, after adding it if it is new.
    fn name_offset(&mut self, name: &str) -> Result<u32, BufferTooSmall> {
        let mut offset = 0;
        for known in self.names.split_inclusive(|&byte| byte == 0) {
            if &known[..known.len() - 1] == name.as_bytes() {
                return Ok(offset);
            }
            offset += known.len() as u32;
        }
        self.names
            .try_extend_from_slice(name.as_bytes())
            .map_err(|_| BufferTooSmall)?;
        self.names.try_push(0).map_err(|_| BufferTooSmall)?;
        Ok(offset)
    }

    pub fn cells(&mut self, name: &str, cells: &[u32]) -> Result<(), BufferTooSmall> {
        self.begin_property(name, cells.len() * 4)?;
        cells.iter().try_for_each(|&cell| self.write_word(cell))
    }

    pub fn regions(
        &mut self,
        name: &str,
        regions: impl Iterator<Item = Region> + Clone,
    ) -> Result<(), BufferTooSmall> {
        self.begin_property(name, regions.clone().count() * 16)?;
        for region in regions {
            self.write_bytes(&region.base.to_be_bytes())?;
            self.write_bytes(&region.size.to_be_bytes())?;
        }
        Ok(())
    }

    /// Writes a property with one string, made of pieces.
    pub fn pieces<'p>(
        &mut self,
        name: &str,
        pieces: impl Iterator<Item = &'p str> + Clone,
    ) -> Result<(), BufferTooSmall> {
        let size = pieces.clone().map(str::len).sum::<usize>() + 1;
        self.begin_property(name, size)?;
        for piece in pieces {
            self.write_bytes(piece.as_bytes())?;
        }
        self.write_bytes(&[0])?;
        self.pad_to_word()
    }

    pub fn strings(&mut self, name: &str, strings: &[&str]) -> Result<(), BufferTooSmall> {
        let size = strings.iter().map(|string| string.len() + 1).sum();
        self.begin_property(name, size)?;
        for string in strings {
            self.write_bytes(string.as_bytes())?;
            self.write_bytes(&[0])?;
        }
        self.pad_to_word()
    }

    pub fn finish(mut self) -> Result<usize, BufferTooSmall> {
        self.write_word(END)?;
        let start = HEADER_SIZE + RESERVATION_MAP_SIZE;
        let structure_size = self.at - start;
        let strings_at = self.at;
        let names = core::mem::take(&mut self.names);
        self.write_bytes(&names)?;
        let total = self.at;
        self.at = 0;
        let header = [
            0xd00d_feed,
            total,
            start,
            strings_at,
            HEADER_SIZE,
            17, // version
            16, // last compatible version
            0,  // boot CPU
            names.len(),
            structure_size,
        ];
        header.iter().try_for_each(|&n| self.write_word(n as u32))?;
        Ok(total)
    }
}
