// SPDX-License-Identifier: MIT OR Apache-2.0
//! Encodes the trace: entries of 16 bytes, little endian.
//!
//! A window, which is one pass of a path on one CPU, is a [`TraceEntry::Window`] followed by the
//! number of entries that it states.

/// An exception level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// EL0.
    El0,
    /// EL1.
    El1,
    /// EL2.
    El2,
    /// EL3.
    El3,
}

impl Level {
    /// Returns the level in bits 3:2 of a PSTATE.
    #[must_use]
    pub const fn of_pstate(pstate: u64) -> Self {
        match pstate >> 2 & 3 {
            0 => Self::El0,
            1 => Self::El1,
            2 => Self::El2,
            _ => Self::El3,
        }
    }
}

/// An entry of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEntry {
    /// An instruction was executed.
    Executed {
        /// The exception level at which it was executed.
        level: Level,
        /// The instruction word.
        word: u32,
        /// The address of the instruction.
        pc: u64,
    },
    /// The previous instruction read or wrote memory.
    Accessed {
        /// Whether the access was a store.
        store: bool,
        /// Binary logarithm of the number of bytes accessed.
        size: u8,
        /// Virtual address of the access.
        address: u64,
    },
    /// A window follows.
    Window {
        /// Number of the path.
        path: u8,
        /// Number of the CPU.
        cpu: u16,
        /// Number of entries in the window.
        count: u64,
    },
    /// A CPU stayed in a loop for some more instructions, which are left out.
    LeftOut {
        /// Number of instructions left out.
        count: u64,
    },
    /// A CPU has executed its first instruction at EL1, after some instructions at EL2.
    Entered {
        /// Number of the CPU.
        cpu: u16,
        /// Number of instructions that the CPU had executed before.
        before: u64,
    },
}

const EXECUTED: u8 = 0;
const ACCESSED: u8 = 1;
const WINDOW: u8 = 2;
const ENTERED: u8 = 3;
const LEFT_OUT: u8 = 4;

impl TraceEntry {
    /// Size of an entry in bytes.
    pub const SIZE: usize = 16;

    /// Encodes an entry as its kind, a byte, a halfword, a word and a doubleword.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::SIZE] {
        let (kind, byte, half, word, double) = match self {
            Self::Executed { level, word, pc } => (EXECUTED, level as u8, 0, word, pc),
            Self::Accessed {
                store,
                size,
                address,
            } => (ACCESSED, u8::from(store), u16::from(size), 0, address),
            Self::Window { path, cpu, count } => (WINDOW, path, cpu, 0, count),
            Self::Entered { cpu, before } => (ENTERED, 0, cpu, 0, before),
            Self::LeftOut { count } => (LEFT_OUT, 0, 0, 0, count),
        };
        let mut bytes = [0; Self::SIZE];
        bytes[0] = kind;
        bytes[1] = byte;
        bytes[2..4].copy_from_slice(&half.to_le_bytes());
        bytes[4..8].copy_from_slice(&word.to_le_bytes());
        bytes[8..].copy_from_slice(&double.to_le_bytes());
        bytes
    }

    /// Decodes an entry; returns `None` if no entry has such bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let [kind, byte, h0, h1, w0, w1, w2, w3, double @ ..] = bytes;
        let half = u16::from_le_bytes([h0, h1]);
        let double = u64::from_le_bytes(double);
        Some(match kind {
            EXECUTED => Self::Executed {
                level: Level::of_pstate(u64::from(byte) << 2),
                word: u32::from_le_bytes([w0, w1, w2, w3]),
                pc: double,
            },
            ACCESSED => Self::Accessed {
                store: byte != 0,
                size: u8::try_from(half).ok()?,
                address: double,
            },
            WINDOW => Self::Window {
                path: byte,
                cpu: half,
                count: double,
            },
            ENTERED => Self::Entered {
                cpu: half,
                before: double,
            },
            LEFT_OUT => Self::LeftOut { count: double },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back() {
        for entry in [
            TraceEntry::Executed {
                level: Level::El2,
                word: 0xd69f_03e0,
                pc: u64::MAX,
            },
            TraceEntry::Accessed {
                store: true,
                size: 4,
                address: 0x4020_0040,
            },
            TraceEntry::Window {
                path: 3,
                cpu: 511,
                count: 1 << 40,
            },
            TraceEntry::Entered { cpu: 1, before: 7 },
            TraceEntry::LeftOut { count: 9 },
        ] {
            assert_eq!(TraceEntry::from_bytes(entry.to_bytes()), Some(entry));
        }
        assert_eq!(TraceEntry::from_bytes([0xff; TraceEntry::SIZE]), None);
    }
}
