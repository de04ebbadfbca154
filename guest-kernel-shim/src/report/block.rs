// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes one cell's records, one after another.

use core::fmt::{self, Display};
use core::sync::atomic::Ordering::Relaxed;

use wire::Line;

use super::record::{NEXT, send_line};

/// Prefix of record kinds in a block whose cell is not complete: a reader that does not
/// know such blocks skips them.
const PART: &str = "part-";

/// The block of a cell that is being written.
pub struct Block {
    id: usize,
    /// Whether more passes follow, with a newer block.
    part: bool,
    /// Number of the block's first record.
    first: u64,
}

/// A flag that is set while the cell is not complete, and the kind of a record in a block.
struct RecordKind<'k>(bool, &'k str);

impl Display for RecordKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { PART } else { "" })?;
        f.write_str(self.1)
    }
}

impl Block {
    /// Begins the block of cell `id`; `part` means that the cell is not complete.
    pub fn begin_block(id: usize, part: bool) -> Self {
        let first = NEXT.load(Relaxed);
        Self { id, part, first }
    }

    /// Starts a record of `kind`.
    pub fn record(&self, kind: &str) -> Line {
        let number = NEXT.fetch_add(1, Relaxed);
        Line::new(number, RecordKind(self.part, kind)).field("id", self.id)
    }

    /// Writes the last record of the block, which contains the number of the block's records.
    pub fn end(self, more: impl FnOnce(Line) -> Line) {
        let line = self.record("done");
        let records = NEXT.load(Relaxed) - self.first;
        send_line(more(line).field("records", records));
    }
}
