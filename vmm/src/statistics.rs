// SPDX-License-Identifier: MIT OR Apache-2.0
//! Converts KVM's binary statistics of a vCPU (Linux, Documentation/virt/kvm/api.rst, 4.133) to the registers of
//! [`abi::monitor`].

use abi::Counter;
use abi::monitor::{REGISTERS, TOGETHER};

/// Sizes of the header and of a descriptor without its name, in bytes.
const HEADER: usize = 24;
const DESCRIPTOR: usize = 16;

/// KVM's names of the statistics to read (Linux, arch/arm64/kvm/guest.c and
/// include/linux/kvm_host.h).
const NAMES: [&str; 9] = [
    "exits",
    "wfi_exit_stat",
    "wfe_exit_stat",
    "hvc_exit_stat",
    "mmio_exit_user",
    "mmio_exit_kernel",
    "halt_successful_poll",
    "halt_attempted_poll",
    "halt_wakeup",
];

/// Offsets of the statistics in their file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places([u64; NAMES.len()]);

impl Places {
    /// Reads the header and the descriptors with `read`, which reads the file at an offset. Returns `None` if a read
    /// fails or a statistic is missing.
    pub fn find(mut read: impl FnMut(u64, &mut [u8]) -> bool) -> Option<Self> {
        let mut header = [0; HEADER];
        if !read(0, &mut header) {
            return None;
        }
        let [name, count, descriptors, data] = [4, 8, 16, 20].map(|at| word(&header, at));
        let mut one = vec![0; DESCRIPTOR + name as usize];
        let mut places = [None; NAMES.len()];
        for n in 0..u64::from(count) {
            if !read(u64::from(descriptors) + n * one.len() as u64, &mut one) {
                return None;
            }
            let name = one[DESCRIPTOR..].split(|&byte| byte == 0).next();
            let known = NAMES
                .iter()
                .position(|known| name == Some(known.as_bytes()));
            if let Some(known) = known {
                places[known] = Some(u64::from(data) + u64::from(word(&one, 8)));
            }
        }
        let mut all = [0; NAMES.len()];
        for (all, place) in all.iter_mut().zip(places) {
            *all = place?;
        }
        Some(Self(all))
    }

    /// Returns the registers. The number of MMIO exits in the registers excludes `own`, the guest's accesses to the
    /// page of exit counts.
    pub fn registers(
        &self,
        own: u64,
        mut read: impl FnMut(u64, &mut [u8]) -> bool,
    ) -> Option<Values> {
        let mut values = [0; NAMES.len()];
        for (value, place) in values.iter_mut().zip(self.0) {
            let mut bytes = [0; 8];
            if !read(place, &mut bytes) {
                return None;
            }
            *value = u64::from_le_bytes(bytes);
        }
        let [exits, wfi, wfe, hvc, user, kernel, hits, polls, woken] = values;
        let mmio = user + kernel;
        Some(REGISTERS.map(|counter| match counter {
            Counter::Wfi => wfi,
            Counter::Wfe => wfe,
            Counter::Hvc => hvc,
            Counter::Mmio => mmio.saturating_sub(own),
            Counter::Other => exits.saturating_sub(wfi + wfe + hvc + mmio),
            Counter::PollHit => hits,
            Counter::PollMiss => polls.saturating_sub(hits),
            Counter::Halt => woken,
            _ => 0,
        }))
    }
}

/// The values of all registers.
pub type Values = [u64; REGISTERS.len()];

/// Latched statistics for a vCPU: the vCPU's own, and the sums of all vCPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noted {
    own: Values,
    together: Values,
}

impl Noted {
    /// Reads the register at `offset` of the page, or 0 where no register begins. A read of the first register of a
    /// kind latches all registers of that kind, from `own` or from `together`.
    pub fn read(
        &mut self,
        offset: u64,
        own: impl FnOnce() -> Values,
        together: impl FnOnce() -> Values,
    ) -> u64 {
        match offset {
            0 => self.own = own(),
            TOGETHER => self.together = together(),
            _ => {}
        }
        let (values, offset) = match offset.checked_sub(TOGETHER) {
            Some(offset) => (&self.together, offset),
            None => (&self.own, offset),
        };
        let begins = offset.is_multiple_of(8);
        let value = values.get(offset as usize / 8).filter(|_| begins);
        value.copied().unwrap_or_default()
    }
}

