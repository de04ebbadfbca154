// SPDX-License-Identifier: MIT OR Apache-2.0
//! SPIs in the lists of vCPUs.
//!
//! The distributor records which vCPU holds an SPI. Only the holder can take it out of its list
//! again, when software disables it, routes it elsewhere or clears its state. An SPI is in one list
//! at a time: the vCPU to which it is routed next has to wait until the holder has released it. A
//! guest ends an SPI without an exit, so the list register raises a maintenance interrupt at that
//! time, and the holder syncs.

use crate::PRIVATE;
use crate::bits::ones;
use crate::distributor::{Distributor, Vcpu};
use crate::list::List;
use crate::lr::Bank;

impl List {
    /// Brings the SPIs in this list, the list of `vcpu`, in line with the distributor.
    /// Returns whether other vCPUs have to sync as well, because a released SPI may now be
    /// theirs.
    pub fn sync_spis(
        &mut self,
        bank: &mut impl Bank,
        distributor: &mut Distributor,
        vcpu: Vcpu,
    ) -> bool {
        self.clear_ended(bank);
        let mut released = false;
        for n in held_spis(distributor, vcpu) {
            released |= self.review_spi(bank, distributor, vcpu, n);
        }
        while let Some(spi) = distributor.take_next(vcpu) {
            self.inject(bank, spi.intid, spi.priority, None);
        }
        for n in held_spis(distributor, vcpu).filter(|n| distributor.pending >> n & 1 != 0) {
            self.request_end_notice(bank, PRIVATE + n as u32);
        }
        self.reprioritise(bank, |intid| distributor.priority_of(intid));
        self.others = distributor.active != 0;
        self.refill(bank);
        self.publish_spis(bank, distributor, vcpu);
        released && distributor.has_waiting_spi()
    }

    /// Checks SPI n, which this list holds. Returns whether the list has released the SPI.
    fn review_spi(
        &mut self,
        bank: &mut impl Bank,
        distributor: &mut Distributor,
        vcpu: Vcpu,
        n: usize,
    ) -> bool {
        let (bit, intid) = (1 << n, PRIVATE + n as u32);
        if self.state(bank, intid).active {
            // A register write made the SPI active; the guest ends it on this vCPU.
            distributor.active &= !bit;
        }
        if distributor.withdraw & bit != 0 {
            self.withdraw(bank, intid);
        } else if !distributor.is_deliverable(n, vcpu) && self.withdraw(bank, intid).is_some() {
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

    /// Publishes to other vCPUs which SPIs are pending and active here.
    pub fn publish_spis(&self, bank: &impl Bank, distributor: &mut Distributor, vcpu: Vcpu) {
        distributor.listed_pending &= distributor.listed;
        distributor.listed_active &= distributor.listed;
        for n in held_spis(distributor, vcpu) {
            let state = self.state(bank, PRIVATE + n as u32);
            let bit = 1 << n;
            distributor.listed_pending &= !bit;
            distributor.listed_active &= !bit;
            distributor.listed_pending |= if state.pending { bit } else { 0 };
            distributor.listed_active |= if state.active { bit } else { 0 };
        }
    }
}

/// Returns the SPIs that `vcpu` holds.
fn held_spis(distributor: &Distributor, vcpu: Vcpu) -> impl Iterator<Item = usize> + use<> {
    let listed = ones(distributor.listed).map(|n| n as usize);
    let mine = listed.filter(|&n| usize::from(distributor.holder[n]) == vcpu.number);
    let mine = mine.fold(0, |bits, n| bits | 1 << n);
    ones(mine).map(|n| n as usize)
}
