// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine: list registers of the vCPU's CPU, its physical redistributor, and the actions of
//! the vCPU and of other CPUs.

use std::cell::RefCell;

use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::SeqCst;
use vgic::switch::{EVALUATE, Physical, SGIS, Sent, Switch};
use vgic::{
    Access, Asked, Bank, Delivery, Distributor, Interface, List, ListRegister, Private,
    Redistributor, Vcpu,
};

/// Action of a vCPU; switches may be refused.
#[derive(Clone, Copy, Debug)]
pub enum Does {
    /// Makes hardware deliver.
    Direct,
    /// Makes the hypervisor deliver again.
    Inject,
    /// Turns itself off.
    Off,
}

/// Action of another CPU on an interrupt.
#[derive(Clone, Copy, Debug)]
pub enum Writes {
    Set(u32),
    Clear(u32),
    Activate(u32),
    Deactivate(u32),
    Enable(u32),
    Disable(u32),
    /// Sends the interrupt as the physical SGI with its number.
    SendLow(u32),
    /// Sends the interrupt through the pending word.
    SendHigh(u32),
}

/// The vCPU's interrupt delivery on its CPU.
pub type OnCpu<'a> = Delivery<'a, Hardware, &'a RefCell<Distributor>>;

/// The switch, or a mutant that breaks a rule.
pub trait Protocol: Send + Sync + 'static {
    fn new() -> Self;
    fn is_direct(&self) -> bool;
    fn take(&self) -> u32;
    fn send(&self, bits: u32, private: &Private, gicr: &Gicr) -> Sent;
    fn to_hardware(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) -> Option<u32>;
    fn to_hypervisor(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) -> Option<()>;
    fn reclaim(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr);
    fn write(&self, private: &Private, gicr: &Gicr) -> bool;
}

impl Protocol for Switch {
    fn new() -> Self {
        Self::new()
    }

    fn is_direct(&self) -> bool {
        self.is_direct()
    }

    fn take(&self) -> u32 {
        self.take()
    }

    fn send(&self, bits: u32, private: &Private, gicr: &Gicr) -> Sent {
        self.send(bits, private, gicr, || true)
    }

    fn to_hardware(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) -> Option<u32> {
        self.to_hardware(delivery, gicr)
    }

    fn to_hypervisor(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) -> Option<()> {
        self.to_hypervisor(delivery, gicr)
    }

    fn reclaim(&self, delivery: &mut OnCpu<'_>, gicr: &Gicr) {
        self.reclaim(delivery, gicr);
    }

    fn write(&self, private: &Private, gicr: &Gicr) -> bool {
        self.write(private, gicr, || true)
    }
}

/// The doorbell, a PPI.
const DOORBELL: u32 = 1 << 25;

/// The physical redistributor: one word per register; each access is a step.
pub struct Gicr {
    pending: AtomicU32,
    active: AtomicU32,
    enabled: AtomicU32,
}

impl Physical for Gicr {
    fn timers(&self) -> u32 {
        0
    }

    fn sgis(&self) -> u32 {
        0xffff
    }

    fn pending(&self) -> u32 {
        self.pending.load(SeqCst)
    }

    fn active(&self) -> u32 {
        self.active.load(SeqCst)
    }

    fn set_pending(&self, intids: u32) {
        self.pending.fetch_or(intids, SeqCst);
    }

    fn clear_pending(&self, intids: u32) {
        self.pending.fetch_and(!intids, SeqCst);
    }

    fn set_active(&self, intids: u32) {
        self.active.fetch_or(intids, SeqCst);
    }

    fn clear_active(&self, intids: u32) {
        self.active.fetch_and(!intids, SeqCst);
    }

    fn enable(&self, intids: u32) {
        self.enabled.fetch_or(intids, SeqCst);
    }

    fn disable(&self, intids: u32) {
        self.enabled.fetch_and(!intids, SeqCst);
    }

    fn set_priority(&self, _: u32, _: u8) {}
}

/// State that all CPUs share.
pub struct World<P> {
    switch: P,
    private: Private,
    gicr: Gicr,
}

impl<P: Protocol> World<P> {
    /// Returns the state in which every SGI is enabled and the hypervisor delivers.
    pub fn new() -> Self {
        let world = Self {
            switch: P::new(),
            private: Private::new(),
            gicr: Gicr {
                pending: AtomicU32::new(0),
                active: AtomicU32::new(0),
                enabled: AtomicU32::new(SGIS),
            },
        };
        world.write_word(0x100, SGIS);
        world
    }

