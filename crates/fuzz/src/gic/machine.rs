// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual GIC of crate `vgic` with a fake CPU interface per vCPU, put
//! together as `hypervisor/src/interrupts/vgic_cpu.rs`, `exits/mmio.rs` and `exits/sgi.rs` do it.

use vgic::{Access, Distributor, List, Private, Redistributor, Vcpu};

use super::interface::Interface;
use super::spec::{CPUS, affinity};

/// Offset of a redistributor's second frame.
const SGI_FRAME: u64 = 0x1_0000;

/// INTIDs with a line and a physical interrupt of the same number behind them.
pub const TIMERS: [u32; 2] = [27, 30];
/// The same, a bit each.
const LINES: u32 = 1 << TIMERS[0] | 1 << TIMERS[1];

/// The physical interrupts of a CPU that are the guest's timers', a bit each; as
/// the machine has them, EL2 takes them, and list registers end them.
#[derive(Debug, Default)]
pub struct Physical {
    /// Their lines are high.
    pub lines: u32,
    enabled: u32,
    active: u32,
}

/// One vCPU's part.
#[derive(Debug)]
pub struct Cpu {
    /// Its registers.
    pub private: Private,
    /// Its list.
    pub list: List,
    /// Its CPU interface.
    pub interface: Interface,
    /// What is behind its timers' interrupts.
    pub physical: Physical,
}

/// The machine.
#[derive(Debug)]
pub struct Machine {
    /// vCPUs.
    pub cpus: [Cpu; CPUS],
    /// The distributor that they share.
    pub distributor: Distributor,
}

impl Machine {
    /// With `registers` list registers per CPU.
    pub fn new(registers: usize) -> Self {
        Self {
            cpus: core::array::from_fn(|_| Cpu {
                private: Private::new(),
                list: List::new(),
                interface: Interface::new(registers),
                physical: Physical::default(),
            }),
            distributor: Distributor::new(CPUS),
        }
    }

    /// `by` accesses the distributor.
    pub fn shared(&mut self, by: usize, offset: u64, size: u32, write: Option<u64>) -> u64 {
        self.publish(by);
        let (value, changed) = self.distributor.access(Access {
            offset,
            size,
            write,
        });
        if changed {
            (0..CPUS).for_each(|cpu| self.evaluate(cpu));
        }
        value
    }

    /// `by` accesses the second frame of the redistributor of `of`.
    pub fn private(
        &mut self,
        by: usize,
        of: usize,
        offset: u64,
        size: u32,
        write: Option<u64>,
    ) -> u64 {
        self.redistributor(by, of, SGI_FRAME + offset, size, write)
    }

    /// `by` accesses the redistributor of `of`.
    pub fn redistributor(
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

    /// An SGI reaches `cpu`.
    pub fn inject(&mut self, cpu: usize, intid: u32) {
        let Cpu {
            private,
            list,
            interface,
            ..
        } = &mut self.cpus[cpu];
        match private.ready(intid) {
            Some(priority) => list.inject(interface, intid, priority, None),
            None => private.set_pending(intid),
        }
    }

    /// The timers' physical interrupts that are signalled; each is taken at once.
    pub fn fire(&mut self) {
        for one in &mut self.cpus {
            let signalled = one.physical.lines & one.physical.enabled & !one.physical.active;
            one.physical.active |= signalled;
            for intid in vgic::ones(signalled.into()) {
                if let Some(priority) = one.private.ready(intid) {
                    let bank = &mut one.interface;
                    one.list.inject(bank, intid, priority, Some(intid));
                }
            }
        }
    }

    /// Looks at the lines of `cpu`.
    pub fn sample(&mut self, cpu: usize) {
        let one = &mut self.cpus[cpu];
        let low = LINES & !one.physical.lines;
        one.physical.active &= !one.list.lower(&mut one.interface, low);
    }

    /// `cpu` acknowledges, IRQs masked: EL2 looks at the lines first.
    pub fn acknowledge(&mut self, cpu: usize) -> Option<u32> {
        self.sample(cpu);
        self.cpus[cpu].interface.acknowledge()
    }

    /// `cpu` ends `intid`; as [`Interface::end`].
    pub fn end(&mut self, cpu: usize, intid: u32) -> Option<bool> {
        let one = &mut self.cpus[cpu];
        let ended = one.interface.end(intid);
        one.physical.active &= !one.interface.take_ended_physically();
        ended
    }

    /// `cpu` deactivates `intid`; as [`Interface::deactivate`].
    pub fn deactivate(&mut self, cpu: usize, intid: u32) -> bool {
        let one = &mut self.cpus[cpu];
        let was = one.interface.deactivate(intid);
        one.physical.active &= !one.interface.take_ended_physically();
        was
    }

    /// The maintenance interrupts that are asserted; each is taken at once.
    pub fn maintenance(&mut self) {
        for cpu in 0..CPUS {
            let mut taken = 0;
            while self.cpus[cpu].interface.maintenance() {
                let one = &mut self.cpus[cpu];
                if one.interface.ended() != 0 {
                    self.evaluate(cpu);
                } else {
                    one.list.refill(&mut one.interface);
                }
                taken += 1;
                assert!(taken < 100, "the maintenance interrupt never ends");
            }
        }
    }

    /// Takes everything pending out of the registers of `cpu` and lists it
    /// again, as a change of the delivery does.
    pub fn drain(&mut self, cpu: usize) {
        let Cpu {
            private,
            list,
            interface,
            physical,
        } = &mut self.cpus[cpu];
        list.drain(interface, |one| match one.intid() {
            _ if one.hw().is_some() => {}
            intid if intid < vgic::PRIVATE => private.set_pending(intid),
            intid => self.distributor.give_back(intid),
        });
        // What the registers still hold is active there.
        let held = interface.used().filter(|one| one.intid() < vgic::PRIVATE);
        physical.active &= held.fold(0, |bits, one| bits | 1 << one.intid());
        self.evaluate(cpu);
    }

    /// Brings `cpu` in line with the registers.
    pub fn evaluate(&mut self, cpu: usize) {
        let number = cpu;
        let Cpu {
            private,
            list,
            interface,
            physical,
        } = &mut self.cpus[cpu];
        let listed = list.sync(interface, private, self.distributor.forwards());
        physical.enabled = private.all_ready() & LINES;
        physical.active &= listed;
        if list.sync_spis(interface, &mut self.distributor, vcpu(number)) {
            let others = (0..CPUS).filter(|&other| other != cpu);
            others.for_each(|other| self.evaluate(other));
        }
    }

    fn publish(&mut self, cpu: usize) {
        self.sample(cpu);
        let one = &mut self.cpus[cpu];
        one.list.publish(&one.interface, &one.private);
        one.list
            .publish_spis(&one.interface, &mut self.distributor, vcpu(cpu));
    }

    /// A private interrupt that is in two list registers of its CPU (its number
    /// stands first), or an SPI that is in two of any.
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

    /// Whether `intid` waits for a list register of `cpu`.
    pub fn is_queued(&self, cpu: usize, intid: u32) -> bool {
        let Cpu {
            list, interface, ..
        } = &self.cpus[cpu];
        !interface.used().any(|one| one.intid() == intid) && list.state(interface, intid).pending
    }
}

fn vcpu(number: usize) -> Vcpu {
    Vcpu {
        number,
        affinity: affinity(number),
    }
}
