// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's images, which the packer put after the hypervisor's, and the choice between them.
//!
//! There are two images of our guest: one with load and store exclusive, which every CPU has, and
//! one with the atomic instructions of FEAT_LSE. The choice is made once, before the guest is
//! unpacked, so no measured code tests for it. An instruction of FEAT_LSE is UNDEFINED on a CPU
//! without it (DDI 0487K.a, A2.4.2), and vCPUs are on all CPUs, so all must have it.
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

/// Advice for an image without a guest.
pub const PACK_IT: &str = "pack it with cargo xtask dev build";

/// Whether every CPU that has come up has FEAT_LSE.
static LSE: AtomicBool = AtomicBool::new(true);

/// Notes this CPU's features, before it reports in. This is a store, not an atomic operation.
pub fn note_cpu() {
    if !arch::id::has_lse() {
        LSE.store(false, Relaxed);
    }
}

/// Returns the place of the guest's images. Refuses the machine if there are none.
pub fn payload() -> Region {
    Region::from(first()..first() + images().length())
}

fn images() -> Images {
    find_payload().unwrap_or_else(|error| refuse!("{error}: {PACK_IT}"))
}

/// Returns the [`payload`], or why there is none.
pub fn find_payload() -> Result<Images, NoPayload> {
    header().images(u64::MAX - first())
}

/// Returns the source of the guest's output.
pub fn source() -> Source {
    Source::decode(header().source)
}

fn header() -> &'static PayloadHeader {
    // SAFETY: the header lies after the image in the same file; without a
    // payload it is whatever RAM holds there, which the magic tells.
    unsafe { &*(layout::payload() as *const PayloadHeader) }
}

/// End of the memory that the loader filled, which is more than this image if there is a guest.
pub fn payload_end() -> u64 {
    find_payload().map_or(layout::payload(), |images| first() + images.length())
}

/// Where the first image begins.
fn first() -> u64 {
    layout::payload() + PayloadHeader::SIZE as u64
}

/// The image that runs.
pub struct Chosen {
    /// Where it is.
    pub image: Region,
    /// Where its initial RAM disk is, if there is one.
    pub initrd: Option<Region>,
    /// Which one it is, and why; `None` where there is no choice.
    pub choice: Option<Choice>,
}

/// Which of two images runs, and why, as `Display` prints it.
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

/// Chooses the image that was `asked` for, or else the best that all CPUs can run. Without LSE this
/// is always the image without it, and the guest reports that cell by cell.
pub fn choose(asked: Option<Atomics>) -> Chosen {
    let images = images();
    let initrd = images.initrd.map(place);
    let Some(lse) = images.lse else {
        return Chosen {
            image: place(images.llsc),
            initrd,
            choice: None,
        };
    };
    let (atomics, extent) = match asked {
        Some(Atomics::Lse) | None if LSE.load(Relaxed) => (Atomics::Lse, lse),
        Some(Atomics::Lse | Atomics::Llsc) | None => (Atomics::Llsc, images.llsc),
    };
    Chosen {
        image: place(extent),
        initrd,
        choice: Some(Choice { atomics, asked }),
    }
}

fn place(extent: Extent) -> Region {
    Region {
        base: first() + extent.offset,
        size: extent.length,
    }
}
