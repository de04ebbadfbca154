// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file of a board: its keys, and their checks.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use foreign::Quoted;
use plan::{Under, Word};
use platform::MAX_CPUS;
use results::Watts;
use serde::Deserialize;

use super::machine::{Console, EmulatedMachine, Firmware, Gem5, Loader, Qemu, Starts, Trusted};
use super::{Board, Cpus, size};
use providing::trusted_firmware;
use shell::failure::BadInput;
use shell::{mistake, places};

/// All keys of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    models: Vec<String>,
    lacks: Vec<String>,
    image_base: Option<u64>,
    cpus: Cpus,
    watts: Option<Watts>,
    qemu: Option<QemuKeys>,
    gem5: Option<Gem5Keys>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QemuKeys {
    memory: String,
    firmware: Option<String>,
    variables: Option<String>,
    trusted_firmware: Option<String>,
    starts: Option<Starts>,
    console: Option<Console>,
    #[serde(default)]
    devices: Vec<String>,
    #[serde(default)]
    serial: usize,
    append: Option<String>,
    tree: Option<String>,
    machine: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gem5Keys {
    script: String,
    parameters: String,
    memory: String,
    event_loses_irq: Vec<String>,
    #[serde(default)]
    breaks_lse: Vec<String>,
}

/// Parses `text`, the file at `path`, as the board `name`.
pub fn parse(path: &Path, name: String, text: &str) -> Result<Board> {
    let read = || {
        let file: File =
            toml::from_str(text).map_err(|error| BadInput::error(mistake::told(text, &error)))?;
        let machine = make_machine(file.image_base, file.qemu, file.gem5)?;
        for model in &file.cpus.without_lse {
            if !file.cpus.models.contains_key(model) {
                return Err(BadInput::error(format!(
                    "`cpus.without_lse`: `{model}` is not in `cpus.models`; add it there, or leave it out"
                )));
            }
        }
        check_cpus(&file.cpus)?;
        let check = |watts: &Watts| watts.check().map_err(|why| format!("[watts]: {why}"));
        file.watts
            .as_ref()
            .map_or(Ok(()), check)
            .map_err(BadInput::error)?;
        anyhow::Ok(Board {
            name,
            folder: path.parent().unwrap_or(Path::new("")).into(),
            about: file.about,
            models: file.models,
            lacks: file.lacks,
            cpus: file.cpus,
            watts: file.watts,
            machine,
        })
    };
    let place = || BadInput::context(format!("{} can't be used; correct it", places::shown(path)));
    read().with_context(place)
}

/// Checks that a machine can have the numbers of CPUs in `cpus`.
fn check_cpus(cpus: &Cpus) -> Result<()> {
    let Cpus {
        min, default, max, ..
    } = *cpus;
    let most = MAX_CPUS as u32;
    if !(1..=most).contains(&max) {
        return Err(BadInput::error(format!(
            "`cpus.max`: {max} is not one of 1 to {most}; name as many as the machine has"
        )));
    }
    if !(1..=max).contains(&min) {
        return Err(BadInput::error(format!(
            "`cpus.min`: {min} is not one of 1 to {max}, `cpus.max`; name one of them"
        )));
    }
    if !(min..=max).contains(&default) {
        return Err(BadInput::error(format!(
            "`cpus.default`: {default} is not one of {min} to {max}, `cpus.max`; name one of them"
        )));
    }
    Ok(())
}

/// Checks the value of `key`, a size of RAM.
fn check_memory(key: &str, size: String) -> Result<String> {
    match size::parse(&size) {
        Some(_) => Ok(size),
        None => Err(BadInput::error(format!(
            "`{key}`: `{}` is not a size; use for instance 64M or 2G",
            Quoted::new(&size)
        ))),
    }
}

/// Returns the emulated machine, from the section `[qemu]` or `[gem5]` of the file.
fn make_machine(
    image_base: Option<u64>,
    qemu: Option<QemuKeys>,
    gem5: Option<Gem5Keys>,
) -> Result<EmulatedMachine> {
    match (qemu, gem5) {
        (Some(qemu), None) => Ok(EmulatedMachine::Qemu(make_qemu(image_base, qemu)?)),
        (None, Some(gem5)) => Ok(EmulatedMachine::Gem5(Gem5 {
            script: gem5.script,
            parameters: gem5.parameters,
            memory: check_memory("gem5.memory", gem5.memory)?,
            image_base,
            event_loses_irq: gem5.event_loses_irq,
            breaks_lse: gem5.breaks_lse,
        })),
        (None, None) => Err(BadInput::error(
            "[qemu], [gem5]: neither is there; add the one that emulates it",
        )),
        (Some(_), Some(_)) => Err(BadInput::error(
            "[qemu], [gem5]: one machine has one emulator; leave one of them out",
        )),
    }
}

/// Chooses how the image gets into RAM.
fn choose_loader(image_base: Option<u64>, keys: &QemuKeys) -> Result<Loader> {
    let firmware = keys.firmware.as_ref().or(keys.trusted_firmware.as_ref());
    if firmware.is_some() && image_base.is_some() {
        return Err(BadInput::error(
            "`image_base`: firmware puts the image anywhere; leave it out, or `qemu.firmware`",
        ));
    }
    match (&keys.firmware, &keys.trusted_firmware) {
        (Some(_), Some(_)) => Err(BadInput::error(
            "`qemu.trusted_firmware`: a machine starts with one firmware; leave it out, or `qemu.firmware`",
        )),
        (None, Some(release)) => {
            trusted_firmware::check_known(release)?;
            let trusted = Trusted {
                release: release.clone(),
                starts: keys.starts.unwrap_or(Starts::Image),
            };
            Ok(Loader::Trusted(trusted))
        }
        (_, None) if keys.starts.is_some() => Err(BadInput::error(
            "`qemu.starts`: it is Trusted Firmware-A that starts it; add `qemu.trusted_firmware`, or leave it out",
        )),
        (None, None) if keys.variables.is_some() => Err(BadInput::error(
            "`qemu.variables`: it is firmware that remembers them; add `qemu.firmware`, or leave it out",
        )),
        (Some(code), None) => Ok(Loader::Firmware(Firmware {
            code: code.clone(),
            variables: keys.variables.clone(),
        })),
        (None, None) => Ok(Loader::Qemu { image_base }),
    }
}

fn make_qemu(image_base: Option<u64>, keys: QemuKeys) -> Result<Qemu> {
    let loader = choose_loader(image_base, &keys)?;
    let machine = keys.machine.into_iter().map(|(key, value)| {
        // Xen and Bao run on machines of their own. KVM's host has the same machine for every board whose file does not
        // name another.
        let boards = |under: &Under| matches!(under, Under::Rouse | Under::None | Under::Kvm);
        let under = Under::parse(&key).filter(boards).ok_or_else(|| {
            let known = Under::ALL.iter().filter(|under| boards(under));
            let known: Vec<_> = known.map(Under::to_string).collect();
            let known = known.join(", ");
            BadInput::error(format!(
                "`qemu.machine.{key}`: a guest does not run under that; use {known}"
            ))
        });
        Ok((under?, value))
    });
    Ok(Qemu {
        memory: check_memory("qemu.memory", keys.memory)?,
        loader,
        console: keys.console,
        devices: keys.devices,
        serial: keys.serial,
        append: keys.append,
        tree: keys.tree,
        machine: machine.collect::<Result<_>>()?,
    })
}
