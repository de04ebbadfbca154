// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests delivery on a CPU with timers and SGIs of its own.

use std::cell::RefCell;

use trap::interface::Register;
use vgic::{
    Asked, Bank, Delivery, Distributor, Due, Interface, List, ListRegister, Maintenance, Vcpu,
};

use super::{ACTIVE, FIRST, PENDING, Registers, private, set, word};

const TIMERS: u32 = 1 << 27 | 1 << 30;
/// ICH_VTR_EL2: 7 priority bits, and all of them preempt; 24 INTID bits; A3V.
const KIND: u64 = 6 << 29 | 6 << 26 | 1 << 23 | 1 << 21;

/// A CPU that records the operations on it.
pub struct TestCpu {
    pub bank: Registers,
    lines: u32,
    active: u32,
    enabled: u32,
    deactivated: Vec<u32>,
    pub settings: u64,
    priorities: [u32; 4],
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
        let values = self.bank.values.iter().enumerate();
        let ended = values.filter(|(_, one)| one.has_ended());
        ended.fold(0, |bits, (n, _)| bits + (1 << n))
    }

    fn asked(&self) -> Asked {
        self.bank.asked
    }

    fn timers(&self) -> u32 {
        TIMERS
    }

    fn lines(&self) -> u32 {
        self.lines
    }

    fn vcpu(&self) -> Vcpu {
        FIRST
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

impl vgic::Registers for TestCpu {
    fn kind(&self) -> u64 {
        KIND
    }

    fn ranges(&self) -> u64 {
        1 << 18
    }

    fn settings(&self) -> u64 {
        self.settings
    }

    fn set_settings(&mut self, settings: u64) {
        self.settings = settings;
    }

    fn active_priorities(&self, n: usize) -> u32 {
        self.priorities[n]
    }

    fn set_active_priorities(&mut self, n: usize, bits: u32) {
        self.priorities[n] = bits;
    }
}

/// Runs `test` on a CPU with four list registers, whose guest has enabled everything.
pub fn on_a_cpu(test: impl FnOnce(Delivery<'_, TestCpu, &RefCell<Distributor>>)) {
    let distributor = RefCell::new(Distributor::new(1));
    for (offset, value) in [(0, 2), (0x104, u32::MAX.into())] {
        super::write(&mut distributor.borrow_mut(), offset, value);
    }
    let (private, mut list) = (private(), List::new());
    let interface = TestCpu {
        bank: Registers::new(4),
        lines: 0,
        active: 0,
        enabled: 0,
        deactivated: Vec::new(),
        // VENG1, VEOIM, VBPR1, VBPR0, VPMR.
        settings: 1 << 1 | 1 << 18 | 0xff << 24,
        priorities: [0; 4],
    };
    test(Delivery {
        private: &private,
        list: &mut list,
        interface,
        shared: &distributor,
    });
}

#[test]
fn what_comes_physically_is_listed_as_was_said() {
    on_a_cpu(|mut delivery| {
        assert!(!delivery.arrive(5), "nothing was requested yet");
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
        // INTID 9 does not arrive physically; INTID 6 is disabled.
        assert!(!delivery.arrive(9));
        set(delivery.private, 0x1_0180, 1 << 6);
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
        // The guest has yet to end INTID 27, and INTID 25 does not belong to a timer.
        assert_eq!(delivery.interface.active, 1 << 27 | 1 << 25);
        set(delivery.private, 0x1_0180, 1 << 27);
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
fn states_are_published_after_a_look_at_the_lines() {
    on_a_cpu(|mut delivery| {
        delivery.interface.active = 1 << 27;
        delivery.inject(27, Some(27));
        delivery.interface.lines = 1 << 27;
        delivery.publish();
        assert!(delivery.deliverable() && delivery.interface.active != 0);
        delivery.interface.lines = 0;
        delivery.publish();
        assert!(!delivery.deliverable() && delivery.interface.active == 0);
    });
}

#[test]
fn the_maintenance_interrupt_says_what_it_is_for() {
    on_a_cpu(|mut delivery| {
        assert_eq!(delivery.maintain(), Maintenance::Nothing);
        for intid in 0..6 {
            delivery.inject(intid, None);
        }
        assert_eq!(delivery.maintain(), Maintenance::Refilled);
        delivery.interface.bank.values[0] = ListRegister(1 << 41 | 40);
        assert_eq!(delivery.maintain(), Maintenance::Ended);
    });
}

#[test]
fn what_cannot_be_delivered_waits_unless_a_line_makes_it() {
    on_a_cpu(|mut delivery| {
        delivery.private.refresh(false);
        assert!(!delivery.inject(5, None) && !delivery.inject(27, Some(27)));
        assert_eq!(delivery.private.pending(), 1 << 5);
        assert!(!delivery.deliverable());
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
        super::write(&mut delivery.shared.borrow_mut(), 0x204, 1 << 8);
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
        let pending = super::read(&mut delivery.shared.borrow_mut(), 0x204);
        assert_eq!((pending, delivery.interface.active), (1 << 8, 0));
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

type OnCpu<'a, 'b> = Delivery<'a, TestCpu, &'b RefCell<Distributor>>;

fn read(delivery: &mut OnCpu<'_, '_>, register: Register) -> u64 {
    delivery.access(register, None).expect("it can be read").0
}

fn write(delivery: &mut OnCpu<'_, '_>, register: Register, value: u64) -> Due {
    let written = delivery.access(register, Some(value));
    written.expect("it can be written").1
}

#[test]
fn registers_that_trap_are_what_they_are_in_hardware() {
    on_a_cpu(|mut delivery| {
        for (register, value, reads) in [
            (Register::Mask, 0x1ff, 0xfe),
            (Register::Enable, 2, 0),
            (Register::Enable, 1, 1),
            // The smallest binary point is 1; the common binary point follows.
            (Register::BinaryPoint, 0, 1),
            (Register::BinaryPoint, 5, 5),
            (Register::CommonBinaryPoint, 3, 3),
            (Register::ActivePriorities(3), 1 << 31, 1 << 31),
            (Register::ActivePriorities(3), 0, 0),
            (
                Register::Control,
                !0,
                0b11 | 6 << 8 | 1 << 11 | 1 << 15 | 1 << 18,
            ),
        ] {
            assert_eq!(write(&mut delivery, register, value), Due::Nothing);
            assert_eq!(read(&mut delivery, register), reads, "{register:?}");
        }
        // CBPR is set.
        assert_eq!(read(&mut delivery, Register::BinaryPoint), 4);
        write(&mut delivery, Register::BinaryPoint, 7);
        write(&mut delivery, Register::Control, 0);
        assert_eq!(read(&mut delivery, Register::BinaryPoint), 5);
        for (register, value) in [
            (Register::ActivePriorities(4), None),
            (Register::ActivePriorities(4), Some(0)),
            (Register::Acknowledge, Some(0)),
            (Register::HighestPending, Some(0)),
            (Register::Running, Some(0)),
            (Register::End, None),
            (Register::Deactivate, None),
        ] {
            assert_eq!(delivery.access(register, value), None, "{register:?}");
        }
    });
}

#[test]
fn what_traps_is_acknowledged_and_ended_as_hardware_does() {
    on_a_cpu(|mut delivery| {
        const NONE: u64 = 1023;
        let acknowledge = |delivery: &mut OnCpu<'_, '_>| read(delivery, Register::Acknowledge);
        assert_eq!(acknowledge(&mut delivery), NONE);
        assert_eq!(read(&mut delivery, Register::Running), 0xff);
        let list = |delivery: &mut OnCpu<'_, '_>, intid, priority, hw| {
            let (list, cpu) = (&mut delivery.list, &mut delivery.interface);
            list.inject(cpu, intid, priority, hw);
        };
        list(&mut delivery, 3, 0x82, None);
        for (register, closed, open) in [(Register::Mask, 0x82, 0xff), (Register::Enable, 0, 1)] {
            write(&mut delivery, register, closed);
            assert_eq!(acknowledge(&mut delivery), NONE, "{register:?}");
            write(&mut delivery, register, open);
        }
        assert_eq!(read(&mut delivery, Register::HighestPending), 3);
        assert_eq!(acknowledge(&mut delivery), 3);
        assert_eq!(read(&mut delivery, Register::Running), 0x82);
        assert_eq!(delivery.interface.priorities, [0, 0, 1 << 1, 0]);
        // If the binary point is 4, the upper four bits preempt.
        write(&mut delivery, Register::BinaryPoint, 4);
        list(&mut delivery, 4, 0x80, None);
        delivery.interface.active = 1 << 27;
        list(&mut delivery, 27, 0x7f, Some(27));
        assert_eq!(acknowledge(&mut delivery), 27);
        assert_eq!(read(&mut delivery, Register::Running), 0x70);
        assert_eq!(acknowledge(&mut delivery), NONE);
        // No interrupt has this number.
        write(&mut delivery, Register::End, 1023);
        assert_eq!(read(&mut delivery, Register::Running), 0x70);
        write(&mut delivery, Register::Control, 2);
        write(&mut delivery, Register::End, 27);
        assert_eq!(read(&mut delivery, Register::Running), 0x82);
        assert_eq!(delivery.interface.deactivated, []);
        write(&mut delivery, Register::Deactivate, 27);
        assert_eq!(delivery.interface.deactivated, [27]);
        write(&mut delivery, Register::Control, 0);
        write(&mut delivery, Register::End, 3);
        assert_eq!(acknowledge(&mut delivery), 4);
        write(&mut delivery, Register::End, 4);
        write(&mut delivery, Register::End, 4);
        assert_eq!(read(&mut delivery, Register::Running), 0xff);
        assert!(!delivery.has_active());
    });
}

#[test]
fn what_was_set_active_is_anybodys_to_end() {
    on_a_cpu(|mut delivery| {
        let active = |delivery: &OnCpu<'_, '_>, write| {
            let access = word(0x304, write);
            delivery.shared.borrow_mut().access(access).0
        };
        active(&delivery, Some(1 << 8));
        let _ = delivery.evaluate();
        assert!(delivery.interface.bank.asked.traps);
        let due = write(&mut delivery, Register::Deactivate, 40);
        assert_eq!((due, active(&delivery, None)), (Due::Everywhere, 0));
        let _ = delivery.evaluate();
        assert!(!delivery.interface.bank.asked.traps);
        // A queued interrupt signals its end if such a signal was requested.
        delivery.interface.active = 1 << 27;
        delivery.inject(27, Some(27));
        delivery.private.activate(1 << 27);
        let _ = delivery.evaluate();
        delivery.inject(27, None);
        assert_eq!(write(&mut delivery, Register::Deactivate, 27), Due::Nothing);
        assert_eq!(read(&mut delivery, Register::Acknowledge), 27);
        assert_eq!(write(&mut delivery, Register::End, 27), Due::Here);
        let _ = delivery.evaluate();
        assert_eq!(delivery.interface.active, 0);
    });
}
