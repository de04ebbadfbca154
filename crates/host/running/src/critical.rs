// SPDX-License-Identifier: MIT OR Apache-2.0
//! The critical path of samples, on emulators that count instructions or record the time of each instruction. A plugin
//! of QEMU or gem5's tracers observe the samples. Crate `critical` defines the path.

mod tracers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ::critical::{Chart, Identity, Image, Samples, Traces};
use anyhow::{Context, Result, bail};
use plan::Under;

use crate::board::EmulatedMachine;
use crate::boot::Recorder;
use crate::emulator::Emulator;
use crate::images;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::options::Metric;
use shell::once::Once;
use shell::partial_files::Scratch;
use tracers::Tracers;

/// Images with the kinds of their instructions, by file. All boots share them.
static IMAGES: Once<PathBuf, Image> = Once::new();

/// Observes the samples of a boot.
#[derive(Debug)]
pub enum Watcher {
    /// QEMU's plugin.
    Plugin(Plugin),
    /// gem5's tracers.
    Tracers(Tracers),
}

/// The findings of a watcher. A part is `None` if it was not requested, and an error if it could not be recorded.
#[derive(Debug, Default)]
pub struct Watched {
    /// The samples.
    pub samples: Option<Result<Samples, String>>,
    /// The instructions of the samples.
    pub traces: Option<Result<Traces, String>>,
}

/// A plugin with its files, prepared for a boot.
#[derive(Debug)]
pub struct Plugin {
    plugin: PathBuf,
    chart: PathBuf,
    samples: PathBuf,
    /// The file with the instructions of samples, if it is wanted.
    traces: Option<PathBuf>,
    _place: Scratch,
}

impl Watcher {
    /// Prepares to observe the samples of `job` in a boot by `emulator`. `None` if there is nothing to observe. The
    /// error explains why the samples can't be observed.
    pub fn new(
        emulator: &Emulator,
        job: &Job,
        variant: Variant,
        built: &Built,
    ) -> Result<Option<Self>> {
        let wanted = has_samples(job) && (job.traces || matches!(emulator, Emulator::Qemu(_)));
        let chart = wanted.then(|| new_chart(job, variant, built)).transpose()?;
        let Some(chart) = chart.flatten() else {
            return Ok(None);
        };
        Ok(Some(match emulator {
            Emulator::Qemu(qemu) => {
                let plugin = build_plugin(qemu.command())?;
                Self::Plugin(Plugin::new(plugin, &chart, job.traces)?)
            }
            Emulator::Gem5(_) => Self::Tracers(Tracers::new(job, chart)?),
        }))
    }

    /// Returns the plugin or tracers for the boot.
    pub fn recorder(&self) -> Recorder<'_> {
        match self {
            Self::Plugin(plugin) => plugin.recorder(),
            Self::Tracers(tracers) => Recorder::Tracers(tracers.folder()),
        }
    }

    /// Returns the findings, after the boot.
    pub fn end(self) -> Watched {
        match self {
            Self::Plugin(plugin) => Watched {
                samples: Some(plugin.samples()),
                traces: plugin.traces(),
            },
            Self::Tracers(tracers) => Watched {
                samples: None,
                traces: Some(tracers.read_traces()),
            },
        }
    }
}

/// Returns the code whose samples are observed. `None` if the code has no marks. Our guest at EL1 is not followed if
/// KVM's host is at EL1 too: in such boots, none of the guest's samples were found.
fn new_chart(job: &Job, variant: Variant, built: &Built) -> Result<Option<Chart>> {
    let ours = built.guest_elf(job.image(variant));
    let program = built.program.as_ref();
    let marked = ours.map(|elf| (1, elf)).or(program.map(|elf| (0, elf)));
    let has_host_at_el1 = matches!(variant.under, Under::KvmNvhe | Under::KvmProtected);
    let followed = !(ours.is_some() && has_host_at_el1);
    let Some(marked) = marked.filter(|_| followed) else {
        return Ok(None);
    };
    let mut chart = Chart {
        // Bao keeps a CPU's state at the same address on every CPU, so the CPU is identified by VMPIDR_EL2.
        identity: match variant.under {
            Under::Bao => Identity::Vmpidr,
            _ => Identity::default(),
        },
        ..Chart::default()
    };
    let mut files = vec![marked];
    if variant.under == Under::Rouse {
        files.push((2, &built.hypervisor));
    }
    for (level, elf) in files {
        // The path identifies the contents, because the folder's name is their hash.
        let image = IMAGES.get(elf.clone(), || {
            let shown = || format!("{}: its code can't be read", elf.display());
            marking::of(level, &fs::read(elf)?).with_context(shown)
        })?;
        chart.images.push(Image::clone(&image));
    }
    Ok(Some(chart))
}

impl Plugin {
    fn new(plugin: PathBuf, chart: &Chart, traces: bool) -> Result<Self> {
        let place = Scratch::new()?;
        let path = place.path().join("chart");
        fs::write(&path, chart.to_bytes())?;
        Ok(Self {
            plugin,
            chart: path,
            samples: place.path().join("samples"),
            traces: traces.then(|| place.path().join("traces")),
            _place: place,
        })
    }

    fn recorder(&self) -> Recorder<'_> {
        let files: [(&str, &Path); 2] = [("chart", &self.chart), ("samples", &self.samples)];
        let traces = self.traces.as_deref().map(|traces| ("traces", traces));
        Recorder::Plugin {
            plugin: &self.plugin,
            options: files.into_iter().chain(traces).collect(),
        }
    }

    fn traces(&self) -> Option<Result<Traces, String>> {
        let text = fs::read_to_string(self.traces.as_ref()?);
        let text = text.map_err(|_| "the emulator ended early".to_owned());
        Some(text.and_then(|text| {
            let read = Traces::from_text(&text);
            read.ok_or_else(|| "the file of its blocks is not whole; is the disk full?".into())
        }))
    }

    fn samples(&self) -> Result<Samples, String> {
        let text = fs::read_to_string(&self.samples);
        let text = text.map_err(|_| "the emulator ended early".to_owned())?;
        ::critical::from_text(&text)
    }
}

/// Whether the samples of `job` are marked and can be divided into path and other work. This is possible if they count
/// instructions, or if a simulator runs the job.
pub fn has_samples(job: &Job) -> bool {
    let workloads = &job.load.plan.lists.workload.values;
    let marked = workloads.iter().any(|workload| workload.is_marked());
    let divided = match job.board().machine {
        EmulatedMachine::Qemu(_) => job.metric == Metric::Insns,
        EmulatedMachine::Gem5(_) => true,
    };
    marked && divided
}

/// Builds the plugin if `job` needs it. A failure is reported later, by the boot that needs the plugin.
pub fn build_if_needed(emulator: &Emulator, job: &Job) {
    if let (Emulator::Qemu(qemu), true) = (emulator, has_samples(job)) {
        let _ = build_plugin(qemu.command());
    }
}

/// Builds the plugin. Fails if the emulator that `command` starts does not support plugins.
pub fn build_plugin(mut command: Command) -> Result<PathBuf> {
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
