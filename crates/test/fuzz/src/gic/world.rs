// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the machine and the reference in lockstep. With any number of list registers, the machine may differ from the
//! reference only in one respect:
//!
//! - A vCPU may read stale pending and active states of another vCPU: they may date from that vCPU's last access to its
//!   own registers or to the distributor's, or from any CPU's last write to these registers.

use trap::interface::Register;
use vgic::Bank;

use super::interface::Interface;
use super::machine::{Machine, TIMERS};
use super::spec::{Active, Bits, CPUS, INTIDS, PRIVATE, Spec, affinity};

/// Actions of a guest, and events that can happen to it.
#[derive(Clone, Debug)]
pub enum GuestAction {
    /// A CPU acknowledges an interrupt.
    Acknowledge(usize),
    /// A CPU ends the interrupt that it acknowledged last.
    End(usize),
    /// A CPU deactivates one of the interrupts that it ended with EOImode 1. The second field is the interrupt's index,
    /// modulo the number of such interrupts.
    Deactivate(usize, usize),
    /// A CPU sends an SGI to the CPUs in a bit map.
    Send(u32, u8),
    /// A CPU sets ICC_PMR_EL1.
    Mask(usize, u8),
    /// A CPU sets ICC_CTLR_EL1.EOImode.
    Split(usize, bool),
    /// A CPU sets ICC_IGRPEN1_EL1.
    Enable(usize, bool),
    /// CPU `by` writes a register with one bit per INTID. If the INTIDs are private, the register belongs to CPU `of`.
    Write {
        /// The CPU that writes.
        by: usize,
        /// The CPU that the register belongs to.
        of: usize,
        /// The register.
        bits: Bits,
        /// The first of the register's 32 INTIDs.
        first: u32,
        /// Written value.
        value: u32,
    },
    /// CPU `by` reads a register with one bit per INTID. If the INTIDs are private, the register belongs to CPU `of`.
    Read {
        /// The CPU that reads.
        by: usize,
        /// The CPU that the register belongs to.
        of: usize,
        /// The register.
        bits: Bits,
        /// The first of the register's 32 INTIDs.
        first: u32,
    },
    /// A CPU sets a priority. The fields are the CPU, the CPU that the interrupt belongs to, the INTID, and the priority.
    Priority(usize, usize, u32, u8),
    /// A CPU routes an SPI. The fields are the CPU, the SPI, and the target; the number after the last CPU means any CPU.
    Route(usize, u32, usize),
    /// A CPU sets GICD_CTLR.EnableGrp1.
    Forward(usize, bool),
    /// A CPU's interrupt delivery changes to direct and back to inject.
    Drain(usize),
    /// The interrupt line of a CPU's timer, named by its INTID, becomes high or low.
    Line(usize, u32, bool),
}

/// The machine, the reference, and the state of the guest's handlers.
#[derive(Debug)]
pub struct World {
    machine: Machine,
    spec: Spec,
    /// For each CPU, the interrupts that it acknowledged and has not ended, most recent last; and the interrupts that
    /// it ended and has not deactivated.
    handling: [Vec<u32>; CPUS],
    ended: [Vec<u32>; CPUS],
    /// For each CPU, the reference's state at the time when this CPU of the machine last published its own state.
    seen: [Spec; CPUS],
}

impl World {
    /// Creates the state after reset, with `registers` list registers per CPU, 1 to 16.
    #[must_use]
    pub fn new(registers: usize) -> Self {
        let spec = Spec::new();
        Self {
            machine: Machine::new(registers),
            handling: Default::default(),
            ended: Default::default(),
            seen: [spec.clone(), spec.clone(), spec.clone()],
            spec,
        }
    }

    /// Creates a state with all interrupts enabled at the highest priority.
    #[must_use]
    pub fn started(registers: usize) -> Self {
        let mut world = Self::new(registers);
        world.step(&GuestAction::Forward(0, true));
        for (of, first) in [(0, 0), (1, 0), (2, 0), (0, 32), (0, 64)] {
            world.write(0, of, Bits::SetEnable, first, u32::MAX);
        }
        world
    }

