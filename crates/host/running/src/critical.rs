// SPDX-License-Identifier: MIT OR Apache-2.0
//! The critical path of samples, where the emulator counts instructions. A plugin
//! observes the samples, and the cells get its findings. Crate `critical` defines the path.

mod code;
mod lines;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ::critical::{Chart, Image};
use anyhow::{Context, Result, bail};
use plan::Under;

use crate::boot::Recorder;
use crate::emulator::Emulator;
use crate::images;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::options::Metric;
use shell::once::Once;
use shell::partial_files::Scratch;

/// Images with the kinds of their instructions, by file. Boots share them.
static IMAGES: Once<PathBuf, Image> = Once::new();

/// A plugin with its files, prepared for a boot.
#[derive(Debug)]
pub struct Watcher {
    plugin: PathBuf,
    chart: PathBuf,
    samples: PathBuf,
    /// The file with what samples consist of, if that is wanted.
    traces: Option<PathBuf>,
    _place: Scratch,
}

impl Watcher {
    /// Prepares to observe the samples of `job` in a boot by `emulator`. `None` if there is nothing to observe:
    /// samples have to be marked, and their values instructions. An error has the obstacle.
    pub fn new(
        emulator: &Emulator,
        job: &Job,
        variant: Variant,
        built: &Built,
    ) -> Result<Option<Self>> {
        let ours = built.guest(job.image(variant)).elf.as_ref();
        let program = built.program.as_ref();
        let marked = ours.map(|elf| (1, elf)).or(program.map(|elf| (0, elf)));
        // The code of our guest is not followed under other hypervisors.
        let looks = has_marks(job) && !(ours.is_some() && variant.under.is_other());
        let (Some(marked), Emulator::Qemu(qemu), true) = (marked, emulator, looks) else {
            return Ok(None);
        };
        let plugin = plugin(qemu.command())?;
        let mut chart = Chart::default();
        let mut files = vec![marked];
        if variant.under == Under::Rouse {
            files.push((2, &built.hypervisor));
        }
        for (level, elf) in files {
            // The name of its folder is the hash of its content.
            let image = IMAGES.get(elf.clone(), || {
                let shown = || format!("{}: its code can't be read", elf.display());
                code::of(level, &fs::read(elf)?).with_context(shown)
            })?;
            chart.images.push(Image::clone(&image));
        }
        let place = Scratch::new()?;
        let path = place.path().join("chart");
        fs::write(&path, chart.to_bytes())?;
        Ok(Some(Self {
            plugin,
            chart: path,
            samples: place.path().join("samples"),
            traces: job.traces.then(|| place.path().join("traces")),
            _place: place,
        }))
    }

    /// Returns the plugin, for the boot to load.
    pub fn recorder(&self) -> Recorder<'_> {
        let files: [(&str, &Path); 2] = [("chart", &self.chart), ("samples", &self.samples)];
        let traces = self.traces.as_deref().map(|traces| ("traces", traces));
        Recorder::Plugin {
            plugin: &self.plugin,
            options: files.into_iter().chain(traces).collect(),
        }
    }

    /// Returns the instructions of the boot's samples, if they were wanted. An error has the obstacle.
    pub fn traces(&self) -> Option<Result<::critical::Traces, String>> {
        let text = fs::read_to_string(self.traces.as_ref()?);
        let text = text.map_err(|_| "the emulator ended early".to_owned());
        Some(text.and_then(|text| {
            let read = ::critical::Traces::from_text(&text);
            read.ok_or_else(|| "the file of its blocks is not whole; is the disk full?".into())
        }))
    }

    /// Returns the plugin's samples after the boot, or the reason why there are none.
    pub fn samples(&self) -> Result<::critical::Samples, String> {
        let text = fs::read_to_string(&self.samples);
        let text = text.map_err(|_| "the emulator ended early".to_owned())?;
        ::critical::from_text(&text)
    }
}

/// Whether samples of `job` are marked and have values in instructions.
pub fn has_marks(job: &Job) -> bool {
    let workloads = &job.load.plan.lists.workload.values;
    let marked = workloads.iter().any(|workload| workload.is_marked());
    marked && job.metric == Metric::Insns
}

/// Builds the plugin if `job` needs it. A failure is reported later, by the boot that needs the plugin.
pub fn prepare(emulator: &Emulator, job: &Job) {
    if let (Emulator::Qemu(qemu), true) = (emulator, has_marks(job)) {
        let _ = plugin(qemu.command());
    }
}

/// Builds the plugin. Fails if the emulator that `command` starts does not support plugins.
pub fn plugin(mut command: Command) -> Result<PathBuf> {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    if let Some(plugin) = PLUGIN.get() {
        return Ok(plugin.clone());
    }
    let help = command.arg("-help").output();
    let help = help.context("the emulator does not say whether it takes plugins")?;
    if !String::from_utf8_lossy(&help.stdout).contains("-plugin") {
        bail!("this QEMU is built without plugins");
    }
    let plugin = images::recorder()?;
    Ok(PLUGIN.get_or_init(|| plugin).clone())
}
