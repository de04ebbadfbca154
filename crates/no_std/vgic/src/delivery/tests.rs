// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupts of a vCPU on a CPU of a test.

use super::*;
use crate::Access;
use crate::list::tests::Fake;
use core::sync::atomic::Ordering::Relaxed;

const TIMER: u32 = 27;
const SPI: u32 = 40;

/// A CPU: list registers, and a timer.
struct TestCpu {
    bank: Fake,
    number: usize,
    line: bool,
    active: u32,
    ended: u32,
}

impl Bank for TestCpu {
    fn count(&self) -> usize {
        self.bank.count()
    }

    fn empty(&self) -> u32 {
        self.bank.empty()
    }

    fn read(&self, n: usize) -> ListRegister {
        self.bank.read(n)
    }

    fn write(&mut self, n: usize, value: ListRegister) {
        self.bank.write(n, value);
    }

    fn ask(&mut self, asked: Asked) {
        self.bank.ask(asked);
    }
}

impl Interface for TestCpu {
    const SGIS: u32 = 0xff;

    fn ended(&self) -> u32 {
        self.ended
    }

    fn asked(&self) -> Asked {
        self.bank.asked
    }

    fn timers(&self) -> u32 {
        1 << TIMER
    }

    fn lines(&self) -> u32 {
        u32::from(self.line) << TIMER
    }

    fn vcpu(&self) -> Vcpu {
        Vcpu {
            number: self.number,
            affinity: self.number as u64,
        }
    }

    fn enable(&mut self, _: u32, _: u32) {}

    fn clear_active(&mut self, intids: u32) {
        self.active &= !intids;
    }

    fn deactivate(&mut self, intid: u32) {
        self.active &= !(1 << intid);
    }

    fn active(&self) -> u32 {
        self.active
    }
}

/// Two vCPUs, everything enabled.
struct Guest {
    private: [Private; 2],
    lists: [List; 2],
    distributor: RefCell<Distributor>,
}

impl Guest {
    fn new() -> Self {
        let guest = Self {
            private: [Private::new(), Private::new()],
            lists: [List::new(), List::new()],
            distributor: RefCell::new(Distributor::new(2)),
        };
        guest.write(0, 4, 2);
        guest.write(0x104, 4, u64::from(u32::MAX));
        for private in &guest.private {
            private.enabled.store(u32::MAX, Relaxed);
            private.refresh(true);
        }
        guest
    }

    /// Writes a register of the distributor.
    fn write(&self, offset: u64, size: u32, value: u64) {
        let write = Some(value);
        let access = Access {
            offset,
            size,
            write,
        };
        let (_, changed) = self.distributor.borrow_mut().access(access);
        assert!(changed);
    }

    fn on(&mut self, number: usize) -> Delivery<'_, TestCpu, &RefCell<Distributor>> {
        Delivery {
            private: &self.private[number],
            list: &mut self.lists[number],
            interface: TestCpu {
                bank: Fake::new(4),
                number,
                line: false,
                active: 0,
                ended: 0,
            },
            shared: &self.distributor,
        }
    }
}

#[test]
fn what_cannot_be_delivered_waits_unless_a_line_makes_it() {
    let mut guest = Guest::new();
    guest.private[0].refresh(false);
    let mut delivery = guest.on(0);
    assert!(!delivery.inject(5, None));
    assert!(!delivery.inject(TIMER, Some(TIMER)));
    assert_eq!(delivery.private.pending(), 1 << 5);
    assert!(!delivery.deliverable());
}

#[test]
fn a_line_that_is_low_is_noticed_when_states_are_read() {
    let mut guest = Guest::new();
    let mut delivery = guest.on(0);
    delivery.interface.active = 1 << TIMER;
    assert!(delivery.inject(TIMER, Some(TIMER)));
    delivery.interface.line = true;
    delivery.publish();
    assert!(delivery.deliverable());
    assert_eq!(delivery.interface.active, 1 << TIMER);
    delivery.interface.line = false;
    delivery.publish();
    assert!(!delivery.deliverable());
    assert_eq!(delivery.interface.active, 0);
}

#[test]
fn the_maintenance_interrupt_says_what_it_is_for() {
    let mut guest = Guest::new();
    let mut delivery = guest.on(0);
    assert_eq!(delivery.maintain(), Maintenance::Nothing);
    for intid in 0..6 {
        delivery.inject(intid, None);
    }
    assert_eq!(delivery.maintain(), Maintenance::Refilled);
    delivery.interface.ended = 1;
    assert_eq!(delivery.maintain(), Maintenance::Ended);
}

#[test]
fn an_spi_that_one_vcpu_lets_go_of_is_for_another() {
    let mut guest = Guest::new();
    guest.write(0x204, 4, 1 << (SPI - PRIVATE));
    let mut first = guest.on(0);
    assert!(!first.evaluate());
    assert!(first.deliverable());
    first.unlist();
    assert!(!first.deliverable());
    assert!(first.release_spis(), "it is pending, so another may wait");
    guest.write(0x6000 + 8 * u64::from(SPI), 8, 1);
    let mut second = guest.on(1);
    assert!(!second.evaluate());
    assert!(second.deliverable());
    assert_eq!(second.interface.read(0).intid(), SPI);
}

#[test]
fn a_stray_interrupt_is_neither_listed_nor_pending() {
    let mut guest = Guest::new();
    let mut delivery = guest.on(0);
    delivery.interface.active = 1 << TIMER | 1 << 9;
    assert_eq!(delivery.stray(), 1 << TIMER | 1 << 9);
    delivery.inject(TIMER, Some(TIMER));
    assert_eq!(delivery.stray(), 1 << 9);
    delivery.private.set_pending(9);
    assert_eq!(delivery.stray(), 0);
}
