// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the machine and the reference in lockstep. After each step they must agree.
//!
//! Binary points are not modelled, and neither are stale reads: the states of SPIs in another vCPU's list registers
//! may read as they were when EL2 last handled that list. With fewer list registers than interrupts, all interrupts
//! have one group, since pending interrupts of a group that an interface does not signal could fill all list registers.

use vgic::Access;

use super::machine::{ACKNOWLEDGE, CONTROL, DEACTIVATE, END, MASK, Machine};
use super::spec::{Active, CPUS, INTERFACES, INTIDS, PRIVATE, SGIS, Spec};
use crate::gic::Bits;
use crate::gic::machine::TIMERS;

/// A number of list registers that suffices for interrupts of different groups.
pub const ALL: usize = 16;

/// Actions of a guest, and events that can happen to it.
#[derive(Clone, Debug)]
pub enum GuestAction {
    /// A CPU reads GICC_IAR or, if the flag is set, GICC_AIAR.
    Acknowledge(usize, bool),
    /// A CPU ends the interrupt that it acknowledged last.
    End(usize),
    /// A CPU deactivates one of the interrupts that it ended with EOImode 1. The second field is the interrupt's index,
    /// modulo the number of such interrupts.
    Deactivate(usize, usize),
    /// A CPU writes GICD_SGIR: the INTID, the filter, and the target list.
    Send(usize, u32, u32, u8),
    /// A CPU writes the byte of an SGI in GICD_SPENDSGIR or, if the flag is clear, in GICD_CPENDSGIR.
    Senders(usize, u32, bool, u8),
    /// A CPU sets GICC_PMR.
    Mask(usize, u8),
    /// A CPU sets the group enables and AckCtl in GICC_CTLR.
    Control(usize, u8),
    /// A CPU sets GICC_CTLR.EOImode.
    Split(usize, bool),
    /// A CPU writes a register with one bit per INTID: the register, its first INTID, and the value.
    Write(usize, Bits, u32, u32),
    /// A CPU reads a register with one bit per INTID: the register and its first INTID.
    Read(usize, Bits, u32),
    /// A CPU sets a priority.
    Priority(usize, u32, u8),
    /// A CPU sets the targets of an SPI.
    Targets(usize, u32, u8),
    /// A CPU sets GICD_CTLR.
    Forward(usize, u8),
    /// The line of a CPU's timer becomes high or low.
    Line(usize, u32, bool),
    /// EL2 closes or opens the interface of a CPU.
    Close(usize, bool),
}

/// The machine, the reference, and the state of the guest's handlers.
#[derive(Debug)]
pub struct World {
    machine: Machine,
    spec: Spec,
    /// Whether interrupts may have different groups.
    mixed: bool,
    /// For each CPU, most recent last: the values that it acknowledged and has not ended, and whether it read each from
    /// GICC_AIAR; and the values that it ended and has not deactivated.
    handling: [Vec<(u32, bool)>; CPUS],
    ended: [Vec<u32>; CPUS],
}

impl World {
    /// Creates a state with all interrupts enabled, and SPIs routed to the first CPU.
    #[must_use]
    pub fn started(registers: usize) -> Self {
        let mut world = Self {
            machine: Machine::new(registers),
            spec: Spec::new(),
            mixed: registers == ALL,
            handling: Default::default(),
            ended: Default::default(),
        };
        world.step(&GuestAction::Forward(0, 3));
        for (cpu, first) in [(0, 0), (1, 0), (2, 0), (0, 32), (0, 64)] {
            world.step(&GuestAction::Write(cpu, Bits::SetEnable, first, u32::MAX));
        }
        for intid in PRIVATE..INTIDS {
            world.step(&GuestAction::Targets(0, intid, 1));
        }
        world
    }