    fn write_word(&self, offset: u64, bits: u32) {
        let frames = Redistributor {
            private: &self.private,
            affinity: 0,
            number: 0,
            last: true,
            lines: 0,
        };
        let access = Access {
            offset: 0x1_0000 + offset,
            size: 4,
            write: Some(bits.into()),
        };
        assert!(frames.access(access).1);
    }

    /// Carries out the action of another CPU.
    pub fn write(&self, write: Writes) {
        let (offset, intid) = match write {
            Writes::SendLow(intid) => return self.gicr.set_pending(1 << intid),
            Writes::SendHigh(intid) => return self.send(1 << intid),
            Writes::Enable(intid) => (0x100, intid),
            Writes::Disable(intid) => (0x180, intid),
            Writes::Set(intid) => (0x200, intid),
            Writes::Clear(intid) => (0x280, intid),
            Writes::Activate(intid) => (0x300, intid),
            Writes::Deactivate(intid) => (0x380, intid),
        };
        self.write_word(offset, 1 << intid);
        self.send(EVALUATE);
    }

    fn send(&self, bits: u32) {
        match self.switch.send(bits, &self.private, &self.gicr) {
            Sent::Left { ring: true } => self.gicr.set_pending(DOORBELL),
            Sent::Left { ring: false } | Sent::Done => {}
        }
    }
}

/// List registers.
pub struct Hardware {
    registers: [ListRegister; 4],
    asked: Asked,
}

impl Bank for Hardware {
    fn count(&self) -> usize {
        self.registers.len()
    }

    fn empty(&self) -> u32 {
        let used = |one: &ListRegister| one.is_pending() || one.is_active();
        let registers = self.registers.iter().enumerate();
        registers.fold(0, |empty, (n, one)| empty | u32::from(!used(one)) << n)
    }

    fn read(&self, n: usize) -> ListRegister {
        self.registers[n]
    }

    fn write(&mut self, n: usize, value: ListRegister) {
        self.registers[n] = value;
    }

    fn ask(&mut self, asked: Asked) {
        self.asked = asked;
    }
}

impl Interface for Hardware {
    const SGIS: u32 = 0xff;

    fn ended(&self) -> u32 {
        0
    }

    fn asked(&self) -> Asked {
        self.asked
    }

    fn timers(&self) -> u32 {
        0
    }

    fn lines(&self) -> u32 {
        0
    }

    fn vcpu(&self) -> Vcpu {
        Vcpu {
            number: 0,
            affinity: 0,
        }
    }

    fn enable(&mut self, _: u32, _: u32) {}

    fn clear_active(&mut self, _: u32) {}

    fn deactivate(&mut self, _: u32) {}

    fn active(&self) -> u32 {
        0
    }
}

/// The CPU that runs the vCPU.
pub struct Target<'a, P> {
    world: &'a World<P>,
    list: List,
    hardware: Hardware,
    distributor: RefCell<Distributor>,
}

impl<'a, P: Protocol> Target<'a, P> {
    /// Returns a vCPU that runs and has nothing listed.
    pub fn new(world: &'a World<P>) -> Self {
        let mut distributor = Distributor::new(1);
        // GICD_CTLR.EnableGrp1.
        let _ = distributor.access(Access {
            offset: 0,
            size: 4,
            write: Some(2),
        });
        Self {
            world,
            list: List::new(),
            hardware: Hardware {
                registers: [ListRegister::EMPTY; 4],
                asked: Asked::default(),
            },
            distributor: RefCell::new(distributor),
        }
    }

