// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sets of CPUs, as text: `0-3+6`, `0x4f`, `all`, `none`.

use core::fmt;

/// CPUs, by their position in the device tree; up to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuSet(u64);

impl CpuSet {
    /// No CPU.
    pub const NONE: Self = Self(0);
    /// Every CPU that there is.
    pub const ALL: Self = Self(u64::MAX);
    /// The first CPU.
    pub const FIRST: Self = Self(1);

    /// One CPU, of those below 64.
    #[must_use]
    pub const fn one(cpu: usize) -> Self {
        Self(1 << (cpu % 64))
    }

    /// Whether `cpu` is in it.
    #[must_use]
    pub const fn has(self, cpu: usize) -> bool {
        cpu < 64 && self.0 >> cpu & 1 != 0
    }

    /// It and `cpu`, one of those below 64.
    #[must_use]
    pub const fn with(self, cpu: usize) -> Self {
        Self(self.0 | Self::one(cpu).0)
    }

    /// Whether no CPU is in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Those of `cpus` CPUs that are in it.
    pub fn iter(self, cpus: usize) -> impl Iterator<Item = usize> + Clone {
        // From one bit to the next, as callers do this in what they measure.
        let mut left = match cpus {
            0..64 => self.0 & ((1 << cpus) - 1),
            _ => self.0,
        };
        core::iter::from_fn(move || {
            let cpu = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (cpu < 64).then_some(cpu)
        })
    }

    /// The first one that a machine of `cpus` CPUs does not have; `all` is
    /// whatever it has.
    #[must_use]
    pub fn beyond(self, cpus: usize) -> Option<usize> {
        (cpus..64).find(|&cpu| self != Self::ALL && self.has(cpu))
    }

    /// One bit for each CPU.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Reads a set; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "all" => return Some(Self::ALL),
            "none" => return Some(Self::NONE),
            _ => {}
        }
        if let Some(mask) = text.strip_prefix("0x") {
            return u64::from_str_radix(mask, 16).ok().map(Self);
        }
        let mut set = 0;
        for range in text.split('+') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            if first > last || last >= 64 {
                return None;
            }
            (first..=last).for_each(|cpu| set |= 1 << cpu);
        }
        Some(Self(set))
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
        while cpu < 64 {
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
        for text in ["all", "none", "0", "63", "0-3+6", "0x8000000000000001"] {
            let set = CpuSet::parse(text).unwrap();
            for cpus in [0, 1, 4, 7, 63, 64, 100] {
                let each: Vec<usize> = set.iter(cpus).collect();
                let has: Vec<usize> = (0..cpus).filter(|&cpu| set.has(cpu)).collect();
                assert_eq!(each, has, "{text} of {cpus}");
            }
        }
        let set = CpuSet::NONE.with(5).with(63);
        assert_eq!(set, CpuSet::parse("5+63").unwrap());
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
        ] {
            let set = CpuSet::parse(text).unwrap();
            assert_eq!((text, set.to_string().as_str()), (text, shown));
            assert_eq!(CpuSet::parse(shown), Some(set));
        }
        for text in ["", "x", "3-1", "64", "0+", "0x", "-1"] {
            assert_eq!(CpuSet::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_machine_does_not_have_is_found() {
        assert_eq!(CpuSet::parse("0-1").unwrap().beyond(2), None);
        assert_eq!(CpuSet::parse("0-2+7").unwrap().beyond(2), Some(2));
        assert_eq!(CpuSet::ALL.beyond(2), None);
    }
}