    /// Does one action on both the machine and the reference.
    ///
    /// # Panics
    /// Panics if the two differ in a way that is not allowed.
    pub fn step(&mut self, step: &GuestAction) {
        match *step {
            GuestAction::Acknowledge(cpu) => self.acknowledge(cpu),
            GuestAction::End(cpu) => self.end(cpu),
            GuestAction::Deactivate(cpu, which) if !self.ended[cpu].is_empty() => {
                let which = which % self.ended[cpu].len();
                let intid = self.ended[cpu].remove(which);
                self.deactivate(cpu, intid);
            }
            GuestAction::Deactivate(..) => {}
            GuestAction::Send(intid, targets) => self.send(intid, targets),
            GuestAction::Mask(cpu, mask) => {
                self.set_register(cpu, Register::Mask, mask.into(), |interface| {
                    interface.mask = mask;
                });
                self.spec.cpus[cpu].mask = mask;
            }
            // A guest must not change EOImode while an interrupt is active (12.2, ICC_CTLR_EL1).
            GuestAction::Split(cpu, split) if self.handling[cpu].is_empty() => {
                self.set_register(cpu, Register::Control, u64::from(split) << 1, |interface| {
                    interface.split = split;
                });
                self.spec.cpus[cpu].split = split;
            }
            GuestAction::Split(..) => {}
            GuestAction::Enable(cpu, on) => {
                self.set_register(cpu, Register::Enable, on.into(), |interface| {
                    interface.on = on
                });
                self.spec.cpus[cpu].on = on;
            }
            GuestAction::Write {
                by,
                of,
                bits,
                first,
                value,
            } => self.write(by, of, bits, first, value),
            GuestAction::Read {
                by,
                of,
                bits,
                first,
            } => self.read(by, of, bits, first),
            GuestAction::Priority(by, of, intid, priority) => {
                self.prioritise(by, of, intid, priority)
            }
            GuestAction::Route(by, intid, to) => {
                let route = if to < CPUS { affinity(to) } else { 1 << 31 };
                let offset = 0x6000 + 8 * u64::from(intid);
                self.machine.access_gicd(by, offset, 8, Some(route));
                self.spec.at_mut(by, intid).route = route;
            }
            GuestAction::Forward(by, on) => {
                self.machine.access_gicd(by, 0, 4, Some(u64::from(on) << 1));
                self.spec.forwards = on;
            }
            GuestAction::Drain(cpu) => {
                self.machine.drain(cpu);
            }
            GuestAction::Line(cpu, intid, high) => {
                let lines = &mut self.machine.cpus[cpu].physical.lines;
                *lines = *lines & !(1 << intid) | u32::from(high) << intid;
                self.spec.at_mut(cpu, intid).line = high;
                // A CPU that reads the state sees the current level of the interrupt line.
                for seen in &mut self.seen {
                    seen.at_mut(cpu, intid).line = high;
                }
            }
        }
        self.finish_step();
    }

    /// Completes a step on the machine, and then checks the invariants.
    fn finish_step(&mut self) {
        self.machine.take_timers();
        self.machine.maintenance();
        // Takes physical interrupts that had to wait for the end of another one.
        self.machine.take_timers();
        self.note_shown();
        assert_eq!(self.machine.listed_twice(), None);
        for cpu in 0..CPUS {
            assert_eq!(self.machine.audit(cpu), (Ok(()), 0), "CPU {cpu}");
            self.check_active(cpu);
        }
    }

    /// Checks that exactly these interrupts of `cpu` are active in the machine: the interrupts that the CPU
    /// acknowledged and has not deactivated, and its private interrupts that software set active. If there are none, no
    /// interrupt may be active.
    fn check_active(&mut self, cpu: usize) {
        let here = |intid: u32| match self.spec.at(cpu, intid).active {
            Active::No => false,
            Active::Acknowledged(by) => by == cpu,
            Active::Set => intid < PRIVATE,
        };
        let here: Vec<u32> = (0..INTIDS).filter(|&intid| here(intid)).collect();
        for &intid in &here {
            let active = self.machine.is_active(cpu, intid);
            assert!(active, "CPU {cpu}: {intid} is active");
        }
        assert_eq!(self.machine.has_active(cpu), !here.is_empty(), "CPU {cpu}");
    }

