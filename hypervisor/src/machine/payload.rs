// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the guest's images, which the packer put after the hypervisor's image, and chooses one.
//!
//! There are two images of our guest, of which a run may pack only the one that it needs: one with load
//! and store exclusive, which every CPU has, and one with the atomic instructions of FEAT_LSE. The choice is
//! made once, before the guest is unpacked, so no measured code tests for FEAT_LSE. An instruction of FEAT_LSE is
//! UNDEFINED on a CPU without it (DDI 0487K.a, A2.4.2), and there is a vCPU on every CPU, so all CPUs must have it.
//!
//! The hypervisor itself uses load and store exclusive only: its fast paths have no atomic access
//! at all (docs/architecture.md, "Atomics").

use core::fmt;
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use abi::{Extent, Images, NoPayload, PayloadHeader};
use arch::layout;
use plan::Atomics;
use platform::Region;
use wire::Source;

use crate::refuse;

/// Advice that is printed for an image without a guest.
pub const PACK_IT: &str = "pack it with cargo xtask dev build";

/// Advice for an image with a guest that the CPUs can't run.
const BOTH: &str =
    "correct cpus.without_lse of the board's file, or pack both guests with cargo xtask dev build";

/// Whether every CPU that has come up has FEAT_LSE.
static LSE: AtomicBool = AtomicBool::new(true);

/// Notes whether this CPU has FEAT_LSE, before it reports in. This is a plain store, not an atomic operation.
pub fn note_lse() {
    if !arch::id::has_lse() {
        LSE.store(false, Relaxed);
    }
}

/// Returns the region of the guest's images. Refuses the machine if there are none.
pub fn payload() -> Region {
    Region::from(images_start()..images_start() + images().length())
}

fn images() -> Images {
    find_payload().unwrap_or_else(|error| refuse!("{error}: {PACK_IT}"))
}

/// Returns the guest's images, or why there are none.
pub fn find_payload() -> Result<Images, NoPayload> {
    payload_header().images(u64::MAX - images_start())
}

/// Returns the source of the guest's output.
pub fn output_source() -> Source {
    Source::decode(payload_header().source)
}

fn payload_header() -> &'static PayloadHeader {
    // SAFETY: the header follows the image in the same file. Without a payload, the RAM there may hold anything, and
    // the magic number shows this.
    unsafe { &*(layout::payload() as *const PayloadHeader) }
}

/// Returns the end of the memory that the loader filled, which is past this image if there is a guest.
pub fn payload_end() -> u64 {
    find_payload().map_or(layout::payload(), |images| images_start() + images.length())
}

/// Returns the address at which the first of the guest's images begins.
fn images_start() -> u64 {
    layout::payload() + PayloadHeader::SIZE as u64
}

/// The image that is chosen to run.
pub struct Chosen {
    /// The region of the image.
    pub image: Region,
    /// The region of the image's initial RAM disk, if it has one.
    pub initrd: Option<Region>,
    /// Which image of our guest was chosen, and why; `None` if there is only the one that runs on every CPU.
    pub choice: Option<Choice>,
}

/// Which image of our guest runs, and why; `Display` prints it.
pub struct Choice {
    atomics: Atomics,
    asked: Option<Atomics>,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match (self.atomics, self.asked) {
            (Atomics::Llsc, Some(Atomics::Llsc)) => "as asked",
            (Atomics::Llsc, _) => "a CPU has no LSE (ID_AA64ISAR0_EL1.Atomic = 0)",
            (Atomics::Lse, _) => "every CPU has LSE",
        };
        write!(f, ", atomics {}: {why}", self.atomics)
    }
}

/// Chooses the image that was `asked` for, or else the best that all CPUs can run. If a CPU lacks FEAT_LSE, this is
/// the image without it, and the guest reports this cell by cell; if that image is missing, the machine is refused.
/// A single image that all CPUs can run is chosen in any case.
pub fn choose_image(asked: Option<Atomics>) -> Chosen {
    let images = images();
    let wanted = asked.unwrap_or(Atomics::Lse);
    let usable = images.lse.filter(|_| LSE.load(Relaxed));
    let (atomics, extent) = match (usable, images.llsc) {
        (Some(lse), None) => (Atomics::Lse, lse),
        (Some(lse), Some(_)) if wanted == Atomics::Lse => (Atomics::Lse, lse),
        (_, Some(llsc)) => (Atomics::Llsc, llsc),
        (None, None) => {
            refuse!("a CPU has no LSE, which the only guest in this image needs; {BOTH}")
        }
    };
    Chosen {
        image: extent_region(extent),
        initrd: images.initrd.map(extent_region),
        choice: images.lse.map(|_| Choice { atomics, asked }),
    }
}

fn extent_region(extent: Extent) -> Region {
    Region {
        base: images_start() + extent.offset,
        size: extent.length,
    }
}
