// SPDX-License-Identifier: MIT OR Apache-2.0
//! SPIs, in the list that holds them and in the distributor.

use vgic::{Access, Bank, Distributor, List, ListRegister, Vcpu};

use super::{ACTIVE, FIRST, PENDING, Registers, read, word, write};

const SECOND: Vcpu = Vcpu {
    number: 1,
    affinity: 0x100,
};

/// Routes SPI `intid` to an affinity.
fn route(distributor: &mut Distributor, intid: u64, affinity: u64) {
    let access = Access {
        size: 8,
        ..word(0x6000 + 8 * intid, Some(affinity))
    };
    let _ = distributor.access(access);
}

fn set_priority(distributor: &mut Distributor, intid: u64, priority: u64) {
    let access = Access {
        size: 1,
        ..word(0x400 + intid, Some(priority))
    };
    let _ = distributor.access(access);
}

/// A distributor whose SPIs 32 to 63 are enabled for the second vCPU.
fn distributor() -> Distributor {
    let mut distributor = Distributor::new(2);
    write(&mut distributor, 0x000, 2);
    write(&mut distributor, 0x104, u32::MAX.into());
    for intid in 32..64 {
        route(&mut distributor, intid, 0x100);
    }
    distributor
}

#[test]
fn an_spi_that_is_pending_twice_reads_as_pending() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(4));
    write(&mut distributor, 0x204, 1 << 8);
    assert!(!list.sync_spis(&mut bank, &mut distributor, SECOND));
    assert_eq!(bank.used(), [(0, 40, PENDING)]);
    // The SPI is pending in the list and, after another write, in the distributor.
    write(&mut distributor, 0x204, 1 << 8);
    assert_eq!(read(&mut distributor, 0x204), 1 << 8);
    assert_eq!(read(&mut distributor, 0x284), 1 << 8);
    bank.acknowledge(0);
    write(&mut distributor, 0x304, 1 << 8);
    list.publish_spis(&bank, &mut distributor, SECOND);
    assert_eq!(read(&mut distributor, 0x304), 1 << 8);
    assert_eq!(read(&mut distributor, 0x384), 1 << 8);
    // The list publishes only the state that it has.
    write(&mut distributor, 0x284, 1 << 8);
    assert_eq!(read(&mut distributor, 0x204), 0);
}

#[test]
fn the_most_urgent_spis_are_listed_with_their_priorities() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(2));
    for (intid, priority) in [(33, 0xa0), (34, 0x20), (35, 0x60), (36, 0x60)] {
        set_priority(&mut distributor, intid, priority);
        write(&mut distributor, 0x040, intid);
    }
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.priorities(), [(34, 0x20), (35, 0x60)]);
    assert!(bank.asked.refill);
    assert_eq!(read(&mut distributor, 0x204), 0b1_1110);
    // The most urgent SPI is handled; the next one gets its register.
    bank.acknowledge(0);
    bank.end(0);
    list.refill(&mut bank);
    assert_eq!(bank.used(), [(0, 36, PENDING), (1, 35, PENDING)]);
    // The waiting SPI becomes the most urgent and takes the place of the least urgent.
    set_priority(&mut distributor, 33, 0x10);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.used(), [(0, 33, PENDING), (1, 35, PENDING)]);
    assert!(bank.asked.refill);
    bank.acknowledge(0);
    bank.end(0);
    list.refill(&mut bank);
    assert_eq!(bank.used(), [(0, 36, PENDING), (1, 35, PENDING)]);
    assert!(!bank.asked.refill);
}

#[test]
fn an_spi_of_any_cpu_is_of_the_first_and_its_active_state_is_the_guests() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(4));
    route(&mut distributor, 50, 1 << 31 | 0x100);
    write(&mut distributor, 0x040, 50);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.used(), []);
    list.sync_spis(&mut bank, &mut distributor, FIRST);
    assert_eq!(bank.used(), [(0, 50, PENDING)]);
    bank.acknowledge(0);
    let state = list.state(&bank, 50);
    assert!(state.active && !state.pending);
    list.sync_spis(&mut bank, &mut distributor, FIRST);
    assert_eq!(read(&mut distributor, 0x304), 1 << 18);
    assert_eq!(read(&mut distributor, 0x204), 0);
    // The SPI is pending again meanwhile: its end has to be signalled, and then it is listed again.
    write(&mut distributor, 0x040, 50);
    list.sync_spis(&mut bank, &mut distributor, FIRST);
    assert_eq!(bank.used(), [(0, 50, PENDING | ACTIVE)]);
    bank.end(0);
    assert_eq!(bank.used(), [(0, 50, PENDING)]);
}

