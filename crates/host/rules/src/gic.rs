// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of the interrupt controller in memory (IHI 0069H, 12.8 to 12.11; `version2`).

mod version2;

use std::fmt;

pub use version2::Block;

/// An access to a memory-mapped register of the interrupt controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mapped {
    /// The frame that contains the register.
    pub frame: Frame,
    /// The offset of the register in the frame.
    pub offset: u64,
    /// The value read or written.
    pub value: u64,
}

/// A block of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Frame {
    /// The distributor.
    Distributor,
    /// The redistributor, with its physical address. A redistributor has two frames of 64 KiB, and is aligned to 128
    /// KiB.
    Redistributor(u64),
    /// A block of a GICv2. Each CPU sees its own registers at the same address.
    Version2(Block),
}

/// A step in the handling of an interrupt at a CPU interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A read that acknowledges an interrupt and returns it.
    Acknowledge,
    /// A write that drops the interrupt's priority.
    End,
    /// A write that deactivates the interrupt.
    Deactivate,
}

/// An interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Its INTID.
    pub intid: u64,
    /// The CPU interface that sent it, if it is an SGI of a GICv2. Otherwise 0.
    pub sender: u64,
}

/// The interrupt in a list register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The ID that the guest sees.
    pub intid: u64,
    /// Whether the interrupt is pending, and whether it is active. If it is neither, the list register is empty.
    pub pending: bool,
    /// See `pending`.
    pub active: bool,
    /// Whether it is a hardware interrupt.
    pub hw: bool,
}

/// Size of a redistributor without frames for virtual LPIs, in bytes.
const REDISTRIBUTOR: u64 = 0x2_0000;
/// Size of the distributor, in bytes.
const DISTRIBUTOR: u64 = 0x1_0000;
/// Offsets of GICD_SETSPI_NSR and GICD_SETSPI_SR. The next constant is the offset of GICR_SETLPIR.
const SETSPI: [u64; 2] = [0x40, 0x50];
const SETLPIR: u64 = 0x40;
/// Offset, in a redistributor, of the frame for SGIs and PPIs.
const PRIVATE: u64 = 0x1_0000;

impl Frame {
    /// Returns the frame and the offset of the register at physical address `address`. The emulator calls the device
    /// `name`.
    #[must_use]
    pub fn locate(name: &str, address: u64) -> Option<(Self, u64)> {
        // These names are QEMU's.
        if name.starts_with("gicv3_redist") {
            let offset = address % REDISTRIBUTOR;
            return Some((Self::Redistributor(address - offset), offset));
        }
        if name == "gicv3_dist" {
            return Some((Self::Distributor, address % DISTRIBUTOR));
        }
        let (block, offset) = Block::locate(name, address)?;
        Some((Self::Version2(block), offset))
    }
}

impl Interrupt {
    /// Returns the interrupt with `intid`, whose sender is not part of its identity.
    #[must_use]
    pub const fn new(intid: u64) -> Self {
        Self { intid, sender: 0 }
    }

    /// Whether the INTID means that there is no interrupt. The numbers from 8192 on are LPIs (IHI 0069H, 2.2.1; IHI 0048B,
    /// 3.2.5).
    #[must_use]
    pub const fn is_none(self) -> bool {
        matches!(self.intid & 0xff_ffff, 1020..8192)
    }
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.intid, self.sender) {
            (intid, 0) => write!(f, "interrupt {intid}"),
            (intid, sender) => write!(f, "SGI {intid} of CPU interface {sender}"),
        }
    }
}

impl Listed {
    /// Whether the list register has an interrupt.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        self.pending || self.active
    }
}

