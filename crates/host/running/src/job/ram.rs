// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much RAM a job's machine has, and why so much.

use std::fmt;
use std::sync::OnceLock;

use crate::board::size;

/// The RAM of a machine, each size with its unit: 64M, 2G.
#[derive(Clone, Debug)]
pub struct Ram {
    /// Size on the command line.
    chosen: Option<String>,
    /// Size in the board's file.
    of_board: String,
    /// Size that is enough, where that is known once the images are there.
    enough: OnceLock<String>,
}

impl Ram {
    /// Takes the size of the command line, or else the board's.
    pub fn new(chosen: Option<&str>, of_board: &str) -> Self {
        Self {
            chosen: chosen.map(str::to_owned),
            of_board: of_board.into(),
            enough: OnceLock::new(),
        }
    }

    /// How much it is.
    pub fn size(&self) -> &str {
        let known = self.chosen.as_ref().or_else(|| self.enough.get());
        known.unwrap_or(&self.of_board)
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        size::bytes(self.size())
    }

    /// Where that comes from: `board`, `chosen`, or `enough` for what runs.
    pub fn source(&self) -> &'static str {
        match (&self.chosen, self.enough.get()) {
            (Some(_), _) => "chosen",
            (None, Some(_)) => "enough",
            (None, None) => "board",
        }
    }

    /// Whether just this size was asked for.
    pub fn is_chosen(&self) -> bool {
        self.chosen.is_some()
    }

    /// From now on it is `size`, which is enough, unless another one was asked for.
    pub fn settle(&self, size: String) {
        // The images and the cells do not change: a second time it is the same.
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
