// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything about the interrupts of one vCPU on the CPU that runs it: the registers of its
//! redistributor ([`Private`]), its list ([`List`]), the distributor that it shares with other vCPUs,
//! and the timers' lines that drive some of its PPIs.
//!
//! A hypervisor implements [`Interface`] with a CPU's registers, and a test with a model of them;
//! this module works with both.

use core::cell::RefCell;

use crate::PRIVATE;
use crate::audit::Fault;
use crate::bits::ones;
use crate::distributor::{Distributor, Vcpu};
use crate::list::List;
use crate::lr::{Asked, Bank, ListRegister};
use crate::private::Private;

/// The hardware that a CPU has for the interrupts of its vCPU: list registers, and the physical
/// interrupts of the guest's timers. A set of INTIDs has one bit per INTID.
pub trait Interface: Bank {
    /// SGIs that arrive as physical SGIs. The remaining SGIs arrive as requests from another CPU.
    const SGIS: u32;

    /// List registers that signal the end of their interrupt, one bit each (ICH_EISR_EL2).
    fn ended(&self) -> u32;
    /// The last request of [`Bank::ask`], as the CPU's register holds it.
    fn asked(&self) -> Asked;
    /// PPIs that are each mapped to the physical interrupt with the same number.
    fn timers(&self) -> u32;
    /// Timers of [`Self::timers`] whose lines are high.
    fn lines(&self) -> u32;
    /// The vCPU, as the distributor knows it.
    fn vcpu(&self) -> Vcpu;
    /// Enables the physical interrupts in `on`, and disables the ones in `off`.
    fn enable(&mut self, on: u32, off: u32);
    /// Ends physical interrupts by a register write (GICR_ICACTIVER0).
    fn clear_active(&mut self, intids: u32);
    /// Ends physical interrupt `intid`, which this CPU has taken (ICC_DIR_EL1).
    fn deactivate(&mut self, intid: u32);
    /// Physical interrupts that are active (GICR_ISACTIVER0).
    fn active(&self) -> u32;
}

/// The distributor, which every vCPU of a guest shares.
pub trait Shared {
    /// Runs `use_it` with exclusive access to the distributor.
    fn with<R>(&self, use_it: impl FnOnce(&mut Distributor) -> R) -> R;
}

impl Shared for &RefCell<Distributor> {
    fn with<R>(&self, use_it: impl FnOnce(&mut Distributor) -> R) -> R {
        use_it(&mut self.borrow_mut())
    }
}

/// Purpose of a maintenance interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintenance {
    /// The interrupt has none of the purposes below: something else made it pending.
    Nothing,
    /// An interrupt that waited for a list register has got one.
    Refilled,
    /// The guest has ended an interrupt that another vCPU waits for: the caller must call [`Delivery::evaluate`].
    Ended,
}

/// The interrupts of a vCPU, on the CPU that runs it.
#[derive(Debug)]
pub struct Delivery<'a, I, S> {
    /// The vCPU's SGIs and PPIs.
    pub private: &'a Private,
    /// Interrupts in the vCPU's list registers, or waiting for one.
    pub list: &'a mut List,
    /// The CPU's registers.
    pub interface: I,
    /// The distributor.
    pub shared: S,
}

