// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions of the samples of a boot, and the code that ran in it.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use critical::Traces;
use plan::Under;
use results::Cell;

use crate::guest_kernel::unpack;
use crate::images::Built;
use crate::job::{Job, Variant};

/// The form of a file of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// An ELF file.
    Elf,
    /// An arm64 Image of Linux.
    Image,
    /// Xen's Image.
    Xen,
}

/// Code that runs in a boot.
#[derive(Clone)]
pub struct CodeFile {
    /// Its name in explanations.
    pub name: &'static str,
    /// Its form.
    pub form: Form,
    /// The file.
    pub bytes: Vec<u8>,
}

/// The samples of a boot.
#[derive(Debug)]
pub struct TracesOfBoot {
    /// The cells of the boot.
    pub cells: Vec<Cell>,
    /// The instructions of their samples.
    pub traces: Traces,
    /// The code of the boot.
    pub code: Vec<CodeFile>,
}

impl TracesOfBoot {
    /// Returns the traces with the code of the boot, before its cells are known.
    pub fn of(job: &Job, variant: Variant, built: &Built, traces: Traces) -> Result<Self> {
        let mut code = Vec::new();
        let mut add = |name, form, bytes| code.push(CodeFile { name, form, bytes });
        if let Some(guest) = &built.guest(job.image(variant)).elf {
            add("guest", Form::Elf, read(guest)?);
        }
        if let Some(guest) = &job.load.guest {
            add("linux", Form::Image, guest.image.clone());
        }
        if let Some(program) = &built.program {
            add("rouse-linux", Form::Elf, read(program)?);
        }
        match (variant.under, &built.host, &built.xen) {
            (Under::Rouse, ..) => add("hypervisor", Form::Elf, read(&built.hypervisor)?),
            (Under::Xen, _, Some(xen)) => add("xen", Form::Xen, read(&xen.image)?),
            (Under::Kvm | Under::KvmNvhe | Under::KvmProtected, Some(host), _) => {
                let (kernel, monitor) = host.code();
                let image = unpack::kernel(read(kernel)?);
                let image = image.map_err(|why| anyhow!("{}: {why}", kernel.display()))?;
                add("host", Form::Image, image);
                add("rouse-kvm", Form::Elf, monitor.to_vec());
            }
            _ => {}
        }
        Ok(Self {
            cells: Vec::new(),
            traces,
            code,
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

impl fmt::Debug for CodeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, form, bytes } = self;
        write!(f, "{name}: {form:?} of {} bytes", bytes.len())
    }
}
