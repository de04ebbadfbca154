// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reference: the behaviour of a GIC with one security state, modelled as naively as possible. The reference has no
//! list registers, no queues, and no vCPUs that hold interrupts. Each interrupt has a few flags, which determine the
//! interrupt that a CPU must signal (IHI 0069H, 4.1 for the states, 4.8 for priorities).

/// Number of vCPUs.
pub const CPUS: usize = 3;
/// Number of INTIDs.
pub const INTIDS: u32 = 96;
/// Number of SGIs and PPIs.
pub const PRIVATE: u32 = 32;
/// Implemented priority bits of the CPU interface: the upper five. All of them count for preemption.
const PRIORITY: u8 = 0xf8;
/// Running priority of a CPU that handles no interrupt.
const IDLE: u8 = 0xff;

/// Returns the affinity of a vCPU. The affinity differs from the vCPU's number, and the vCPUs' affinities differ in two
/// affinity levels.
pub const fn affinity(cpu: usize) -> u64 {
    [0x0000, 0x0001, 0x0100][cpu]
}

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
    /// ISENABLER.
    pub enabled: bool,
    /// Whether the interrupt was sent, or set pending through a register, and has not been taken since.
    pub pending: bool,
    /// Whether the line of a level-sensitive interrupt is high. The interrupt is then pending.
    pub line: bool,
    /// ISACTIVER.
    pub active: Active,
    /// IPRIORITYR.
    pub priority: u8,
    /// GICD_IROUTER of an SPI.
    pub route: u64,
}

impl Interrupt {
    /// Returns the interrupt's bit in ISPENDR: whether it is pending because of `pending` or `line`.
    pub const fn is_pending(&self) -> bool {
        self.pending || self.line
    }
}

/// The registers with one bit per INTID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bits {
    /// IGROUPR.
    Group,
    /// ISENABLER.
    SetEnable,
    /// ICENABLER.
    ClearEnable,
    /// ISPENDR.
    SetPending,
    /// ICPENDR.
    ClearPending,
    /// ISACTIVER.
    SetActive,
    /// ICACTIVER.
    ClearActive,
}

impl Bits {
    /// All registers of this type.
    pub const ALL: [Self; 7] = [
        Self::Group,
        Self::SetEnable,
        Self::ClearEnable,
        Self::SetPending,
        Self::ClearPending,
        Self::SetActive,
        Self::ClearActive,
    ];

    /// Returns the register's offset in the distributor and in the redistributor's second frame.
    pub const fn offset(self) -> u64 {
        match self {
            Self::Group => 0x080,
            Self::SetEnable => 0x100,
            Self::ClearEnable => 0x180,
            Self::SetPending => 0x200,
            Self::ClearPending => 0x280,
            Self::SetActive => 0x300,
            Self::ClearActive => 0x380,
        }
    }
}

/// A CPU interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// ICC_PMR_EL1.
    pub mask: u8,
    /// ICC_CTLR_EL1.EOImode.
    pub split: bool,
    /// ICC_IGRPEN1_EL1.
    pub on: bool,
    /// Priorities of interrupts that have been acknowledged and not ended, most recent last.
    pub running: Vec<u8>,
}

/// The whole GIC.
#[derive(Clone, Debug)]
pub struct Spec {
    private: [[Interrupt; PRIVATE as usize]; CPUS],
    shared: [Interrupt; (INTIDS - PRIVATE) as usize],
    /// GICD_CTLR.EnableGrp1.
    pub forwards: bool,
    /// The CPU interfaces.
    pub cpus: [Interface; CPUS],
}

