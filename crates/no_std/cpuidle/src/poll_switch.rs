// SPDX-License-Identifier: MIT OR Apache-2.0
//! Switches that make CPUs poll regardless of their governor's choice, and the text that sets and
//! shows them: an attribute of each CPU (D. Bristot de Oliveira, "sched/idle: Make idle poll
//! dynamic per-cpu", January 2023; in the patch, a file in sysfs).

use core::error::Error;
use core::fmt;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

/// The switches of `CPUS` CPUs, one each, on cache lines that hold nothing else. At first, all are off.
///
/// One load reads a CPU's switch. The number of users, which the patch counts in its static key, is
/// the number of switches that are on.
#[derive(Debug)]
#[repr(align(64))]
pub struct PollSwitch<const CPUS: usize>([AtomicBool; CPUS]);

/// The error for a text that means neither yes nor no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("neither 1, y, t, on nor 0, n, f, off")
    }
}

impl Error for Invalid {}

impl<const CPUS: usize> Default for PollSwitch<CPUS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const CPUS: usize> PollSwitch<CPUS> {
    /// Switches that are all off.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicBool::new(false) }; CPUS])
    }

    /// Writes `text` to the attribute of `cpu`, which is below `CPUS`; returns whether the switch changed.
    /// The CPU sees the change when it next idles or, if it polls, at its next check.
    ///
    /// # Errors
    /// [`Invalid`] if the text means neither yes nor no; then nothing changes.
    pub fn store(&self, cpu: usize, text: &[u8]) -> Result<bool, Invalid> {
        let on = parse(text)?;
        Ok(self.0[cpu].swap(on, AcqRel) != on)
    }

    /// Returns the text to read from the attribute of `cpu`.
    #[must_use]
    pub fn show(&self, cpu: usize) -> &'static str {
        match self.is_on(cpu) {
            true => "1\n",
            false => "0\n",
        }
    }

    /// Whether `cpu` should poll.
    #[must_use]
    #[inline(always)]
    pub fn is_on(&self, cpu: usize) -> bool {
        self.0[cpu].load(Relaxed)
    }

    /// How many CPUs should poll.
    #[must_use]
    pub fn polling_cpus(&self) -> u32 {
        self.0.iter().map(|on| u32::from(on.load(Acquire))).sum()
    }
}

/// Parses a text by the rules of Linux's `kstrtobool`: its first character decides, or its first
/// two if the first is `o`; case does not matter. Ignores the rest, for instance a line end.
fn parse(text: &[u8]) -> Result<bool, Invalid> {
    match text {
        [b'y' | b'Y' | b't' | b'T' | b'1', ..] => Ok(true),
        [b'n' | b'N' | b'f' | b'F' | b'0', ..] => Ok(false),
        [b'o' | b'O', b'n' | b'N', ..] => Ok(true),
        [b'o' | b'O', b'f' | b'F', ..] => Ok(false),
        _ => Err(Invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_character_decides_or_the_first_two() {
        for (texts, says) in [
            (
                "1 1\n y Y yes t T true twrong on ON oN\n onwards 10",
                Ok(true),
            ),
            ("0 0\n n N no f F false fair off OFF of oF 01", Ok(false)),
            ("2 -1 o O ox oo a enable disable +1 \n", Err(Invalid)),
        ] {
            for text in texts.split(' ') {
                assert_eq!(parse(text.as_bytes()), says, "{text:?}");
            }
        }
        // An empty text, and white space before the character, are invalid.
        assert_eq!((parse(b""), parse(b" 1")), (Err(Invalid), Err(Invalid)));
        assert_eq!(parse(b"\0"), Err(Invalid));
    }

    #[test]
    fn each_cpu_has_a_switch_and_users_are_counted_once() {
        let switch = PollSwitch::<64>::new();
        assert_eq!((switch.show(3), switch.polling_cpus()), ("0\n", 0));
        assert_eq!(switch.store(3, b"1\n"), Ok(true));
        assert_eq!(switch.store(3, b"yes"), Ok(false));
        assert_eq!(switch.store(63, b"on"), Ok(true));
        assert_eq!(switch.polling_cpus(), 2);
        assert!(switch.is_on(3) && switch.is_on(63) && !switch.is_on(2));
        assert_eq!((switch.show(3), switch.show(2)), ("1\n", "0\n"));
        assert_eq!(switch.store(2, b"0"), Ok(false));
        assert_eq!(switch.store(3, b"off"), Ok(true));
        assert_eq!((switch.polling_cpus(), switch.show(3)), (1, "0\n"));
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        let switch = PollSwitch::<64>::new();
        switch.store(1, b"1").unwrap();
        for text in [&b"maybe"[..], b"", b"2"] {
            assert_eq!(switch.store(1, text), Err(Invalid));
            assert_eq!((switch.show(1), switch.polling_cpus()), ("1\n", 1));
        }
        assert!(Invalid.to_string().starts_with("neither 1"));
    }
}
