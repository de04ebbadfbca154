// SPDX-License-Identifier: MIT OR Apache-2.0
//! The unit of figures, for titles.

use results::Results;

/// The unit in which a board measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Insns,
    Cycles,
    Ticks,
}

impl Unit {
    pub fn of(results: &Results) -> Self {
        match results.unit.as_str() {
            "insns" => Self::Insns,
            "cycles" => Self::Cycles,
            _ => Self::Ticks,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Insns => "instructions",
            Self::Cycles => "cycles",
            Self::Ticks => "ticks",
        }
    }

    /// Returns the name with which a title begins.
    pub const fn in_title(self) -> &'static str {
        match self {
            Self::Insns => "Instructions",
            Self::Cycles => "Cycles",
            Self::Ticks => "Ticks",
        }
    }
}
