// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much RAM a job's machine has, and why so much.

use std::fmt;
use std::sync::OnceLock;

/// The RAM of a machine.
#[derive(Clone, Debug)]
pub struct Ram {
    /// With unit: 64M, 2G.
    size: String,
    source: &'static str,
    /// What is enough, where that is known once the images are there.
    enough: OnceLock<String>,
}

impl Ram {
    /// What the board says.
    pub fn of_board(size: &str) -> Self {
        Self::new(size, "board")
    }

    /// What the command line says.
    pub fn chosen(size: &str) -> Self {
        Self::new(size, "chosen")
    }

    fn new(size: &str, source: &'static str) -> Self {
        Self {
            size: size.into(),
            source,
            enough: OnceLock::new(),
        }
    }

    /// With unit: 64M, 2G.
    pub fn size(&self) -> &str {
        self.enough.get().unwrap_or(&self.size)
    }

    /// Where it comes from: `board`, `chosen`, or `enough` for what runs.
    pub fn source(&self) -> &'static str {
        match self.enough.get() {
            Some(_) => "enough",
            None => self.source,
        }
    }

    /// Whether somebody asked for just this size.
    pub fn is_chosen(&self) -> bool {
        self.source == "chosen"
    }

    /// From now on it is `size`, which is enough.
    pub fn settle(&self, size: String) {
        // The same images and the same cells: a second time it is the same.
        let _ = self.enough.set(size);
    }
}

impl fmt::Display for Ram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.size())
    }
}
