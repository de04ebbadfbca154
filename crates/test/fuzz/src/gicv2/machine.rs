// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual GICv2 of crate `vgic`, with a model of GICH and GICV for each vCPU. The calls are modelled on
//! `hypervisor/src/interrupts/version2.rs` and `hypervisor/src/interrupts/irq.rs`.

use std::cell::RefCell;

use vgic::version2::{Changed, Frame, SENDERS, Sgi, Target};
use vgic::{
    Access, Asked, Bank, Delivery, Distributor, Due, List, ListRegister, Maintenance, Private, Vcpu,
};

use super::interface::Interface;
use super::spec::{CPUS, INTERFACES};
use crate::gic::machine::{LINES, Physical, TIMERS};

/// The lowest SGI that reaches another CPU as a request; lower ones are sent physically.
const DOORBELL: u32 = 7;

/// Offsets of registers in the guest's CPU interface.
pub const CONTROL: u64 = 0x00;
pub const MASK: u64 = 0x04;
pub const ACKNOWLEDGE: [u64; 2] = [0x0c, 0x20];
pub const END: [u64; 2] = [0x10, 0x24];
pub const DEACTIVATE: u64 = 0x1000;

/// The part of the machine that belongs to one vCPU.
#[derive(Debug)]
pub struct ModelCpu {
    pub private: Private,
    list: List,
    pub interface: Interface,
    pub physical: Physical,
    /// Whether EL2 emulates the interface even if nothing requires that.
    pub closed: bool,
}

/// The hardware that [`vgic::Interface`] requires.
pub struct Hardware<'a> {
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
    const SGIS: u32 = 0;

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
            affinity: self.number as u64,
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
    fn kind(&self) -> u64 {
        4 << 29 | 4 << 26
    }

    fn ranges(&self) -> u64 {
        0
    }

    fn settings(&self) -> u64 {
        self.interface.settings
    }

    fn set_settings(&mut self, settings: u64) {
        self.interface.settings = settings;
    }

    fn active_priorities(&self, _: usize) -> u32 {
        self.interface.running
    }

    fn set_active_priorities(&mut self, _: usize, bits: u32) {
        self.interface.running = bits;
    }
}

/// A machine with [`CPUS`] vCPUs.
#[derive(Debug)]
pub struct Machine {
    pub cpus: [ModelCpu; CPUS],
    distributor: RefCell<Distributor>,
    targets: [Target; CPUS],
}

impl Machine {
    /// Creates a machine with `registers` list registers per CPU.
    pub fn new(registers: usize) -> Self {
        let mut distributor = Distributor::new(CPUS);
        distributor.become_version2();
        Self {
            cpus: core::array::from_fn(|_| ModelCpu {
                private: Private::new(),
                list: List::new(),
                interface: Interface::new(registers),
                physical: Physical::default(),
                closed: false,
            })
            .map(|cpu| {
                cpu.private.become_version2();
                cpu
            }),
            distributor: RefCell::new(distributor),
            targets: core::array::from_fn(|n| Target {
                interface: INTERFACES[n],
                affinity: n as u64,
            }),
        }
    }

    /// Accesses a register of the distributor other than GICD_SGIR, from CPU `by`.
    pub fn access(&mut self, by: usize, access: Access) -> u64 {
        if SENDERS.contains(&access.offset) {
            let value = self.delivery(by).access_senders(access);
            self.evaluate(by);
            return value;
        }
        if (0x200..0x400).contains(&access.offset) {
            self.delivery(by).publish();
        }
        let mut frame = Frame {
            distributor: self.distributor.get_mut(),
            private: &self.cpus[by].private,
            me: INTERFACES[by],
            lines: self.cpus[by].physical.lines,
            cpus: &self.targets,
        };
        let (value, changed) = frame.access(access);
        match changed {
            Changed::Nothing => {}
            Changed::Here => self.evaluate(by),
            Changed::Everywhere => {
                let distributor = self.distributor.get_mut();
                let cpus = self.cpus.iter();
                cpus.for_each(|cpu| distributor.forward(&cpu.private));
                (0..CPUS).for_each(|cpu| self.evaluate(cpu));
            }
        }
        value
    }

