// SPDX-License-Identifier: MIT OR Apache-2.0
//! The critical path of samples, where the emulator counts instructions: a plugin
//! looks on, and what it found goes to the cells. Crate `critical` says what the path
//! is.

mod code;
mod found;
mod lines;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ::critical::Chart;
use anyhow::{Context, Result, bail};
use plan::Under;

use crate::cli::Metric;
use crate::cost::recorder;
use crate::images::Built;
use crate::job::Job;
use crate::toolchain;

pub use found::add;

/// Prepared for a boot.
#[derive(Debug)]
pub struct Watcher {
    samples: PathBuf,
}

impl Watcher {
    /// Has the emulator that `command` starts look at the samples of `job`; its files
    /// go to `place`. `None` where there is nothing to look at: values have to be
    /// instructions, and the guest ours. An error says why it can't look.
    pub fn attach(
        command: &mut Command,
        job: &Job,
        under: Under,
        built: &Built,
        place: &Path,
    ) -> Result<Option<Self>> {
        let counts = job.metric == Metric::Insns && job.board().gem5.is_none();
        let Some(guest) = built.guest.as_ref().filter(|_| counts) else {
            return Ok(None);
        };
        let plugin = plugin(command)?;
        let mut chart = Chart::default();
        let mut files = vec![(1, guest)];
        if under == Under::Rouse {
            files.push((2, &built.hypervisor));
        }
        for (level, elf) in files {
            let bytes = fs::read(elf)?;
            let shown = || format!("{}: its code can't be read", elf.display());
            chart
                .images
                .push(code::of(level, &bytes).with_context(shown)?);
        }
        let path = place.join("chart");
        fs::write(&path, chart.to_bytes())?;
        let samples = place.join("samples");
        let options = [("chart", &*path), ("samples", &*samples)];
        recorder::attach(command, &plugin, &options);
        Ok(Some(Self { samples }))
    }

    /// What it has found, after the boot; an error says why there is nothing.
    pub fn samples(&self) -> Result<::critical::Samples, String> {
        let text = fs::read_to_string(&self.samples);
        let text = text.map_err(|_| "the emulator ended early".to_owned())?;
        ::critical::from_text(&text)
    }
}

/// The plugin, built; an error if the emulator of `command` takes none.
fn plugin(command: &Command) -> Result<PathBuf> {
    static PLUGIN: OnceLock<PathBuf> = OnceLock::new();
    if let Some(plugin) = PLUGIN.get() {
        return Ok(plugin.clone());
    }
    // What starts it may be a loader, with the program among the arguments: all of them
    // up to the machine are its own.
    let words = command.get_args().take_while(|word| *word != "-M");
    let words: Vec<&str> = words
        .filter_map(|word| word.to_str())
        .chain(["-help"])
        .collect();
    let help = toolchain::output(command.get_program(), &words).unwrap_or_default();
    if !help.contains("-plugin") {
        bail!("this QEMU is built without plugins");
    }
    let plugin = recorder::build()?;
    Ok(PLUGIN.get_or_init(|| plugin).clone())
}
