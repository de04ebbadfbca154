// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the redistributor of a CPU.
//!
//! The architecture promises only that GICR_TYPER names the affinity of the frame's CPU (IHI 0069H,
//! 12.11). Frames may be missing if a core was harvested, `Last` may be set in the middle of a
//! range or nowhere, and the distance to the next frame depends on each frame's own VLPIS bit. So
//! only the described range bounds the walk, and the walk trusts only affinities. A range need not
//! be a multiple of that distance: if the rest of the range is smaller than the previous
//! redistributor, nothing responds there.
//!
//! On most machines with many CPUs, the frames are in the order in which the CPUs start. So the walk
//! begins after the last frame found, and then continues from the start. Otherwise, n CPUs would read
//! `n * n / 2` frames, and for a guest, each read is an exit. A walk from the start ends at the CPU's
//! frame. A walk from another frame may have passed the CPU's frame, and a range may be larger than its
//! frames, so a read after the last frame can abort. Therefore such a walk ends where `Last` is set.

use platform::{Gic, Region};

/// GICR_TYPER.VLPIS: the redistributor has two more 64 KiB frames for virtual LPIs.
const VLPIS: u64 = 1 << 1;
/// GICR_TYPER.Last: this is the last of contiguous redistributors.
const LAST: u64 = 1 << 4;

/// Returns the distance to the next redistributor, in bytes, for a frame with this GICR_TYPER.
const fn stride(typer: u64) -> u64 {
    if typer & VLPIS != 0 {
        0x4_0000
    } else {
        0x2_0000
    }
}

/// Returns the affinity in GICR_TYPER (bits 63:32), in the layout of MPIDR_EL1.
const fn affinity(typer: u64) -> u64 {
    let packed = typer >> 32;
    (packed & 0xff00_0000) << 8 | packed & 0x00ff_ffff
}

/// Returns the redistributor's address for the CPU with affinity `mpidr`. `typer` reads the
/// GICR_TYPER of the frame at an address. The walk begins at `first`, if that is a known frame.
#[must_use]
pub fn locate(gic: &Gic<'_>, mpidr: u64, first: u64, typer: impl Fn(u64) -> u64) -> Option<u64> {
    let ranges = gic.redistributors;
    let begin = ranges.iter().position(|range| range.contains(first));
    let rest = begin.and_then(|begin| ranges[begin..].split_first());
    if let Some((range, behind)) = rest {
        let find = |range, first| search_range(gic, range, first, mpidr, LAST, &typer);
        let mut behind = behind.iter();
        let found = find(range, first).or_else(|| behind.find_map(|range| find(range, range.base)));
        if found.is_some() {
            return found;
        }
    }
    let mut all = ranges.iter();
    all.find_map(|range| search_range(gic, range, range.base, mpidr, 0, &typer))
}

