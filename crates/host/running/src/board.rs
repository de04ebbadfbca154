// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of machines: `boards/<name>.toml`, or `boards/<name>/board.toml` for a machine with several files.

mod file;
mod machine;
pub mod size;

pub use machine::{EmulatedMachine, Firmware, Gem5, Qemu, Starts};

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use foreign::Quoted;
use plan::Under;
use results::Watts;
use serde::Deserialize;

use crate::kvm;
use crate::options::{Boot, Metric};
use shell::failure::{BadInput, bad_input};
use shell::output::file_arguments;
use shell::{files, places};

#[derive(Debug)]
pub struct Board {
    /// The board's name, which is the name of its file or of its own folder.
    pub name: String,
    /// The folder of the board's file.
    folder: PathBuf,
    /// A one-line description, for people.
    pub about: String,
    /// Properties of the real machine that the board models, for people.
    pub models: Vec<String>,
    /// Properties of the real machine that the board lacks or models differently.
    pub lacks: Vec<String>,
    pub cpus: Cpus,
    /// Power of a CPU in each state, from published figures, for the energy model.
    pub watts: Option<Watts>,
    /// The emulated machine.
    pub machine: EmulatedMachine,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpus {
    /// The fewest CPUs that the machine can have: 1 unless the file says otherwise.
    #[serde(default = "one")]
    pub min: u32,
    /// Number of CPUs by default.
    pub default: u32,
    pub max: u32,
    /// Name of the default model.
    pub model: String,
    /// The known models, each with its properties for QEMU or a description for gem5.
    pub models: BTreeMap<String, String>,
    /// Names of the models without FEAT_LSE. This list decides which image of our guest a boot gets; if a boot has both,
    /// the machine itself chooses.
    #[serde(default)]
    pub without_lse: Vec<String>,
    /// Frequency of the counter, in Hz, for each metric.
    pub counter_hz: BTreeMap<Metric, u64>,
}

const fn one() -> u32 {
    1
}

impl Board {
    /// Reads the board `name` from the source tree, or a user's own file.
    pub fn load(name: &str) -> Result<Self> {
        let path = match Self::file(name) {
            Some(file) => file.into(),
            None => path_of(name),
        };
        file_arguments::note("--board", &path);
        match files::read_text(&path) {
            Ok(text) => Self::parse(&path, &text),
            Err(error) if Self::file(name).is_some() => {
                bad_input!("--board: {name} can't be read ({error}); name a board, or its file")
            }
            Err(_) => {
                let known = names()?.join(", ");
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
                match name.chars().all(is_name) && !name.is_empty() {
                    true => bad_input!(
                        "--board: there is no `{name}`; use {known}, or add boards/{name}.toml"
                    ),
                    false => bad_input!(
                        "--board: `{}` is neither a board's name nor a file NAME.toml; use {known}, or a file",
                        Quoted::new(name)
                    ),
                }
            }
        }
    }

    /// Returns `board` as a path if it names a file `*.toml`, or `None` if it is a board's name.
    pub fn file(board: &str) -> Option<&Path> {
        let path = Path::new(board);
        path.extension()
            .is_some_and(|end| end == "toml")
            .then_some(path)
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        // A board in a folder of its own has the folder's name.
        let named = match path.file_name().is_some_and(|name| name == FILE) {
            true => path.parent().and_then(Path::file_name),
            false => path.file_stem(),
        };
        let name = named.unwrap_or_default().to_string_lossy();
        file::parse(path, name.into(), text)
    }

    /// Returns QEMU's settings. For a board of another emulator, returns an error that names `what`, the feature that
    /// needs QEMU.
    pub fn qemu(&self, what: &str) -> Result<&Qemu> {
        match &self.machine {
            EmulatedMachine::Qemu(qemu) => Ok(qemu),
            EmulatedMachine::Gem5(_) => bad_input!(
                "{what}: board {} is gem5's, and this needs QEMU; use --board virt",
                self.name
            ),
        }
    }

