// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two CPUs of a wake-up: `4,5`, or `all` for every pair of CPUs.
//!
//! CPUs have the guest's numbers: their positions in the guest's description of the machine. Both
//! sides turn `all` into pairs by the same code once the number of CPUs is known. If there are more pairs than [`MOST`],
//! or than were requested (`all:100`), `all` is a sample: the pairs, in the order of the map's
//! rows, are divided into as many equal stretches as there are pairs to measure, and one pair is
//! drawn from each. So each sender has the same number of pairs, give or take one, and its
//! receivers are spread over its whole row. Only the seed (`all:100@7`) decides which pairs are
//! drawn.

use core::fmt;

use platform::MAX_CPUS;

/// The most pairs that `all` without a number gives. 64 CPUs have fewer pairs, even in both directions.
pub const MOST: u32 = 4096;

/// The CPUs of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// Two different CPUs.
    Of {
        /// The CPU that wakes the other, and measures.
        from: u16,
        /// The CPU that is woken.
        to: u16,
    },
    /// Every pair of CPUs, or a sample of them.
    All {
        /// The most pairs.
        most: u32,
        /// Seed of the sample, if there are more than `most` pairs.
        seed: u32,
    },
}

impl Pair {
    /// The first two CPUs.
    pub const FIRST: Self = Self::Of { from: 0, to: 1 };
    /// Every pair, or a sample of [`MOST`] pairs.
    pub const ALL: Self = Self::All {
        most: MOST,
        seed: 0,
    };

    /// Returns sender and receiver.
    ///
    /// # Panics
    /// Panics if this is [`Pair::All`]. A cell of [`Plan::cells`](crate::Plan::cells) always has
    /// two CPUs.
    #[must_use]
    pub const fn cpus(self) -> [usize; 2] {
        match self {
            Self::Of { from, to } => [from as usize, to as usize],
            Self::All { .. } => panic!("a cell is between two CPUs"),
        }
    }

    /// Whether the CPU at position `place` is the sender, or one of the senders.
    pub(crate) fn may_begin_at(self, place: usize) -> bool {
        match self {
            Self::Of { from, .. } => usize::from(from) == place,
            Self::All { .. } => true,
        }
    }

    /// Returns a CPU of the pair, if any, that is missing on a machine of `cpus` CPUs.
    pub(crate) fn beyond(self, cpus: usize) -> Option<usize> {
        match self {
            Self::Of { from, to } => [from, to].map(usize::from).into_iter().find(|&n| n >= cpus),
            Self::All { .. } => None,
        }
    }

    /// Reads a pair; `None` if `text` is not a pair.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix("all") {
            return Self::parse_all(rest);
        }
        let (from, to) = text.split_once(',')?;
        let cpu = |text: &str| text.parse().ok().filter(|&cpu| usize::from(cpu) < MAX_CPUS);
        let (from, to): (u16, u16) = (cpu(from)?, cpu(to)?);
        (from != to).then_some(Self::Of { from, to })
    }

    /// Reads the rest after `all`.
    fn parse_all(rest: &str) -> Option<Self> {
        let (most, seed) = rest.split_once('@').unwrap_or((rest, "0"));
        let most = match most {
            "" => MOST,
            most => most.strip_prefix(':')?.parse().ok()?,
        };
        let seed = seed.parse().ok()?;
        (most != 0).then_some(Self::All { most, seed })
    }

    /// Returns the sort key of the pair: it follows the rows of a map, which has a row for each sender.
    pub(crate) const fn sort_key(self) -> u64 {
        match self {
            Self::Of { from, to } => (from as u64) << 16 | to as u64,
            Self::All { most, seed } => 1 << 62 | (most as u64 & 0xff_ffff) << 32 | seed as u64,
        }
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, seed) = match *self {
            Self::Of { from, to } => return write!(f, "{from},{to}"),
            Self::All { most, seed } => (most, seed),
        };
        f.write_str("all")?;
        if most != MOST {
            write!(f, ":{most}")?;
        }
        if seed != 0 {
            write!(f, "@{seed}")?;
        }
        Ok(())
    }
}

/// All pairs among a number of CPUs: in both directions, or each pair once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pairs {
    /// Number of CPUs.
    pub cpus: usize,
    /// Whether a pair counts once in each direction.
    pub directed: bool,
}

