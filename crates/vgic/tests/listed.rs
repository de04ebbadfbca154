// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists and the registers together: what is in which list register, and what the
//! registers read meanwhile.

use vgic::{Access, Bank, Distributor, List, ListRegister, Private, State, Vcpu};

/// Some list registers, as ICH_LR<n>_EL2 and ICH_ELRSR_EL2 have them.
struct Registers {
    values: Vec<ListRegister>,
    underflow: bool,
    writes: usize,
}

impl Registers {
    fn new(count: usize) -> Self {
        Self {
            values: vec![ListRegister::EMPTY; count],
            underflow: false,
            writes: 0,
        }
    }

    /// INTIDs and states of those in use, by register.
    fn used(&self) -> Vec<(usize, u32, u64)> {
        let values = self.values.iter().enumerate();
        let used = values.filter(|(_, one)| one.is_pending() || one.is_active());
        used.map(|(n, one)| (n, one.intid(), one.0 >> 62)).collect()
    }

    /// The guest acknowledges the interrupt of register `n`.
    fn acknowledge(&mut self, n: usize) {
        self.values[n] = self.values[n].with_active().without_pending();
    }

    /// The guest ends the interrupt of register `n`; a request for maintenance stays.
    fn end(&mut self, n: usize) {
        self.values[n].0 &= !(1 << 63);
    }
}

impl Bank for Registers {
    fn count(&self) -> usize {
        self.values.len()
    }

    fn empty(&self) -> u32 {
        let values = self.values.iter().enumerate();
        let empty = values.filter(|(_, one)| one.0 >> 62 == 0 && !one.has_ended());
        empty.fold(0, |bits, (n, _)| bits + (1 << n))
    }

    fn read(&self, n: usize) -> ListRegister {
        assert!(self.empty() >> n & 1 == 0, "what is empty need not be read");
        self.values[n]
    }

    fn write(&mut self, n: usize, value: ListRegister) {
        self.values[n] = value;
        self.writes += 1;
    }

    fn set_underflow(&mut self, on: bool) {
        assert_ne!(self.underflow, on, "asked for what is so already");
        self.underflow = on;
    }
}

const PENDING: u64 = 0b01;
const ACTIVE: u64 = 0b10;
const SECOND: Vcpu = Vcpu {
    number: 1,
    affinity: 0x100,
};

fn access(distributor: &mut Distributor, offset: u64, size: u32, write: Option<u64>) -> u64 {
    let (value, _) = distributor.access(Access {
        offset,
        size,
        write,
    });
    value
}

fn read(distributor: &mut Distributor, offset: u64) -> u64 {
    access(distributor, offset, 4, None)
}

fn write(distributor: &mut Distributor, offset: u64, value: u64) {
    access(distributor, offset, 4, Some(value));
}

/// A distributor whose SPIs 32 to 63 are enabled in Group 1 for the second vCPU.
fn distributor() -> Distributor {
    let mut distributor = Distributor::new(2);
    write(&mut distributor, 0x000, 2);
    for register in [0x084, 0x104] {
        write(&mut distributor, register, u32::MAX.into());
    }
    for intid in 32..64 {
        access(&mut distributor, 0x6000 + 8 * intid, 8, Some(0x100));
    }
    distributor
}

#[test]
fn an_spi_that_is_pending_twice_reads_as_pending() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(4));
    write(&mut distributor, 0x204, 1 << 8);
    assert!(!list.sync_spis(&mut bank, &mut distributor, SECOND));
    assert_eq!(bank.used(), [(0, 40, PENDING)]);
    // In the list and, set once more, in the distributor.
    write(&mut distributor, 0x204, 1 << 8);
    assert_eq!(read(&mut distributor, 0x204), 1 << 8);
    assert_eq!(read(&mut distributor, 0x284), 1 << 8);
    bank.acknowledge(0);
    write(&mut distributor, 0x304, 1 << 8);
    list.publish_spis(&bank, &mut distributor, SECOND);
    assert_eq!(read(&mut distributor, 0x304), 1 << 8);
    assert_eq!(read(&mut distributor, 0x384), 1 << 8);
    // Only the state that is there is published.
    write(&mut distributor, 0x284, 1 << 8);
    assert_eq!(read(&mut distributor, 0x204), 0);
}

#[test]
fn the_most_urgent_spis_are_listed_with_their_priorities() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(2));
    for (intid, priority) in [(33, 0xa0), (34, 0x20), (35, 0x60), (36, 0x60)] {
        access(&mut distributor, 0x400 + intid, 1, Some(priority));
        write(&mut distributor, 0x040, intid);
    }
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    let listed: Vec<(u32, u8)> = bank
        .values
        .iter()
        .map(|one| (one.intid(), one.priority()))
        .collect();
    assert_eq!(listed, [(34, 0x20), (35, 0x60)]);
    assert!(bank.underflow);
    assert_eq!(read(&mut distributor, 0x204), 0b1_1110);
    // The urgent one is handled; the next comes where it was.
    bank.acknowledge(0);
    bank.end(0);
    list.refill(&mut bank);
    assert_eq!(bank.used(), [(0, 36, PENDING), (1, 35, PENDING)]);
    // What waits becomes the most urgent and takes the place of the least.
    access(&mut distributor, 0x400 + 33, 1, Some(0x10));
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.used(), [(0, 33, PENDING), (1, 35, PENDING)]);
    assert!(bank.underflow);
    bank.acknowledge(0);
    bank.end(0);
    list.refill(&mut bank);
    assert_eq!(bank.used(), [(0, 36, PENDING), (1, 35, PENDING)]);
    assert!(!bank.underflow);
}