impl Spec {
    /// Returns the state after reset, except that the CPU interfaces mask no priority.
    pub fn new() -> Self {
        Self {
            private: [[Interrupt::default(); PRIVATE as usize]; CPUS],
            shared: [Interrupt::default(); (INTIDS - PRIVATE) as usize],
            forwards: false,
            cpus: core::array::from_fn(|_| Interface {
                mask: 0xf8,
                split: false,
                on: true,
                running: Vec::new(),
            }),
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

    /// Returns whether `intid` is forwarded to `cpu` (4.7; GICD_IROUTER\<n\> for the routing). If any PE may be chosen
    /// (GICD_IROUTER.IRM), the choice is left to the implementation, and ours chooses the first CPU.
    fn forwarded(&self, cpu: usize, intid: u32) -> bool {
        let one = self.at(cpu, intid);
        let routed = intid < PRIVATE
            || if one.route >> 31 & 1 != 0 {
                cpu == 0
            } else {
                one.route == affinity(cpu)
            };
        self.forwards && one.enabled && routed
    }

    /// Returns whether `cpu` has to signal `intid` unless another interrupt is more urgent: `intid` is pending and not
    /// active, and its priority is above the mask and above the running priority (4.8).
    pub fn signalled(&self, cpu: usize, intid: u32) -> bool {
        let (one, interface) = (self.at(cpu, intid), &self.cpus[cpu]);
        let priority = one.priority & PRIORITY;
        let running = interface.running.last().copied().unwrap_or(IDLE);
        self.forwarded(cpu, intid)
            && one.is_pending()
            && one.active == Active::No
            && interface.on
            && priority < interface.mask & PRIORITY
            && priority < running
    }

    /// Returns the most urgent INTIDs. When `cpu` acknowledges an interrupt, it must get one of them; the
    /// implementation chooses which (4.8).
    pub fn most_urgent(&self, cpu: usize) -> Vec<u32> {
        let signalled = (0..INTIDS).filter(|&intid| self.signalled(cpu, intid));
        let urgency = |intid: u32| self.at(cpu, intid).priority & PRIORITY;
        let Some(best) = signalled.clone().map(urgency).min() else {
            return Vec::new();
        };
        signalled.filter(|&intid| urgency(intid) == best).collect()
    }

    /// Reads ICC_IAR1_EL1, which returns `intid` (4.1). The interrupt line keeps its level.
    pub fn acknowledge(&mut self, cpu: usize, intid: u32) {
        let one = self.at_mut(cpu, intid);
        one.pending = false;
        one.active = Active::Acknowledged(cpu);
        let priority = one.priority & PRIORITY;
        self.cpus[cpu].running.push(priority);
    }

    /// Writes ICC_EOIR1_EL1: drops the priority and, with EOImode 0, also deactivates `intid` (4.1).
    pub fn end(&mut self, cpu: usize, intid: u32) {
        self.cpus[cpu].running.pop();
        if !self.cpus[cpu].split {
            self.deactivate(cpu, intid);
        }
    }

    /// Returns whether `cpu` may deactivate `intid`. Any CPU may, if a register write set the active state.
    pub fn may_deactivate(&self, cpu: usize, intid: u32) -> bool {
        match self.at(cpu, intid).active {
            Active::No => false,
            Active::Acknowledged(by) => by == cpu,
            Active::Set => true,
        }
    }

    /// Writes ICC_DIR_EL1; also the second half of [`Self::end`].
    pub fn deactivate(&mut self, cpu: usize, intid: u32) {
        if self.may_deactivate(cpu, intid) {
            self.at_mut(cpu, intid).active = Active::No;
        }
    }

    /// Writes a register with one bit per INTID, for the 32 INTIDs from `first` on. Private INTIDs belong to `cpu`
    /// (12.9, 12.11).
    pub fn write(&mut self, cpu: usize, bits: Bits, first: u32, value: u32) {
        for n in 0..32 {
            let (one, set) = (self.at_mut(cpu, first + n), value >> n & 1 != 0);
            match bits {
                // All interrupts are in Group 1, whatever value is written.
                Bits::Group => {}
                _ if !set => {}
                Bits::SetEnable => one.enabled = true,
                Bits::ClearEnable => one.enabled = false,
                Bits::SetPending => one.pending = true,
                Bits::ClearPending => one.pending = false,
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
                Bits::Group => true,
                Bits::SetEnable | Bits::ClearEnable => one.enabled,
                Bits::SetPending | Bits::ClearPending => one.is_pending(),
                Bits::SetActive | Bits::ClearActive => one.active != Active::No,
            };
            value | u32::from(set) << n
        })
    }

    /// Writes ICC_SGI1R_EL1 (12.2): sends `intid` to the CPUs in `targets`.
    pub fn send(&mut self, intid: u32, targets: &[usize]) {
        for &cpu in targets {
            self.at_mut(cpu, intid).pending = true;
        }
    }
}