    /// Writes a register of `cpu`'s CPU interface. Calls `set` if the access does not trap.
    fn set_register(
        &mut self,
        cpu: usize,
        register: Register,
        value: u64,
        set: impl FnOnce(&mut Interface),
    ) {
        match self.machine.try_trap(cpu, register, Some(value)) {
            Some(_) => {}
            None => set(&mut self.machine.cpus[cpu].interface),
        }
    }

    fn acknowledge(&mut self, cpu: usize) {
        self.machine.sample(cpu);
        let expected = self.spec.most_urgent(cpu);
        let got = self.machine.acknowledge(cpu);
        let right = match got {
            Some(intid) => expected.contains(&intid),
            None => expected.is_empty(),
        };
        assert!(right, "CPU {cpu} got {got:?}, not one of {expected:?}");
        if let Some(intid) = got {
            self.spec.acknowledge(cpu, intid);
            self.handling[cpu].push(intid);
        }
    }

    fn end(&mut self, cpu: usize) {
        let Some(intid) = self.handling[cpu].pop() else {
            return;
        };
        self.machine.end(cpu, intid);
        self.spec.end(cpu, intid);
        if self.spec.cpus[cpu].split {
            self.ended[cpu].push(intid);
        }
    }

    fn deactivate(&mut self, cpu: usize, intid: u32) {
        self.machine.deactivate(cpu, intid);
        self.spec.deactivate(cpu, intid);
    }

    fn send(&mut self, intid: u32, targets: u8) {
        let targets: Vec<usize> = (0..CPUS).filter(|cpu| targets >> cpu & 1 != 0).collect();
        for &cpu in &targets {
            self.machine.inject(cpu, intid);
        }
        self.spec.send(intid, &targets);
        // If the SGI can't be delivered to a CPU at this moment, it only becomes pending there.
        let ready = |cpu: &&usize| self.machine.cpus[**cpu].private.ready(intid).is_some();
        let listed = targets.iter().filter(ready);
        listed.for_each(|&cpu| self.check_listed(cpu));
    }

    fn access(&mut self, by: usize, of: usize, offset: u64, size: u32, write: Option<u64>) -> u64 {
        self.machine.access_private(by, of, offset, size, write)
    }

    fn write(&mut self, by: usize, of: usize, bits: Bits, first: u32, value: u32) {
        let offset = bits.offset() + u64::from(first) / 8;
        let write = Some(u64::from(value));
        if first < PRIVATE {
            self.access(by, of, offset, 4, write);
        } else {
            self.machine.access_gicd(by, offset, 4, write);
        }
        self.spec.write(of, bits, first, value);
        self.note_shown();
        // Group registers ignore writes.
        if bits != Bits::Group {
            self.check_written(of, first);
        }
    }

    fn read(&mut self, by: usize, of: usize, bits: Bits, first: u32) {
        let offset = bits.offset() + u64::from(first) / 8;
        let got = if first < PRIVATE {
            self.access(by, of, offset, 4, None)
        } else {
            self.machine.access_gicd(by, offset, 4, None)
        };
        let now = self.spec.read(of, bits, first);
        let states = self.seen.iter().map(|seen| seen.read(of, bits, first));
        let stale = states.fold(0, |stale, seen| stale | seen ^ now);
        let may_differ = match bits {
            Bits::Group | Bits::SetEnable | Bits::ClearEnable => 0,
            _ if first < PRIVATE && by == of => 0,
            _ => stale,
        };
        let differs = got as u32 ^ now;
        assert!(
            differs & !may_differ == 0 && got >> 32 == 0,
            "{bits:?} of CPU {of} from {first}: {got:#x}, not {now:#x} but for {may_differ:#x}"
        );
        self.note_shown();
    }