impl Pairs {
    /// Returns the number of pairs.
    #[must_use]
    pub const fn count(self) -> u64 {
        let (cpus, others) = (self.cpus as u64, self.cpus.saturating_sub(1) as u64);
        let directed = cpus * others;
        if self.directed {
            directed
        } else {
            directed / 2
        }
    }

    /// Returns pair `number`, counted row by row.
    fn pair_at(self, number: u64) -> Pair {
        let others = self.cpus as u64 - 1;
        let (from, to) = if self.directed {
            let (from, to) = (number / others, number % others);
            (from, if to < from { to } else { to + 1 })
        } else {
            self.undirected_at(number)
        };
        Pair::Of {
            from: from as u16,
            to: to as u16,
        }
    }

    /// Returns sender and receiver of pair `number` if each pair counts once.
    fn undirected_at(self, number: u64) -> (u64, u64) {
        let cpus = self.cpus as u64;
        // Rows get shorter, so the number of pairs before a row is quadratic in the row's number.
        let before = |row: u64| row * (2 * cpus - row - 1) / 2;
        let (mut low, mut high) = (0, cpus - 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if before(middle) <= number {
                low = middle;
            } else {
                high = middle;
            }
        }
        (low, low + 1 + number - before(low))
    }

    /// Draws at most `most` pairs with `seed`, evenly spread; returns all pairs if there are no more
    /// than `most`.
    pub fn sample(self, most: u32, seed: u32) -> impl Iterator<Item = Pair> {
        let all = self.count();
        let taken = all.min(most.into());
        (0..taken).map(move |n| {
            let [begin, end] = [n, n + 1].map(|n| n * all / taken);
            self.pair_at(begin + hash(u64::from(seed) << 32 | n) % (end - begin))
        })
    }
}

/// Returns a number that looks random: the finaliser of SplitMix64 (G. L. Steele, D. Lea, C. H.
/// Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
const fn hash(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn drawn(cpus: usize, directed: bool, most: u32, seed: u32) -> Vec<[usize; 2]> {
        let pairs = Pairs { cpus, directed };
        pairs.sample(most, seed).map(Pair::cpus).collect()
    }

    #[test]
    fn every_two_cpus_are_there_once() {
        for cpus in [0, 1, 2, 3, 4, 5, 64, 65] {
            let each = || (0..cpus).flat_map(|a| (0..cpus).map(move |b| [a, b]));
            let directed: Vec<_> = each().filter(|[a, b]| a != b).collect();
            let once: Vec<_> = each().filter(|[a, b]| a < b).collect();
            assert_eq!(drawn(cpus, true, 1 << 20, 3), directed);
            assert_eq!(drawn(cpus, false, 1 << 20, 3), once);
        }
    }

    #[test]
    fn a_sample_is_spread_and_follows_its_seed() {
        let sample = drawn(192, true, 4096, 0);
        assert_eq!(sample, drawn(192, true, 4096, 0));
        assert_ne!(sample, drawn(192, true, 4096, 1));
        let different: BTreeSet<_> = sample.iter().collect();
        assert_eq!((sample.len(), different.len()), (4096, 4096));
        for cpu in 0..192 {
            let sends = sample.iter().filter(|pair| pair[0] == cpu).count();
            assert!((20..=23).contains(&sends), "CPU {cpu} sends {sends}");
            let receives = sample.iter().filter(|pair| pair[1] == cpu).count();
            assert!((5..=45).contains(&receives), "{cpu} receives {receives}");
        }
        let once = drawn(192, false, 100, 7);
        assert!(once.len() == 100 && once.iter().all(|[a, b]| a < b && *b < 192));
    }

    #[test]
    fn pairs_read_back() {
        for text in ["0,1", "5,4", "511,0", "all", "all:7", "all@3", "all:7@3"] {
            let pair = Pair::parse(text).unwrap();
            assert_eq!(pair.to_string(), text);
        }
        assert_eq!(Pair::parse("all:4096@0"), Some(Pair::ALL));
        for text in [
            "", "1", "3,3", "0,512", "1,2,3", "-1,0", "all:0", "all:", "al", "all7",
        ] {
            assert_eq!(Pair::parse(text), None, "{text}");
        }
    }
}
