// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the distributor, the redistributor and list registers against tables from IHI 0069H: what
//! each word reads after reset, what a write of all ones to it changes anywhere in the frames, and
//! whether a CPU has to check its list again.

use vgic::{Access, Distributor, INTIDS, ListRegister, PRIVATE, Private, Redistributor};

const ONES: u64 = u32::MAX as u64;

/// A device with register frames.
trait Frames {
    /// Bytes of the device's frames.
    const SIZE: u64;

    /// Returns the value read, and whether vCPUs have to sync after a write.
    fn access(&mut self, access: Access) -> (u64, bool);

    fn read_part(&mut self, offset: u64, size: u32) -> u64 {
        let write = None;
        let (value, followed) = self.access(Access {
            offset,
            size,
            write,
        });
        assert!(!followed, "a read of {offset:#x} changes nothing");
        value
    }

    fn write_part(&mut self, offset: u64, size: u32, value: u64) -> bool {
        let write = Some(value);
        let (read, followed) = self.access(Access {
            offset,
            size,
            write,
        });
        assert_eq!(read, 0, "a write to {offset:#x} answers nothing");
        followed
    }

    fn read(&mut self, offset: u64) -> u64 {
        self.read_part(offset, 4)
    }

    fn write(&mut self, offset: u64, value: u64) -> bool {
        self.write_part(offset, 4, value)
    }

    /// Returns every word that is not 0.
    fn words(&mut self) -> Vec<(u64, u64)> {
        let words = (0..Self::SIZE).step_by(4);
        let words = words.map(|offset| (offset, self.read(offset)));
        words.filter(|&(_, value)| value != 0).collect()
    }
}

impl Frames for Distributor {
    const SIZE: u64 = 0x1_0000;

    fn access(&mut self, access: Access) -> (u64, bool) {
        Self::access(self, access)
    }
}

/// A redistributor with its registers.
#[derive(Default)]
struct Own {
    private: Private,
    lines: u32,
}

impl Frames for Own {
    const SIZE: u64 = 0x2_0000;

    fn access(&mut self, access: Access) -> (u64, bool) {
        let frames = Redistributor {
            private: &self.private,
            affinity: 0x1_0002_0304,
            number: 5,
            last: true,
            lines: self.lines,
        };
        frames.access(access)
    }
}

/// Writes ones to each word of new frames. After each write, only the words in `reset` may be
/// nonzero, except the words that `does` names for that offset.
fn check<F: Frames>(
    new: impl Fn() -> F,
    reset: &[(u64, u64)],
    does: impl Fn(u64) -> (Vec<(u64, u64)>, bool),
) {
    assert_eq!(new().words(), reset);
    let mut tried = 0;
    for offset in (0..F::SIZE).step_by(if cfg!(miri) { 68 } else { 4 }) {
        let (changes, followed) = does(offset);
        let mut frames = new();
        assert_eq!(frames.write(offset, ONES), followed, "{offset:#x}");
        let mut expected: std::collections::BTreeMap<u64, u64> = reset.iter().copied().collect();
        expected.extend(changes.iter().copied());
        // Reads all words if a change or a sync is expected; otherwise only the written word and
        // the words that are not 0 after reset.
        if changes.is_empty() && !followed {
            for at in [offset].into_iter().chain(reset.iter().map(|word| word.0)) {
                let value = expected.get(&at).copied().unwrap_or(0);
                assert_eq!(frames.read(at), value, "{at:#x} after {offset:#x}");
            }
            continue;
        }
        tried += 1;
        let expected: Vec<(u64, u64)> = expected.into_iter().collect();
        assert_eq!(frames.words(), expected, "after {offset:#x}");
    }
    assert!(tried > 8);
}

#[test]
fn the_words_of_the_distributor() {
    // One security state, affinity routing; 64 SPIs, 10-bit INTIDs, A3V, No1N; GICv3.
    let reset = [
        (0x000, 0x50),
        (0x004, 0x0348_0002),
        (0x084, ONES),
        (0x088, ONES),
        (0xffe8, 0x3b),
    ];
    check(
        || Distributor::new(2),
        &reset,
        |offset| match offset {
            // No Group 0.
            0x000 => (vec![(0x000, 0x52)], true),
            // SETSPI and CLRSPI of INTID 1023.
            0x040 | 0x048 => (vec![], true),
            0x104 | 0x108 | 0x204 | 0x208 | 0x304 | 0x308 => {
                (vec![(offset, ONES), (offset + 0x80, ONES)], true)
            }
            0x184 | 0x188 | 0x284 | 0x288 | 0x384 | 0x388 => (vec![], true),
            // The registers of SGIs and PPIs are in the redistributors.
            0x400..0x420 | 0x6000..0x6100 => (vec![], true),
            0x420..0x460 => (vec![(offset, ONES)], true),
            0xc08..0xc18 => (vec![(offset, 0xaaaa_aaaa)], false),
            0x6100..0x6300 if offset % 8 == 0 => (vec![(offset, 0x80ff_ffff)], true),
            0x6100..0x6300 => (vec![(offset, 0xff)], true),
            _ => (vec![], false),
        },
    );
}