    /// Returns gem5's settings. For a board of another emulator, returns an error that names `option`, which needs
    /// gem5.
    pub fn gem5(&self, option: &str) -> Result<&Gem5> {
        match &self.machine {
            EmulatedMachine::Gem5(gem5) => Ok(gem5),
            EmulatedMachine::Qemu(_) => bad_input!(
                "{option}: board {} is not gem5's; use --board gem5",
                self.name
            ),
        }
    }

    /// Returns the path of the file `name` in the board's folder.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the number of CPUs to use, given the requested number.
    pub fn cpus(&self, asked: Option<u32>) -> Result<u32> {
        let Cpus { min, max, .. } = self.cpus;
        let cpus = asked.unwrap_or(self.cpus.default);
        if !(min..=max).contains(&cpus) {
            let nearest = cpus.clamp(min, max);
            bad_input!(
                "--cpus: board {} has {min} to {max}, not {cpus}; the nearest is {nearest}",
                self.name
            );
        }
        Ok(cpus)
    }

    /// Returns the name of the CPU model to use, given the requested model.
    pub fn model<'b>(&'b self, asked: Option<&'b str>) -> Result<&'b str> {
        let model = asked.unwrap_or(&self.cpus.model);
        if !self.cpus.models.contains_key(model) {
            bad_input!(
                "--cpu: board {} has no `{model}`; use {}",
                self.name,
                self.model_names().join(", ")
            );
        }
        Ok(model)
    }

    /// Whether CPUs of `model` have FEAT_LSE.
    pub fn has_lse(&self, model: &str) -> bool {
        self.cpus.without_lse.iter().all(|one| one != model)
    }

    /// Returns the names of the CPU models, sorted.
    pub fn model_names(&self) -> Vec<&str> {
        self.cpus.models.keys().map(String::as_str).collect()
    }

    /// Returns the value of QEMU's option `-cpu`: the model, its properties, and its counter's frequency.
    pub fn cpu(&self, model: &str, metric: Metric) -> Result<String> {
        let properties = self.cpus.models.get(model).map_or("", String::as_str);
        let separator = if properties.is_empty() { "" } else { "," };
        let frequency = self.counter_hz(metric)?;
        Ok(format!("{model}{separator}{properties},cntfrq={frequency}"))
    }

    /// Returns the metric to count: the requested metric, or else the board's first.
    pub fn metric(&self, asked: Option<Metric>) -> Result<Metric> {
        let first = self.metrics().next();
        let Some(metric) = asked.or(first) else {
            bad_input!(
                "--board: {} names no counter; add one to [cpus.counter_hz] of its file",
                self.name
            );
        };
        self.counter_hz(metric).map(|_| metric)
    }

    /// Returns the metrics that the board can count.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        self.cpus.counter_hz.keys().copied()
    }

    pub fn counter_hz(&self, metric: Metric) -> Result<u64> {
        let frequency = self.cpus.counter_hz.get(&metric);
        frequency.copied().ok_or_else(|| self.metric_error(metric))
    }

    /// Returns the error for a metric that the board lacks, with the remedy.
    fn metric_error(&self, metric: Metric) -> anyhow::Error {
        let why = match metric {
            Metric::Cycles => ", QEMU does not model them",
            Metric::Insns | Metric::Time => "",
        };
        let boards = names().unwrap_or_default().into_iter();
        let others = boards.filter(|name| {
            Self::load(name).is_ok_and(|board| board.cpus.counter_hz.contains_key(&metric))
        });
        let others: Vec<String> = others.collect();
        let elsewhere = match others.as_slice() {
            [] => String::new(),
            others => format!("--board {}, or ", others.join(", ")),
        };
        let here: Vec<String> = self.metrics().map(|metric| metric.to_string()).collect();
        BadInput::error(format!(
            "--board {}: it counts no {metric}{why}; use {elsewhere}--metric {}",
            self.name,
            here.join(", ")
        ))
    }

    /// Refuses `option` if the board can't boot from a disk.
    pub fn boots_disks(&self, option: &str) -> Result<()> {
        if !self.machine.boots_disks() {
            bad_input!(
                "{option}: board {} has no firmware that boots disks; use board virt-uefi, or another that `doctor --boards` \
                 shows with UEFI",
                self.name
            );
        }
        Ok(())
    }

