// SPDX-License-Identifier: MIT OR Apache-2.0
//! The firmware of tests that boot with one: `dirty-firmware/`.

use std::env;
use std::io::Write;

use anyhow::Result;
use serde::Deserialize;
use tempfile::NamedTempFile;

use running::images;
use running::job::DirtyFirmware;
use shell::partial_files;

/// A test's options for the firmware.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Firmware {
    /// Words that name the state to leave; the firmware refuses an unknown word.
    leaves: Vec<String>,
}

impl Firmware {
    /// Builds the firmware as a temporary file.
    pub fn file(&self) -> Result<(NamedTempFile, DirtyFirmware)> {
        let image = images::dirty_firmware()?;
        let mut file = partial_files::file(&env::temp_dir())?;
        file.write_all(&image)?;
        let firmware = DirtyFirmware {
            file: file.path().into(),
            leaves: self.leaves.join(","),
        };
        Ok((file, firmware))
    }
}
