// SPDX-License-Identifier: MIT OR Apache-2.0
//! SPIs in the lists of vCPUs.
//!
//! The distributor knows which vCPU holds an SPI; only that one can take it out
//! of its list again, when software disables it, routes it elsewhere or takes
//! its state back. An SPI is in one list at a time: whoever it is routed to
//! next has to wait until the holder has let go of it. Where that is a guest
//! that handles it, which ends it without an exit, its list register is made to
//! raise the maintenance interrupt then, and the holder syncs.

use crate::PRIVATE;
use crate::bits::ones;
use crate::distributor::{Distributor, Vcpu};
use crate::list::{Bank, List};

impl List {
    /// Brings the SPIs in this list, that of `vcpu`, in line with the
    /// distributor. Answers whether others have to sync as well, because
    /// something was let go of that may be theirs.
    pub fn sync_spis(
        &mut self,
        bank: &mut impl Bank,
        distributor: &mut Distributor,
        vcpu: Vcpu,
    ) -> bool {
        self.clear_ended(bank);
        let mut released = false;
        for n in held(distributor, vcpu) {
            released |= self.review(bank, distributor, vcpu, n);
        }
        while let Some(spi) = distributor.take(vcpu) {
            self.inject(bank, spi.intid, spi.priority, None);
        }
        for n in held(distributor, vcpu).filter(|n| distributor.pending >> n & 1 != 0) {
            self.notice_end(bank, PRIVATE + n as u32);
        }
        self.reprioritise(bank, |intid| distributor.priority_of(intid));
        self.refill(bank);
        self.publish_spis(bank, distributor, vcpu);
        released && distributor.waits()
    }

    /// Looks at SPI n, which this list holds; whether it holds it no more.
    fn review(
        &mut self,
        bank: &mut impl Bank,
        distributor: &mut Distributor,
        vcpu: Vcpu,
        n: usize,
    ) -> bool {
        let (bit, intid) = (1 << n, PRIVATE + n as u32);
        if self.state(bank, intid).active {
            // Set active by register, which it was: the guest ends it here.
            distributor.active &= !bit;
        }
        if distributor.withdraw & bit != 0 {
            self.withdraw(bank, intid);
        } else if !distributor.deliverable(n, vcpu) && self.withdraw(bank, intid).is_some() {
            distributor.give_back(intid);
        }
        if distributor.deactivate & bit != 0 {
            self.set_active(bank, intid, 0, false);
        }
        distributor.withdraw &= !bit;
        distributor.deactivate &= !bit;
        let state = self.state(bank, intid);
        let idle = !state.pending && !state.active;
        if idle {
            distributor.listed &= !bit;
        }
        idle
    }

    /// Lets other vCPUs see which SPIs are pending and active here.
    pub fn publish_spis(&self, bank: &impl Bank, distributor: &mut Distributor, vcpu: Vcpu) {
        distributor.listed_pending &= distributor.listed;
        distributor.listed_active &= distributor.listed;
        for n in held(distributor, vcpu) {
            let state = self.state(bank, PRIVATE + n as u32);
            let bit = 1 << n;
            distributor.listed_pending &= !bit;
            distributor.listed_active &= !bit;
            distributor.listed_pending |= if state.pending { bit } else { 0 };
            distributor.listed_active |= if state.active { bit } else { 0 };
        }
    }
}

/// The SPIs that `vcpu` holds.
fn held(distributor: &Distributor, vcpu: Vcpu) -> impl Iterator<Item = usize> + use<> {
    let listed = ones(distributor.listed).map(|n| n as usize);
    let mine = listed.filter(|&n| usize::from(distributor.holder[n]) == vcpu.number);
    let mine = mine.fold(0, |bits, n| bits | 1 << n);
    ones(mine).map(|n| n as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, ListRegister};

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
        fn set_underflow(&mut self, _: bool) {}
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
            for (offset, value) in [(0, 2), (0x084, BIT), (0x104, BIT)] {
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

        /// As the hypervisor does: all, and again if one let go of something.
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

    /// As the hypervisor does when hardware delivers from now on.
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
        assert!(!unlist(&mut world, 0), "nobody waits for it");
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
}
