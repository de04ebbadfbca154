// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference: a naive GICv2, without list registers, queues or vCPUs that hold interrupts. Each interrupt has a few
//! flags (IHI 0048B, 3.2 for the states, 3.3 for priorities, 4.3 and 4.4 for registers).

use super::interface::{NONE, OTHER_GROUP};
use crate::gic::Bits;

/// Number of vCPUs.
pub const CPUS: usize = 3;
/// Numbers of the vCPUs' CPU interfaces; no others exist.
pub const INTERFACES: [u32; CPUS] = [0, 2, 5];
/// Number of INTIDs.
pub const INTIDS: u32 = 96;
/// Number of private INTIDs (SGIs and PPIs), and number of SGIs.
pub const PRIVATE: u32 = 32;
pub const SGIS: u32 = 16;
/// Running priority of a CPU that handles no interrupt.
const IDLE: u8 = 0xff;

/// The source of an interrupt's active state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Active {
    /// The interrupt is not active.
    #[default]
    No,
    /// This CPU acknowledged the interrupt.
    Acknowledged(usize),
    /// A register write set the state.
    Set,
}

/// One interrupt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interrupt {
    /// GICD_ISENABLER.
    pub enabled: bool,
    /// Senders from which an SGI is pending, one bit each; for other interrupts, 1 if set pending.
    pub pending: u8,
    /// Whether the line of a level-sensitive interrupt is high. The interrupt is then pending.
    pub line: bool,
    /// GICD_ISACTIVER.
    pub active: Active,
    /// GICD_IPRIORITYR, of which five bits are implemented.
    pub priority: u8,
    /// GICD_IGROUPR.
    pub group1: bool,
    /// GICD_ITARGETSR of an SPI.
    pub targets: u8,
}

impl Interrupt {
    const fn is_pending(&self) -> bool {
        self.pending != 0 || self.line
    }
}

/// A CPU interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// GICC_PMR.
    pub mask: u8,
    /// GICC_CTLR: EnableGrp0 (0), EnableGrp1 (1), AckCtl (2).
    pub control: u8,
    /// GICC_CTLR.EOImode.
    pub split: bool,
    /// Priorities of interrupts that have been acknowledged and not ended, most recent last.
    pub running: Vec<u8>,
}

/// The whole GIC.
#[derive(Clone, Debug)]
pub struct Spec {
    private: [[Interrupt; PRIVATE as usize]; CPUS],
    shared: [Interrupt; (INTIDS - PRIVATE) as usize],
    /// GICD_CTLR: EnableGrp0 (0), EnableGrp1 (1).
    pub forwards: u8,
    /// The CPU interfaces.
    pub cpus: [Interface; CPUS],
}

impl Spec {
    /// Returns the state after reset, except that the CPU interfaces mask no priority and are enabled.
    pub fn new() -> Self {
        let interface = Interface {
            mask: 0xf8,
            control: 0b111,
            split: false,
            running: Vec::new(),
        };
        Self {
            private: [[Interrupt::default(); PRIVATE as usize]; CPUS],
            shared: [Interrupt::default(); (INTIDS - PRIVATE) as usize],
            forwards: 0,
            cpus: [interface.clone(), interface.clone(), interface],
        }
    }

    /// Returns `intid` as `cpu` sees it.
    pub fn at(&self, cpu: usize, intid: u32) -> &Interrupt {
        match intid.checked_sub(PRIVATE) {
            None => &self.private[cpu][intid as usize],
            Some(n) => &self.shared[n as usize],
        }
    }

    /// Like [`Self::at`], but mutable.
    pub fn at_mut(&mut self, cpu: usize, intid: u32) -> &mut Interrupt {
        match intid.checked_sub(PRIVATE) {
            None => &mut self.private[cpu][intid as usize],
            Some(n) => &mut self.shared[n as usize],
        }
    }

    /// Returns whether `cpu` is the one that gets `intid`. If an SPI has several targets, the implementation chooses
    /// one (the 1-N model; 4.3.12), and ours chooses the first.
    fn is_target(&self, cpu: usize, intid: u32) -> bool {
        let targets = u32::from(self.at(cpu, intid).targets);
        intid < PRIVATE || targets != 0 && targets.trailing_zeros() == INTERFACES[cpu]
    }

    /// Returns the INTIDs that compete at `cpu`: pending, not active, enabled, and in a group that the distributor
    /// forwards and the interface signals.
    fn waiting(&self, cpu: usize) -> impl Iterator<Item = u32> + Clone {
        let groups = self.forwards & self.cpus[cpu].control;
        (0..INTIDS).filter(move |&intid| {
            let one = self.at(cpu, intid);
            let group = groups >> u8::from(one.group1) & 1 != 0;
            let ready = one.is_pending() && one.active == Active::No && one.enabled;
            ready && group && self.is_target(cpu, intid)
        })
    }

