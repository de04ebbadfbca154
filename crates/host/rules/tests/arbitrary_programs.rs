// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that the rules never panic, whatever the CPUs execute.

use proptest::prelude::*;
use rules::decode::{access_alignment, decode_before, is_access};
use rules::gic::{Block, Frame, Mapped};
use rules::{Access, CheckedCpu, ExecutedOperation, Finding, Machine, Place, RULES, Shared};

/// Memory in which each word contains its own address. Also checks that every finding has the name of a known rule.
struct Echo;

impl Machine for Echo {
    fn read(&self, physical: u64) -> Option<u64> {
        Some(physical | 3)
    }

    fn locate(&self, address: u64) -> Option<u64> {
        Some(address)
    }

    fn find(&self, finding: &Finding) {
        assert!(RULES.iter().any(|rule| rule.name == finding.rule));
        assert_eq!(Finding::parse(&finding.to_string()).as_ref(), Some(finding));
    }
}

const FRAMES: [Frame; 6] = [
    Frame::Distributor,
    Frame::Redistributor(0x080a_0000),
    Frame::Version2(Block::Distributor),
    Frame::Version2(Block::Interface),
    Frame::Version2(Block::Control),
    Frame::Version2(Block::GuestInterface),
];

/// Generates any word, or one of the system instructions, which would be rare among arbitrary words.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        any::<u32>().prop_map(|word| 0xd500_0000 | word & 0x3f_ffff),
        Just(0xd69f_03e0),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

    #[test]
    fn anything_can_be_executed(
        program in prop::collection::vec((0u16..2, 0u8..4, word(), any::<u64>(), 0u8..8), 1..400),
    ) {
        let shared = Shared::new(Echo);
        let mut cpus = [CheckedCpu::new(0), CheckedCpu::new(1)];
        for (n, (number, level, word, value, what)) in program.into_iter().enumerate() {
            let cpu = &mut cpus[usize::from(number)];
            let place = Place { level, pc: 4 * n as u64 };
            if let Some(operation) = decode_before(word, [word]) {
                cpu.note_instruction(&shared, ExecutedOperation { place, operation }, (what > 1).then_some(value));
                cpu.note_read_value(&shared, value);
            }
            if is_access(word) || what == 2 {
                cpu.note_access(&shared, &Access {
                    place,
                    address: value,
                    physical: (what > 2).then_some(value),
                    gic: (what == 1).then_some(Mapped {
                        frame: FRAMES[value as usize % FRAMES.len()],
                        offset: value >> 8 & 0xffff,
                        value,
                    }),
                    size: (word >> 30) as u8,
                    store: value & 1 == 0,
                    alignment: access_alignment(word),
                    exclusive: what == 3,
                    whole: what == 2,
                });
            }
            if what == 7 {
                cpu.note_fetch(&shared, place, value, 4);
            }
            if what == 0 && value & 1 == 0 {
                if value & 2 == 0 {
                    cpu.note_failed_access(&shared, place.pc, value);
                }
                cpu.note_exception(&shared, place.pc, level);
            } else if what == 0 {
                cpu.note_interrupt(&shared, place.pc, level);
            }
        }
    }
}