impl<I: Interface, S: Shared> Delivery<'_, I, S> {
    /// Lists SGI or PPI `intid`, which arrived physically, if nothing else has to be done; returns
    /// whether it was listed. A hypervisor may implement this in assembly, and continue with
    /// [`Self::inject`] if it returns `false`.
    #[inline(always)]
    pub fn arrive(&mut self, intid: u32) -> bool {
        self.list.arrive(&mut self.interface, intid)
    }

    /// Makes SGI or PPI `intid` pending; returns whether it was listed. `hw` is the physical
    /// interrupt to which it is mapped, if any; the physical interrupt is active at that time.
    #[inline(always)]
    pub fn inject(&mut self, intid: u32, hw: Option<u32>) -> bool {
        match self.private.ready(intid) {
            Some(priority) => {
                self.list
                    .inject_last(&mut self.interface, intid, priority, hw);
                return true;
            }
            None if hw.is_none() => self.private.set_pending(intid),
            // Another CPU has just disabled `intid`. The interrupt stays physically active until this CPU's
            // pending call of `evaluate` clears the active state, so that the line can interrupt again.
            None => {}
        }
        false
    }

    /// Whether the guest has an interrupt to acknowledge, as of the last read of the lines
    /// ([`Self::sample`]).
    #[inline(always)]
    pub fn deliverable(&self) -> bool {
        self.list.deliverable(&self.interface)
    }

    /// Whether the guest has an active interrupt.
    pub fn has_active(&self) -> bool {
        self.list.has_active(&self.interface)
    }

    /// Serves the maintenance interrupt. If the result is [`Maintenance::Ended`], the caller has to
    /// call [`Self::evaluate`]; if it is [`Maintenance::Refilled`], the caller must execute a context
    /// synchronization event before the next read of a list register's state.
    #[inline(always)]
    pub fn maintain(&mut self) -> Maintenance {
        if self.interface.ended() != 0 {
            Maintenance::Ended
        } else if self.list.maintain(&mut self.interface) {
            Maintenance::Refilled
        } else {
            Maintenance::Nothing
        }
    }

    /// Brings the list registers in line with the registers of the virtual interrupt controller
    /// after a write. Returns whether every other vCPU has to do the same, because one of them may
    /// now get an interrupt that this vCPU has released.
    #[must_use]
    pub fn evaluate(&mut self) -> bool {
        let (private, interface) = (self.private, &mut self.interface);
        let list = &mut *self.list;
        let vcpu = interface.vcpu();
        let (listed, others) = self.shared.with(|distributor| {
            let listed = list.sync(interface, private, distributor.forwards());
            expect_arrivals(list, interface, private);
            let others = list.sync_spis(interface, distributor, vcpu);
            (listed, others)
        });
        self.follow_timers();
        self.release_timers(listed);
        others
    }

    /// Serves the requests of other CPUs about the vCPU's SGIs and PPIs.
    pub(crate) fn sync(&mut self) {
        let forward = self.shared.with(|distributor| distributor.forwards());
        self.list.sync(&mut self.interface, self.private, forward);
    }

    /// Makes SGI or PPI `intid` active.
    pub(crate) fn activate(&mut self, intid: u32) {
        let priority = self.private.priority(intid);
        self.list
            .set_active(&mut self.interface, intid, priority, true);
    }

    /// Enables the physical interrupts of the timers whose virtual interrupts can be delivered. If
    /// another timer's line is high, its interrupt stays pending in the physical GIC until the line goes low.
    pub fn follow_timers(&mut self) {
        let timers = self.interface.timers();
        let ready = self.private.ready_intids() & timers;
        self.interface.enable(ready, timers & !ready);
    }

    /// The physical interrupt of a timer is active from the time it is taken until its virtual
    /// interrupt ends. The virtual interrupt may have been ended by a register write or taken back,
    /// or it may now be a software interrupt, whose end does not reach the physical one. So this
    /// function deactivates the physical interrupts of all timers outside `listed`. A timer's
    /// interrupt arrives again if its line is high.
    fn release_timers(&mut self, listed: u32) {
        let timers = self.interface.timers();
        self.interface.clear_active(timers & !listed);
    }

    /// Reads the lines. For each line that is now low, takes its interrupt out of the list and
    /// deactivates the physical interrupt, so that the line can interrupt again.
    pub fn sample(&mut self) {
        let low = self.interface.timers() & !self.interface.lines();
        let lowered = self.list.lower(&mut self.interface, low);
        ones(lowered.into()).for_each(|intid| self.interface.deactivate(intid));
    }

    /// Publishes this vCPU's pending and active state to the other vCPUs.
    pub fn publish(&mut self) {
        self.sample();
        let (list, interface) = (&*self.list, &self.interface);
        list.publish(interface, self.private);
        let vcpu = interface.vcpu();
        self.shared
            .with(|distributor| list.publish_spis(interface, distributor, vcpu));
    }

    /// Moves pending interrupts from the list back to the registers of the virtual interrupt controller.
    pub fn unlist(&mut self) {
        let (private, shared) = (self.private, &self.shared);
        self.list.drain(&mut self.interface, |one| match one.hw() {
            // The timer's line makes the interrupt pending again.
            Some(_) => {}
            None if one.intid() < PRIVATE => private.give_back(1 << one.intid()),
            None => shared.with(|distributor| distributor.give_back(one.intid())),
        });
        self.release_timers(0);
    }

    /// Releases the SPIs that were listed here, after [`Self::unlist`]; returns whether another
    /// vCPU may be waiting for one of them.
    #[must_use]
    pub fn release_spis(&mut self) -> bool {
        let vcpu = self.interface.vcpu();
        self.shared.with(|distributor| distributor.release(vcpu))
    }

    /// Checks that the list registers agree with the recorded state. `quiet` means that no
    /// interrupt is due for the guest; `direct` means that hardware delivers, so no list register
    /// may be in use.
    ///
    /// # Errors
    /// Returns the first violated rule.
    pub fn audit(&self, quiet: bool, direct: bool) -> Result<(), Fault> {
        let (list, interface) = (&*self.list, &self.interface);
        let vcpu = interface.vcpu();
        self.shared
            .with(|distributor| list.audit(interface, distributor, vcpu, interface.asked()))?;
        match quiet || direct {
            true => list.audit_quiet(interface, self.private, direct),
            false => Ok(()),
        }
    }

    /// Returns the physical interrupts that are active although the guest has no such interrupt.
    /// The hypervisor ends its own interrupts before it returns to the guest.
    pub fn stray(&self) -> u32 {
        let listed = ones(self.interface.timers().into()).filter(|&intid| {
            let state = self.list.state(&self.interface, intid);
            state.pending || state.active
        });
        let listed = listed.fold(0, |bits, intid| bits | 1 << intid);
        self.interface.active() & !listed & !self.private.pending()
    }
}

/// Sets the list register values for interrupts that arrive physically; [`Delivery::arrive`] uses
/// them without further checks.
fn expect_arrivals<I: Interface>(list: &mut List, interface: &I, private: &Private) {
    let timers = interface.timers();
    for intid in ones((I::SGIS | timers).into()) {
        let hw = (timers >> intid & 1 != 0).then_some(intid);
        let priority = private.ready(intid);
        let value = priority.map(|priority| ListRegister::pending(intid, priority, hw));
        list.expect_arrival(intid, value);
    }
}
