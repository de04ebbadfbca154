// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of CPUs, as text: `0-3+6`, `0x4f`, `all`, `none`.

use core::fmt;

use platform::MAX_CPUS;

/// Bits of a word.
const BITS: usize = u64::BITS as usize;
/// Words of a set.
const WORDS: usize = MAX_CPUS / BITS;

const _: () = assert!(MAX_CPUS.is_multiple_of(BITS));

/// A set of CPUs, each given by its position in the device tree. Positions are below [`MAX_CPUS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSet([u64; WORDS]);

impl CpuSet {
    /// No CPU.
    pub const NONE: Self = Self([0; WORDS]);
    /// Every CPU that there is.
    pub const ALL: Self = Self([u64::MAX; WORDS]);
    /// The first CPU.
    pub const FIRST: Self = Self::one(0);

    /// Returns the set of one CPU, which is below [`MAX_CPUS`].
    #[must_use]
    pub const fn one(cpu: usize) -> Self {
        Self::NONE.with(cpu)
    }

    /// Whether the set contains `cpu`.
    #[must_use]
    pub const fn has(&self, cpu: usize) -> bool {
        cpu < MAX_CPUS && self.0[cpu / BITS] >> (cpu % BITS) & 1 != 0
    }

    /// Returns the set with `cpu` added; `cpu` is below [`MAX_CPUS`].
    #[must_use]
    #[inline(always)]
    pub const fn with(mut self, cpu: usize) -> Self {
        self.0[cpu / BITS % WORDS] |= 1 << (cpu % BITS);
        self
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Iterates over the members of the set, on a machine with `cpus` CPUs.
    #[inline]
    pub fn iter(&self, cpus: usize) -> impl Iterator<Item = usize> + Clone + use<> {
        // The loop goes from set bit to set bit, since callers' measurements include the loop. The loop
        // skips words beyond the machine's CPUs.
        let words = self.0;
        let mut left = words[0];
        let mut base = 0;
        core::iter::from_fn(move || {
            while left == 0 {
                base += BITS;
                if base >= cpus {
                    return None;
                }
                left = *words.get(base / BITS)?;
            }
            let cpu = base + left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (cpu < cpus).then_some(cpu)
        })
    }

    /// Returns the first CPU of the set, if any, that is missing on a machine of `cpus` CPUs. `all` never has
    /// such a CPU.
    #[must_use]
    pub fn beyond(&self, cpus: usize) -> Option<usize> {
        (cpus..MAX_CPUS).find(|&cpu| *self != Self::ALL && self.has(cpu))
    }

    /// Returns the set's sort key. Keys are ordered like the sets' bit masks: the key is the mask if it is
    /// small, otherwise its length and as many of its highest bits as fit.
    pub(crate) fn sort_key(&self) -> u64 {
        let Some(top) = (0..MAX_CPUS).rev().find(|&cpu| self.has(cpu)) else {
            return 0;
        };
        const KEPT: usize = 54;
        if top < KEPT {
            return self.0[0];
        }
        let bit = |n: usize| top.checked_sub(n).is_some_and(|cpu| self.has(cpu));
        let bits = (1..=KEPT).fold(0, |bits, n| bits << 1 | u64::from(bit(n)));
        (top as u64 + 1) << KEPT | bits
    }

    /// Reads a set; `None` if `text` is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => return Some(Self::ALL),
            "none" => return Some(Self::NONE),
            _ => {}
        }
        match text.strip_prefix("0x") {
            Some(mask) => Self::parse_mask(mask),
            None => Self::parse_ranges(text),
        }
    }

    /// Reads hexadecimal digits; the last digit holds the first four CPUs.
    fn parse_mask(digits: &str) -> Option<Self> {
        const PER_DIGIT: usize = 4;
        let mut set = Self::NONE;
        for (n, digit) in digits.bytes().rev().enumerate() {
            let digit = u64::from(char::from(digit).to_digit(16)?);
            match set.0.get_mut(n * PER_DIGIT / BITS) {
                Some(word) => *word |= digit << (n * PER_DIGIT % BITS),
                // Leading zeros do not count.
                None if digit == 0 => {}
                None => return None,
            }
        }
        (!digits.is_empty()).then_some(set)
    }

    fn parse_ranges(text: &str) -> Option<Self> {
        let mut set = Self::NONE;
        for range in text.split('+') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= MAX_CPUS {
                return None;
            }
            set = (first..=last).fold(set, Self::with);
        }
        Some(set)
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ALL => return f.write_str("all"),
            Self::NONE => return f.write_str("none"),
            _ => {}
        }
        let mut separator = "";
        let mut cpu = 0;
        while cpu < MAX_CPUS {
            let first = cpu;
            while self.has(cpu) {
                cpu += 1;
            }
            match cpu - first {
                0 => {
                    cpu += 1;
                    continue;
                }
                1 => write!(f, "{separator}{first}")?,
                _ => write!(f, "{separator}{first}-{}", cpu - 1)?,
            }
            separator = "+";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_set_are_those_that_it_has() {
        for text in [
            "all",
            "none",
            "0",
            "63",
            "0-3+6",
            "64+127-128+511",
            "0x8000000000000001",
            "0x80000000000000000000000000000001",
        ] {
            let set = CpuSet::parse(text).unwrap();
            for cpus in [0, 1, 4, 7, 63, 64, 65, 100, 128, 192, 511, 512, 600] {
                let each: Vec<usize> = set.iter(cpus).collect();
                let has: Vec<usize> = (0..cpus).filter(|&cpu| set.has(cpu)).collect();
                assert_eq!(each, has, "{text} of {cpus}");
            }
        }
        let set = CpuSet::NONE.with(5).with(63).with(64).with(511);
        assert_eq!(set, CpuSet::parse("5+63-64+511").unwrap());
    }

    #[test]
    fn sets_read_back() {
        for (text, shown) in [
            ("all", "all"),
            ("none", "none"),
            ("0-3+6", "0-3+6"),
            ("6+0+1+2+3", "0-3+6"),
            ("0x4f", "0-3+6"),
            ("63", "63"),
            ("0x30000000000000000", "64-65"),
            ("62-66+511", "62-66+511"),
        ] {
            let set = CpuSet::parse(text).unwrap();
            assert_eq!((text, set.to_string().as_str()), (text, shown));
            assert_eq!(CpuSet::parse(shown), Some(set));
        }
        let all = format!("0x{}", "f".repeat(MAX_CPUS / 4));
        assert_eq!(CpuSet::parse(&all), Some(CpuSet::ALL));
        assert_eq!(CpuSet::parse(&format!("{all}f")), None);
        for text in ["", "x", "3-1", "512", "0+", "0x", "0xg", "0x+1", "-1"] {
            assert_eq!(CpuSet::parse(text), None, "{text}");
        }
    }

    #[test]
    fn they_stand_as_their_numbers_do() {
        let sets = [
            "none", "0", "1", "0-1", "2", "63", "10+63", "64", "63-64", "510", "511",
        ];
        let places = sets.map(|text| CpuSet::parse(text).unwrap().sort_key());
        assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
        assert!(CpuSet::ALL.sort_key() > *places.last().unwrap());
    }

    #[test]
    fn what_a_machine_does_not_have_is_found() {
        assert_eq!(CpuSet::parse("0-1").unwrap().beyond(2), None);
        assert_eq!(CpuSet::parse("0-2+7").unwrap().beyond(2), Some(2));
        assert_eq!(CpuSet::parse("0+192").unwrap().beyond(192), Some(192));
        assert_eq!(CpuSet::ALL.beyond(2), None);
    }
}