#[test]
fn the_words_of_a_redistributor() {
    let reset = [
        (0x0008, 0x510),
        (0x000c, 0x0102_0304),
        (0x0014, 0b110),
        (0xffe8, 0x3b),
        (0x1_0080, ONES),
        (0x1_0c00, 0xaaaa_aaaa),
    ];
    check(Own::default, &reset, |offset| match offset {
        0x1_0100 | 0x1_0200 | 0x1_0300 => (vec![(offset, ONES), (offset + 0x80, ONES)], true),
        0x1_0180 | 0x1_0280 | 0x1_0380 => (vec![], true),
        0x1_0400..0x1_0420 => (vec![(offset, ONES)], true),
        0x1_0c04 => (vec![(offset, 0xaaaa_aaaa)], false),
        _ => (vec![], false),
    });
}

/// Checks pairs of registers. One register sets bits, the other clears them, and both read them.
/// Each bit is set and cleared by itself, with all other bits 0 and with all other bits 1.
fn check_pair<F: Frames>(new: impl Fn() -> F, words: &[u64]) {
    for &set in words {
        let clear = set + 0x80;
        for bit in (0..32).map(|n| 1 << n) {
            let mut frames = new();
            frames.write(set, bit);
            assert_eq!((frames.read(set), frames.read(clear)), (bit, bit));
            frames.write(set, ONES);
            frames.write(clear, bit);
            assert_eq!(frames.read(set), ONES - bit, "{set:#x}");
            frames.write(clear, 0);
            frames.write(set, 0);
            assert_eq!(frames.read(clear), ONES - bit, "{set:#x}");
        }
    }
}

#[test]
fn registers_that_set_and_clear_do_so_by_bit() {
    let distributor = [0x104, 0x108, 0x204, 0x208, 0x304, 0x308];
    check_pair(|| Distributor::new(2), &distributor);
    check_pair(Own::default, &[0x1_0100, 0x1_0200, 0x1_0300]);
}

#[test]
fn configuration_is_overwritten_and_groups_are_not() {
    let mut distributor = Distributor::new(2);
    for (offset, kept, ones) in [
        (0x084, 0, ONES),
        (0x088, 0, ONES),
        (0xc08, 0xaaaa_aaaa, 0),
        (0xc14, 0xaaaa_aaaa, 0),
    ] {
        for value in [0x8001_f00a, 0x7ffe_0ff5, 0, ONES] {
            distributor.write(offset, value);
            assert_eq!(distributor.read(offset), value & kept | ones, "{offset:#x}");
        }
    }
    let neighbours = [0x084, 0x088, 0xc08, 0xc0c, 0xc10, 0xc14].map(|at| distributor.read(at));
    assert_eq!(neighbours, [ONES, ONES, 0xaaaa_aaaa, 0, 0, 0xaaaa_aaaa]);
    let mut own = Own::default();
    own.write(0x1_0080, 0x8001_f00a);
    own.write(0x1_0080, 0x7ffe_0ff5);
    own.write(0x1_0c04, ONES);
    own.write(0x1_0c04, 0x8000_000f);
    assert_eq!(
        (own.read(0x1_0080), own.read(0x1_0c04)),
        (ONES, 0x8000_000a)
    );
}

#[test]
fn spis_are_set_and_cleared_by_intid() {
    for intid in (0..200).chain([INTIDS.into(), 0x3fe, 0x3ff]) {
        let mut distributor = Distributor::new(2);
        assert!(distributor.write(0x040, intid));
        let pending = distributor.read(0x204) | distributor.read(0x208) << 32;
        let bit = match intid {
            32..96 => 1 << (intid - 32),
            _ => 0,
        };
        assert_eq!(pending, bit, "{intid}");
        for word in [0x204, 0x208] {
            distributor.write(word, ONES);
        }
        // Bits above the field, which is 12:0, are ignored.
        assert!(distributor.write(0x048, intid | 0xffff_e000));
        let pending = distributor.read(0x204) | distributor.read(0x208) << 32;
        assert_eq!(pending, !bit, "{intid}");
    }
}

