// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that a guest starts from.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use platform::image::Image;

use super::Obstacle;
use crate::layout::{self, Loaded};
use crate::options::{MIB, Options};

/// Files that a guest starts from.
#[derive(Debug)]
pub struct Files {
    /// The guest's image.
    pub image: Vec<u8>,
    /// The guest's initial RAM disk, if it has one.
    pub initrd: Option<Vec<u8>>,
}

impl Files {
    /// Reads the files that `options` name.
    pub fn read(options: &Options) -> Result<Self, Obstacle> {
        let unread = |path: &Path, error, remedy| {
            let shown = path.display();
            Obstacle(format!("{shown} can't be read ({error}); name {remedy}"))
        };
        let path = options.image();
        let image = image(path).map_err(|error| unread(path, error, "an arm64 Image"))?;
        let initrd = match &options.initrd {
            Some(path) => {
                let read = fs::read(path);
                Some(read.map_err(|error| unread(path, error, "an archive of cpio"))?)
            }
            None => None,
        };
        Ok(Self { image, initrd })
    }

    /// Returns the addresses of the files in RAM, whose size is in `options`.
    pub fn places(&self, options: &Options) -> Result<Loaded, Obstacle> {
        let shown = options.image().display();
        let header = Image::parse(&self.image).map_err(|why| Obstacle(format!("{shown} {why}")))?;
        let initrd = self.initrd.as_ref().map_or(0, Vec::len) as u64;
        let size = options.memory;
        layout::load(&header, self.image.len() as u64, initrd, size).map_err(|needed| {
            let disk = match initrd {
                0 => "",
                _ => ", its initial RAM disk",
            };
            Obstacle(format!(
                "--memory {}: {shown}{disk} and its device tree need more; use --memory {needed}",
                size / MIB
            ))
        })
    }
}

/// Reads the image from `path` or, if that is `-`, from standard input.
fn image(path: &Path) -> io::Result<Vec<u8>> {
    if path != Path::new("-") {
        return fs::read(path);
    }
    let mut image = Vec::new();
    io::stdin().read_to_end(&mut image)?;
    Ok(image)
}
