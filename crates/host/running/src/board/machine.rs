// SPDX-License-Identifier: MIT OR Apache-2.0
//! A board's machine: one variant for each emulator, with that emulator's settings.

use std::collections::BTreeMap;

use plan::Under;
use serde::Deserialize;

use providing::{trusted_firmware, u_boot};

/// The machine of a board.
#[derive(Debug)]
pub enum EmulatedMachine {
    /// A machine of QEMU.
    Qemu(Qemu),
    /// A machine that a gem5 script assembles from gem5's parts.
    Gem5(Gem5),
}

/// QEMU's settings for a machine.
#[derive(Debug)]
pub struct Qemu {
    /// Size of RAM, with unit.
    pub memory: String,
    /// How the image gets into RAM.
    pub loader: Loader,
    /// The console of images under the hypervisor, unless they use the machine's own console.
    pub console: Option<Console>,
    /// Additional devices of the machine: the value of `-device` for each.
    pub devices: Vec<String>,
    /// The number of the serial port that the machine's description names as the console.
    pub serial: usize,
    /// Boot arguments of every image on this machine.
    pub append: Option<String>,
    /// Linux's device tree that describes the machine, if QEMU does not describe it.
    pub tree: Option<String>,
    /// The value of `-M` for each hypervisor.
    pub machine: BTreeMap<Under, String>,
}

/// Ways of loading the image into RAM.
#[derive(Debug)]
pub enum Loader {
    /// QEMU itself.
    Qemu {
        /// The load address, if it is fixed.
        image_base: Option<u64>,
    },
    /// UEFI, at an address of its choice.
    Firmware(Firmware),
    /// Trusted Firmware-A, at EL3.
    Trusted(Trusted),
}

/// Trusted Firmware-A, and the program that it starts.
#[derive(Debug)]
pub struct Trusted {
    pub release: String,
    pub starts: Starts,
}

/// The program that firmware at EL3 starts at a lower exception level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Starts {
    /// The image itself.
    Image,
    /// U-Boot, which boots a disk.
    UBoot,
}

/// UEFI firmware.
#[derive(Debug)]
pub struct Firmware {
    /// File name of its code.
    pub code: String,
    /// File name of its persistent variables, for instance its keys for Secure Boot.
    /// Without this file, the firmware remembers nothing between boots.
    pub variables: Option<String>,
}

/// A console that the machine's description does not name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Console {
    /// The emulator's device, which writes to the character device `console`.
    pub device: String,
    /// The boot argument that names this console.
    pub argument: String,
    /// Whether to hide the firmware's output on the machine's own console.
    #[serde(default)]
    pub alone: bool,
}

/// gem5's settings for a machine.
#[derive(Debug)]
pub struct Gem5 {
    /// The script that assembles the machine, in the folder of the board's file.
    pub script: String,
    /// The file with the parameters of the machine's parts.
    pub parameters: String,
    /// Size of RAM, with unit.
    pub memory: String,
    /// The address at which gem5 puts the image, if it is fixed.
    pub image_base: Option<u64>,
    /// CPU models that lose an interrupt if an event arrives while the interrupt is being acknowledged.
    pub event_loses_irq: Vec<String>,
    /// CPU models on which some atomic instructions crash gem5, though their ID registers report FEAT_LSE.
    pub breaks_lse: Vec<String>,
}

/// QEMU's Raspberry Pi 4, which has EL2 and a GICv2.
pub const RASPI4B: &str = "raspi4b";

impl Qemu {
    /// Whether the machine for any of the hypervisors has a GICv3.
    pub fn has_gicv3(&self) -> bool {
        self.machine
            .values()
            .any(|machine| machine.contains("gic-version=3"))
    }

    /// Returns why the firmware of the machine is not available here, or `None` if it is.
    pub fn lacks(&self) -> Option<String> {
        let Loader::Trusted(trusted) = &self.loader else {
            return None;
        };
        let starts = match trusted.starts {
            Starts::Image => Ok(()),
            Starts::UBoot => u_boot::provide().map(drop),
        };
        let error = starts.and_then(|()| trusted_firmware::provide(&trusted.release).map(drop));
        Some(format!("{:#}", error.err()?))
    }
}

impl EmulatedMachine {
    /// Whether the machine for Rouse has a GICv2.
    pub fn has_gicv2(&self) -> bool {
        let Self::Qemu(qemu) = self else {
            return false;
        };
        let machine = qemu.machine.get(&Under::Rouse);
        machine.is_some_and(|machine| machine.contains("gic-version=2") || machine == RASPI4B)
    }

    /// Returns the size of RAM, with unit.
    pub fn memory(&self) -> &str {
        match self {
            Self::Qemu(qemu) => &qemu.memory,
            Self::Gem5(gem5) => &gem5.memory,
        }
    }

    /// Returns the address at which the loader puts the image, if it is fixed.
    pub fn image_base(&self) -> Option<u64> {
        match self {
            Self::Gem5(gem5) => gem5.image_base,
            Self::Qemu(qemu) => match qemu.loader {
                Loader::Qemu { image_base } => image_base,
                Loader::Trusted(Trusted {
                    starts: Starts::Image,
                    ..
                }) => Some(trusted_firmware::NEXT),
                Loader::Trusted(_) | Loader::Firmware(_) => None,
            },
        }
    }

    /// Returns the Trusted Firmware-A that starts the machine, if any.
    pub fn trusted_loader(&self) -> Option<&Trusted> {
        match self {
            Self::Qemu(Qemu {
                loader: Loader::Trusted(trusted),
                ..
            }) => Some(trusted),
            Self::Qemu(_) | Self::Gem5(_) => None,
        }
    }

    /// Whether the machine's firmware boots disks.
    pub fn boots_disks(&self) -> bool {
        let starts = self.trusted_loader().map(|trusted| trusted.starts);
        self.firmware().is_some() || starts == Some(Starts::UBoot)
    }

    /// Returns the UEFI firmware that boots the machine, if any.
    pub fn firmware(&self) -> Option<&Firmware> {
        match self {
            Self::Gem5(_) => None,
            Self::Qemu(qemu) => match &qemu.loader {
                Loader::Firmware(firmware) => Some(firmware),
                Loader::Qemu { .. } | Loader::Trusted(_) => None,
            },
        }
    }

    /// Returns how long a boot may go without progress by default, in seconds of the emulator's own time. This limit is
    /// for the default number of wake-ups per cell.
    pub const fn patience(&self) -> u64 {
        match self {
            Self::Qemu(_) => 240,
            Self::Gem5(_) => 3600,
        }
    }

    /// Whether CPUs of `model` lose an interrupt if an event arrives while the interrupt is being acknowledged.
    pub fn event_loses_irq(&self, model: &str) -> bool {
        match self {
            Self::Qemu(_) => false,
            Self::Gem5(gem5) => gem5.event_loses_irq.iter().any(|one| one == model),
        }
    }

    /// Whether some atomic instructions of FEAT_LSE crash the emulator on CPUs of `model`.
    pub fn breaks_lse(&self, model: &str) -> bool {
        match self {
            Self::Qemu(_) => false,
            Self::Gem5(gem5) => gem5.breaks_lse.iter().any(|one| one == model),
        }
    }
}
