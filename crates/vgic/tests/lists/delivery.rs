// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done on a CPU with timers and SGIs of its own.

use std::cell::RefCell;

use vgic::{Access, Bank, Delivery, Distributor, Interface, List, ListRegister, Private, Vcpu};

use super::{ACTIVE, PENDING, Registers, private};

const TIMERS: u32 = 1 << 27 | 1 << 30;
const VCPU: Vcpu = Vcpu {
    number: 0,
    affinity: 0,
};

/// A CPU that notes what it is told.
struct Cpu {
    bank: Registers,
    lines: u32,
    active: u32,
    enabled: u32,
    deactivated: Vec<u32>,
}

impl Bank for Cpu {
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

    fn set_underflow(&mut self, on: bool) {
        self.bank.set_underflow(on);
    }
}

impl Interface for Cpu {
    const SGIS: u32 = 0xff;

    fn ended(&self) -> u32 {
        let values = self.bank.values.iter().enumerate();
        let ended = values.filter(|(_, one)| one.has_ended());
        ended.fold(0, |bits, (n, _)| bits + (1 << n))
    }

    fn underflow(&self) -> bool {
        self.bank.underflow
    }

    fn timers(&self) -> u32 {
        TIMERS
    }

    fn lines(&self) -> u32 {
        self.lines
    }

    fn vcpu(&self) -> Vcpu {
        VCPU
    }

    fn enable(&mut self, on: u32, off: u32) {
        assert_eq!((on & off, (on | off) & !TIMERS), (0, 0));
        self.enabled = self.enabled & !off | on;
    }

    fn clear_active(&mut self, intids: u32) {
        assert_eq!(intids & !TIMERS, 0, "not the guest's");
        self.active &= !intids;
    }

    fn deactivate(&mut self, intid: u32) {
        self.active &= !(1 << intid);
        self.deactivated.push(intid);
    }

    fn active(&self) -> u32 {
        self.active
    }
}

