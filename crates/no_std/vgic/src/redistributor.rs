// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of a redistributor (12.11): two frames of 64 KiB.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bits::{is_aligned_part, read_part};
use crate::private::Private;
use crate::{Access, IIDR, PIDR2, PIDR2_OFFSET};

/// Offset of the second frame.
const SGI_FRAME: u64 = 0x1_0000;
/// ICFGR0: every SGI is edge-triggered (0b10).
const SGIS_EDGE: u64 = 0xaaaa_aaaa;

/// A vCPU's redistributor, for the duration of an access.
#[derive(Clone, Copy, Debug)]
pub struct Redistributor<'a> {
    /// The registers of the vCPU's SGIs and PPIs.
    pub private: &'a Private,
    /// Affinity of the vCPU, as in MPIDR_EL1.
    pub affinity: u64,
    /// Number of the vCPU.
    pub number: usize,
    /// Whether this is the last redistributor of the machine.
    pub last: bool,
    /// The INTIDs whose lines are high. These INTIDs are pending, enabled or not, and no write
    /// changes that (12.11, GICR_ICPENDR0).
    pub lines: u32,
}

impl Redistributor<'_> {
    /// Carries out the access; returns the value read (0 for a write), and whether the owner has to sync.
    #[must_use]
    pub fn access(&self, access: Access) -> (u64, bool) {
        if access.offset >= SGI_FRAME {
            let access = Access {
                offset: access.offset - SGI_FRAME,
                ..access
            };
            return self.access_sgi_frame(access);
        }
        match access.write {
            None => (self.read(access), false),
            Some(value) => {
                // GICR_WAKER is the only register of this frame that keeps a value.
                if access.offset == 0x14 {
                    self.private.sleeping.store(value as u32 >> 1 & 1, Release);
                }
                (0, false)
            }
        }
    }

    fn read(&self, access: Access) -> u64 {
        match access.offset {
            0x04 => IIDR,
            0x08..0x10 if is_aligned_part(access, 8) => read_part(access, 0x08, self.typer()),
            // ChildrenAsleep follows ProcessorSleep at once.
            0x14 => u64::from(self.private.sleeping.load(Acquire)) * 0b110,
            PIDR2_OFFSET => PIDR2,
            _ => 0,
        }
    }

    /// GICR_TYPER: affinity 63:32, processor number 23:8, Last 4.
    fn typer(&self) -> u64 {
        let affinity = self.affinity >> 8 & 0xff00_0000 | self.affinity & 0xff_ffff;
        affinity << 32 | (self.number as u64) << 8 | u64::from(self.last) << 4
    }

    fn access_sgi_frame(&self, access: Access) -> (u64, bool) {
        match access.offset {
            0x400..0x420 if is_aligned_part(access, 4) => self.access_priorities(access),
            0x080..0x400 | 0xc00..0xc08 if access.size == 4 => self.access_bits(access),
            _ => (0, false),
        }
    }

    fn access_bits(&self, access: Access) -> (u64, bool) {
        let private = self.private;
        let Some(value) = access.write else {
            let value = match access.offset {
                // Every INTID is in Group 1.
                0x080 => u32::MAX.into(),
                0x100 | 0x180 => private.enabled.load(Acquire).into(),
                0x200 | 0x280 => {
                    let listed = private.listed_pending.load(Acquire);
                    let listed = listed & !private.pending.bits_to_clear();
                    (private.pending.bits_to_set() | listed | self.lines).into()
                }
                0x300 | 0x380 => {
                    let listed = private.listed_active.load(Acquire);
                    let listed = listed & !private.active.bits_to_clear();
                    (private.active.bits_to_set() | listed).into()
                }
                0xc00 => SGIS_EDGE,
                0xc04 => bits_to_pairs(private.edge.load(Acquire) >> 16),
                _ => 0,
            };
            return (value, false);
        };
        let bits = value as u32;
        match access.offset {
            0x100 => drop(private.enabled.fetch_or(bits, AcqRel)),
            0x180 => drop(private.enabled.fetch_and(!bits, AcqRel)),
            0x200 => private.pending.set(bits),
            0x280 => private.pending.clear(bits),
            0x300 => private.active.set(bits),
            0x380 => private.active.clear(bits),
            0xc04 => private.edge.store(pairs_to_bits(value) << 16, Release),
            _ => return (0, false),
        }
        (0, access.offset < 0x400)
    }

    /// GICR_IPRIORITYR: a byte per INTID.
    fn access_priorities(&self, access: Access) -> (u64, bool) {
        let first = (access.offset - 0x400) as usize;
        let bytes = &self.private.priority[first..first + access.size as usize];
        let mut value = access.write.unwrap_or(0);
        for (n, byte) in bytes.iter().enumerate() {
            if access.write.is_some() {
                byte.store((value >> (8 * n)) as u8, Relaxed);
            } else {
                value |= u64::from(byte.load(Relaxed)) << (8 * n);
            }
        }
        match access.write {
            Some(_) => (0, true),
            None => (value, false),
        }
    }
}

/// Spreads sixteen bits to the upper bits of sixteen pairs, the format of ICFGR.
pub fn bits_to_pairs(bits: u32) -> u64 {
    (0..16).fold(0, |pairs, n| {
        pairs | u64::from(bits >> n & 1) << (2 * n + 1)
    })
}

/// The reverse of [`bits_to_pairs`].
pub fn pairs_to_bits(pairs: u64) -> u32 {
    (0..16).fold(0, |bits, n| bits | ((pairs >> (2 * n + 1) & 1) as u32) << n)
}