    /// Does one action on both the machine and the reference.
    ///
    /// # Panics
    /// Panics if the two differ.
    pub fn step(&mut self, step: &GuestAction) {
        match *step {
            GuestAction::Acknowledge(cpu, aliased) => self.acknowledge(cpu, aliased),
            GuestAction::End(cpu) => self.end(cpu),
            GuestAction::Deactivate(cpu, which) if !self.ended[cpu].is_empty() => {
                let which = which % self.ended[cpu].len();
                let value = self.ended[cpu].remove(which);
                self.deactivate(cpu, value);
            }
            GuestAction::Deactivate(..) => {}
            GuestAction::Send(cpu, intid, filter, list) => {
                let value = intid | u32::from(list) << 16 | filter << 24;
                self.machine.send(cpu, value.into());
                self.spec.send(cpu, intid, filter, list);
            }
            GuestAction::Senders(cpu, intid, set, bits) => self.senders(cpu, intid, set, bits),
            GuestAction::Mask(cpu, mask) => {
                self.machine.interface(cpu, MASK, Some(mask.into()));
                self.spec.cpus[cpu].mask = mask & 0xf8;
            }
            GuestAction::Control(cpu, control) => {
                self.set_control(cpu, control & 7, self.spec.cpus[cpu].split);
            }
            GuestAction::Split(cpu, split) => {
                self.set_control(cpu, self.spec.cpus[cpu].control, split);
            }
            GuestAction::Write(cpu, bits, first, value) => self.write(cpu, bits, first, value),
            GuestAction::Read(cpu, bits, first) => self.read(cpu, bits, first),
            GuestAction::Priority(cpu, intid, priority) => {
                self.access_byte(cpu, 0x400 + u64::from(intid), Some(priority));
                self.spec.at_mut(cpu, intid).priority = priority & 0xf8;
            }
            GuestAction::Targets(cpu, intid, targets) => {
                self.access_byte(cpu, 0x800 + u64::from(intid), Some(targets));
                let existing = INTERFACES.iter().fold(0, |all, one| all | 1 << one);
                self.spec.at_mut(cpu, intid).targets = targets & existing;
            }
            GuestAction::Forward(cpu, groups) => {
                self.access_word(cpu, 0, Some(groups.into()));
                self.spec.forwards = groups;
            }
            GuestAction::Line(cpu, intid, high) => {
                self.machine.set_line(cpu, intid, high);
                self.spec.at_mut(cpu, intid).line = high;
            }
            GuestAction::Close(cpu, closed) => self.machine.cpus[cpu].closed = closed,
        }
        self.finish_step();
    }

    /// Completes a step on the machine, and then checks the invariants.
    fn finish_step(&mut self) {
        self.machine.take_timers();
        self.machine.maintenance();
        // Takes physical interrupts that had to wait for the end of another one.
        self.machine.take_timers();
        self.machine.audit();
        (0..CPUS).for_each(|cpu| self.check_active(cpu));
    }

    /// Checks that the list of `cpu` has exactly the active interrupts that the reference has for this CPU.
    fn check_active(&self, cpu: usize) {
        for intid in 0..INTIDS {
            let here = match self.spec.at(cpu, intid).active {
                Active::No => false,
                Active::Acknowledged(by) => by == cpu,
                Active::Set => intid < PRIVATE,
            };
            let active = self.machine.is_active(cpu, intid);
            assert_eq!(active, here, "CPU {cpu}: whether {intid} is active");
        }
    }

    fn acknowledge(&mut self, cpu: usize, aliased: bool) {
        let expected = self.spec.acknowledgeable(cpu, aliased);
        let register = ACKNOWLEDGE[usize::from(aliased)];
        let got = self.machine.interface(cpu, register, None) as u32;
        assert!(
            expected.contains(&got),
            "CPU {cpu} got {got:#x}, not one of {expected:x?}"
        );
        if got & 0x3ff < INTIDS {
            self.spec.acknowledge(cpu, got);
            self.handling[cpu].push((got, aliased));
        }
    }

    fn end(&mut self, cpu: usize) {
        let Some((value, aliased)) = self.handling[cpu].pop() else {
            return;
        };
        let register = END[usize::from(aliased)];
        self.machine.interface(cpu, register, Some(value.into()));
        self.spec.end(cpu, value & 0x3ff);
        if self.spec.cpus[cpu].split {
            self.ended[cpu].push(value);
        }
    }

    fn deactivate(&mut self, cpu: usize, value: u32) {
        self.machine.interface(cpu, DEACTIVATE, Some(value.into()));
        self.spec.deactivate(cpu, value & 0x3ff);
    }

    /// Sets GICC_CTLR. A guest must not change AckCtl and EOImode while it handles an interrupt, because the write that
    /// ends the interrupt would then have a different effect (4.4.1).
    fn set_control(&mut self, cpu: usize, control: u8, split: bool) {
        let interface = &self.spec.cpus[cpu];
        let same = (interface.control & 4, interface.split) == (control & 4, split);
        if !self.handling[cpu].is_empty() && !same || !self.mixed && !matches!(control, 4 | 7) {
            return;
        }
        let value = u64::from(control) | u64::from(split) << 9;
        self.machine.interface(cpu, CONTROL, Some(value));
        let interface = &mut self.spec.cpus[cpu];
        (interface.control, interface.split) = (control, split);
    }

