// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes a write of ICC_SGI1R_EL1 (IHI 0069H, 12.2).

/// A request to send an SGI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sgi {
    /// Number of the SGI, 0 to 15.
    pub intid: u32,
    /// IRM: the SGI goes to all PEs except the sender.
    broadcast: bool,
    /// Aff3, Aff2 and Aff1 in the layout of MPIDR_EL1.
    cluster: u64,
    /// The first Aff0 that the target list can name.
    range: u64,
    list: u64,
}

impl Sgi {
    /// Decodes a value of ICC_SGI1R_EL1.
    #[must_use]
    pub const fn decode(value: u64) -> Self {
        let aff1 = value >> 16 & 0xff;
        let aff2 = value >> 32 & 0xff;
        let aff3 = value >> 48 & 0xff;
        Self {
            intid: (value >> 24 & 15) as u32,
            broadcast: value >> 40 & 1 != 0,
            cluster: aff3 << 32 | aff2 << 16 | aff1 << 8,
            range: (value >> 44 & 15) * 16,
            list: value & 0xffff,
        }
    }

    /// Returns the affinities that the request names, whether they exist or not; `None` if the SGI
    /// goes to all PEs except the sender.
    #[must_use]
    pub fn named(&self) -> Option<impl Iterator<Item = u64> + use<>> {
        let (mut left, first) = (self.list, self.cluster | self.range);
        let next = move || {
            let bit = (left != 0).then(|| u64::from(left.trailing_zeros()))?;
            left &= left - 1;
            Some(first + bit)
        };
        (!self.broadcast).then(|| core::iter::from_fn(next))
    }

    /// Whether the PE with affinity `target` (in the layout of MPIDR_EL1) gets the SGI if the PE
    /// with affinity `sender` sends it.
    #[must_use]
    pub const fn targets(&self, target: u64, sender: u64) -> bool {
        if self.broadcast {
            return target != sender;
        }
        let aff0 = target & 0xff;
        target & !0xff == self.cluster
            && aff0 >= self.range
            && aff0 < self.range + 16
            && self.list >> (aff0 - self.range) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_broadcast_spares_the_sender() {
        let sgi = Sgi::decode(1 << 40 | 9 << 24);
        assert_eq!(sgi.intid, 9);
        assert!(sgi.targets(1, 0));
        assert!(!sgi.targets(1, 1));
    }

    #[test]
    fn who_is_named_is_a_target() {
        let sgi = Sgi::decode(2 << 44 | 3 << 16 | 0x8001);
        let named: Vec<u64> = sgi.named().unwrap().collect();
        assert_eq!(named, [0x320, 0x32f]);
        assert!(named.iter().all(|&mpidr| sgi.targets(mpidr, 0)));
        assert!(Sgi::decode(1 << 40).named().is_none());
    }

    proptest! {
        #[test]
        fn one_bit_is_one_target(aff0 in 0u64..256, aff1 in 0u64..256, aff2 in 0u64..256,
            aff3 in 0u64..256, other in any::<u64>()) {
            let mpidr = aff3 << 32 | aff2 << 16 | aff1 << 8 | aff0;
            let value = aff3 << 48 | (aff0 >> 4) << 44 | aff2 << 32 | aff1 << 16 | 1 << (aff0 & 15);
            let other = other & 0xff_00ff_ffff;
            prop_assert!(Sgi::decode(value).targets(mpidr, 0));
            prop_assert!(Sgi::decode(value).named().unwrap().eq([mpidr]));
            prop_assert_eq!(Sgi::decode(value).targets(other, 0), other == mpidr);
        }
    }
}