impl Mapped {
    /// Whether this is GICD_CTLR or GICR_CTLR with the bit RWP, which a GICv2 lacks.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.offset == 0 && !matches!(self.frame, Frame::Version2(_))
    }

    /// Whether GICD_CTLR or GICR_CTLR shows that a write is still pending.
    #[must_use]
    pub const fn shows_pending_write(&self) -> bool {
        let rwp = match self.frame {
            Frame::Distributor => 1 << 31,
            Frame::Redistributor(_) => 1 << 3,
            Frame::Version2(_) => 0,
        };
        self.value & rwp != 0
    }

    /// Whether this is GICD_ICENABLER\<n>, GICR_ICENABLER0, or the E variant of either, in a frame with RWP.
    #[must_use]
    pub const fn is_disable_register(&self) -> bool {
        let enabler = match (self.frame, self.offset) {
            (Frame::Distributor, 0x180..0x200 | 0x1400..0x1480) => true,
            (Frame::Redistributor(_), offset) => matches!(offset, 0x1_0180..0x1_018c),
            _ => false,
        };
        enabler && self.value != 0
    }

    /// Whether the access makes an interrupt pending. An access does so if it writes GICD_ISPENDR\<n>, GICR_ISPENDR0,
    /// an E variant of either, GICD_SETSPI, or GICR_SETLPIR; with a GICv2, also GICD_SGIR or GICD_SPENDSGIR.
    #[must_use]
    pub fn makes_pending(&self) -> bool {
        let (pends, sets) = match self.frame {
            Frame::Distributor => (
                matches!(self.offset, 0x200..0x280 | 0x1600..0x1680),
                SETSPI.contains(&self.offset),
            ),
            Frame::Redistributor(_) => (
                matches!(self.offset.wrapping_sub(PRIVATE), 0x200..0x20c),
                self.offset == SETLPIR,
            ),
            Frame::Version2(block) => block.makes_pending(self.offset),
        };
        // In the first kind of register, a bit written as 0 has no effect. All other registers take an interrupt's
        // number.
        pends && self.value != 0 || sets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_found_by_name_and_address() {
        let located = |name, address| Frame::locate(name, address);
        assert_eq!(
            located("gicv3_dist", 0x0800_0184),
            Some((Frame::Distributor, 0x184))
        );
        assert_eq!(
            located("gicv3_redist_region[0]", 0x080d_0180),
            Some((Frame::Redistributor(0x080c_0000), 0x1_0180))
        );
        let version2 = |block| Frame::Version2(block);
        for (name, address, block, offset) in [
            ("gic_dist", 0x0800_0f00, Block::Distributor, 0xf00),
            ("gic_cpu", 0x0801_1000, Block::Interface, 0x1000),
            ("gic_viface", 0x0803_0104, Block::Control, 0x104),
            // The address on a Raspberry Pi 4.
            ("gic_vcpu", 0xff84_600c, Block::GuestInterface, 0xc),
        ] {
            assert_eq!(located(name, address), Some((version2(block), offset)));
        }
        assert_eq!(located("pl011", 0x0900_0000), None);
    }

    #[test]
    fn registers_are_known_by_their_offsets() {
        let of = |frame, offset, value| Mapped {
            frame,
            offset,
            value,
        };
        let redistributor = Frame::Redistributor(0x080a_0000);
        assert!(
            of(redistributor, 0, 8).shows_pending_write()
                && !of(redistributor, 0, 1 << 31).shows_pending_write()
        );
        assert!(of(Frame::Distributor, 0, 1 << 31).shows_pending_write());
        assert!(
            of(redistributor, 0x1_0180, 1).is_disable_register()
                && !of(redistributor, 0x180, 1).is_disable_register()
        );
        assert!(!of(Frame::Distributor, 0x184, 0).is_disable_register());
        let version2 = Frame::Version2(Block::Distributor);
        for offset in [0, 0x180] {
            let register = of(version2, offset, 1);
            assert!(!register.is_control() && !register.is_disable_register());
        }
        assert!(
            of(redistributor, 0x1_0200, 1).makes_pending()
                && !of(redistributor, 0x1_0280, 1).makes_pending()
        );
        for (frame, offset, value, rings) in [
            (Frame::Distributor, 0x204, 1, true),
            (Frame::Distributor, 0x204, 0, false),
            (Frame::Distributor, 0x15fc, 1, false),
            (Frame::Distributor, 0x1600, 1, true),
            (Frame::Distributor, 0x167c, 0, false),
            (Frame::Distributor, 0x1680, 1, false),
            (Frame::Distributor, 0x40, 0, true),
            (redistributor, 0x1_0208, 1, true),
            (redistributor, 0x1_0200, 0, false),
            (redistributor, 0x40, 0, true),
            (version2, 0xf00, 0, true),
            (version2, 0xf20, 1, true),
            (version2, 0xf20, 0, false),
            (version2, 0xf10, 1, false),
            (version2, 0x204, 1, true),
            (Frame::Version2(Block::Interface), 0xf00, 1, false),
        ] {
            let register = of(frame, offset, value);
            assert_eq!(register.makes_pending(), rings, "{register:?}");
        }
    }
}