    fn senders(&mut self, cpu: usize, intid: u32, set: bool, bits: u8) {
        let first = if set { 0xf20 } else { 0xf10 };
        self.access_byte(cpu, first + u64::from(intid), Some(bits));
        let pending = &mut self.spec.at_mut(cpu, intid).pending;
        *pending = if set {
            *pending | bits
        } else {
            *pending & !bits
        };
    }

    fn access_byte(&mut self, cpu: usize, offset: u64, write: Option<u8>) -> u64 {
        let write = write.map(u64::from);
        let size = 1;
        let access = Access {
            offset,
            size,
            write,
        };
        self.machine.access(cpu, access)
    }

    fn access_word(&mut self, cpu: usize, offset: u64, write: Option<u32>) -> u64 {
        let write = write.map(u64::from);
        let size = 4;
        let access = Access {
            offset,
            size,
            write,
        };
        self.machine.access(cpu, access)
    }

    fn write(&mut self, cpu: usize, bits: Bits, first: u32, value: u32) {
        if bits == Bits::Group && !self.mixed {
            return;
        }
        let offset = bits.offset() + u64::from(first) / 8;
        self.access_word(cpu, offset, Some(value));
        self.spec.write(cpu, bits, first, value);
    }

    fn read(&mut self, cpu: usize, bits: Bits, first: u32) {
        self.machine.publish_all();
        let got = self.access_word(cpu, bits.offset() + u64::from(first) / 8, None);
        let expected = self.spec.read(cpu, bits, first);
        assert_eq!(got, expected.into(), "{bits:?} from {first} on CPU {cpu}");
    }

    /// Compares every register that a CPU can read.
    ///
    /// # Panics
    /// Panics if a register differs.
    pub fn compare(&mut self) {
        for (cpu, first) in [(0, 0), (1, 0), (2, 0), (0, 32), (0, 64)] {
            for bits in Bits::ALL {
                self.read(cpu, bits, first);
            }
            for intid in first..first + 32 {
                let one = *self.spec.at(cpu, intid);
                let targets = match intid {
                    0..PRIVATE => 1 << INTERFACES[cpu],
                    _ => one.targets,
                };
                for (offset, expected) in [(0x400, one.priority), (0x800, targets)] {
                    let got = self.access_byte(cpu, offset + u64::from(intid), None);
                    assert_eq!(got, expected.into(), "{offset:#x} of {intid}");
                }
                for offset in [0xf10, 0xf20].into_iter().filter(|_| intid < SGIS) {
                    let got = self.access_byte(cpu, offset + u64::from(intid), None);
                    assert_eq!(got, one.pending.into(), "{offset:#x} of {intid}");
                }
            }
        }
        let control = self.access_word(1, 0, None);
        assert_eq!(control, self.spec.forwards.into(), "GICD_CTLR");
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
            while !self.handling[cpu].is_empty() {
                self.step(&GuestAction::End(cpu));
            }
            self.step(&GuestAction::Mask(cpu, 0xf8));
            self.step(&GuestAction::Control(cpu, 7));
        }
        for _ in 0..4 * 8 * INTIDS {
            for cpu in 0..CPUS {
                self.step(&GuestAction::End(cpu));
                while !self.ended[cpu].is_empty() {
                    self.step(&GuestAction::Deactivate(cpu, 0));
                }
                self.step(&GuestAction::Acknowledge(cpu, false));
            }
            if self.handling.iter().all(Vec::is_empty) {
                return;
            }
        }
        panic!("interrupts come for ever");
    }

    /// Clears active states that software set, because no handler will end these interrupts.
    fn undo_activations(&mut self) {
        for (cpu, first) in [(0, 0), (1, 0), (2, 0), (0, 32), (0, 64)] {
            let set = (0..32).filter(|n| self.spec.at(cpu, first + n).active == Active::Set);
            let set = set.fold(0, |bits, n| bits | 1 << n);
            self.step(&GuestAction::Write(cpu, Bits::ClearActive, first, set));
        }
    }
}