    fn with<R>(&mut self, use_it: impl FnOnce(&World<P>, &mut OnCpu<'_>) -> R) -> R {
        let empty = Hardware {
            registers: [ListRegister::EMPTY; 4],
            asked: Asked::default(),
        };
        let mut delivery = Delivery {
            private: &self.world.private,
            list: &mut self.list,
            interface: core::mem::replace(&mut self.hardware, empty),
            shared: &self.distributor,
        };
        let result = use_it(self.world, &mut delivery);
        self.hardware = delivery.interface;
        result
    }

    /// Takes the interrupts that have arrived, and then does `what`.
    pub fn does(&mut self, what: Does) {
        self.take();
        match what {
            Does::Direct if self.world.switch.is_direct() => {}
            Does::Direct => {
                let done =
                    self.with(|world, delivery| world.switch.to_hardware(delivery, &world.gicr));
                match done {
                    Some(left) => {
                        assert_eq!(left, 0);
                        self.with(|_, delivery| assert!(!delivery.release_spis()));
                    }
                    None => self.serve(),
                }
            }
            Does::Inject if !self.world.switch.is_direct() => {}
            Does::Inject => {
                let done =
                    self.with(|world, delivery| world.switch.to_hypervisor(delivery, &world.gicr));
                if done.is_some() {
                    self.evaluate();
                }
            }
            Does::Off => {
                if self.world.switch.is_direct() {
                    self.with(|world, delivery| world.switch.reclaim(delivery, &world.gicr));
                    self.evaluate();
                }
            }
        }
    }

    /// Like `vgic_cpu::update_cpu`.
    pub fn evaluate(&mut self) {
        let world = self.world;
        if !world.switch.write(&world.private, &world.gicr) {
            self.with(|_, delivery| assert!(!delivery.evaluate()));
        }
    }

    /// Like `kick::serve_requests`.
    fn serve(&mut self) {
        let bits = self.world.switch.take();
        if bits & EVALUATE != 0 {
            self.evaluate();
        }
        for intid in vgic::ones((bits & SGIS).into()) {
            self.with(|_, delivery| delivery.inject(intid, None));
        }
    }

    /// Takes interrupts while they go to the hypervisor: the doorbell, which is the most urgent,
    /// and then SGIs.
    fn take(&mut self) {
        while !self.world.switch.is_direct() {
            let pending = self.world.gicr.pending();
            if pending & DOORBELL != 0 {
                self.world.gicr.clear_pending(DOORBELL);
                self.serve();
                continue;
            }
            if pending == 0 {
                break;
            }
            let intid = pending.trailing_zeros();
            self.world.gicr.clear_pending(1 << intid);
            self.with(|_, delivery| delivery.inject(intid, None));
        }
    }

    /// Takes interrupts that are still on their way; no CPU sends further ones.
    pub fn settle(&mut self) {
        self.take();
        let left = self.world.switch.take();
        assert_eq!(left, 0, "{left:#x} is left in the word");
    }

    /// Compares the state of each interrupt with the last writes to it.
    pub fn compare(&mut self, writers: &[&[Writes]]) {
        let gicr = &self.world.gicr;
        let (machine_pending, machine_active) = (gicr.pending(), gicr.active());
        let enabled = gicr.enabled.load(SeqCst);
        let direct = self.world.switch.is_direct();
        if !direct {
            assert_eq!(
                machine_active, 0,
                "{machine_active:#x} is active in the machine"
            );
            assert_eq!(machine_pending, 0, "{machine_pending:#x} was not taken");
        }
        let private = &self.world.private;
        let [withdraw, deactivate, activate] = private.take_requests();
        assert_eq!(
            [withdraw, deactivate, activate],
            [0; 3],
            "requests not served"
        );
        let waiting = private.pending();
        let ready = private.ready_intids();
        for intid in 0..16 {
            let bit = 1 << intid;
            let here = self.with(|_, delivery| delivery.list.state(&delivery.interface, intid));
            assert!(!direct || !here.pending && !here.active, "listed in vain");
            let pending = here.pending || (waiting | machine_pending) & bit != 0;
            let active = here.active || machine_active & bit != 0;
            let mut last = Last {
                enabled: true,
                ..Last::default()
            };
            let writes = writers.iter().copied().flatten();
            writes.for_each(|&write| last.follow(write, intid));
            assert_eq!(pending, last.pending, "whether {intid} is pending");
            assert_eq!(active, last.active, "whether {intid} is active");
            assert_eq!(ready & bit != 0, last.enabled, "whether {intid} is enabled");
            if direct {
                assert_eq!(enabled & bit != 0, last.enabled, "whether {intid} can come");
            }
            // An interrupt that can be delivered does not wait for another CPU.
            assert!(
                !last.enabled || waiting & bit == 0,
                "{intid} is pending and waits"
            );
        }
    }
}

/// State according to the last writes to an interrupt.
#[derive(Default)]
struct Last {
    pending: bool,
    active: bool,
    enabled: bool,
}

impl Last {
    fn follow(&mut self, write: Writes, intid: u32) {
        match write {
            Writes::Set(n) | Writes::SendLow(n) | Writes::SendHigh(n) if n == intid => {
                self.pending = true;
            }
            Writes::Clear(n) if n == intid => self.pending = false,
            Writes::Activate(n) if n == intid => self.active = true,
            Writes::Deactivate(n) if n == intid => self.active = false,
            Writes::Enable(n) if n == intid => self.enabled = true,
            Writes::Disable(n) if n == intid => self.enabled = false,
            _ => {}
        }
    }
}