/// Checks the register of `size` bytes at `start`, which holds what is written within `mask`: every
/// aligned part of it reads and writes its own bytes, and no others.
fn check_parts<F: Frames>(mut frames: F, start: u64, size: u32, mask: u64) {
    let ones = u64::MAX >> (64 - 8 * size);
    for part in [1, 2, 4, 8].into_iter().filter(|&part| part <= size) {
        for at in (0..size).step_by(part as usize) {
            let (offset, shift) = (start + u64::from(at), 8 * at);
            let within = (u64::MAX >> (64 - 8 * part)) << shift;
            frames.write_part(start, size, ones);
            assert!(frames.write_part(offset, part, 0x8877_6655_4433_2211));
            let written = (0x8877_6655_4433_2211 << shift & within | ones & !within) & mask;
            assert_eq!(frames.read_part(start, size), written, "{offset:#x} {part}");
            let own = (written & within) >> shift;
            assert_eq!(frames.read_part(offset, part), own, "{offset:#x} {part}");
            assert_eq!(frames.read_part(start - 8, size), 0);
            assert_eq!(frames.read_part(start + 8, size), 0);
        }
    }
    // An unaligned or larger access does not reach the register.
    frames.write_part(start, size, ones);
    let wrong = [(1, 2), (1, 4), (2, 4), (3, 4), (1, 8), (4, 8)];
    let larger = (size < 8).then_some((0, 8));
    for (at, part) in wrong.into_iter().chain(larger) {
        assert_eq!(frames.read_part(start + at, part), 0, "{at} {part}");
        assert!(!frames.write_part(start + at, part, 0), "{at} {part}");
    }
    assert_eq!(frames.read_part(start, size), mask);
}

#[test]
fn priorities_and_routes_by_parts() {
    check_parts(Distributor::new(2), 0x428, 4, ONES);
    check_parts(Distributor::new(2), 0x6128, 8, 0xff_80ff_ffff);
    check_parts(Own::default(), 0x1_0408, 4, ONES);
}

#[test]
fn other_registers_take_whole_words() {
    for size in [1, 2, 8] {
        let mut distributor = Distributor::new(2);
        for offset in [0x104, 0x204, 0x304, 0xc08] {
            assert!(!distributor.write_part(offset, size, ONES), "{offset:#x}");
            assert_eq!(distributor.read(offset), 0, "{offset:#x}");
            distributor.write(offset, ONES);
            assert_eq!(distributor.read_part(offset, size), 0, "{offset:#x}");
        }
        let mut own = Own::default();
        for offset in [0x100, 0x200, 0x300, 0xc04].map(|offset| 0x1_0000 + offset) {
            assert!(!own.write_part(offset, size, ONES), "{offset:#x}");
            assert_eq!(own.read(offset), 0, "{offset:#x}");
            own.write(offset, ONES);
            assert_eq!(own.read_part(offset, size), 0, "{offset:#x}");
        }
    }
}

#[test]
fn a_line_that_is_high_is_pending_whatever_is_written() {
    let mut own = Own {
        lines: 1 << 27,
        ..Own::default()
    };
    own.write(0x1_0280, ONES);
    assert_eq!((own.read(0x1_0200), own.read(0x1_0280)), (1 << 27, 1 << 27));
    own.write(0x1_0200, 1 << 3);
    assert_eq!(own.read(0x1_0280), 1 << 27 | 1 << 3);
    own.lines = 0;
    assert_eq!(own.read(0x1_0200), 1 << 3);
    // An INTID that is pending for several reasons reads as pending.
    own.lines = 1 << 3;
    own.private.publish(1 << 3, 1 << 4);
    own.private.activate(1 << 4);
    assert_eq!((own.read(0x1_0200), own.read(0x1_0300)), (1 << 3, 1 << 4));
    own.lines = 0;
    assert_eq!(own.read(0x1_0280), 1 << 3);
}

#[test]
fn what_the_owner_published_is_read_until_it_is_taken_back() {
    let mut own = Own::default();
    own.private.publish(0b1100, 0b0110);
    own.private.set_pending(0);
    own.private.activate(1 << 4);
    for (set, read) in [(0x1_0200, 0b1101), (0x1_0300, 0b1_0110)] {
        assert_eq!((own.read(set), own.read(set + 0x80)), (read, read));
    }
    own.write(0x1_0280, 0b0100);
    own.write(0x1_0380, 0b1_0100);
    assert_eq!((own.read(0x1_0200), own.read(0x1_0300)), (0b1001, 0b0010));
    assert_eq!(own.private.take_requests(), [0b0100, 0b1_0100, 0]);
    assert_eq!(own.private.take_requests(), [0; 3]);
}

#[test]
fn a_redistributor_names_its_cpu_wakes_at_once_and_enables_what_is_ready() {
    let mut own = Own::default();
    assert_eq!(own.read_part(8, 8), 0x0102_0304 << 32 | 5 << 8 | 1 << 4);
    own.write(0x14, 0);
    assert_eq!(own.read(0x14), 0);
    own.write(0x1_0100, 0b101);
    own.write(0x1_0180, 0b001);
    own.write_part(0x1_0402, 1, 0xa0);
    let ready = [true, false].map(|forward| (own.private.refresh(forward), own.private.ready(2)));
    assert_eq!(ready, [(0b100, Some(0xa0)), (0, None)]);
}