    fn prioritise(&mut self, by: usize, of: usize, intid: u32, priority: u8) {
        let offset = 0x400 + u64::from(intid);
        let write = Some(u64::from(priority));
        if intid < PRIVATE {
            self.access(by, of, offset, 1, write);
        } else {
            self.machine.access_gicd(by, offset, 1, write);
        }
        self.spec.at_mut(of, intid).priority = priority;
        self.check_written(of, intid);
    }

    /// Checks the lists after a write to a register of `intid`; the register belongs to CPU `of` if `intid` is private.
    fn check_written(&mut self, of: usize, intid: u32) {
        if intid < PRIVATE {
            self.check_listed(of);
        } else {
            (0..CPUS).for_each(|cpu| self.check_listed(cpu));
        }
    }

    /// Compares all registers that have one bit per INTID, each read by the CPU that it belongs to.
    ///
    /// # Panics
    /// Panics if a register differs.
    pub fn compare(&mut self) {
        // Each CPU makes an access first, so that no published state is stale.
        for cpu in 0..CPUS {
            self.read(cpu, cpu, Bits::SetPending, 32);
        }
        for (cpu, first) in [(0, 0), (1, 0), (2, 0), (0, 32), (0, 64)] {
            for bits in Bits::ALL {
                self.read(cpu, cpu, bits, first);
            }
        }
    }

    /// Records the reference's state for the CPUs that have published theirs.
    fn note_shown(&mut self) {
        for cpu in self.machine.take_shown() {
            self.seen[cpu] = self.spec.clone();
        }
    }

    /// Checks after an exit of `cpu` that an interrupt waits only if no list register is free, at least one holds a
    /// pending interrupt, and no listed pending interrupt is less urgent than the waiting one.
    fn check_listed(&self, cpu: usize) {
        let interface = &self.machine.cpus[cpu].interface;
        let pending = interface.used().filter(|one| !one.is_active());
        let least = pending.map(|one| one.priority()).max();
        for intid in (0..INTIDS).filter(|&intid| self.machine.is_queued(cpu, intid)) {
            let waits = least.is_some_and(|least| self.spec.at(cpu, intid).priority >= least);
            assert!(interface.empty() == 0 && waits, "CPU {cpu}: {intid} waits");
        }
    }

    /// Makes the guest handle its interrupts until there are none. The guest exits only for maintenance interrupts.
    ///
    /// # Panics
    /// Panics if an interrupt is lost.
    pub fn settle(&mut self) {
        self.undo_activations();
        // If an interrupt line stayed high, the guest would handle its interrupt for ever.
        for (cpu, intid) in (0..CPUS).flat_map(|cpu| TIMERS.map(|intid| (cpu, intid))) {
            self.step(&GuestAction::Line(cpu, intid, false));
        }
        for cpu in 0..CPUS {
            self.step(&GuestAction::Mask(cpu, 0xff));
            self.step(&GuestAction::Enable(cpu, true));
        }
        for _ in 0..4 * INTIDS {
            let idle = |cpu: usize| {
                let handled = self.handling[cpu].is_empty() && self.ended[cpu].is_empty();
                handled && self.spec.most_urgent(cpu).is_empty()
            };
            if (0..CPUS).all(idle) {
                break;
            }
            for cpu in 0..CPUS {
                self.step(&GuestAction::End(cpu));
                while let Some(intid) = self.ended[cpu].pop() {
                    self.deactivate(cpu, intid);
                    self.finish_step();
                }
                self.step(&GuestAction::Acknowledge(cpu));
            }
        }
        for cpu in 0..CPUS {
            let left = self.spec.most_urgent(cpu);
            assert!(left.is_empty(), "CPU {cpu}: {left:?} never came");
        }
    }

    /// Clears active states that software set, because no handler will end these interrupts.
    fn undo_activations(&mut self) {
        for (of, first) in [(0, 0), (1, 0), (2, 0), (0, 32), (0, 64)] {
            let set = (0..32).filter(|n| self.spec.at(of, first + n).active == Active::Set);
            let set = set.fold(0, |bits, n| bits | 1 << n);
            self.write(of, of, Bits::ClearActive, first, set);
        }
    }
}
