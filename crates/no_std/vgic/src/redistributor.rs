// SPDX-License-Identifier: MIT OR Apache-2.0
//! The registers of a redistributor (12.11): two frames of 64 KiB.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::bits::{fits, part};
use crate::private::Private;
use crate::{Access, IIDR, PIDR2, PIDR2_OFFSET};

/// Offset of the second frame.
const SGI_FRAME: u64 = 0x1_0000;
/// ICFGR0: every SGI is edge-triggered (0b10).
const SGIS_EDGE: u64 = 0xaaaa_aaaa;

/// A vCPU's redistributor, for the time of an access.
#[derive(Clone, Copy, Debug)]
pub struct Redistributor<'a> {
    /// Its registers.
    pub private: &'a Private,
    /// Affinity of the vCPU, as in MPIDR_EL1.
    pub affinity: u64,
    /// Number of the vCPU.
    pub number: usize,
    /// It is the last one of the machine.
    pub last: bool,
    /// The INTIDs whose lines are high. They are pending, enabled or not, and no write
    /// changes that (12.11, GICR_ICPENDR0).
    pub lines: u32,
}

impl Redistributor<'_> {
    /// Does the access; answers what a read gives (0 for a write), and whether
    /// the owner has to sync.
    #[must_use]
    pub fn access(&self, access: Access) -> (u64, bool) {
        if access.offset >= SGI_FRAME {
            let access = Access {
                offset: access.offset - SGI_FRAME,
                ..access
            };
            return self.sgi_frame(access);
        }
        match access.write {
            None => (self.read(access), false),
            Some(value) => {
                // GICR_WAKER is the one register of this frame that keeps something.
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
            0x08..0x10 if fits(access, 8) => part(access, 0x08, self.typer()),
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

    fn sgi_frame(&self, access: Access) -> (u64, bool) {
        match access.offset {
            0x400..0x420 if fits(access, 4) => self.priorities(access),
            0x080..0x400 | 0xc00..0xc08 if access.size == 4 => self.bitmap(access),
            _ => (0, false),
        }
    }

    fn bitmap(&self, access: Access) -> (u64, bool) {
        let private = self.private;
        let Some(value) = access.write else {
            let value = match access.offset {
                // Every one is in Group 1.
                0x080 => u32::MAX.into(),
                0x100 | 0x180 => private.enabled.load(Acquire).into(),
                0x200 | 0x280 => {
                    let listed = private.listed_pending.load(Acquire);
                    let listed = listed & !private.pending.to_clear();
                    (private.pending.to_set() | listed | self.lines).into()
                }
                0x300 | 0x380 => {
                    let listed = private.listed_active.load(Acquire);
                    let listed = listed & !private.active.to_clear();
                    (private.active.to_set() | listed).into()
                }
                0xc00 => SGIS_EDGE,
                0xc04 => spread(private.edge.load(Acquire) >> 16),
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
            0xc04 => private.edge.store(gather(value) << 16, Release),
            _ => return (0, false),
        }
        (0, access.offset < 0x400)
    }

    /// GICR_IPRIORITYR: a byte per INTID.
    fn priorities(&self, access: Access) -> (u64, bool) {
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

/// Sixteen bits as the upper bits of sixteen pairs, as ICFGR has them.
pub fn spread(bits: u32) -> u64 {
    (0..16).fold(0, |pairs, n| {
        pairs | u64::from(bits >> n & 1) << (2 * n + 1)
    })
}

/// The reverse of [`spread`].
pub fn gather(pairs: u64) -> u32 {
    (0..16).fold(0, |bits, n| bits | ((pairs >> (2 * n + 1) & 1) as u32) << n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redistributor(private: &Private) -> Redistributor<'_> {
        Redistributor {
            private,
            affinity: 0x1_0002_0304,
            number: 5,
            last: true,
            lines: 0,
        }
    }

    fn read(private: &Private, offset: u64, size: u32) -> u64 {
        let access = Access {
            offset,
            size,
            write: None,
        };
        redistributor(private).access(access).0
    }

    fn write(private: &Private, offset: u64, size: u32, value: u64) -> bool {
        let access = Access {
            offset,
            size,
            write: Some(value),
        };
        redistributor(private).access(access).1
    }

    #[test]
    fn typer_whole_and_in_halves() {
        let private = Private::new();
        let typer = 0x0102_0304 << 32 | 5 << 8 | 1 << 4;
        assert_eq!(read(&private, 8, 8), typer);
        assert_eq!(read(&private, 8, 4), typer & 0xffff_ffff);
        assert_eq!(read(&private, 12, 4), typer >> 32);
    }

    #[test]
    fn set_and_clear_registers() {
        let private = Private::new();
        assert!(write(&private, SGI_FRAME + 0x100, 4, 0b101));
        assert!(write(&private, SGI_FRAME + 0x180, 4, 0b001));
        assert_eq!(read(&private, SGI_FRAME + 0x100, 4), 0b100);
        assert_eq!(read(&private, SGI_FRAME + 0x180, 4), 0b100);
        assert_eq!(private.refresh(true), 0b100);
        assert_eq!(private.ready(2), Some(0));
        assert_eq!(private.refresh(false), 0);
        assert_eq!(private.ready(2), None);
    }

    #[test]
    fn priorities_by_byte_and_word() {
        let private = Private::new();
        write(&private, SGI_FRAME + 0x404, 4, 0x4030_2010);
        write(&private, SGI_FRAME + 0x405, 1, 0xa0);
        assert_eq!(read(&private, SGI_FRAME + 0x404, 4), 0x4030_a010);
        assert_eq!(read(&private, SGI_FRAME + 0x406, 2), 0x4030);
        assert_eq!(private.priority(5), 0xa0);
    }

    #[test]
    fn waker_follows_at_once() {
        let private = Private::new();
        assert_eq!(read(&private, 0x14, 4), 0b110);
        write(&private, 0x14, 4, 0);
        assert_eq!(read(&private, 0x14, 4), 0);
    }

    #[test]
    fn configuration_of_ppis() {
        let private = Private::new();
        write(&private, SGI_FRAME + 0xc04, 4, 0x8000_000a);
        assert_eq!(read(&private, SGI_FRAME + 0xc04, 4), 0x8000_000a);
        assert_eq!(read(&private, SGI_FRAME + 0xc00, 4), SGIS_EDGE);
    }

    #[test]
    fn requests_read_back_before_the_owner_serves_them() {
        let private = Private::new();
        private.publish(0b10, 0b10);
        write(&private, SGI_FRAME + 0x300, 4, 0b01);
        assert_eq!(read(&private, SGI_FRAME + 0x380, 4), 0b11);
        write(&private, SGI_FRAME + 0x380, 4, 0b10);
        assert_eq!(read(&private, SGI_FRAME + 0x300, 4), 0b01);
        write(&private, SGI_FRAME + 0x280, 4, 0b10);
        assert_eq!(read(&private, SGI_FRAME + 0x200, 4), 0);
    }

    #[test]
    fn the_last_of_two_requests_counts() {
        let private = Private::new();
        write(&private, SGI_FRAME + 0x300, 4, 0b11);
        write(&private, SGI_FRAME + 0x380, 4, 0b01);
        assert_eq!(private.take_requests(), [0, 0b01, 0b10]);
    }

    #[test]
    fn what_is_not_there_reads_zero_and_ignores_writes() {
        let private = Private::new();
        for offset in (0..0x2_0000).step_by(if cfg!(miri) { 124 } else { 4 }) {
            for size in [1, 2, 4, 8] {
                write(&private, offset, size, 0);
                read(&private, offset, size);
            }
        }
        assert_eq!(read(&private, 0x40, 8), 0);
    }
}