#[test]
fn what_is_pending_is_taken_once_and_only_what_was_asked_for() {
    let private = Private::new();
    for intid in [1, 5, PRIVATE - 1] {
        private.set_pending(intid);
    }
    // The owner gives INTID 1 back while it is pending again.
    private.give_back(1 << 1);
    assert_eq!(private.take_pending(1 << 5 | 1 << 6), 1 << 5);
    assert_eq!(private.take_pending(u32::MAX), 1 << 31 | 1 << 1);
    assert_eq!((private.pending(), private.take_pending(u32::MAX)), (0, 0));
}

#[test]
fn dumps_name_the_registers() {
    let mut own = Own::default();
    for (offset, value) in [(0x1_0100, 0x42), (0x1_0200, 0x24)] {
        own.write(offset, value);
    }
    let shown = own.private.to_string();
    assert_eq!(shown, "ISENABLER0 0x00000042  ISPENDR0 0x00000024");
}

/// ICH_LR<n>_EL2: State 63:62, HW 61, Group 60, Priority 55:48, pINTID 44:32 (where HW
/// is 0: EOI 41), vINTID 31:0.
#[test]
fn fields_of_a_list_register() {
    let software = ListRegister::pending(0x1234, 0xa5, None);
    let hardware = ListRegister::pending(27, 0xa5, Some(0x3ff));
    assert_eq!(software.0, 0x50a5_0000_0000_1234);
    assert_eq!(hardware.0, 0x70a5_03ff_0000_001b);
    for (one, hw) in [(software, None), (hardware, Some(0x3ff))] {
        assert_eq!((one.priority(), one.hw()), (0xa5, hw));
        assert!(one.is_pending() && !one.is_active());
        let active = one.with_active().without_pending();
        assert!(active.is_active() && !active.is_pending());
        assert_eq!(active.0, one.0 ^ 3 << 62);
        // If one state is removed, the other is left; if both are, nothing is.
        assert_eq!(active.with_pending().0, one.0 | 3 << 62);
        assert_eq!(active.with_pending().without_active(), one);
        assert_eq!(one.without_pending(), ListRegister::EMPTY);
        assert_eq!(active.without_active(), ListRegister::EMPTY);
        assert_eq!(one.with_priority(0x5a).priority(), 0x5a);
        assert_eq!(one.with_priority(0x5a).with_priority(0xa5), one);
    }
    assert_eq!((software.intid(), hardware.intid()), (0x1234, 27));
    // A hardware interrupt is not pending and active at once; a software interrupt may be.
    assert_eq!(software.with_active().0 >> 62, 0b11);
    assert_eq!(hardware.with_active().0 >> 62, 0b10);
    assert_eq!(software.with_end_notice().0, software.0 | 1 << 41);
    assert_eq!(hardware.with_end_notice(), hardware);
}

#[test]
fn an_end_is_told_by_a_software_interrupt_without_a_state() {
    let told = ListRegister::pending(40, 0, None).with_end_notice();
    let ended = ListRegister(told.0 & !(1 << 62));
    assert!(ended.has_ended());
    for (bit, why) in [(63, "active"), (62, "pending"), (61, "hardware")] {
        assert!(!ListRegister(ended.0 | 1 << bit).has_ended(), "{why}");
    }
    assert!(!ListRegister(ended.0 & !(1 << 41)).has_ended() && !ListRegister::EMPTY.has_ended());
}

#[test]
fn of_two_arrivals_one_interrupt_is_left() {
    let software = ListRegister::pending(27, 0x80, None);
    let hardware = ListRegister::pending(27, 0x80, Some(27));
    let active = software.with_active().without_pending();
    assert_eq!(hardware.merged_with(hardware), hardware);
    assert_eq!(software.merged_with(software), software);
    // A level joins a state that software set: the end of that state has to be reported.
    assert_eq!(software.merged_with(hardware), software.with_end_notice());
    assert_eq!(hardware.merged_with(software), software.with_end_notice());
    assert_eq!(active.merged_with(hardware), active.with_end_notice());
    let handled = hardware.with_active();
    assert_eq!(
        handled.merged_with(software),
        software.with_active().with_end_notice()
    );
    // The new interrupt's priority wins; the request to signal an end stays.
    let urgent = ListRegister::pending(27, 0x10, None);
    assert_eq!(active.merged_with(urgent), urgent.with_active());
    assert_eq!(
        active.with_end_notice().merged_with(urgent),
        urgent.with_active().with_end_notice()
    );
}