    /// Returns the values that `cpu` may read from GICC_IAR or, if `aliased`, from GICC_AIAR (4.4.4, 4.4.9). The
    /// implementation chooses among interrupts of equal priority, and among senders.
    pub fn acknowledgeable(&self, cpu: usize, aliased: bool) -> Vec<u32> {
        let interface = &self.cpus[cpu];
        let best = self.waiting(cpu).map(|intid| self.at(cpu, intid).priority);
        let Some(best) = best.min() else {
            return vec![NONE];
        };
        let running = interface.running.last().copied().unwrap_or(IDLE);
        let signalled = best < interface.mask && best < running;
        let mut values = vec![];
        for intid in self.waiting(cpu) {
            let one = self.at(cpu, intid);
            match (one.group1, aliased) {
                _ if one.priority != best => {}
                // It is not specified whether the priority is checked before the group.
                (true, false) if interface.control & 4 == 0 && signalled => {
                    values.push(OTHER_GROUP)
                }
                (true, false) if interface.control & 4 == 0 => values.extend([OTHER_GROUP, NONE]),
                (false, true) => values.push(NONE),
                _ if !signalled => values.push(NONE),
                _ if intid >= SGIS => values.push(intid),
                _ => {
                    let senders = (0..8).filter(|sender| one.pending >> sender & 1 != 0);
                    values.extend(senders.map(|sender| intid | sender << 10));
                }
            }
        }
        values
    }

    /// Reads GICC_IAR or GICC_AIAR, which returns `value`. An interrupt line keeps its level.
    pub fn acknowledge(&mut self, cpu: usize, value: u32) {
        let (intid, sender) = (value & 0x3ff, value >> 10);
        let one = self.at_mut(cpu, intid);
        one.pending &= if intid < SGIS { !(1 << sender) } else { 0 };
        one.active = Active::Acknowledged(cpu);
        let priority = one.priority;
        self.cpus[cpu].running.push(priority);
    }

    /// Writes GICC_EOIR or GICC_AEOIR: drops the priority and, with EOImode 0, also deactivates `intid`.
    pub fn end(&mut self, cpu: usize, intid: u32) {
        self.cpus[cpu].running.pop();
        if !self.cpus[cpu].split {
            self.deactivate(cpu, intid);
        }
    }

    /// Writes GICC_DIR; also the second half of [`Self::end`].
    pub fn deactivate(&mut self, cpu: usize, intid: u32) {
        let one = self.at_mut(cpu, intid);
        match one.active {
            Active::Acknowledged(by) if by != cpu => {}
            _ => one.active = Active::No,
        }
    }

    /// Writes a register with one bit per INTID, for the 32 INTIDs from `first` on. Private INTIDs belong to `cpu`.
    pub fn write(&mut self, cpu: usize, bits: Bits, first: u32, value: u32) {
        for n in 0..32 {
            let intid = first + n;
            let (one, set) = (self.at_mut(cpu, intid), value >> n & 1 != 0);
            match bits {
                Bits::Group => one.group1 = set,
                _ if !set => {}
                Bits::SetEnable => one.enabled = true,
                Bits::ClearEnable => one.enabled = false,
                // The pending states of SGIs are read-only here (4.3.7, 4.3.8).
                Bits::SetPending | Bits::ClearPending if intid < SGIS => {}
                Bits::SetPending => one.pending = 1,
                Bits::ClearPending => one.pending = 0,
                Bits::SetActive if one.active == Active::No => one.active = Active::Set,
                Bits::SetActive => {}
                Bits::ClearActive => one.active = Active::No,
            }
        }
    }

    /// Reads a register with one bit per INTID, like [`Self::write`].
    pub fn read(&self, cpu: usize, bits: Bits, first: u32) -> u32 {
        (0..32).fold(0, |value, n| {
            let one = self.at(cpu, first + n);
            let set = match bits {
                Bits::Group => one.group1,
                Bits::SetEnable | Bits::ClearEnable => one.enabled,
                Bits::SetPending | Bits::ClearPending => one.is_pending(),
                Bits::SetActive | Bits::ClearActive => one.active != Active::No,
            };
            value | u32::from(set) << n
        })
    }

    /// Writes GICD_SGIR (4.3.15) on `cpu`. The filter is 0 for the listed targets, 1 for all other CPUs, 2 for `cpu`.
    pub fn send(&mut self, cpu: usize, intid: u32, filter: u32, list: u8) {
        for (target, interface) in INTERFACES.into_iter().enumerate() {
            let is_target = match filter {
                0 => list >> interface & 1 != 0,
                1 => target != cpu,
                2 => target == cpu,
                _ => false,
            };
            if is_target {
                self.at_mut(target, intid).pending |= 1 << INTERFACES[cpu];
            }
        }
    }
}
