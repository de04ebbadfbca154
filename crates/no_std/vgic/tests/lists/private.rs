// SPDX-License-Identifier: MIT OR Apache-2.0
//! SGIs and PPIs, and where they are listed.

use vgic::{Fault, List, ListRegister, State};

use super::{ACTIVE, PENDING, Registers, private, set};

#[test]
fn an_sgi_takes_the_register_that_it_had() {
    let (mut list, mut bank) = (List::new(), Registers::new(4));
    for intid in [3, 7] {
        list.inject(&mut bank, intid, 0x80, None);
    }
    assert_eq!(bank.used(), [(0, 3, PENDING), (1, 7, PENDING)]);
    for n in [0, 1] {
        bank.acknowledge(n);
        bank.end(n);
    }
    // Registers are slow to read.
    bank.reads.set(0);
    list.inject(&mut bank, 7, 0x80, None);
    assert_eq!(bank.reads.get(), 0);
    assert_eq!(bank.used(), [(1, 7, PENDING)]);
    let [three, seven] = [3, 7].map(|intid| ListRegister::pending(intid, 0x80, None));
    list.expect_arrival(7, Some(seven));
    list.expect_arrival(3, Some(three));
    assert_eq!(list.first_arrival(3), Some(three));
    for (intid, why) in [
        (7, "it goes to another register"),
        (4, "nothing is expected"),
        (35, "it is an SPI"),
        (1023, "there is no interrupt"),
    ] {
        assert_eq!(list.first_arrival(intid), None, "{why}");
    }
    assert!(list.arrive(&mut bank, 3));
    assert!(!list.arrive(&mut bank, 3), "its register is in use");
    assert!(!list.arrive(&mut bank, 4), "nothing is expected");
    assert_eq!(bank.used(), [(0, 3, PENDING), (1, 7, PENDING)]);
    // An INTID does not arrive directly while other INTIDs wait for a register.
    for intid in 8..12 {
        list.inject(&mut bank, intid, 0x80, None);
    }
    bank.acknowledge(0);
    bank.end(0);
    assert!(bank.asked.refill && !list.arrive(&mut bank, 3));
    assert_eq!(list.first_arrival(3), None, "others wait");
    list.expect_arrival(3, None);
    list.refill(&mut bank);
    assert!(!list.arrive(&mut bank, 3));
}

#[test]
fn what_is_disabled_goes_back_and_what_a_line_made_does_not() {
    let (private, mut list, mut bank) = (private(), List::new(), Registers::new(4));
    list.inject(&mut bank, 5, 0x80, None);
    list.inject(&mut bank, 27, 0x80, Some(27));
    assert_eq!(list.sync(&mut bank, &private, true), 1 << 5 | 1 << 27);
    assert_eq!(list.sync(&mut bank, &private, false), 0);
    assert_eq!((bank.used(), private.pending()), (vec![], 1 << 5));
    private.activate(1 << 9);
    assert_eq!(list.sync(&mut bank, &private, true), 1 << 5 | 1 << 9);
    let states = [5, 9].map(|intid| list.state(&bank, intid));
    let state = |pending, active| State { pending, active };
    assert_eq!(states, [state(true, false), state(false, true)]);
    assert_eq!(private.pending(), 0);
}

#[test]
fn what_has_a_new_priority_counts_with_it() {
    let (private, mut list, mut bank) = (private(), List::new(), Registers::new(2));
    for intid in [1, 2, 3] {
        private.set_pending(intid);
    }
    list.sync(&mut bank, &private, true);
    assert_eq!(bank.used(), [(0, 1, PENDING), (1, 2, PENDING)]);
    bank.acknowledge(0);
    set(&private, 0x1_0400, 0x2040_6000);
    list.sync(&mut bank, &private, true);
    // The active interrupt keeps its priority; INTID 3 is more urgent than INTID 2.
    assert_eq!(bank.priorities(), [(1, 0), (3, 0x20)]);
    // A sync after no change writes nothing.
    bank.writes = 0;
    list.sync(&mut bank, &private, true);
    assert_eq!(bank.writes, 0);
}

#[test]
fn only_lines_that_are_low_are_taken_back() {
    let (mut list, mut bank) = (List::new(), Registers::new(2));
    list.inject(&mut bank, 27, 0x80, Some(27));
    list.inject(&mut bank, 28, 0x80, None);
    list.inject(&mut bank, 30, 0x90, Some(30));
    assert_eq!(list.lower(&mut bank, 0), 0);
    // INTID 28 was set by software; INTID 30 waits in the queue.
    assert_eq!(list.lower(&mut bank, 1 << 28 | 1 << 30 | 1 << 31), 1 << 30);
    assert!(!bank.asked.refill);
    bank.acknowledge(0);
    assert_eq!(list.lower(&mut bank, 1 << 27), 0, "it is being handled");
    assert_eq!(bank.used(), [(0, 27, ACTIVE), (1, 28, PENDING)]);
    assert!(list.deliverable(&bank));
    bank.acknowledge(1);
    assert!(!list.deliverable(&bank));
}

#[test]
fn what_was_asked_for_and_is_not_served_is_found() {
    let (private, list, bank) = (private(), List::new(), Registers::new(2));
    let found = |offset, bits| {
        set(&private, offset, bits);
        list.audit_quiet(&bank, &private, false)
    };
    assert_eq!(found(0x1_0280, 0b11), Err(Fault::Requested(0b11)));
    // The active state of INTID 1 is taken back, too; then INTIDs 0 and 2 are made active.
    assert_eq!(found(0x1_0380, 0b10), Err(Fault::Requested(0b11)));
    assert_eq!(found(0x1_0300, 0b101), Err(Fault::Requested(0b111)));
    assert_eq!(private.take_requests(), [0b11, 0b10, 0b101]);
    assert_eq!(list.audit_quiet(&bank, &private, false), Ok(()));
}