#[test]
fn an_spi_of_any_cpu_is_of_the_first_and_its_active_state_is_the_guests() {
    let (mut distributor, mut list, mut bank) = (distributor(), List::new(), Registers::new(4));
    let first = Vcpu {
        number: 0,
        affinity: 0,
    };
    access(&mut distributor, 0x6000 + 8 * 50, 8, Some(1 << 31 | 0x100));
    write(&mut distributor, 0x040, 50);
    list.sync_spis(&mut bank, &mut distributor, SECOND);
    assert_eq!(bank.used(), []);
    list.sync_spis(&mut bank, &mut distributor, first);
    assert_eq!(bank.used(), [(0, 50, PENDING)]);
    bank.acknowledge(0);
    assert_eq!(
        list.state(&bank, 50),
        State {
            pending: false,
            active: true
        }
    );
    list.sync_spis(&mut bank, &mut distributor, first);
    assert_eq!(read(&mut distributor, 0x304), 1 << 18);
    assert_eq!(read(&mut distributor, 0x204), 0);
    // Pending again meanwhile: the guest's end is to be told, and then it is listed anew.
    write(&mut distributor, 0x040, 50);
    list.sync_spis(&mut bank, &mut distributor, first);
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
    // It is routed to the first, and pending again.
    access(&mut distributor, 0x6000 + 8 * 40, 8, Some(0));
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
    assert!(bank.used().is_empty() && !bank.underflow);
    for intid in [32, 34] {
        distributor.give_back(intid);
    }
    assert!(distributor.release(SECOND));
    assert_eq!(read(&mut distributor, 0x204), 0b101);
    // Nothing is held any more, so there is nothing to let go of.
    assert!(!distributor.release(SECOND));
    let other = Vcpu {
        number: 0,
        affinity: 0x100,
    };
    let mut list = List::new();
    list.sync_spis(&mut bank, &mut distributor, other);
    assert_eq!(bank.used(), [(0, 32, PENDING)]);
}

/// `private` with INTIDs 0 to 31 in Group 1, enabled and forwarded.
fn private() -> Private {
    let private = Private::new();
    let frames = vgic::Redistributor {
        private: &private,
        affinity: 0,
        number: 0,
        last: true,
        lines: 0,
    };
    for offset in [0x1_0080, 0x1_0100] {
        let _ = frames.access(Access {
            offset,
            size: 4,
            write: Some(u32::MAX.into()),
        });
    }
    private.refresh(true);
    private
}

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
    // Without a look at any register: a read of an empty one is an error here.
    list.inject(&mut bank, 7, 0x80, None);
    assert_eq!(bank.used(), [(1, 7, PENDING)]);
    list.expect(3, Some(ListRegister::pending(3, 0x80, None)));
    assert!(list.arrive(&mut bank, 3));
    assert!(!list.arrive(&mut bank, 3), "its register is in use");
    assert!(!list.arrive(&mut bank, 4), "nothing is expected");
    assert_eq!(bank.used(), [(0, 3, PENDING), (1, 7, PENDING)]);
    // Nor while others wait for a register.
    for intid in 8..12 {
        list.inject(&mut bank, intid, 0x80, None);
    }
    bank.acknowledge(0);
    bank.end(0);
    assert!(bank.underflow && !list.arrive(&mut bank, 3));
    list.expect(3, None);
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
    let frames = vgic::Redistributor {
        private: &private,
        affinity: 0,
        number: 0,
        last: true,
        lines: 0,
    };
    let _ = frames.access(Access {
        offset: 0x1_0400,
        size: 4,
        write: Some(0x2040_6000),
    });
    bank.writes = 0;
    list.sync(&mut bank, &private, true);
    // The active one keeps what it was acknowledged with; 3 is more urgent than 2 now.
    let listed: Vec<(u32, u8)> = bank
        .values
        .iter()
        .map(|one| (one.intid(), one.priority()))
        .collect();
    assert_eq!(listed, [(1, 0), (3, 0x20)]);
    // Nothing is written where nothing changed.
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
    // 28 was set by software; 30 waits in the queue.
    assert_eq!(list.lower(&mut bank, 1 << 28 | 1 << 30 | 1 << 31), 1 << 30);
    assert!(!bank.underflow);
    bank.acknowledge(0);
    assert_eq!(list.lower(&mut bank, 1 << 27), 0, "it is being handled");
    assert_eq!(bank.used(), [(0, 27, ACTIVE), (1, 28, PENDING)]);
    assert!(list.deliverable(&bank));
    bank.acknowledge(1);
    assert!(!list.deliverable(&bank));
}
