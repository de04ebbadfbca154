// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual GIC of crate `vgic`, with a model of the CPU interface for each vCPU. [`vgic::Delivery`] connects the
//! parts, as in the hypervisor. The calls are modelled on `hypervisor/src/exits/mmio.rs` and
//! `hypervisor/src/interrupts/irq.rs`.

use std::cell::RefCell;

use trap::interface::Register;
use vgic::{
    Access, Asked, Bank, Delivery, Distributor, Due, List, ListRegister, Maintenance, Private,
    Redistributor, Vcpu,
};

use super::interface::Interface;
use super::spec::{CPUS, affinity};

/// Offset of a redistributor's second frame.
const SGI_FRAME: u64 = 0x1_0000;

/// INTIDs of the timers. Each timer has an interrupt line, and a physical interrupt with the same INTID.
pub const TIMERS: [u32; 2] = [27, 30];
/// [`TIMERS`] as a mask.
pub const LINES: u32 = 1 << TIMERS[0] | 1 << TIMERS[1];

/// A CPU's physical interrupts for the guest's timers, one bit each. As on hardware, EL2 takes these interrupts, and
/// list registers end them.
#[derive(Debug, Default)]
pub struct Physical {
    /// Interrupts whose interrupt line is high.
    pub lines: u32,
    enabled: u32,
    /// Interrupts that EL2 has taken and that have not been ended since.
    pub active: u32,
}

impl Physical {
    /// Enables the interrupts in `on`, and disables the ones in `off`.
    pub fn enable(&mut self, on: u32, off: u32) {
        self.enabled = self.enabled & !off | on;
    }

    /// Ends an interrupt.
    ///
    /// # Panics
    /// Panics if the interrupt is not active: ending an interrupt that was not taken is UNPREDICTABLE (IHI 0069H, 12.2,
    /// ICC_CTLR_EL1).
    pub fn deactivate(&mut self, intid: u32) {
        assert!(self.active >> intid & 1 != 0, "{intid} is active");
        self.active &= !(1 << intid);
    }

    /// Takes the signalled interrupts, and makes them active.
    pub fn take_signalled(&mut self) -> u32 {
        let signalled = self.lines & self.enabled & !self.active;
        self.active |= signalled;
        signalled
    }
}

/// The part of the machine that belongs to one vCPU.
#[derive(Debug)]
pub struct ModelCpu {
    /// The registers of the vCPU's private interrupts.
    pub private: Private,
    /// The vCPU's list of interrupts.
    pub list: List,
    /// The vCPU's CPU interface.
    pub interface: Interface,
    /// The state of the physical interrupts of the vCPU's timers.
    pub physical: Physical,
    /// Whether the vCPU has published its state to the other vCPUs since the last [`Machine::take_shown`].
    shown: bool,
}

/// The hardware that [`vgic::Interface`] requires: models of the CPU interface and of the physical interrupts.
struct Hardware<'a> {
    number: usize,
    interface: &'a mut Interface,
    physical: &'a mut Physical,
}

impl Bank for Hardware<'_> {
    fn count(&self) -> usize {
        self.interface.count()
    }

    fn empty(&self) -> u32 {
        self.interface.empty()
    }

    fn read(&self, n: usize) -> ListRegister {
        self.interface.read(n)
    }

    fn write(&mut self, n: usize, value: ListRegister) {
        self.interface.write(n, value);
    }

    fn ask(&mut self, asked: Asked) {
        self.interface.ask(asked);
    }
}

impl vgic::Interface for Hardware<'_> {
    const SGIS: u32 = 0xff;

    fn ended(&self) -> u32 {
        self.interface.ended()
    }

    fn asked(&self) -> Asked {
        self.interface.asked()
    }

    fn timers(&self) -> u32 {
        LINES
    }

    fn lines(&self) -> u32 {
        self.physical.lines
    }

    fn vcpu(&self) -> Vcpu {
        Vcpu {
            number: self.number,
            affinity: affinity(self.number),
        }
    }

    fn enable(&mut self, on: u32, off: u32) {
        self.physical.enable(on, off);
    }

    fn clear_active(&mut self, intids: u32) {
        self.physical.active &= !intids;
    }

    fn deactivate(&mut self, intid: u32) {
        self.physical.deactivate(intid);
    }

    fn active(&self) -> u32 {
        self.physical.active
    }
}

impl vgic::Registers for Hardware<'_> {
    /// Returns ICH_VTR_EL2 with five priority bits, all of which count for preemption.
    fn kind(&self) -> u64 {
        4 << 29 | 4 << 26
    }

    fn ranges(&self) -> u64 {
        0
    }

    fn settings(&self) -> u64 {
        self.interface.settings()
    }

    fn set_settings(&mut self, settings: u64) {
        self.interface.set_settings(settings);
    }

    fn active_priorities(&self, n: usize) -> u32 {
        assert_eq!(n, 0, "there is one");
        self.interface.running
    }

    fn set_active_priorities(&mut self, n: usize, bits: u32) {
        assert_eq!(n, 0, "there is one");
        self.interface.running = bits;
    }
}

