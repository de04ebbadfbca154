// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the counter bit whose event stream comes nearest to a given period.
//!
//! Each rising edge of one counter bit makes an event, so the period in ticks is a power of two.
//! The rule is that of Linux's generic timer driver (`arch_timer_configure_evtstream`): the highest
//! set bit of half the period, or the bit above it if the bit below it is set. Only bits 0 to 15
//! can be chosen, or 8 to 23 with FEAT_ECV (EVNTIS; DDI 0487K.a, D13.8.2).

/// The chosen counter bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Number of the counter bit.
    pub bit: u32,
    /// Whether the field counts from bit 8 (EVNTIS), which needs FEAT_ECV.
    pub scaled: bool,
    /// Whether the requested period is impossible, so that the nearest possible period replaces it.
    pub clamped: bool,
}

/// In CNTKCTL_EL1 and CNTHCTL_EL2 (E2H=0): turns the event stream on.
const EVNTEN: u64 = 1 << 2;
const EVNTI_SHIFT: u32 = 4;
const EVNTIS: u64 = 1 << 17;
/// The register fields that this module owns: EVNTEN, EVNTDIR, EVNTI, EVNTIS.
pub const FIELDS: u64 = EVNTEN | 1 << 3 | 0xf << EVNTI_SHIFT | EVNTIS;

impl Stream {
    /// Returns the stream nearest to a period of `period_us` microseconds for a counter of
    /// `frequency` Hz, or `None` for a period of 0, which means off.
    #[must_use]
    pub const fn nearest(period_us: u32, frequency: u64, ecv: bool) -> Option<Self> {
        if period_us == 0 {
            return None;
        }
        // Half a period in ticks: the time for which a bit stays high.
        let half = frequency as u128 * period_us as u128 / 2_000_000;
        let bit = if half == 0 {
            0
        } else {
            let top = half.ilog2();
            top + (top > 0 && half >> (top - 1) & 1 == 1) as u32
        };
        let highest = if ecv { 23 } else { 15 };
        let chosen = if bit > highest { highest } else { bit };
        Some(Self {
            bit: chosen,
            scaled: chosen > 15,
            clamped: chosen != bit || half == 0,
        })
    }

    /// Returns the number of ticks between two events.
    #[must_use]
    pub const fn period(self) -> u64 {
        2 << self.bit
    }

    /// Returns the register fields for this stream.
    #[must_use]
    pub const fn fields(self) -> u64 {
        let (field, scale) = if self.scaled {
            (self.bit - 8, EVNTIS)
        } else {
            (self.bit, 0)
        };
        EVNTEN | (field as u64) << EVNTI_SHIFT | scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table() {
        let rows = [
            (19_200_000, false, 10),
            (24_000_000, false, 10),
            (25_000_000, false, 10),
            (31_250_000, false, 11),
            (50_000_000, false, 11),
            (54_000_000, false, 11),
            (62_500_000, false, 12),
            (100_000_000, false, 12),
            (121_875_000, false, 12),
            (1_000_000_000, false, 15),
            (1_000_000_000, true, 16),
            (1_050_000_000, false, 15),
        ];
        for (frequency, ecv, bit) in rows {
            let stream = Stream::nearest(100, frequency, ecv).unwrap();
            assert_eq!(stream.bit, bit, "{frequency} Hz");
        }
    }

    #[test]
    fn fields_and_period() {
        let stream = Stream::nearest(100, 1_000_000_000, true).unwrap();
        assert_eq!(stream.fields(), 1 << 17 | 8 << 4 | 1 << 2);
        assert_eq!(stream.period(), 131_072);
        assert_eq!(Stream::nearest(0, 1, false), None);
        // Bit 15 is the highest bit that the field reaches when it counts from bit 0.
        let stream = Stream::nearest(100, 1_000_000_000, false).unwrap();
        assert_eq!(stream.fields(), 15 << 4 | 1 << 2);
        assert_eq!(stream.period(), 65_536);
    }

    /// DDI 0487K.a, CNTKCTL_EL1: EVNTEN is bit 2, EVNTDIR 3, EVNTI 7 to 4, EVNTIS 17; the other
    /// fields belong to the rest of the kernel.
    #[test]
    fn no_other_field_is_touched() {
        assert_eq!(FIELDS, 0x2_00fc);
        for frequency in [1_000_000, 62_500_000, 1_000_000_000] {
            for period_us in [1, 10, 100, 1000, 10_000] {
                for ecv in [false, true] {
                    let stream = Stream::nearest(period_us, frequency, ecv).unwrap();
                    assert_eq!(stream.fields() & !FIELDS, 0, "{stream:?}");
                }
            }
        }
    }

    #[test]
    fn the_shortest_period_is_two_ticks() {
        let stream = Stream::nearest(1, 2_000_000, false).unwrap();
        assert_eq!((stream.bit, stream.period(), stream.clamped), (0, 2, false));
    }

    #[test]
    fn a_period_that_cannot_be_made_says_so() {
        assert!(
            Stream::nearest(100_000, 1_000_000_000, false)
                .unwrap()
                .clamped
        );
        assert!(Stream::nearest(1, 1000, false).unwrap().clamped);
        assert!(!Stream::nearest(100, 62_500_000, false).unwrap().clamped);
    }
}
