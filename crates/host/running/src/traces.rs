// SPDX-License-Identifier: MIT OR Apache-2.0
//! The instructions that a boot's samples executed, and the code that ran in the boot.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use critical::Traces;
use plan::Under;
use results::Cell;

use crate::images::Built;
use crate::job::{Job, Variant};
use crate::launch;
use guests::kernel::unpack;

/// The format of a file of code.
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
    /// The exception levels at which it runs.
    pub levels: &'static [u8],
    /// The form of the file.
    pub form: Form,
    /// The contents of the file.
    pub bytes: Arc<[u8]>,
}

/// The instructions of a boot's samples, with what is needed to explain them.
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
    /// Returns the traces with the code of the boot. The cells are added later.
    pub fn of(job: &Job, variant: Variant, built: &Built, traces: Traces) -> Result<Self> {
        let mut code = Vec::new();
        let mut add = |name, levels, form, bytes: Vec<u8>| {
            code.push(CodeFile {
                name,
                levels,
                form,
                bytes: bytes.into(),
            });
        };
        if let Some(guest) = built.guest_elf(job.image(variant)) {
            add("guest", &[1], Form::Elf, read_file(guest)?);
        }
        if let Some(guest) = &job.load.guest {
            add("linux", &[1], Form::Image, guest.image.clone());
        }
        if let Some(program) = &built.program {
            add("rouse-linux", &[0], Form::Elf, read_file(program)?);
        }
        match (variant.under, &built.host, &built.xen) {
            (Under::Rouse, ..) => add("hypervisor", &[2], Form::Elf, read_file(&built.hypervisor)?),
            (Under::Bao, ..) => add(
                "bao",
                &[2],
                Form::Elf,
                read_file(&launch::build_bao(job, variant, built)?.elf)?,
            ),
            (Under::Xen, _, Some(xen)) => add("xen", &[2], Form::Xen, read_file(&xen.image)?),
            (Under::Kvm | Under::KvmNvhe | Under::KvmProtected, Some(host), _) => {
                let (kernel, monitor) = host.code();
                let image = unpack::find_image(read_file(kernel)?);
                let image = image.map_err(|why| anyhow!("{}: {why}", kernel.display()))?;
                add("host", host_levels(variant.under), Form::Image, image);
                add("rouse-kvm", &[0], Form::Elf, monitor.to_vec());
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

/// Returns the exception levels of KVM's host. With VHE, the whole host runs at EL2.
const fn host_levels(under: Under) -> &'static [u8] {
    match under {
        Under::Kvm => &[2],
        _ => &[1, 2],
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

impl fmt::Debug for CodeFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name, form, bytes, ..
        } = self;
        write!(f, "{name}: {form:?} of {} bytes", bytes.len())
    }
}