/// Searches `range` from frame `first` on, up to a frame whose GICR_TYPER has a bit of `end`.
fn search_range(
    gic: &Gic<'_>,
    range: &Region,
    first: u64,
    mpidr: u64,
    end: u64,
    typer: impl Fn(u64) -> u64,
) -> Option<u64> {
    let (mut frame, mut size) = (first, 0);
    while frame < range.end() && size <= range.end() - frame {
        let typer = typer(frame);
        if affinity(typer) == mpidr {
            return Some(frame);
        }
        if typer & end != 0 {
            return None;
        }
        size = gic.stride.unwrap_or(stride(typer));
        frame = frame.saturating_add(size);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Locates a frame, and asserts that the result does not depend on where the walk begins.
    fn locate(gic: &Gic<'_>, mpidr: u64, typer: impl Fn(u64) -> u64) -> Option<u64> {
        let found = super::locate(gic, mpidr, 0, &typer);
        for range in gic.redistributors {
            assert_eq!(super::locate(gic, mpidr, range.base, &typer), found);
        }
        if let Some(frame) = found {
            let read = |address| {
                assert_eq!(address, frame, "it is read at once");
                typer(address)
            };
            assert_eq!(super::locate(gic, mpidr, frame, read), found);
        }
        found
    }

    fn gic(ranges: &[Region], stride: Option<u64>) -> Gic<'_> {
        Gic {
            distributor: Region {
                base: 0x1000,
                size: 0x1_0000,
            },
            version2: None,
            redistributors: ranges,
            stride,
            maintenance: 25,
        }
    }

    #[test]
    fn nothing_behind_the_last_frame_is_read() {
        let range = [Region {
            base: 0x10_0000,
            size: 0x10_0000,
        }];
        let read = |address| match address {
            0x10_0000 => typer(0, 0),
            0x12_0000 => typer(1, LAST),
            _ => panic!("{address:#x} aborts"),
        };
        for first in [0, 0x10_0000, 0x12_0000] {
            let found = super::locate(&gic(&range, None), 0, first, read);
            assert_eq!(found, Some(0x10_0000));
        }
    }

    fn typer(mpidr: u64, flags: u64) -> u64 {
        ((mpidr >> 8 & 0xff00_0000) | mpidr & 0xff_ffff) << 32 | flags
    }

    #[test]
    fn affinity_and_not_position_decides() {
        let ranges = [
            Region {
                base: 0xb8_0014_0000,
                size: 3 * 0x4_0000,
            },
            Region {
                base: 0xbc_0014_0000,
                size: 2 * 0x4_0000,
            },
        ];
        let frames = [
            (0xb8_0014_0000, 0x1f_0000),
            (0xb8_0018_0000, 0x00_0000),
            (0xb8_001c_0000, 0x07_0000),
            (0xbc_0014_0000, 0x1_0003_0000),
            (0xbc_0018_0000, 0x1_0001_0000),
        ];
        let last_in_the_middle = 1 << 4;
        let read = |address| {
            let (_, mpidr) = frames.iter().find(|frame| frame.0 == address).unwrap();
            typer(*mpidr, VLPIS | last_in_the_middle)
        };
        for (address, mpidr) in frames {
            assert_eq!(locate(&gic(&ranges, None), mpidr, read), Some(address));
        }
        assert_eq!(locate(&gic(&ranges, None), 0x2, read), None);
    }

    #[test]
    fn nothing_is_read_where_no_frame_fits() {
        // This is how QEMU's virt describes 61 frames of GICv4 in 0xf6_0000 bytes.
        let ranges = [Region {
            base: 0x080a_0000,
            size: 0xf6_0000,
        }];
        let read = |address: u64| {
            assert!(address + 0x4_0000 <= ranges[0].end(), "{address:#x}");
            typer((address - ranges[0].base) / 0x4_0000, VLPIS)
        };
        assert_eq!(locate(&gic(&ranges, None), 60, read), Some(0x08fa_0000));
        assert_eq!(locate(&gic(&ranges, None), 61, read), None);
    }

    #[test]
    fn cpus_in_order_read_two_frames_each() {
        let ranges = [(0x80a_0000, 123), (0x40_0000_0000, 389)];
        let ranges = ranges.map(|(base, count)| Region {
            base,
            size: count * 0x2_0000,
        });
        let number = |address: u64| match address.checked_sub(ranges[1].base) {
            Some(offset) => 123 + offset / 0x2_0000,
            None => (address - ranges[0].base) / 0x2_0000,
        };
        let reads = core::cell::Cell::new(0);
        let read = |address: u64| {
            reads.set(reads.get() + 1);
            typer(number(address), 0)
        };
        let gic = gic(&ranges, None);
        let mut last = 0;
        for mpidr in 0..512 {
            last = super::locate(&gic, mpidr, last, read).unwrap();
            assert_eq!(number(last), mpidr);
        }
        assert!(reads.get() <= 2 * 512, "{} frames are read", reads.get());
    }

    #[test]
    fn a_described_stride_overrides_the_frame() {
        let ranges = [Region {
            base: 0,
            size: 0x10_0000,
        }];
        let read = |address: u64| typer(address / 0x8_0000, 0);
        assert_eq!(
            locate(&gic(&ranges, Some(0x8_0000)), 1, read),
            Some(0x8_0000)
        );
    }
}
