// SPDX-License-Identifier: MIT OR Apache-2.0
//! RAM that the guests of other hypervisors need. KVM's monitor and Xen check this themselves, but only during the
//! boot, and Xen panics.

use std::fs;

use anyhow::Result;
use plan::Under;
use platform::image::{ALIGN, Image};
use vmm::layout;

use super::MIB;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::launch::BaoLayout;
use shell::failure::bad_input;

/// The largest number of bytes that Xen takes for the device tree of its first domain.
const XEN_TREE: u64 = ALIGN;

/// Refuses a guest that a hypervisor other than Rouse could not load.
pub fn check(job: &Job, built: &Built, variant: Variant) -> Result<()> {
    let file = fs::read(built.guest_image(job.image(variant))?)?;
    let Ok(image) = Image::parse(&file) else {
        bad_input!("--guest: it is not an arm64 Image");
    };
    let initrd = match &built.initrd {
        Some(initrd) => fs::metadata(initrd)?.len(),
        None => 0,
    };
    let under = variant.under;
    let memory = job.memory.bytes();
    let Err(least) = must_fit(under, &image, file.len() as u64, initrd, memory) else {
        return Ok(());
    };
    let with = match initrd {
        0 => "the guest",
        _ => "the guest with its initial RAM disk",
    };
    bad_input!(
        "--memory: under {under}, {} is too little: {with} needs more; use at least --memory {least}M",
        job.memory
    );
}

/// Checks that `image`, with a file of `length` bytes, and an initial RAM disk of `initrd` bytes fit into `memory`
/// bytes of the guest's RAM. The error is the number of MiB that suffices.
fn must_fit(under: Under, image: &Image, length: u64, initrd: u64, memory: u64) -> Result<(), u64> {
    match under {
        Under::Xen => check_xen(image, length, initrd, memory),
        Under::Bao => check_bao(image, length, initrd, memory),
        Under::Kvm | Under::KvmNvhe | Under::KvmProtected => {
            layout::load(image, length, initrd, memory).map(drop)
        }
        Under::None | Under::Rouse => Ok(()),
    }
}

/// Checks that the parts fit as Xen places them: kernel, RAM disk and device tree each at a multiple of 2 MiB. Xen
/// panics if they don't fit into its first domain's RAM.
fn check_xen(image: &Image, length: u64, initrd: u64, memory: u64) -> Result<(), u64> {
    let span = image.text_offset.saturating_add(image.size.max(length));
    let parts = [span, initrd, XEN_TREE];
    let blocks: u64 = parts.map(|part| part.div_ceil(ALIGN)).into_iter().sum();
    match blocks <= memory / ALIGN {
        true => Ok(()),
        false => Err(blocks * (ALIGN / MIB)),
    }
}

/// Checks that the parts fit at the addresses that [`BaoLayout`] gives them under Bao.
fn check_bao(image: &Image, length: u64, initrd: u64, memory: u64) -> Result<(), u64> {
    let end = BaoLayout::of(image, length, initrd).end;
    match end <= memory {
        true => Ok(()),
        false => Err(end / MIB),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image = Image {
        text_offset: 0,
        size: 50 * MIB,
        granule: None,
        anywhere: true,
    };

    #[test]
    fn each_hypervisor_has_to_find_a_place_for_all_of_it() {
        for under in [Under::Kvm, Under::KvmNvhe, Under::KvmProtected, Under::Xen] {
            let least = |initrd, memory: u64| must_fit(under, &IMAGE, 100, initrd, memory * MIB);
            assert_eq!(least(0, 52), Ok(()), "{under}");
            assert_eq!(least(0, 51), Err(52), "{under}");
            // A RAM disk takes additional RAM, at most in whole blocks of 2 MiB.
            assert_eq!(least(MIB, 52), Err(54), "{under}");
            assert_eq!(least(MIB, 54), Ok(()), "{under}");
        }
        let long = |memory: u64| must_fit(Under::Xen, &IMAGE, 60 * MIB, 0, memory * MIB);
        assert_eq!((long(60), long(62)), (Err(62), Ok(())));
    }

    #[test]
    fn ours_are_checked_elsewhere() {
        for under in [Under::None, Under::Rouse] {
            assert_eq!(must_fit(under, &IMAGE, 100, 0, 0), Ok(()));
        }
    }
}
