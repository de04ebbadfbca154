// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether the rules of [`List`] hold, for tests and hypercalls. Interrupt delivery does not
//! use this module.

use core::fmt;

use crate::distributor::{Distributor, Vcpu};
use crate::list::List;
use crate::lr::{Asked, Bank};
use crate::private::Private;
use crate::{INTIDS, PRIVATE};

/// A rule that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This INTID is in two list registers.
    ListedTwice(u32),
    /// This INTID is in a list register and in the queue, or twice in the queue.
    Queued(u32),
    /// This INTID does not exist.
    Unknown(u32),
    /// This SPI is listed, but the distributor does not record that.
    NotHeld(u32),
    /// This INTID waits for a list register, but nothing will list it.
    Forgotten(u32),
    /// This INTID is active in the queue, but no trap would report its end.
    Unseen(u32),
    /// This INTID is in a list register but should not be.
    Listed(u32),
    /// These private INTIDs are left pending, though they could be delivered.
    Pending(u32),
    /// These private INTIDs have requests that nothing serves.
    Requested(u32),
    /// The CPU's register holds requests other than the recorded ones.
    Asked(Asked),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ListedTwice(intid) => write!(f, "INTID {intid} is in two list registers"),
            Self::Queued(intid) => write!(f, "INTID {intid} is queued though it is there already"),
            Self::Unknown(intid) => write!(f, "INTID {intid} is listed and does not exist"),
            Self::NotHeld(intid) => write!(f, "SPI {intid} is listed and not held by this vCPU"),
            Self::Forgotten(intid) => {
                write!(
                    f,
                    "INTID {intid} waits for a list register and will get none"
                )
            }
            Self::Unseen(intid) => {
                write!(
                    f,
                    "INTID {intid} is active in the queue and no access traps"
                )
            }
            Self::Listed(intid) => write!(f, "INTID {intid} is left in a list register"),
            Self::Pending(bits) => write!(f, "INTIDs {bits:#x} are left pending"),
            Self::Requested(bits) => write!(f, "requests for INTIDs {bits:#x} are left"),
            Self::Asked(asked) => write!(f, "ICH_HCR_EL2 has {asked:?}, and not what is recorded"),
        }
    }
}

