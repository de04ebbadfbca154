// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest of tests that ask for one: the kernel of `test-kernel/`, with a header that the test can change, or a
//! program of kvm-unit-tests.

use std::io::Write;
use std::path::PathBuf;
use std::{env, fs};

use anyhow::{Context, Result};
use serde::Deserialize;
use tempfile::NamedTempFile;

use running::images;
use shell::partial_files;

/// The environment variable that names a folder of kvm-unit-tests, built for arm64.
const KVM_UNIT_TESTS: &str = "KVM_UNIT_TESTS";

/// The program of kvm-unit-tests to run, or the fields of the header of `test-kernel/` that a test sets.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kernel {
    /// The name of the program.
    kvm_unit_test: Option<String>,
    text_offset: Option<u64>,
    image_size: Option<u64>,
    flags: Option<u64>,
}

impl Kernel {
    /// If the kernel is not available on this computer, returns the reason.
    pub fn lacks(&self) -> Option<String> {
        self.kvm_unit_test.as_deref()?;
        (env::var_os(KVM_UNIT_TESTS).is_none()).then(|| {
            format!(
                "kvm-unit-tests is missing: get its repository, build it (`./configure --arch=arm64 \
                 --cross-prefix=aarch64-linux-gnu- && make`), and name its folder by {KVM_UNIT_TESTS}=DIR"
            )
        })
    }

    /// Returns the kernel as a temporary file.
    pub fn file(&self) -> Result<NamedTempFile> {
        let mut file = partial_files::file(&env::temp_dir())?;
        file.write_all(&self.image()?)?;
        Ok(file)
    }

    fn image(&self) -> Result<Vec<u8>> {
        if let Some(name) = &self.kvm_unit_test {
            let folder = PathBuf::from(env::var_os(KVM_UNIT_TESTS).unwrap_or_default());
            let path = folder.join("arm").join(name).with_extension("elf");
            return fs::read(&path)
                .with_context(|| format!("{KVM_UNIT_TESTS}: {}: build it", path.display()));
        }
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
        Ok(image)
    }
}
