// SPDX-License-Identifier: MIT OR Apache-2.0
//! The virtual GIC of crate `vgic` with a fake CPU interface per vCPU, put
//! together as `hypervisor/src/vgic_cpu.rs`, `mmio.rs` and `sgi.rs` do it.

use vgic::{Access, Distributor, List, Private, Redistributor, Vcpu};

use super::interface::Interface;
use super::spec::{CPUS, affinity};

/// Offset of a redistributor's second frame.
const SGI_FRAME: u64 = 0x1_0000;

/// One vCPU's part.
#[derive(Debug)]
pub struct Cpu {
    /// Its registers.
    pub private: Private,
    /// Its list.
    pub list: List,
    /// Its CPU interface.
    pub interface: Interface,
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
        } = &mut self.cpus[cpu];
        match private.ready(intid) {
            Some(priority) => list.inject(interface, intid, priority, None),
            None => private.set_pending(intid),
        }
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
        } = &mut self.cpus[cpu];
        list.drain(interface, |one| match one.intid() {
            intid if intid < vgic::PRIVATE => private.set_pending(intid),
            intid => self.distributor.give_back(intid),
        });
        self.evaluate(cpu);
    }

    /// Brings `cpu` in line with the registers.
    pub fn evaluate(&mut self, cpu: usize) {
        let number = cpu;
        let Cpu {
            private,
            list,
            interface,
        } = &mut self.cpus[cpu];
        list.sync(interface, private, self.distributor.forwards(), |_| None);
        if list.sync_spis(interface, &mut self.distributor, vcpu(number)) {
            let others = (0..CPUS).filter(|&other| other != cpu);
            others.for_each(|other| self.evaluate(other));
        }
    }

    fn publish(&mut self, cpu: usize) {
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