impl List {
    /// Checks the rules that hold at any time while the hypervisor injects the interrupts of `vcpu` and its
    /// CPU is at EL2. `asked` has the requests that the bank currently serves.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    pub fn audit(
        &self,
        bank: &impl Bank,
        distributor: &Distributor,
        vcpu: Vcpu,
        asked: Asked,
    ) -> Result<(), Fault> {
        for slot in 0..bank.count() {
            let listed = bank.read(slot);
            if !listed.is_pending() && !listed.is_active() {
                continue;
            }
            let intid = listed.intid();
            let again = (slot + 1..bank.count()).map(|slot| bank.read(slot));
            let mut again = again.filter(|other| other.is_pending() || other.is_active());
            if again.any(|other| other.intid() == intid) {
                return Err(Fault::ListedTwice(intid));
            }
            if intid >= INTIDS {
                return Err(Fault::Unknown(intid));
            }
            if intid >= PRIVATE && !distributor.is_held(intid, vcpu) {
                return Err(Fault::NotHeld(intid));
            }
        }
        self.audit_queue(bank, asked)?;
        match self.requests() == asked {
            true => Ok(()),
            false => Err(Fault::Asked(asked)),
        }
    }

    fn audit_queue(&self, bank: &impl Bank, asked: Asked) -> Result<(), Fault> {
        for (n, waiting) in self.queued().iter().enumerate() {
            let intid = waiting.intid();
            let listed = (0..bank.count()).map(|slot| bank.read(slot));
            let mut listed = listed.filter(|one| one.is_pending() || one.is_active());
            let mut rest = self.queued()[n + 1..].iter();
            if listed.any(|one| one.intid() == intid) || rest.any(|one| one.intid() == intid) {
                return Err(Fault::Queued(intid));
            }
            if waiting.is_active() && !asked.traps {
                return Err(Fault::Unseen(intid));
            }
            if waiting.is_waiting() && !asked.refill {
                return Err(Fault::Forgotten(intid));
            }
        }
        Ok(())
    }

    /// Like [`Self::audit`], for use after the guest has ended every interrupt, while no vCPU sends
    /// any: no interrupt may be left. If hardware delivers (`direct`), vCPUs may send, and only the
    /// list registers and the queue have to be empty.
    ///
    /// # Errors
    /// Returns the first rule that does not hold.
    pub fn audit_quiet(
        &self,
        bank: &impl Bank,
        private: &Private,
        direct: bool,
    ) -> Result<(), Fault> {
        let listed = (0..bank.count()).map(|slot| bank.read(slot));
        let mut listed = listed.filter(|one| one.is_pending() || one.is_active());
        if let Some(left) = listed.next() {
            return Err(Fault::Listed(left.intid()));
        }
        if let Some(left) = self.queued().first() {
            return Err(Fault::Forgotten(left.intid()));
        }
        match (private.deliverable(), private.unserved_intids()) {
            _ if direct => Ok(()),
            (0, 0) => Ok(()),
            (0, bits) => Err(Fault::Requested(bits)),
            (bits, _) => Err(Fault::Pending(bits)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ListRegister;
    use crate::list::tests::Fake;

    const VCPU: Vcpu = Vcpu {
        number: 1,
        affinity: 0x100,
    };

    fn audit(list: &List, bank: &Fake) -> Result<(), Fault> {
        list.audit(bank, &Distributor::new(2), VCPU, bank.asked)
    }

    fn bank_with(registers: &[ListRegister]) -> Fake {
        let mut bank = Fake::new(4);
        bank.registers[..registers.len()].copy_from_slice(registers);
        bank
    }

    #[test]
    fn what_the_list_does_keeps_the_rules() {
        let (mut list, mut bank) = (List::new(), Fake::new(4));
        for intid in (0..20).chain(5..10) {
            list.inject(&mut bank, intid, 0x80, None);
            assert_eq!(audit(&list, &bank), Ok(()));
        }
        for intid in 0..20 {
            list.withdraw(&mut bank, intid);
            assert_eq!(audit(&list, &bank), Ok(()));
        }
        assert_eq!(list.audit_quiet(&bank, &Private::new(), false), Ok(()));
    }

    #[test]
    fn each_fault_of_list_registers_is_found() {
        let pending = |intid| ListRegister::pending(intid, 0x80, None);
        for (registers, fault) in [
            (&[pending(3), pending(3)][..], Fault::ListedTwice(3)),
            (
                &[pending(3), pending(3).with_active()],
                Fault::ListedTwice(3),
            ),
            (&[pending(200)], Fault::Unknown(200)),
            (&[pending(40)], Fault::NotHeld(40)),
        ] {
            assert_eq!(audit(&List::new(), &bank_with(registers)), Err(fault));
        }
    }

    #[test]
    fn each_fault_of_the_queue_is_found() {
        let (mut list, mut bank) = (List::new(), Fake::new(4));
        for intid in 0..6 {
            list.inject(&mut bank, intid, 0x80, None);
        }
        let queued = list.queued()[0].intid();
        bank.asked = Asked::default();
        assert_eq!(audit(&list, &bank), Err(Fault::Forgotten(queued)));
        bank.registers[0] = ListRegister::pending(queued, 0x80, None);
        assert_eq!(audit(&list, &bank), Err(Fault::Queued(queued)));
    }

    #[test]
    fn requests_that_are_not_recorded_are_found() {
        let mut bank = Fake::new(4);
        bank.asked.refill = true;
        assert_eq!(audit(&List::new(), &bank), Err(Fault::Asked(bank.asked)));
    }

    #[test]
    fn what_is_left_is_found() {
        let quiet = |bank: &Fake, private: &Private| List::new().audit_quiet(bank, private, false);
        let private = Private::new();
        private.set_pending(4);
        assert_eq!(quiet(&Fake::new(4), &private), Ok(()), "it is disabled");
        private
            .enabled
            .fetch_or(1 << 4, core::sync::atomic::Ordering::Relaxed);
        private.refresh(true);
        assert_eq!(quiet(&Fake::new(4), &private), Err(Fault::Pending(0x10)));
        let active = ListRegister::pending(7, 0, None).with_active();
        assert_eq!(
            quiet(&bank_with(&[active]), &Private::new()),
            Err(Fault::Listed(7))
        );
    }
}
