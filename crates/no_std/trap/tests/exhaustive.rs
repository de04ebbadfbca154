// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests ICC_SGI1R_EL1 with every range and bit of the target list against every Aff0, and with the
//! bits of every other field: together these cover the register's whole meaning, since the fields do not
//! overlap.

use trap::sgi::Sgi;

#[test]
fn every_target_list_bit_of_every_range_names_one_pe() {
    for range in 0..16_u64 {
        for bit in 0..16_u64 {
            let sgi = Sgi::decode(range << 44 | 1 << bit);
            for aff0 in 0..256 {
                assert_eq!(sgi.targets(aff0, 0), aff0 == range * 16 + bit);
            }
        }
        let (all, none) = (Sgi::decode(range << 44 | 0xffff), Sgi::decode(range << 44));
        for aff0 in 0..256 {
            assert_eq!(all.targets(aff0, 0), aff0 / 16 == range);
            assert!(!none.targets(aff0, 0));
        }
    }
}

#[test]
fn every_bit_of_a_cluster_is_compared() {
    // The positions of Aff1, Aff2 and Aff3 in the value and in MPIDR_EL1.
    for (in_value, in_mpidr) in [(16, 8), (32, 16), (48, 32)] {
        for bit in 0..8 {
            let sgi = Sgi::decode(1 << (in_value + bit) | 1);
            let only = 1_u64 << (in_mpidr + bit);
            assert!(sgi.targets(only, 0));
            for other in (8..24).chain(32..40) {
                assert!(!sgi.targets(only ^ 1 << other, 0));
            }
        }
    }
}

#[test]
fn a_broadcast_goes_to_every_pe_but_its_sender() {
    for list in [0, 1, 0xffff] {
        let sgi = Sgi::decode(1 << 40 | list);
        for cpu in 0..64 {
            let target = (cpu / 4) << 8 | (cpu % 4);
            assert_eq!(sgi.targets(target, 0x102), target != 0x102);
        }
    }
}

#[test]
fn the_intid_is_four_bits_and_nothing_else_is() {
    for intid in 0..16 {
        for rest in [0, !(0xf << 24)] {
            assert_eq!(Sgi::decode(u64::from(intid) << 24 | rest).intid, intid);
        }
    }
}
