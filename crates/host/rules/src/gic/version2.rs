// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of a GICv2, all of which are memory-mapped (IHI 0048B, chapters 4 and 5).

use super::{Frame, Interrupt, Listed, Mapped, Step};

/// A block of registers of a GICv2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Block {
    /// The distributor, GICD.
    Distributor,
    /// The CPU interface, GICC.
    Interface,
    /// The hypervisor's control of the virtual CPU interface, GICH.
    Control,
    /// The virtual CPU interface, GICV. Stage 2 shows it to a guest in place of GICC, and its registers have the same
    /// offsets as those of GICC (5.5).
    GuestInterface,
}

/// Registers of GICC and GICV (4.4, 5.5).
const IAR: u64 = 0xc;
const EOIR: u64 = 0x10;
const DIR: u64 = 0x1000;
/// Registers of GICH (5.3).
const HCR: u64 = 0;
const ELRSR0: u64 = 0x30;
const ELRSR1: u64 = 0x34;
const LR: u64 = 0x100;
/// The offset after the last of 64 list registers.
const LR_END: u64 = LR + 4 * 64;
/// GICD_SGIR (4.3.15).
const SGIR: u64 = 0xf00;
/// First INTID that is not an SGI.
const PPI: u64 = 16;

impl Block {
    /// Returns the block and the offset of the register at physical address `address`. The emulator calls the device
    /// `name`.
    pub(super) fn locate(name: &str, address: u64) -> Option<(Self, u64)> {
        // These names are QEMU's. The blocks are aligned to their sizes.
        let (block, bytes) = match name {
            "gic_dist" => (Self::Distributor, 0x1000),
            "gic_cpu" => (Self::Interface, 0x2000),
            "gic_viface" => (Self::Control, 0x1000),
            "gic_vcpu" => (Self::GuestInterface, 0x2000),
            _ => return None,
        };
        Some((block, address % bytes))
    }

    /// Whether a write of 1 to a bit of the register at `offset` makes an interrupt pending (GICD_ISPENDR\<n>,
    /// GICD_SPENDSGIR\<n>), and whether any write does (GICD_SGIR).
    pub(super) const fn makes_pending(self, offset: u64) -> (bool, bool) {
        match self {
            Self::Distributor => (
                matches!(offset, 0x200..0x280 | 0xf20..0xf30),
                offset == SGIR,
            ),
            _ => (false, false),
        }
    }

    /// Whether the register at `offset` of a CPU interface acknowledges, ends or deactivates an interrupt.
    #[must_use]
    pub const fn handles_interrupts(offset: u64) -> bool {
        matches!(offset, IAR | EOIR | DIR)
    }
}

impl Listed {
    /// Reads the fields of a GICH_LR\<n> (5.3.8): HW (31), State (29:28), VirtualID (9:0).
    const fn of_gich(value: u64) -> Self {
        Self {
            intid: value & 0x3ff,
            pending: value >> 28 & 1 != 0,
            active: value >> 29 & 1 != 0,
            hw: value >> 31 & 1 != 0,
        }
    }
}

impl Mapped {
    /// Whether this is a register of a GICv2's GICH.
    #[must_use]
    pub const fn is_guest_control(&self) -> bool {
        matches!(self.frame, Frame::Version2(Block::Control))
    }

    /// Whether a DMB suffices to order an earlier store before an interrupt that is sent by a write of the register.
    /// This is so on a GICv2, where sending and acknowledging are both accesses to memory.
    #[must_use]
    pub const fn is_ordered_by_dmb(&self) -> bool {
        matches!(self.frame, Frame::Version2(_))
    }

    /// Returns the step that a load or a store of this register makes in the handling of an interrupt, and which
    /// interrupt. An SGI has its sender in bits 12:10; reserved bits are 0 (4.4.4, 4.4.5, 4.4.14).
    #[must_use]
    pub const fn step(&self, store: bool) -> Option<(Step, Interrupt)> {
        if !matches!(
            self.frame,
            Frame::Version2(Block::Interface | Block::GuestInterface)
        ) {
            return None;
        }
        let step = match (self.offset, store) {
            (IAR, false) => Step::Acknowledge,
            (EOIR, true) => Step::End,
            (DIR, true) => Step::Deactivate,
            _ => return None,
        };
        let intid = self.value & 0x3ff;
        let sender = if intid < PPI { self.value >> 10 & 7 } else { 0 };
        Some((step, Interrupt { intid, sender }))
    }

