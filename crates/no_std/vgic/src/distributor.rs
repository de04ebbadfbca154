// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of the distributor (12.9), with SPIs 32 to 95.
//!
//! No SPI is mapped to a physical interrupt: guests make SPIs pending by register writes, as
//! drivers and tests do to try out routing.

mod offsets;

use crate::bits::{is_aligned_part, ones, read_part, replace_part};
use crate::redistributor::{bits_to_pairs, pairs_to_bits};
use crate::version2::SharedState;
use crate::{Access, IIDR, PIDR2, PIDR2_OFFSET, PRIVATE};
use offsets::{bit_array, icfgr_spi, irouter_spi, spi_bit, spi_index};

/// Number of SPIs.
pub const SPIS: usize = 64;
/// GICD_CTLR: a guest can change only EnableGrp1 (1). There is no Group 0.
const CTLR_ENABLES: u64 = 0b10;
/// GICD_CTLR.EnableGrp1.
pub(crate) const FORWARD: u64 = 0b10;
/// GICD_CTLR: DS (6) and ARE (4) are fixed.
const CTLR_FIXED: u64 = 1 << 6 | 1 << 4;
/// GICD_IROUTER.IRM: any PE.
pub(crate) const ANY: u64 = 1 << 31;
/// GICD_IROUTER: Aff3 (39:32), IRM (31), Aff2 to Aff0 (23:0).
const ROUTE: u64 = 0xff_80ff_ffff;

/// An SPI that is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spi {
    /// INTID, from 32.
    pub intid: u32,
    /// Priority.
    pub priority: u8,
}

/// The properties of a vCPU that matter for SPIs.
#[derive(Clone, Copy, Debug)]
pub struct Vcpu {
    /// The vCPU's number.
    pub number: usize,
    /// The vCPU's affinity, as in MPIDR_EL1.
    pub affinity: u64,
}

/// The distributor. SPI n is bit or element n - 32.
#[derive(Clone, Debug)]
pub struct Distributor {
    cpus: usize,
    pub(crate) enables: u64,
    pub(crate) enabled: u64,
    pub(crate) pending: u64,
    pub(crate) active: u64,
    edge: u64,
    pub(crate) priority: [u8; SPIS],
    pub(crate) route: [u64; SPIS],
    /// SPIs in the list of the vCPU that `holder` names; see [`crate::spi`].
    pub(crate) listed: u64,
    pub(crate) holder: [u16; SPIS],
    /// Requests to the holder: `withdraw` the pending state, `deactivate` the interrupt.
    pub(crate) withdraw: u64,
    pub(crate) deactivate: u64,
    /// States that the holders last saw in their lists.
    pub(crate) listed_pending: u64,
    pub(crate) listed_active: u64,
    pub(crate) version2: SharedState,
}

impl Distributor {
    /// Returns the state after reset, for a machine of `cpus` vCPUs.
    #[must_use]
    pub const fn new(cpus: usize) -> Self {
        Self {
            cpus,
            enables: 0,
            enabled: 0,
            pending: 0,
            active: 0,
            edge: 0,
            priority: [0; SPIS],
            route: [0; SPIS],
            listed: 0,
            holder: [0; SPIS],
            withdraw: 0,
            deactivate: 0,
            listed_pending: 0,
            listed_active: 0,
            version2: SharedState::new(),
        }
    }

    /// GICD_CTLR.EnableGrp1: whether Group 1 interrupts are forwarded.
    #[must_use]
    pub const fn forwards(&self) -> bool {
        self.enables & 0b10 != 0
    }

    /// Whether SPI n may be delivered to `vcpu`: it is enabled, forwarded and routed to it. SPIs
    /// that may go to any vCPU go to the first vCPU.
    pub(crate) const fn is_deliverable(&self, n: usize, vcpu: Vcpu) -> bool {
        let ready = self.enabled & !self.active;
        let routed = match self.route[n] & ANY {
            0 => self.route[n] == vcpu.affinity,
            _ => vcpu.number == 0,
        };
        self.forwards() && ready >> n & 1 != 0 && routed
    }

    /// Takes the most urgent SPI to deliver to `vcpu`, whose list then holds it. An SPI that
    /// another vCPU holds has to wait.
    pub(crate) fn take_next(&mut self, vcpu: Vcpu) -> Option<Spi> {
        let held_elsewhere =
            |n: usize| self.listed >> n & 1 != 0 && usize::from(self.holder[n]) != vcpu.number;
        let pending = ones(self.pending).map(|n| n as usize);
        let best = pending
            .filter(|&n| self.is_deliverable(n, vcpu))
            .filter(|&n| !held_elsewhere(n))
            .min_by_key(|&n| self.priority[n])?;
        self.pending &= !(1 << best);
        self.listed |= 1 << best;
        self.holder[best] = vcpu.number as u16;
        Some(Spi {
            intid: PRIVATE + best as u32,
            priority: self.priority[best],
        })
    }

    /// Makes an SPI pending again that was taken but not delivered, unless software has cleared its
    /// pending state.
    pub const fn give_back(&mut self, intid: u32) {
        self.pending |= 1 << (intid - PRIVATE) & !self.withdraw;
    }

    /// Clears the active state that software set for SPI `intid` by a register write; returns
    /// whether there was such a state.
    pub(crate) fn deactivate(&mut self, intid: u32) -> bool {
        let bit = spi_index(intid.into()).map_or(0, |n| 1 << n);
        let was = self.active & bit != 0;
        self.active &= !bit;
        was
    }

