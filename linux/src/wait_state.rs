// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event that a soak's thread waits for, encoded so that other threads can read it.

use std::fmt;

/// An event that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A timer.
    Timer,
    /// An answer through a pipe, from the CPU with this number.
    Pipe(usize),
    /// An answer through a futex, from the CPU with this number.
    Futex(usize),
    /// A membarrier on every CPU that runs a thread of this process.
    Barrier,
    /// The CPU with this number going offline.
    Off(usize),
    /// The CPU with this number coming online.
    On(usize),
    /// The end of all threads.
    End,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timer => write!(f, "a timer"),
            Self::Pipe(cpu) => write!(f, "CPU {cpu}'s answer by a pipe"),
            Self::Futex(cpu) => write!(f, "CPU {cpu}'s answer by a futex"),
            Self::Barrier => write!(f, "a barrier of all CPUs"),
            Self::Off(cpu) => write!(f, "CPU {cpu} to be off"),
            Self::On(cpu) => write!(f, "CPU {cpu} to be on"),
            Self::End => write!(f, "all threads to end"),
        }
    }
}

impl What {
    /// Encodes the event as a number other than 0.
    #[must_use]
    pub const fn encode(self) -> u64 {
        match self {
            Self::Timer => 1,
            Self::Barrier => 2,
            Self::End => 3,
            Self::Pipe(cpu) => 4 + (cpu as u64) * 4,
            Self::Futex(cpu) => 5 + (cpu as u64) * 4,
            Self::Off(cpu) => 6 + (cpu as u64) * 4,
            Self::On(cpu) => 7 + (cpu as u64) * 4,
        }
    }

    /// Decodes a number from [`Self::encode`].
    #[must_use]
    pub const fn decode(word: u64) -> Self {
        let cpu = (word / 4).saturating_sub(1) as usize;
        match word {
            1 => Self::Timer,
            2 => Self::Barrier,
            3 => Self::End,
            _ => match word % 4 {
                0 => Self::Pipe(cpu),
                1 => Self::Futex(cpu),
                2 => Self::Off(cpu),
                _ => Self::On(cpu),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_for_is_a_word() {
        let fixed = [What::Timer, What::Barrier, What::End];
        let of = |cpu| {
            [
                What::Pipe(cpu),
                What::Futex(cpu),
                What::Off(cpu),
                What::On(cpu),
            ]
        };
        for what in fixed.into_iter().chain([0, 1, 7].into_iter().flat_map(of)) {
            assert_eq!(What::decode(what.encode()), what);
        }
    }
}