/// Runs `test` on a CPU with four list registers, whose guest has enabled everything.
fn on_a_cpu(test: impl FnOnce(Delivery<'_, Cpu, &RefCell<Distributor>>)) {
    let distributor = RefCell::new(Distributor::new(1));
    for (offset, value) in [(0, 2), (0x084, u32::MAX), (0x104, u32::MAX)] {
        let write = Some(value.into());
        let size = 4;
        let _ = distributor.borrow_mut().access(Access {
            offset,
            size,
            write,
        });
    }
    let (private, mut list) = (private(), List::new());
    let interface = Cpu {
        bank: Registers::new(4),
        lines: 0,
        active: 0,
        enabled: 0,
        deactivated: Vec::new(),
    };
    test(Delivery {
        private: &private,
        list: &mut list,
        interface,
        shared: &distributor,
    });
}

fn disable(private: &Private, bits: u32) {
    let frames = vgic::Redistributor {
        private,
        affinity: 0,
        number: 0,
        last: true,
        lines: 0,
    };
    let _ = frames.access(Access {
        offset: 0x1_0180,
        size: 4,
        write: Some(bits.into()),
    });
}

#[test]
fn what_comes_physically_is_listed_as_was_said() {
    on_a_cpu(|mut delivery| {
        assert!(!delivery.arrive(5), "nothing was said yet");
        assert!(!delivery.evaluate());
        assert!(delivery.arrive(5));
        assert_eq!(delivery.interface.bank.values[0].hw(), None);
        assert!(!delivery.arrive(5), "it is there already");
        delivery.interface.bank.acknowledge(0);
        delivery.interface.bank.end(0);
        assert!(delivery.arrive(27));
        assert_eq!(delivery.interface.bank.values[0].hw(), Some(27));
        delivery.interface.bank.acknowledge(0);
        delivery.interface.bank.end(0);
        // 9 does not come physically; 6 is disabled.
        assert!(!delivery.arrive(9));
        disable(delivery.private, 1 << 6);
        assert!(!delivery.evaluate());
        assert!(!delivery.arrive(6));
        assert_eq!(delivery.interface.bank.used(), []);
    });
}

#[test]
fn timers_that_can_be_delivered_are_enabled_and_others_end() {
    on_a_cpu(|mut delivery| {
        let _ = delivery.evaluate();
        assert_eq!(delivery.interface.enabled, TIMERS);
        delivery.interface.active = TIMERS | 1 << 25;
        assert!(delivery.inject(27, Some(27)));
        let _ = delivery.evaluate();
        // 27 is the guest's to end, 25 no timer's.
        assert_eq!(delivery.interface.active, 1 << 27 | 1 << 25);
        disable(delivery.private, 1 << 27);
        let _ = delivery.evaluate();
        assert_eq!(delivery.interface.enabled, 1 << 30);
        assert_eq!(delivery.interface.active, 1 << 25);
        assert_eq!(
            (delivery.interface.bank.used(), delivery.private.pending()),
            (vec![], 0)
        );
    });
}

#[test]
fn a_look_at_the_lines_takes_back_those_that_are_low() {
    on_a_cpu(|mut delivery| {
        delivery.interface.active = TIMERS;
        for intid in [27, 30] {
            delivery.inject(intid, Some(intid));
        }
        delivery.inject(3, None);
        delivery.interface.lines = 1 << 30;
        delivery.sample();
        assert_eq!(delivery.interface.deactivated, [27]);
        let used = delivery.interface.bank.used();
        assert_eq!(used, [(1, 30, PENDING), (2, 3, PENDING)]);
    });
}

#[test]
fn an_active_interrupt_is_seen_wherever_it_is() {
    on_a_cpu(|mut delivery| {
        assert!(!delivery.has_active());
        for intid in [1, 2, 3] {
            delivery.inject(intid, None);
        }
        assert!(!delivery.has_active() && delivery.deliverable());
        delivery.interface.bank.acknowledge(2);
        assert!(delivery.has_active());
        delivery.interface.bank.end(2);
        assert!(!delivery.has_active());
    });
}

#[test]
fn what_is_unlisted_goes_where_it_came_from() {
    on_a_cpu(|mut delivery| {
        let pending = |delivery: &Delivery<'_, Cpu, &RefCell<Distributor>>| {
            let (offset, size, write) = (0x204, 4, None);
            let access = Access {
                offset,
                size,
                write,
            };
            delivery.shared.borrow_mut().access(access).0
        };
        let write = Some(1 << 8);
        let (offset, size) = (0x204, 4);
        let _ = delivery.shared.borrow_mut().access(Access {
            offset,
            size,
            write,
        });
        delivery.interface.active = TIMERS;
        delivery.inject(3, None);
        delivery.inject(27, Some(27));
        let _ = delivery.evaluate();
        let used = delivery.interface.bank.used();
        assert_eq!(used, [(0, 3, PENDING), (1, 27, PENDING), (2, 40, PENDING)]);
        assert_eq!(delivery.audit(false, false), Ok(()));
        assert!(delivery.audit(true, false).is_err() && delivery.audit(false, true).is_err());
        delivery.unlist();
        assert_eq!(
            (delivery.interface.bank.used(), delivery.private.pending()),
            (vec![], 1 << 3)
        );
        assert_eq!((pending(&delivery), delivery.interface.active), (1 << 8, 0));
        assert!(delivery.release_spis(), "it may be another's now");
        assert_eq!(delivery.audit(false, true), Ok(()));
        assert!(delivery.audit(true, false).is_err(), "3 is owed");
    });
}

#[test]
fn what_is_taken_and_not_listed_is_astray() {
    on_a_cpu(|mut delivery| {
        delivery.interface.active = TIMERS | 1 << 25;
        assert_eq!(delivery.stray(), TIMERS | 1 << 25);
        delivery.inject(27, Some(27));
        assert_eq!(delivery.stray(), 1 << 30 | 1 << 25);
        delivery.interface.bank.acknowledge(0);
        assert_eq!(delivery.interface.bank.used(), [(0, 27, ACTIVE)]);
        assert_eq!(delivery.stray(), 1 << 30 | 1 << 25);
        delivery.private.set_pending(30);
        assert_eq!(delivery.stray(), 1 << 25);
        delivery.interface.active = 1 << 27;
        assert_eq!(delivery.stray(), 0);
    });
}