/// A machine with [`CPUS`] vCPUs.
#[derive(Debug)]
pub struct Machine {
    /// The machine's vCPUs.
    pub cpus: [ModelCpu; CPUS],
    /// The distributor that the vCPUs share.
    pub distributor: RefCell<Distributor>,
}

impl Machine {
    /// Creates a machine with `registers` list registers per CPU.
    pub fn new(registers: usize) -> Self {
        Self {
            cpus: core::array::from_fn(|_| ModelCpu {
                private: Private::new(),
                list: List::new(),
                interface: Interface::new(registers),
                physical: Physical::default(),
                shown: false,
            }),
            distributor: RefCell::new(Distributor::new(CPUS)),
        }
    }

    /// Accesses the distributor from CPU `by`.
    pub fn access_gicd(&mut self, by: usize, offset: u64, size: u32, write: Option<u64>) -> u64 {
        self.publish(by);
        let (value, changed) = self.distributor.get_mut().access(Access {
            offset,
            size,
            write,
        });
        if changed {
            (0..CPUS).for_each(|cpu| self.evaluate(cpu));
        }
        value
    }

    /// Accesses the second frame of CPU `of`'s redistributor, from CPU `by`.
    pub fn access_private(
        &mut self,
        by: usize,
        of: usize,
        offset: u64,
        size: u32,
        write: Option<u64>,
    ) -> u64 {
        self.access_gicr(by, of, SGI_FRAME + offset, size, write)
    }

    /// Accesses the redistributor of CPU `of`, from CPU `by`.
    pub fn access_gicr(
        &mut self,
        by: usize,
        of: usize,
        offset: u64,
        size: u32,
        write: Option<u64>,
    ) -> u64 {
        if by == of {
            self.publish(of);
        }
        let frames = Redistributor {
            private: &self.cpus[of].private,
            affinity: affinity(of),
            number: of,
            last: of + 1 == CPUS,
            lines: self.cpus[of].physical.lines,
        };
        let (value, changed) = frames.access(Access {
            offset,
            size,
            write,
        });
        if changed {
            self.evaluate(of);
        }
        value
    }

    /// Returns the delivery of interrupts to the vCPU on `cpu`.
    fn delivery(&mut self, cpu: usize) -> Delivery<'_, Hardware<'_>, &RefCell<Distributor>> {
        let one = &mut self.cpus[cpu];
        Delivery {
            private: &one.private,
            list: &mut one.list,
            interface: Hardware {
                number: cpu,
                interface: &mut one.interface,
                physical: &mut one.physical,
            },
            shared: &self.distributor,
        }
    }

    /// Makes an SGI pending on `cpu`, as a physical interrupt or through a request to EL2.
    pub fn inject(&mut self, cpu: usize, intid: u32) {
        let physical = <Hardware<'_> as vgic::Interface>::SGIS >> intid & 1 != 0;
        let mut delivery = self.delivery(cpu);
        if !(physical && delivery.arrive(intid)) {
            delivery.inject(intid, None);
        }
    }

    /// Takes every signalled physical timer interrupt.
    pub fn take_timers(&mut self) {
        for cpu in 0..CPUS {
            let signalled = self.cpus[cpu].physical.take_signalled();
            let mut delivery = self.delivery(cpu);
            for intid in vgic::ones(signalled.into()) {
                if !delivery.arrive(intid) {
                    delivery.inject(intid, Some(intid));
                }
            }
        }
    }

    /// Makes EL2 sample the interrupt lines of `cpu`.
    pub fn sample(&mut self, cpu: usize) {
        self.delivery(cpu).sample();
    }

    /// Acknowledges an interrupt on `cpu`, with IRQs masked. EL2 samples the interrupt lines first.
    pub fn acknowledge(&mut self, cpu: usize) -> Option<u32> {
        self.sample(cpu);
        match self.try_trap(cpu, Register::Acknowledge, None) {
            Some(intid) => Some(intid as u32).filter(|&intid| intid != 1023),
            None => self.cpus[cpu].interface.acknowledge(),
        }
    }

    /// Ends `intid` on `cpu`.
    pub fn end(&mut self, cpu: usize, intid: u32) {
        let write = Some(intid.into());
        if self.try_trap(cpu, Register::End, write).is_none() {
            self.cpus[cpu].interface.end(intid);
            self.end_physically(cpu);
        }
    }

