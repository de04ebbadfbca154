// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest of tests that ask for one: the kernel of `test-kernel/`, with a header that the test can change.

use std::env;
use std::io::Write;

use anyhow::Result;
use serde::Deserialize;
use tempfile::NamedTempFile;

use running::images;
use shell::partial_files;

/// Fields of the Image's header that a test sets.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kernel {
    text_offset: Option<u64>,
    image_size: Option<u64>,
    flags: Option<u64>,
}

impl Kernel {
    /// Builds the kernel as a temporary file.
    pub fn file(&self) -> Result<NamedTempFile> {
        let mut image = images::test_kernel()?;
        let fields = [
            (8, self.text_offset),
            (16, self.image_size),
            (24, self.flags),
        ];
        for (at, value) in fields {
            if let Some(value) = value {
                image[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        let mut file = partial_files::file(&env::temp_dir())?;
        file.write_all(&image)?;
        Ok(file)
    }
}
