// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel of a host for guests under KVM.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use guests::kernel::{debian, image_check};
use providing::apt::Remedy;
use shell::failure::bad_input;

/// Selects Debian's pinned kernel, regardless of its version.
const ANY: &str = "";
/// Remedy for a missing kernel.
const REMEDY: Remedy = Remedy {
    missing: "the kernel of KVM's host",
    instead: "name an arm64 Image of Linux that has KVM by --host-kernel",
};

/// Returns the `named` kernel, or else Debian's, which is provided once.
pub fn ensure(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        return check_file(named);
    }
    debian::provide(ANY, &REMEDY)
}

/// Checks the file of a kernel that the user has named.
fn check_file(path: &Path) -> Result<PathBuf> {
    let shown = path.display();
    let image = match fs::read(path) {
        Ok(image) => image,
        Err(error) => bad_input!(
            "--host-kernel: {shown} can't be read ({error}); name an arm64 Image of Linux"
        ),
    };
    match image_check::check_image(&image) {
        Ok(()) => Ok(path.to_owned()),
        Err(why) => bad_input!("--host-kernel: {shown} {why}"),
    }
}

/// Returns the name and version of the kernel at `path`, from its banner.
pub fn read_banner(path: &Path) -> Result<String> {
    let image = fs::read(path).with_context(|| path.display().to_string())?;
    let release = release(&image).unwrap_or("of an unknown version");
    Ok(format!("Linux {release}"))
}

/// Returns the release in the banner of a Linux Image, like `7.3.4+deb13-arm64`.
pub fn release(image: &[u8]) -> Option<&str> {
    const BANNER: &[u8] = b"Linux version ";
    let mut banners = memchr::memmem::find_iter(image, BANNER);
    banners.find_map(|at| {
        let rest = &image[at + BANNER.len()..];
        let end = rest.iter().position(|byte| !byte.is_ascii_graphic())?;
        let release = str::from_utf8(&rest[..end]).ok()?;
        // Format strings of messages contain that text too, with a placeholder for the number.
        release
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some(release)
    })
}

/// Returns the kernel that an earlier run has provided.
pub fn provided() -> Option<PathBuf> {
    debian::find_provided(ANY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_tells_its_release() {
        let image = b"\0Linux version %s\0\0Linux version 7.3.4+deb13-arm64 (debian) #1\n";
        assert_eq!(release(image), Some("7.3.4+deb13-arm64"));
        assert_eq!(release(b"Linux version %s"), None);
        assert_eq!(release(b"Linux"), None);
    }

    #[test]
    fn a_kernel_that_is_none_is_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("Image");
        let refused = |path: &Path| ensure(Some(path)).unwrap_err().to_string();
        assert!(refused(&path).contains("can't be read"));
        fs::write(&path, [0; 100]).unwrap();
        assert!(refused(&path).starts_with("--host-kernel: "));
        assert!(refused(&path).contains("is not an arm64 Image"));
    }
}
