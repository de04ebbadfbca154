// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the level at which a guest's own table walk left the guest's memory. The guest's abort
//! needs that level in its syndrome, but EL2's syndrome has the level of the stage-2 walk instead
//! (D24.2.40, D8.2).

/// The registers of the guest's translation regime.
#[derive(Clone, Copy, Debug)]
pub struct Regime {
    /// TCR_EL1.
    pub tcr: u64,
    /// TTBR0_EL1 and TTBR1_EL1.
    pub ttbr: [u64; 2],
}

/// One half of the address space: TTBR0's or TTBR1's.
struct Half {
    /// Number of bits of an address that are translated.
    bits: u32,
    /// Number of bits of an address that select a byte within a page.
    page: u32,
    table: u64,
}

impl Half {
    /// Returns the half that contains `va`, or `None` if the registers have invalid values.
    fn of(regime: &Regime, va: u64) -> Option<Self> {
        let upper = va >> 55 & 1 != 0;
        let (size, granule, ttbr) = if upper {
            (
                regime.tcr >> 16 & 0x3f,
                regime.tcr >> 30 & 3,
                regime.ttbr[1],
            )
        } else {
            (regime.tcr & 0x3f, regime.tcr >> 14 & 3, regime.ttbr[0])
        };
        // TG0 and TG1 encode the page sizes differently (D24.2.208).
        let page = match (upper, granule) {
            (false, 0) | (true, 2) => 12,
            (false, 1) | (true, 3) => 16,
            (false, 2) | (true, 1) => 14,
            _ => return None,
        };
        (16..=39).contains(&size).then_some(Self {
            bits: 64 - size as u32,
            page,
            table: ttbr & 0xffff_ffff_fffe,
        })
    }

    /// Returns how many bits of an address one level translates.
    const fn bits_per_level(&self) -> u32 {
        self.page - 3
    }

    /// Returns the level at which walks begin.
    const fn start(&self) -> u32 {
        4 - (self.bits - self.page).div_ceil(self.bits_per_level())
    }

    /// Returns the address of the descriptor for `va` at `level` in `table`.
    const fn descriptor_address(&self, table: u64, va: u64, level: u32) -> u64 {
        let shift = self.page + (3 - level) * self.bits_per_level();
        let index = (va & ((1 << self.bits) - 1)) >> shift & ((1 << self.bits_per_level()) - 1);
        table + 8 * index
    }
}

/// Returns the level at which a walk for `va` reads a descriptor in the page at `ipa`. `read` reads
/// the guest's memory. Returns `None` if the walk does not read in that page, which can happen if
/// the tables have changed meanwhile.
#[must_use]
pub fn level(regime: &Regime, va: u64, ipa: u64, read: impl Fn(u64) -> Option<u64>) -> Option<u32> {
    let half = Half::of(regime, va)?;
    let mut table = half.table;
    for level in half.start()..=3 {
        let place = half.descriptor_address(table, va, level);
        if place >> 12 == ipa >> 12 {
            return Some(level);
        }
        let descriptor = read(place)?;
        if descriptor & 3 != 3 {
            return None;
        }
        table = descriptor & 0xffff_ffff_f000 >> half.page << half.page;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: u64 = 0x7000_0000;

    /// Walks tables of 4 KiB from level 0; the table of level `broken` is at `NOWHERE`.
    fn level_found(broken: u64, va: u64) -> Option<u32> {
        let regime = Regime {
            tcr: 16 | 16 << 16 | 2 << 30,
            ttbr: [0x1000 | 1 << 48, 0x1000],
        };
        let mut tables = [0x1000, 0x2000, 0x3000, 0x4000];
        if broken > 0 {
            tables[broken as usize] = NOWHERE;
        }
        level(&regime, va, NOWHERE, |place| {
            let at = tables.iter().position(|&table| table == place & !0xfff)?;
            Some(tables.get(at + 1)? | 3 | 1 << 59)
        })
    }

    #[test]
    fn the_level_of_the_table_that_is_not_there() {
        for va in [0x80_0000_0238, 0xffff_8000_0000_1000] {
            for broken in 1..=3 {
                assert_eq!(level_found(broken, va), Some(broken as u32));
            }
            assert_eq!(level_found(0, va), None);
        }
    }

    #[test]
    fn large_pages_and_short_addresses_begin_later() {
        let half = |tcr| Half::of(&Regime { tcr, ttbr: [0; 2] }, 0).unwrap().start();
        assert_eq!(half(16), 0);
        assert_eq!(half(25), 1);
        assert_eq!(half(39), 2);
        assert_eq!(half(16 | 1 << 14), 1);
        assert_eq!(half(16 | 2 << 14), 0);
        assert_eq!(half(17 | 2 << 14), 1);
    }

    #[test]
    fn nonsense_in_the_registers_is_no_level() {
        let regime = |tcr| Regime { tcr, ttbr: [0; 2] };
        for tcr in [0, 63, 16 | 3 << 14] {
            assert_eq!(level(&regime(tcr), 0, 0, |_| Some(3)), None);
        }
    }
}
