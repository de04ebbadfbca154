// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists why the hypervisor can't run on a machine with a sound description. The image checks this before
//! it takes over a machine, and `doctor` checks it before anybody carries a disk to the machine.

use crate::claims::{FRAME, PAGE};
use crate::{Gic, GicV2, Platform};

/// Bytes of a redistributor's two frames (IHI 0069H, 12.10).
const REDISTRIBUTOR: u64 = 2 * FRAME;

impl Platform<'_> {
    /// Returns what the hypervisor needs and the machine's description lacks, except RAM:
    /// [`crate::carve::divide`] checks whether there is enough.
    #[must_use]
    pub fn lacks(&self) -> Option<&'static str> {
        if let Some(why) = self.gic.version2.and_then(|version2| version2.lacks()) {
            return Some(why);
        }
        if self.timer.hyp.is_none() {
            return Some("timer: the machine is described without the interrupt of EL2's timer");
        }
        if self.gic.version2.is_some() {
            return None;
        }
        (self.gic.max_redistributors() < self.cpus.len() as u64)
            .then_some("GIC: fewer redistributors are described than CPUs")
    }
}

impl GicV2 {
    /// Returns what the hypervisor needs and the description of this GICv2 does not have.
    fn lacks(&self) -> Option<&'static str> {
        let Some([_, gicv]) = self.virt else {
            return Some(
                "GIC: a GICv2 is described without GICH and GICV, the virtual CPU interface (IHI 0048B, \
                 chapter 5), which Rouse needs at EL2; its guest runs there alone (--under none)",
            );
        };
        [self.gicc, gicv]
            .iter()
            .any(|interface| interface.size < 2 * PAGE)
            .then_some(
                "GIC: a GICv2 is described without the second page of GICC or GICV, which deactivates \
                 interrupts (GICC_DIR); Rouse needs both at EL2, and its guest runs there alone (--under none)",
            )
    }

    /// Returns the reason if an interface of [`Self::with_adjacent_pages`] has no second page. A page that has the
    /// identification of the first page is a repetition of it: a second page has GICC_DIR only; its other registers are
    /// RES0 (IHI 0048B, 4.1.3; Cortex-A53's manual, DDI 0500, 9.2.6). A description without sizes, as in ACPI, leads to
    /// such a page if each page is repeated for 64 KiB.
    #[must_use]
    pub fn lacks_second_page(&self, read: impl Fn(u64) -> u32) -> Option<&'static str> {
        let gicv = self.virt.map(|[_, gicv]| gicv);
        let mut interfaces = [Some(self.gicc), gicv].into_iter().flatten();
        interfaces
            .any(|interface| {
                let identity = read(interface.base + Self::IIDR);
                identity != 0 && read(interface.base + PAGE + Self::IIDR) == identity
            })
            .then_some(
                "GIC: the second page of GICC or GICV repeats the first, so GICC_DIR is elsewhere; the description has \
                 to name the last repetition (0xf000 further), or 128 KiB in a device tree",
            )
    }
}

impl Gic<'_> {
    /// Returns the largest number of redistributors that fit into the described ranges.
    fn max_redistributors(&self) -> u64 {
        let stride = self.stride.unwrap_or(REDISTRIBUTOR).max(1);
        let in_range =
            |size: u64| Some((size.checked_sub(REDISTRIBUTOR)? / stride).saturating_add(1));
        let ranges = self.redistributors.iter();
        ranges
            .filter_map(|range| in_range(range.size))
            .fold(0, u64::saturating_add)
    }
}
