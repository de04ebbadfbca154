// SPDX-License-Identifier: MIT OR Apache-2.0
//! The RAM of a job's machine, and the source of its size.

use std::fmt;
use std::sync::OnceLock;

use crate::board::size;

/// The RAM of a machine. Each size has its unit: 64M, 2G.
#[derive(Clone, Debug)]
pub struct Ram {
    chosen: Option<String>,
    of_board: String,
    /// The smallest sufficient size, which is known once the images are built.
    enough: OnceLock<String>,
}

impl Ram {
    /// Takes the size that the command line gives, or else the board's.
    pub fn new(chosen: Option<&str>, of_board: &str) -> Self {
        Self {
            chosen: chosen.map(str::to_owned),
            of_board: of_board.into(),
            enough: OnceLock::new(),
        }
    }

    /// Returns the size, with its unit.
    pub fn size(&self) -> &str {
        let known = self.chosen.as_ref().or_else(|| self.enough.get());
        known.unwrap_or(&self.of_board)
    }

    pub fn bytes(&self) -> u64 {
        size::bytes(self.size())
    }

    /// Names the source of the size: `board`, `chosen`, or `enough` (the smallest size that suffices).
    pub fn source(&self) -> &'static str {
        match (&self.chosen, self.enough.get()) {
            (Some(_), _) => "chosen",
            (None, Some(_)) => "enough",
            (None, None) => "board",
        }
    }

    /// Whether the command line has set the size.
    pub fn is_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// Sets the size to `size`, which is enough, unless the command line has set it.
    pub fn settle(&self, size: String) {
        // The images and the cells do not change, so a second call would set the size again to the
        // same value.
        let _ = self.enough.set(size);
    }
}

impl fmt::Display for Ram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.size())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_what_it_is() {
        let ram = Ram::new(None, "512M");
        assert_eq!((ram.size(), ram.source()), ("512M", "board"));
        ram.settle("64M".into());
        assert_eq!((ram.size(), ram.source()), ("64M", "enough"));
        let ram = Ram::new(Some("1G"), "512M");
        ram.settle("64M".into());
        assert_eq!((ram.size(), ram.source()), ("1G", "chosen"));
    }
}