    /// Writes GICD_SGIR on CPU `by`.
    pub fn send(&mut self, by: usize, value: u64) {
        let all = INTERFACES.iter().fold(0, |all, one| all | 1 << one);
        let Some(Sgi { intid, targets }) = Sgi::decode(value, INTERFACES[by], all) else {
            return;
        };
        for target in (0..CPUS).filter(|&cpu| targets >> INTERFACES[cpu] & 1 != 0) {
            self.arrive(target, intid, INTERFACES[by]);
        }
    }

    /// Makes SGI `intid` from interface `sender` arrive at `cpu`.
    pub fn arrive(&mut self, cpu: usize, intid: u32, sender: u32) {
        self.cpus[cpu].private.send(intid, sender);
        match intid {
            0..DOORBELL => drop(self.delivery(cpu).inject_sgis()),
            _ => self.evaluate(cpu),
        }
    }

    /// Returns the delivery of interrupts to the vCPU on `cpu`.
    pub fn delivery(&mut self, cpu: usize) -> Delivery<'_, Hardware<'_>, &RefCell<Distributor>> {
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

    /// Accesses the guest's interface: emulates the access if the interface is closed or traps, else uses the hardware.
    pub fn interface(&mut self, cpu: usize, offset: u64, write: Option<u64>) -> u64 {
        self.delivery(cpu).sample();
        let one = &mut self.cpus[cpu];
        if one.closed || one.interface.asked().traps {
            return self.emulate(cpu, offset, 4, write);
        }
        let interface = &mut one.interface;
        let is = |registers: [u64; 2]| registers.iter().position(|one| *one == offset);
        match (write, is(ACKNOWLEDGE), is(END)) {
            (None, Some(n), _) => return interface.acknowledge(n == 1).into(),
            (Some(value), _, Some(_)) => interface.end(value as u32),
            (Some(value), ..) if offset == DEACTIVATE => interface.deactivate(value as u32),
            (Some(value), ..) if offset == MASK => {
                interface.settings = interface.settings & !(0xff << 24) | (value & 0xf8) << 24;
            }
            (Some(value), ..) => interface.settings = interface.settings & !0x21f | value,
            (None, ..) => unreachable!("no step reads {offset:#x}"),
        }
        one.physical.active &= !one.interface.take_ended_physically();
        0
    }

    /// Emulates an access to the guest's interface.
    pub fn emulate(&mut self, cpu: usize, offset: u64, size: u32, write: Option<u64>) -> u64 {
        let access = Access {
            offset,
            size,
            write,
        };
        let (value, due) = self.delivery(cpu).access_interface(access);
        match due {
            Due::Nothing => {}
            Due::Here => self.evaluate(cpu),
            Due::Everywhere => (0..CPUS).for_each(|cpu| self.evaluate(cpu)),
        }
        value
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

    /// Returns whether `intid` is active in the list of `cpu`.
    pub fn is_active(&self, cpu: usize, intid: u32) -> bool {
        let one = &self.cpus[cpu];
        one.list.state(&one.interface, intid).active
    }

    /// Updates the interrupts of `cpu` after registers have changed, and the other CPUs' interrupts if needed.
    pub fn evaluate(&mut self, cpu: usize) {
        if self.delivery(cpu).evaluate() {
            let others = (0..CPUS).filter(|&other| other != cpu);
            others.for_each(|other| self.evaluate(other));
        }
    }

    /// Makes every CPU publish its states, so that none is stale.
    pub fn publish_all(&mut self) {
        (0..CPUS).for_each(|cpu| self.delivery(cpu).publish());
    }

    /// Checks the invariants of the lists.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn audit(&mut self) {
        for cpu in 0..CPUS {
            let delivery = self.delivery(cpu);
            let found = (delivery.audit(false, false), delivery.stray());
            assert_eq!(found, (Ok(()), 0), "CPU {cpu}");
        }
        let spis = self.cpus.iter().flat_map(|cpu| cpu.interface.used());
        let mut spis: Vec<u32> = spis.map(|one| one.intid()).collect();
        spis.retain(|intid| *intid >= vgic::PRIVATE);
        spis.sort_unstable();
        let twice = spis.windows(2).find(|pair| pair[0] == pair[1]);
        assert_eq!(twice, None, "an SPI is in two lists");
    }

    /// Sets the level of the interrupt line of timer `intid` on `cpu`.
    pub fn set_line(&mut self, cpu: usize, intid: u32, high: bool) {
        assert!(TIMERS.contains(&intid), "it has a line");
        let lines = &mut self.cpus[cpu].physical.lines;
        *lines = *lines & !(1 << intid) | u32::from(high) << intid;
    }
}