    /// Returns the virtual address of the CPU interface if this is one of its registers, at virtual address `address`.
    #[must_use]
    pub const fn interface_at(&self, address: u64) -> Option<u64> {
        match self.frame {
            Frame::Version2(Block::GuestInterface) => Some(address.wrapping_sub(self.offset)),
            _ => None,
        }
    }

    /// Returns GICH_HCR.En if this is GICH_HCR (5.3.1).
    #[must_use]
    pub const fn enables_guest(&self) -> Option<bool> {
        if self.is_guest_control() && self.offset == HCR {
            Some(self.value & 1 != 0)
        } else {
            None
        }
    }

    /// Returns n and the interrupt if this is GICH_LR\<n>.
    #[must_use]
    pub const fn list_register(&self) -> Option<(u8, Listed)> {
        match self.offset {
            LR..LR_END if self.is_guest_control() => {
                let n = (self.offset - LR) / 4;
                Some((n as u8, Listed::of_gich(self.value)))
            }
            _ => None,
        }
    }

    /// Returns a bit for each empty list register, if this is GICH_ELRSR0 or GICH_ELRSR1 (5.3.6).
    #[must_use]
    pub const fn empty_list_registers(&self) -> Option<u64> {
        match self.offset {
            ELRSR0 if self.is_guest_control() => Some(self.value),
            ELRSR1 if self.is_guest_control() => Some(self.value << 32),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(block: Block, offset: u64, value: u64) -> Mapped {
        Mapped {
            frame: Frame::Version2(block),
            offset,
            value,
        }
    }

    #[test]
    fn an_sgi_has_its_sender_and_nothing_else_has_one() {
        let step = |block, offset, value, store| register(block, offset, value).step(store);
        let (own, guest) = (Block::Interface, Block::GuestInterface);
        let sgi = Interrupt {
            intid: 3,
            sender: 5,
        };
        assert_eq!(
            step(own, 0xc, 0xffff_e000 | 5 << 10 | 3, false),
            Some((Step::Acknowledge, sgi))
        );
        let timer = Interrupt::new(27);
        assert_eq!(
            step(guest, 0x10, 5 << 10 | 27, true),
            Some((Step::End, timer))
        );
        assert_eq!(step(own, 0x1000, 27, true), Some((Step::Deactivate, timer)));
        let special = step(guest, 0xc, 1023, false).unwrap();
        assert!(special.1.is_none() && !sgi.is_none() && !timer.is_none());
        // Neither a write of GICC_IAR nor a load of GICC_EOIR has any effect.
        assert_eq!(step(own, 0xc, 3, true), None);
        assert_eq!(step(own, 0x10, 3, false), None);
        assert_eq!(step(Block::Control, 0x10, 3, true), None);
    }

    #[test]
    fn list_registers_have_their_numbers_and_interrupts() {
        let lr = |offset, value| register(Block::Control, offset, value).list_register();
        let (n, listed) = lr(0x10c, 1 << 31 | 1 << 28 | 27 << 10 | 27).unwrap();
        assert!(n == 3 && listed.intid == 27 && listed.hw && listed.pending && !listed.active);
        let (n, listed) = lr(0x1fc, 1 << 29 | 5 << 10 | 3).unwrap();
        assert!(n == 63 && listed.intid == 3 && !listed.hw && !listed.pending && listed.active);
        assert!(!lr(0x100, 3).unwrap().1.is_used());
        assert!(lr(0xf0, 0).is_none() && lr(0x200, 0).is_none());
        let empty = |offset| register(Block::Control, offset, 1).empty_list_registers();
        assert_eq!([empty(0x30), empty(0x34)], [Some(1), Some(1 << 32)]);
        assert_eq!(empty(0x20), None);
    }

    #[test]
    fn the_address_of_an_interface_is_found() {
        let at = |block| register(block, 0x1000, 0).interface_at(0x801_1000);
        assert_eq!(at(Block::GuestInterface), Some(0x801_0000));
        assert_eq!(at(Block::Interface), None);
    }
}
