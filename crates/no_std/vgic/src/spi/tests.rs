// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two vCPUs, and one SPI between them.

use super::*;
use crate::{Access, Asked, ListRegister};

const VCPUS: [Vcpu; 2] = [
    Vcpu {
        number: 0,
        affinity: 0,
    },
    Vcpu {
        number: 1,
        affinity: 0x100,
    },
];
const INTID: u32 = 40;
const BIT: u64 = 1 << (INTID - PRIVATE);

#[derive(Default)]
struct Fake([ListRegister; 4]);

impl Bank for Fake {
    fn count(&self) -> usize {
        4
    }
    fn empty(&self) -> u32 {
        let registers = self.0.iter().enumerate();
        registers.fold(0, |bits, (n, one)| {
            bits | u32::from(!one.is_pending() && !one.is_active()) << n
        })
    }
    fn read(&self, n: usize) -> ListRegister {
        self.0[n]
    }
    fn write(&mut self, n: usize, value: ListRegister) {
        self.0[n] = value;
    }
    fn ask(&mut self, _: Asked) {}
}

/// Two vCPUs, and SPI 40 enabled for the first.
struct World {
    distributor: Distributor,
    lists: [(List, Fake); 2],
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            distributor: Distributor::new(2),
            lists: Default::default(),
        };
        for (offset, value) in [(0, 2), (0x104, BIT)] {
            world.write(offset, 4, value);
        }
        world.route(0);
        world
    }

    fn write(&mut self, offset: u64, size: u32, value: u64) {
        let _ = self.distributor.access(Access {
            offset,
            size,
            write: Some(value),
        });
        self.sync();
    }

    fn route(&mut self, vcpu: usize) {
        self.write(0x6000 + 8 * u64::from(INTID), 8, VCPUS[vcpu].affinity);
    }

    fn read(&mut self, offset: u64) -> u64 {
        let access = Access {
            offset,
            size: 4,
            write: None,
        };
        self.distributor.access(access).0
    }

    /// Syncs like the hypervisor: all, and again if one let go of something.
    fn sync(&mut self) {
        loop {
            let distributor = &mut self.distributor;
            let lists = self.lists.iter_mut().zip(VCPUS);
            let again = lists.fold(false, |again, ((list, bank), vcpu)| {
                again | list.sync_spis(bank, distributor, vcpu)
            });
            if !again {
                return;
            }
        }
    }

    fn pending(&self, vcpu: usize) -> bool {
        let (list, bank) = &self.lists[vcpu];
        list.state(bank, INTID).pending
    }

    /// The guest acknowledges what is pending on `vcpu`.
    fn acknowledge(&mut self, vcpu: usize) {
        for one in &mut self.lists[vcpu].1.0 {
            if one.is_pending() {
                *one = one.with_active().without_pending();
            }
        }
    }

    fn end(&mut self, vcpu: usize) {
        for one in &mut self.lists[vcpu].1.0 {
            *one = one.without_active();
        }
    }
}

#[test]
fn what_is_disabled_leaves_the_list_and_comes_back() {
    let mut world = World::new();
    world.write(0x204, 4, BIT);
    assert!(world.pending(0));
    assert_eq!(world.read(0x204), BIT, "a listed one reads as pending");
    world.write(0x184, 4, BIT);
    assert!(!world.pending(0));
    assert_eq!(world.read(0x204), BIT);
    world.write(0x104, 4, BIT);
    assert!(world.pending(0));
}

#[test]
fn forwarding_off_takes_it_back_too() {
    let mut world = World::new();
    world.write(0x204, 4, BIT);
    world.write(0x000, 4, 0);
    assert!(!world.pending(0));
    world.write(0x000, 4, 2);
    assert!(world.pending(0));
}

#[test]
fn what_is_cleared_is_gone() {
    let mut world = World::new();
    world.write(0x204, 4, BIT);
    world.write(0x284, 4, BIT);
    assert!(!world.pending(0));
    assert_eq!(world.read(0x204), 0);
}

#[test]
fn it_follows_its_route_and_is_never_in_two_lists() {
    let mut world = World::new();
    world.write(0x204, 4, BIT);
    world.route(1);
    assert!(!world.pending(0) && world.pending(1));
    world.acknowledge(1);
    world.write(0x204, 4, BIT);
    world.route(0);
    assert!(!world.pending(0), "still active on the other vCPU");
    world.end(1);
    world.sync();
    assert!(world.pending(0) && !world.pending(1));
}

/// Unlists like the hypervisor when hardware delivers from now on.
fn unlist(world: &mut World, vcpu: usize) -> bool {
    let (list, bank) = &mut world.lists[vcpu];
    let distributor = &mut world.distributor;
    list.drain(bank, |one| distributor.give_back(one.intid()));
    distributor.release(VCPUS[vcpu])
}

#[test]
fn a_vcpu_that_stops_listing_holds_nothing() {
    let mut world = World::new();
    world.write(0x204, 4, BIT);
    world.acknowledge(0);
    world.end(0);
    assert!(!unlist(&mut world, 0), "no vCPU waits for it");
    // The first does not sync any more; the second gets it all the same.
    let _ = world.distributor.access(Access {
        offset: 0x6000 + 8 * u64::from(INTID),
        size: 8,
        write: Some(VCPUS[1].affinity),
    });
    world.distributor.give_back(INTID);
    let (list, bank) = &mut world.lists[1];
    list.sync_spis(bank, &mut world.distributor, VCPUS[1]);
    assert!(world.pending(1));
}

#[test]
fn what_is_cleared_does_not_come_back_from_a_list() {
    let mut world = World::new();
    world.write(0x204, 4, BIT);
    let _ = world.distributor.access(Access {
        offset: 0x284,
        size: 4,
        write: Some(BIT),
    });
    assert!(!unlist(&mut world, 0));
    assert_eq!(world.read(0x204), 0);
}

#[test]
fn the_active_state_can_be_taken_back() {
    let mut world = World::new();
    world.write(0x204, 4, BIT);
    world.acknowledge(0);
    world.sync();
    assert_eq!(world.read(0x304), BIT);
    world.write(0x384, 4, BIT);
    assert_eq!(world.read(0x304), 0);
}
