// SPDX-License-Identifier: MIT OR Apache-2.0
//! Registers of the interrupt controller in memory (IHI 0069H, 12.8 to 12.11).

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
}

/// Size of a redistributor without frames for virtual LPIs, in bytes.
const REDISTRIBUTOR: u64 = 0x2_0000;
/// Size of the distributor, in bytes.
const DISTRIBUTOR: u64 = 0x1_0000;
/// Offsets of GICD_SETSPI_NSR and GICD_SETSPI_SR. The next constant is the offset of GICR_SETLPIR.
const SETSPI: [u64; 2] = [0x40, 0x50];
const SETLPIR: u64 = 0x40;
/// Offset of the SGIs and PPIs in a redistributor.
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
        (name == "gicv3_dist").then_some((Self::Distributor, address % DISTRIBUTOR))
    }
}

impl Mapped {
    /// Whether this is GICD_CTLR or GICR_CTLR.
    #[must_use]
    pub const fn is_control(&self) -> bool {
        self.offset == 0
    }

    /// Whether GICD_CTLR or GICR_CTLR shows that a write is still pending.
    #[must_use]
    pub const fn shows_pending_write(&self) -> bool {
        let rwp = match self.frame {
            Frame::Distributor => 1 << 31,
            Frame::Redistributor(_) => 1 << 3,
        };
        self.value & rwp != 0
    }

    /// Whether this is GICD_ICENABLER\<n>, GICR_ICENABLER0, or the variant with E of either.
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
    /// a variant of these with E, GICD_SETSPI, or GICR_SETLPIR.
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
        ] {
            let register = of(frame, offset, value);
            assert_eq!(register.makes_pending(), rings, "{register:?}");
        }
    }
}