    /// Returns how the image reaches the board: the requested way, or else the board's default.
    pub fn boot(&self, asked: Option<Boot>) -> Result<Boot> {
        let starts = self.machine.trusted_loader().map(|trusted| trusted.starts);
        match (asked, starts) {
            (Some(Boot::Kernel), Some(Starts::UBoot)) => bad_input!(
                "--boot: board {} boots disks alone; use --boot virtio, or --board virt-tfa",
                self.name
            ),
            (None, Some(Starts::UBoot)) => Ok(Boot::Virtio),
            (asked, _) => Ok(asked.unwrap_or(Boot::Kernel)),
        }
    }

    /// Whether the board enters the image at EL2. If it enters the image at EL1, the guest runs without the hypervisor.
    pub fn has_el2(&self) -> bool {
        match &self.machine {
            EmulatedMachine::Qemu(qemu) => qemu.machine.get(&Under::Rouse).is_some_and(|machine| {
                machine.contains("virtualization=on") || machine == machine::RASPI4B
            }),
            EmulatedMachine::Gem5(_) => true,
        }
    }

    /// Returns the name of Linux's device tree that describes the machine, if QEMU does not describe it.
    pub fn tree(&self) -> Option<&str> {
        match &self.machine {
            EmulatedMachine::Qemu(qemu) => qemu.tree.as_deref(),
            EmulatedMachine::Gem5(_) => None,
        }
    }

    /// Returns the default hypervisor: Rouse if the board's file has a machine for it, and otherwise none.
    pub fn usual_under(&self) -> Under {
        match &self.machine {
            EmulatedMachine::Qemu(qemu) if !qemu.machine.contains_key(&Under::Rouse) => Under::None,
            _ => Under::Rouse,
        }
    }

    /// Checks that the board's file has a machine for a guest under `under`.
    pub fn check_machine(&self, under: Under) -> Result<()> {
        match &self.machine {
            EmulatedMachine::Qemu(qemu) => self.option_m(qemu, under).map(drop),
            EmulatedMachine::Gem5(_) => match under {
                Under::Rouse | Under::None | Under::Bao | Under::Kvm | Under::KvmNvhe => Ok(()),
                Under::Xen | Under::KvmProtected => bad_input!(
                    "--under: gem5 does not run `{under}`; use rouse, none, kvm, kvm-nvhe or bao, or --board virt"
                ),
            },
        }
    }

    /// Returns the value of QEMU's `-M` for the board's machine.
    pub fn option_m<'q>(&self, qemu: &'q Qemu, under: Under) -> Result<&'q str> {
        match qemu.machine.get(&under) {
            Some(machine) => Ok(machine),
            // Any board with a GICv3 can use the machine of KVM's host, because the host needs no firmware.
            None if under.is_other() && qemu.has_gicv3() => Ok(kvm::MACHINE),
            None => {
                let known: Vec<_> = qemu.machine.keys().map(Under::to_string).collect();
                bad_input!(
                    "--under: board {} does not run `{under}`; use {}",
                    self.name,
                    known.join(", ")
                )
            }
        }
    }
}

/// Returns the names of the boards, sorted.
pub fn names() -> Result<Vec<String>> {
    let folder = boards_folder();
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| match folder.join(&file).join(FILE).exists() {
            true => Some(file),
            false => Some(file.strip_suffix(".toml")?.to_owned()),
        })
        .collect();
    names.sort();
    Ok(names)
}

/// File name of a board that is a folder.
const FILE: &str = "board.toml";

/// Returns the path of board `name` in the source tree, whether or not the path exists.
fn path_of(name: &str) -> PathBuf {
    let of_its_own = boards_folder().join(name).join(FILE);
    match of_its_own.exists() {
        true => of_its_own,
        false => boards_folder().join(format!("{name}.toml")),
    }
}

fn boards_folder() -> PathBuf {
    places::inside("boards")
}

#[cfg(test)]
mod tests;