    /// Deactivates `intid` on `cpu`.
    pub fn deactivate(&mut self, cpu: usize, intid: u32) {
        let write = Some(intid.into());
        if self.try_trap(cpu, Register::Deactivate, write).is_none() {
            self.cpus[cpu].interface.deactivate(intid);
            self.end_physically(cpu);
        }
    }

    fn end_physically(&mut self, cpu: usize) {
        let one = &mut self.cpus[cpu];
        one.physical.active &= !one.interface.take_ended_physically();
    }

    /// Accesses a register of `cpu`'s CPU interface if the access traps, and returns the value read. Returns `None` if
    /// the access does not trap.
    pub fn try_trap(&mut self, cpu: usize, register: Register, write: Option<u64>) -> Option<u64> {
        if !self.cpus[cpu].interface.asked().traps {
            return None;
        }
        let access = self.delivery(cpu).access(register, write);
        let (value, due) = access.expect("there is such a register");
        match due {
            Due::Nothing => {}
            Due::Here => self.evaluate(cpu),
            Due::Everywhere => (0..CPUS).for_each(|cpu| self.evaluate(cpu)),
        }
        Some(value)
    }

    /// Takes every asserted maintenance interrupt.
    pub fn maintenance(&mut self) {
        for cpu in 0..CPUS {
            let mut taken = 0;
            while self.cpus[cpu].interface.maintenance() {
                match self.delivery(cpu).maintain() {
                    Maintenance::Ended => self.evaluate(cpu),
                    Maintenance::Refilled => {}
                    Maintenance::Nothing => panic!("it was for nothing"),
                }
                taken += 1;
                assert!(taken < 100, "the maintenance interrupt never ends");
            }
        }
    }

    /// Removes all pending interrupts from the list registers of `cpu` and lists them again, as a change of delivery
    /// does.
    pub fn drain(&mut self, cpu: usize) {
        let mut delivery = self.delivery(cpu);
        // The hypervisor does not change the delivery while an interrupt is active.
        if delivery.has_active() {
            return;
        }
        delivery.unlist();
        if delivery.release_spis() {
            let others = (0..CPUS).filter(|&other| other != cpu);
            others.for_each(|other| self.evaluate(other));
        }
        self.evaluate(cpu);
    }

    /// Returns whether an interrupt is active on `cpu`.
    pub fn has_active(&mut self, cpu: usize) -> bool {
        self.delivery(cpu).has_active()
    }

    /// Returns whether `intid` is active in the list of `cpu`.
    pub fn is_active(&self, cpu: usize, intid: u32) -> bool {
        let one = &self.cpus[cpu];
        one.list.state(&one.interface, intid).active
    }

    /// Updates the interrupts of `cpu` after registers have changed, and the other CPUs' interrupts if needed.
    pub fn evaluate(&mut self, cpu: usize) {
        self.cpus[cpu].shown = true;
        if self.delivery(cpu).evaluate() {
            let others = (0..CPUS).filter(|&other| other != cpu);
            others.for_each(|other| self.evaluate(other));
        }
    }

    /// Returns the CPUs that have published their state since the last call.
    pub fn take_shown(&mut self) -> Vec<usize> {
        let shown = |cpu: &usize| core::mem::take(&mut self.cpus[*cpu].shown);
        (0..CPUS).filter(shown).collect()
    }

    fn publish(&mut self, cpu: usize) {
        self.cpus[cpu].shown = true;
        self.delivery(cpu).publish();
    }

    /// Returns the result of [`Delivery::audit`] for `cpu`, and the physical interrupts that are needlessly active.
    pub fn audit(&mut self, cpu: usize) -> (Result<(), vgic::Fault>, u32) {
        let delivery = self.delivery(cpu);
        (delivery.audit(false, false), delivery.stray())
    }

    /// Returns an interrupt that is listed twice, and a CPU that lists it. A private interrupt is listed twice if it is
    /// in two list registers of one CPU, and an SPI if it is in any two list registers.
    pub fn listed_twice(&self) -> Option<(usize, u32)> {
        let cpus = self.cpus.iter().enumerate();
        let mut listed: Vec<(usize, u32)> = cpus
            .flat_map(|(cpu, one)| {
                let used = one.interface.used().map(|one| one.intid());
                used.map(move |intid| (if intid < vgic::PRIVATE { cpu } else { CPUS }, intid))
            })
            .collect();
        listed.sort_unstable();
        let mut pairs = listed.windows(2);
        pairs.find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// Returns whether `intid` waits for a list register of `cpu`.
    pub fn is_queued(&self, cpu: usize, intid: u32) -> bool {
        let ModelCpu {
            list, interface, ..
        } = &self.cpus[cpu];
        let state = list.state(interface, intid);
        let listed = interface.used().any(|one| one.intid() == intid);
        !listed && state.pending && !state.active
    }
}
