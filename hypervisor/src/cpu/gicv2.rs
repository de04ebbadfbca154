// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU with a GICv2. `arch::gicv2` makes each access to a register of a GICv3's interface call
//! [`access_register`].
//!
//! A GICv2 can't trap accesses to the guest's CPU interface, but EL2 decides whether the interface is
//! mapped. So ICH_HCR_EL2.TALL1 or TC closes the interface: the guest's map is exchanged for one that
//! lacks the interface and is otherwise equal.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_cpu::registers::{Readable, VTTBR_EL2, Writeable};
use arch::gicv2::{REGISTERS, WRITE};
use arch::insn;
use arch::regs::Register;
use gic::gich;

use crate::cpu::percpu::PerCpu;

/// The SGI that is the doorbell. A guest's SGIs from this one on are sent as requests: those from 8 on
/// may belong to the secure world.
pub const DOORBELL: u32 = 7;
/// GICD_SGIR (IHI 0048B, 4.3.15): the INTID.
const SGI_INTID: u64 = 0xf;
/// ICH_HCR_EL2: En (0), TC (10) and TALL1 (12).
const ENABLE: u64 = 1 << 0;
const TRAPS: u64 = 1 << 10 | 1 << 12;

/// State that the vectors of a CPU with a GICv2 read.
#[derive(Default)]
#[repr(C)]
pub struct Version2 {
    /// Addresses of GICD, GICC and GICH.
    pub distributor: AtomicU64,
    pub interface: AtomicU64,
    pub control: AtomicU64,
    /// The bits of GICD_SGIR that a guest may set: the INTID, and targets that have a vCPU.
    pub sgi_fields: AtomicU64,
    /// The bits of ICH_HCR_EL2 that close the interface.
    pub traps: AtomicU64,
    /// VTTBR_EL2 of the guest's map with the interface.
    open: AtomicU64,
    /// VTTBR_EL2 of the guest's map without the interface.
    pub closed: AtomicU64,
    /// Number of the CPU's interface.
    number: AtomicU64,
}

impl Version2 {
    /// Fills in the state of the running CPU, with the number of its interface and the guest's two maps.
    pub fn set_up(&self, number: u8, open: u64, closed: u64) {
        for (mine, shared) in [
            (&self.distributor, &REGISTERS.distributor),
            (&self.interface, &REGISTERS.interface),
            (&self.control, &REGISTERS.control),
        ] {
            mine.store(shared.load(Relaxed), Relaxed);
        }
        // `write_traps` compares VTTBR_EL2 before the first vCPU sets it; after a reset it is UNKNOWN (DDI 0487K.a,
        // D24.1.2.1).
        VTTBR_EL2.set(open);
        self.open.store(open, Relaxed);
        self.closed.store(closed, Relaxed);
        self.number.store(number.into(), Relaxed);
    }

    /// Returns the number of the CPU's interface, which is also that of its vCPU.
    pub fn number(&self) -> u32 {
        self.number.load(Relaxed) as u32
    }

    /// Lets the guest send SGIs to `interfaces`, one bit each.
    pub fn set_targets(&self, interfaces: u32) {
        let fields = u64::from(interfaces) << 16 | SGI_INTID;
        self.sgi_fields.store(fields, Relaxed);
    }

    /// Writes those bits of ICH_HCR_EL2 that GICH_HCR lacks. While the interface is off, the guest
    /// does not run (`crate::neighbour`).
    fn write_traps(&self, control: u64) {
        let traps = control & TRAPS;
        self.traps.store(traps, Relaxed);
        let (open, closed) = (self.open.load(Relaxed), self.closed.load(Relaxed));
        match (traps != 0, VTTBR_EL2.get()) {
            _ if control & ENABLE == 0 => {}
            (true, now) if now != closed => {
                VTTBR_EL2.set(closed);
                // A TLB may hold the interface's translation. The other translations of the two maps
                // are equal, so mixing them until then does no harm.
                insn::isb();
                insn::tlbi_vmalls12e1();
                insn::dsb_nsh();
            }
            (false, now) if now != open => VTTBR_EL2.set(open),
            _ => {}
        }
    }
}

/// Reads or writes a register for `arch::gicv2`. Without the ISB, a core could read a counter in later code before it
/// executes the instructions here (DDI 0487K.a, D12.2.1). The ISB does not wait for the device.
pub extern "C" fn access_register(number: u32, value: u64) -> u64 {
    let value = access(number, value);
    insn::isb();
    value
}

fn access(number: u32, value: u64) -> u64 {
    let control = Register::ICH_HCR_EL2 as u32;
    let stage2 = Register::VTTBR_EL2 as u32;
    let state = || &PerCpu::this().version2;
    if number & WRITE == 0 {
        let traps = if number == control {
            state().traps.load(Relaxed)
        } else {
            0
        };
        return gich::read(number) | traps;
    }
    let number = number & !WRITE;
    if number == stage2 {
        let state = state();
        let closed = state.traps.load(Relaxed) != 0;
        // A neighbour has a map of its own.
        VTTBR_EL2.set(if closed && value == state.open.load(Relaxed) {
            state.closed.load(Relaxed)
        } else {
            value
        });
        return value;
    }
    if number == control {
        state().write_traps(value);
    }
    gich::write(number, value);
    if number == control && value & ENABLE == 0 {
        // A neighbour runs next, and must not take the vCPU's interrupt. The store may complete late, but a load from
        // the same device comes after it (DDI 0487K.a, B2.8).
        let _ = gich::read(number);
        insn::dsb_nsh();
    }
    value
}