#[test]
fn one_that_waits_for_another_vcpu_has_its_end_told() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(4));
    write(&mut distributor, 0x040, 40);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    bank.acknowledge(0);
    // The SPI is routed to the first vCPU, and is pending again.
    route(&mut distributor, 40, 0);
    write(&mut distributor, 0x040, 40);
    assert!(!list.sync_spis(&mut bank, &mut distributor, SECOND));
    assert_eq!(bank.used(), [(0, 40, ACTIVE)]);
    assert!(bank.values[0].0 >> 41 & 1 != 0, "the end is to be told");
    bank.end(0);
    assert_eq!(bank.empty(), 0b1110);
    assert!(
        list.sync_spis(&mut bank, &mut distributor, SECOND),
        "the first may go on"
    );
    assert_eq!(
        (bank.empty(), bank.values[0]),
        (0b1111, ListRegister::EMPTY)
    );
    assert!(!distributor.release(SECOND));
}

#[test]
fn a_list_that_is_given_up_holds_nothing() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(1));
    write(&mut distributor, 0x204, 0b111);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.used().len(), 1);
    let mut given = Vec::new();
    list.drain(&mut bank, |one| given.push(one.intid()));
    given.sort_unstable();
    assert_eq!(given, [32, 33, 34]);
    assert!(bank.used().is_empty() && !bank.asked.refill);
    for intid in [32, 34] {
        distributor.give_back(intid);
    }
    assert!(distributor.release(SECOND));
    assert_eq!(read(&mut distributor, 0x204), 0b101);
    // The vCPU holds no SPI any more, so it has none to release.
    assert!(!distributor.release(SECOND));
    let other = Vcpu {
        number: 0,
        affinity: 0x100,
    };
    let mut list = List::new();
    list.sync_spis(&mut bank, &mut distributor, other);
    assert_eq!(bank.used(), [(0, 32, PENDING)]);
}

#[test]
fn requests_to_one_vcpu_stay_when_another_lets_go() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(4));
    let (mut own, mut registers) = (List::new(), Registers::new(4));
    for intid in [33, 34] {
        route(&mut distributor, intid, 0);
    }
    write(&mut distributor, 0x204, 0b1111);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    own.sync_spis(&mut registers, &mut distributor, FIRST);
    assert_eq!(registers.used(), [(0, 33, PENDING), (1, 34, PENDING)]);
    registers.acknowledge(1);
    // The pending state of two SPIs and the active state of two further SPIs are taken back.
    write(&mut distributor, 0x284, 0b0011);
    write(&mut distributor, 0x384, 0b1100);
    list.drain(&mut bank, |_| {});
    assert!(!distributor.release(SECOND));
    own.sync_spis(&mut registers, &mut distributor, FIRST);
    assert_eq!(registers.used(), []);
    // SPIs that no list holds leave no request to take back their state.
    write(&mut distributor, 0x384, 0b1001);
    // The second vCPU has no requests left: new SPIs are listed, and stay.
    write(&mut distributor, 0x204, 0b1001);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.used(), [(0, 32, PENDING), (1, 35, PENDING)]);
    for n in [0, 1] {
        bank.acknowledge(n);
    }
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.used(), [(0, 32, ACTIVE), (1, 35, ACTIVE)]);
}

#[test]
fn what_cannot_be_delivered_leaves_the_list_and_comes_back() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(4));
    write(&mut distributor, 0x204, 1 << 8);
    // Forwarding, the enable and the route of SPI 40.
    for (offset, off, on) in [
        (0x000, 0, 2),
        (0x184, 1 << 8, 0),
        (0x6000 + 8 * 40, 0, 0x100),
    ] {
        let on_at = if offset == 0x184 {
            (0x104, 1 << 8)
        } else {
            (offset, on)
        };
        for (offset, value, used) in [(offset, off, false), (on_at.0, on_at.1, true)] {
            write(&mut distributor, offset, value);
            list.sync_spis(&mut bank, &mut distributor, SECOND);
            assert_eq!(!bank.used().is_empty(), used, "{offset:#x}");
            assert_eq!(read(&mut distributor, 0x204), 1 << 8, "{offset:#x}");
        }
    }
    // A cleared interrupt is gone.
    write(&mut distributor, 0x284, 1 << 8);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!((bank.used(), read(&mut distributor, 0x204)), (vec![], 0));
}