/// Adds the values of several vCPUs, register by register.
#[must_use]
pub fn sums(all: impl Iterator<Item = Values>) -> Values {
    all.fold(Values::default(), |sums, values| {
        std::array::from_fn(|n| sums[n] + values[n])
    })
}

/// Returns the 32-bit word at `at`, which must be within `bytes`.
fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..at + 4].try_into();
    u32::from_le_bytes(word.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: usize = 48;

    /// Builds a file with an unknown statistic, followed by `statistics`.
    fn file(statistics: &[(&str, u64)]) -> Vec<u8> {
        let all = [&[("blocking", 99)], statistics].concat();
        let descriptors = HEADER + NAME;
        let data = descriptors + all.len() * (DESCRIPTOR + NAME);
        let header = [0, NAME, all.len(), HEADER, descriptors, data];
        let mut file: Vec<u8> = header.map(|word| (word as u32).to_le_bytes()).concat();
        file.resize(descriptors, b'i');
        for (n, (name, _)) in all.iter().enumerate() {
            file.extend([0; 8]);
            file.extend((8 * n as u32).to_le_bytes());
            file.extend([0; 4]);
            file.extend(name.as_bytes());
            file.resize(descriptors + (n + 1) * (DESCRIPTOR + NAME), 0);
        }
        file.extend(all.iter().flat_map(|(_, value)| value.to_le_bytes()));
        file
    }

    fn reader(file: &[u8]) -> impl FnMut(u64, &mut [u8]) -> bool {
        |at, into| {
            let from = file.get(at as usize..at as usize + into.len());
            from.map(|from| into.copy_from_slice(from)).is_some()
        }
    }

    #[test]
    fn exits_come_by_cause_and_the_rest_in_one() {
        let values = [100, 20, 3, 5, 12, 2, 6, 10, 14];
        let statistics: Vec<_> = NAMES.into_iter().zip(values).collect();
        let file = file(&statistics);
        let places = Places::find(reader(&file)).unwrap();
        let registers = places.registers(8, reader(&file)).unwrap();
        // 58 exits have a cause without a register. The 8 accesses to the page are excluded from every register.
        assert_eq!(registers, [20, 3, 5, 6, 58, 6, 4, 14]);
    }

    #[test]
    fn a_page_has_what_was_noted_by_its_first_registers() {
        let mut noted = Noted::default();
        let none = || -> Values { panic!("nothing is noted again") };
        let values = |first: u64| move || -> Values { std::array::from_fn(|n| first + n as u64) };
        assert_eq!(noted.read(0, values(10), none), 10);
        assert_eq!(noted.read(TOGETHER, none, values(50)), 50);
        assert_eq!(noted.read(16, none, none), 12);
        assert_eq!(noted.read(abi::monitor::together(7), none, none), 57);
        for nowhere in [4, 8 * 8, TOGETHER - 8, TOGETHER + 12, TOGETHER + 64, 0xff8] {
            assert_eq!(noted.read(nowhere, none, none), 0, "{nowhere:#x}");
        }
        assert_eq!(sums([values(1)(), values(10)()].into_iter())[2], 15);
    }

    #[test]
    fn statistics_that_a_kernel_has_not_are_none() {
        let statistics: Vec<_> = NAMES.into_iter().map(|name| (name, 1)).collect();
        let whole = file(&statistics);
        assert_eq!(Places::find(reader(&file(&statistics[1..]))), None);
        for cut in [0, HEADER, HEADER + NAME + 100] {
            assert_eq!(Places::find(reader(&whole[..cut])), None);
        }
        let places = Places::find(reader(&whole)).unwrap();
        assert_eq!(places.registers(0, reader(&whole[..whole.len() - 8])), None);
    }
}
