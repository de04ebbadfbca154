// SPDX-License-Identifier: MIT OR Apache-2.0
//! The emulator of a board: QEMU or gem5.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use plan::Under;
use results::Parameter;

use crate::board::EmulatedMachine;
use crate::gem5::parameters::Value;
use crate::images::Built;
use crate::job::{Job, Variant};
use crate::{gem5, launch};
use providing::qemu;

/// An emulator that can be started.
#[derive(Clone, Debug)]
pub enum Emulator {
    Qemu(qemu::Emulator),
    Gem5(providing::gem5::Emulator),
}

impl Emulator {
    /// Returns the emulator for `job`. Provides QEMU if it is missing.
    pub fn ensure(job: &Job) -> Result<Self> {
        Self::usable(job)?.map_or_else(Self::provide, Ok)
    }

    /// Returns the emulator for `job`, or `None` if QEMU is missing but can be provided.
    pub fn usable(job: &Job) -> Result<Option<Self>> {
        Ok(match job.board().machine {
            EmulatedMachine::Qemu(_) => qemu::find_usable()?.map(Self::Qemu),
            EmulatedMachine::Gem5(_) => {
                Some(Self::Gem5(providing::gem5::find(job.gem5.as_deref())?))
            }
        })
    }

    /// Provides QEMU.
    pub fn provide() -> Result<Self> {
        qemu::ensure().map(Self::Qemu)
    }

    /// Returns the command that boots `job` once. The emulator's own files go to `place`, for instance
    /// its monitor's socket.
    pub fn command(
        &self,
        job: &Job,
        variant: Variant,
        built: &Built,
        place: &Path,
    ) -> Result<Command> {
        match self {
            Self::Qemu(qemu) => {
                let mut command = match (variant.under, variant.under.kvm_mode()) {
                    (_, Some(mode)) => launch::under_kvm(job, variant, mode, qemu, built, place)?,
                    (Under::Xen, None) => launch::under_xen(job, variant, qemu, built)?,
                    (Under::Bao, None) => launch::under_bao(job, variant, qemu, built, place)?,
                    (_, None) => launch::command(job, variant, qemu, built)?,
                };
                launch::end_with_us(&mut command);
                Ok(command)
            }
            Self::Gem5(program) => gem5::command(program, job, variant, built, place),
        }
    }

    /// Makes the emulator report events in `place`, if it can: see
    /// [`launch::supervise`].
    pub fn supervise(&self, command: &mut Command, place: &Path) {
        if let Self::Qemu(_) = self {
            launch::supervise(command, place);
        }
    }

    /// Returns the emulator's name and version.
    pub fn shown(&self) -> String {
        match self {
            Self::Qemu(qemu) => format!("QEMU {}", qemu.version),
            Self::Gem5(gem5) => format!("gem5 {}", gem5.version),
        }
    }

    /// Describes the emulator for the results of `job`.
    pub fn describe(&self, job: &Job) -> results::Emulator {
        match self {
            Self::Qemu(qemu) => results::Emulator {
                name: "QEMU".into(),
                version: qemu.version.to_string(),
                exact: qemu.exact.clone(),
                mode: launch::mode_for(job.metric).name.into(),
                parameters: [ram_parameter(job)].into(),
            },
            Self::Gem5(gem5) => results::Emulator {
                name: "gem5".into(),
                version: gem5.version.clone(),
                exact: String::new(),
                mode: job.model.clone(),
                parameters: job
                    .parameters
                    .iter()
                    .map(parameter)
                    .chain([ram_parameter(job)])
                    .collect(),
            },
        }
    }
}

/// Returns the size of the machine's RAM as a parameter for results.
fn ram_parameter(job: &Job) -> (String, Parameter) {
    let parameter = Parameter {
        value: job.memory.to_string(),
        source: job.memory.source().into(),
    };
    ("ram".into(), parameter)
}

/// Converts a parameter of the machine to the type used in results.
fn parameter((name, value): (&String, &Value)) -> (String, Parameter) {
    let parameter = Parameter {
        value: value.value.to_string(),
        source: value.source.clone(),
    };
    (name.clone(), parameter)
}