    /// Whether SPI `intid` is in the list of `vcpu`.
    pub(crate) fn is_held(&self, intid: u32, vcpu: Vcpu) -> bool {
        let n = (intid - PRIVATE) as usize;
        self.listed >> n & 1 != 0 && usize::from(self.holder[n]) == vcpu.number
    }

    /// Releases every SPI that `vcpu` holds and no longer lists; returns whether
    /// another vCPU may wait for one.
    #[must_use]
    pub fn release(&mut self, vcpu: Vcpu) -> bool {
        let held = (0..SPIS).filter(|&n| self.is_held(PRIVATE + n as u32, vcpu));
        let bits = held.fold(0, |bits, n| bits | 1 << n);
        self.listed &= !bits;
        self.listed_pending &= !bits;
        self.listed_active &= !bits;
        self.withdraw &= !bits;
        self.deactivate &= !bits;
        bits & self.pending != 0
    }

    /// Returns the priority of `intid`, if that is an SPI.
    pub(crate) const fn priority_of(&self, intid: u32) -> Option<u8> {
        match spi_index(intid as u64) {
            Some(n) => Some(self.priority[n]),
            None => None,
        }
    }

    /// Whether an SPI is pending that no vCPU holds.
    pub(crate) const fn has_waiting_spi(&self) -> bool {
        self.pending & !self.listed != 0
    }

    /// Carries out the access; returns the value read (0 for a write), and whether every vCPU has to sync.
    #[must_use]
    pub fn access(&mut self, access: Access) -> (u64, bool) {
        match access.write {
            None => (self.read(access), false),
            Some(value) => (0, self.write(access, value)),
        }
    }

    fn read(&self, access: Access) -> u64 {
        match access.offset {
            0x000 => self.enables | CTLR_FIXED,
            // GICD_TYPER: ITLinesNumber (4:0) 2, CPUNumber (7:5) 0 as ARE is
            // always on, IDbits (23:19) 9 for 10-bit INTIDs, A3V (24),
            // No1N (25).
            0x004 => (SPIS as u64 / 32) | 9 << 19 | 1 << 24 | 1 << 25,
            0x008 => IIDR,
            PIDR2_OFFSET => PIDR2,
            0x400..0x460 if is_aligned_part(access, 4) => self.priorities(access),
            0x6000..0x6300 if is_aligned_part(access, 8) => {
                let (n, start) = irouter_spi(access.offset);
                n.map_or(0, |n| read_part(access, start, self.route[n]))
            }
            _ if access.size == 4 => self.read_word(access.offset),
            _ => 0,
        }
    }

    fn read_word(&self, offset: u64) -> u64 {
        let Some((register, shift)) = bit_array(offset) else {
            return match icfgr_spi(offset) {
                Some(shift) => bits_to_pairs((self.edge >> shift) as u32 & 0xffff),
                None => 0,
            };
        };
        let value = match register {
            0x080 => u64::MAX,
            0x100 | 0x180 => self.enabled,
            0x200 | 0x280 => self.pending | self.listed_pending,
            0x300 | 0x380 => self.active | self.listed_active,
            _ => 0,
        };
        value >> shift & 0xffff_ffff
    }

    fn write(&mut self, access: Access, value: u64) -> bool {
        match access.offset {
            0x000 => self.enables = value & CTLR_ENABLES,
            // SETSPI_NSR and CLRSPI_NSR take an INTID.
            0x040 => self.pending |= spi_bit(value),
            0x048 => self.clear_pending(spi_bit(value)),
            0x400..0x460 if is_aligned_part(access, 4) => self.set_priorities(access, value),
            0x6000..0x6300 if is_aligned_part(access, 8) => {
                let (n, start) = irouter_spi(access.offset);
                if let Some(n) = n {
                    self.route[n] = replace_part(access, start, self.route[n], value) & ROUTE;
                }
            }
            _ if access.size == 4 => return self.write_word(access.offset, value),
            _ => return false,
        }
        true
    }

    fn write_word(&mut self, offset: u64, value: u64) -> bool {
        let Some((register, shift)) = bit_array(offset) else {
            if let Some(shift) = icfgr_spi(offset) {
                let kept = self.edge & !(0xffff << shift);
                self.edge = kept | u64::from(pairs_to_bits(value)) << shift;
            }
            return false;
        };
        let bits = (value & 0xffff_ffff) << shift;
        match register {
            0x100 => self.enabled |= bits,
            0x180 => self.enabled &= !bits,
            0x200 => self.pending |= bits,
            0x280 => self.clear_pending(bits),
            0x300 => self.active |= bits,
            0x380 => {
                self.active &= !bits;
                self.deactivate |= bits & self.listed;
            }
            _ => return false,
        }
        true
    }

    const fn clear_pending(&mut self, bits: u64) {
        self.pending &= !bits;
        self.withdraw |= bits & self.listed;
    }

    fn priorities(&self, access: Access) -> u64 {
        let bytes = (0..u64::from(access.size)).map(|n| (n, access.offset - 0x400 + n));
        bytes.fold(0, |value, (n, intid)| {
            let byte = spi_index(intid).map_or(0, |spi| self.priority[spi]);
            value | u64::from(byte) << (8 * n)
        })
    }

    fn set_priorities(&mut self, access: Access, value: u64) {
        for n in 0..u64::from(access.size) {
            if let Some(spi) = spi_index(access.offset - 0x400 + n) {
                self.priority[spi] = (value >> (8 * n)) as u8;
            }
        }
    }

    /// Returns the machine's number of vCPUs.
    #[must_use]
    pub const fn cpus(&self) -> usize {
        self.cpus
    }
}
