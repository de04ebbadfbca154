// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine that gem5 simulates for one boot: its image, RAM, CPUs and boot arguments.
//!
//! A boot of Linux, as the guest or as KVM's host, is kept as a checkpoint if the program that Linux runs asks for one.
//! The text that is read after the checkpoint then has everything that differs between measurements.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use plan::{CHECKPOINT, CORE_MHZ, PREFIX, Under};

use crate::images::Built;
use crate::job::{Job, Variant};
use crate::kvm;
use crate::kvm::guest_boot::{GuestBoot, level_below};
use crate::launch;
use shell::failure::bad_input;

/// A machine, and what it boots.
#[derive(Debug)]
pub struct Simulation {
    image: PathBuf,
    initrd: Option<PathBuf>,
    cpus: u32,
    memory: String,
    boot_arguments: String,
    /// Whether Linux is the lowest layer of software, with no firmware that starts the other CPUs.
    spin_table: bool,
    /// Whether Linux is the host of a guest.
    has_guests: bool,
    /// Whether the CPUs have FEAT_VHE.
    vhe: bool,
    /// Whether Linux runs on the machine.
    pub is_linux: bool,
    /// The text that the program on Linux reads after the checkpoint that it asks for.
    pub after_checkpoint: Option<String>,
    /// Whether a guest that starts after this checkpoint boots to a checkpoint of its own.
    guest_boots: bool,
    /// The text that the program on that guest reads after the guest's checkpoint.
    pub after_guest_checkpoint: Option<String>,
}

impl Simulation {
    /// Makes the machine for a boot of `job`. Its files go to `place`.
    pub fn new(job: &Job, variant: Variant, built: &Built, place: &Path) -> Result<Self> {
        let is_linux = job.load.guest.is_some();
        let measures_linux = job.load.measures_linux() && job.measures();
        let [boot_arguments, rest] = match measures_linux {
            true => job.load.checkpoint_arguments(variant),
            false => [job.load.boot_arguments(variant), String::new()],
        };
        let rest = rest + &core_clock(job);
        let ram = format!("{}iB", job.memory);
        let (image, initrd, memory) = match variant.under {
            Under::Rouse => (built.packed.clone(), None, ram),
            Under::None => {
                let image = built.guest_image(job.image(variant))?;
                (image.clone(), built.initrd.clone(), ram)
            }
            Under::Bao => {
                let (file, bytes) = launch::bao_alone(job, variant, built, place)?;
                (file, None, format!("{}MiB", bytes >> 20))
            }
            Under::Kvm | Under::KvmNvhe => {
                let rest = measures_linux.then(|| rest + &level_below(variant));
                return Self::under_kvm(job, variant, built, place, boot_arguments, rest);
            }
            under @ (Under::Xen | Under::KvmProtected) => {
                bad_input!("--under {under}: gem5 does not run it; use --board virt")
            }
        };
        Ok(Self {
            image,
            initrd,
            cpus: job.cpus,
            memory,
            boot_arguments,
            spin_table: is_linux && variant.under == Under::None,
            has_guests: false,
            vhe: false,
            is_linux,
            after_checkpoint: measures_linux.then_some(rest),
            guest_boots: false,
            after_guest_checkpoint: None,
        })
    }

    /// Makes the machine of KVM's host, which asks for a checkpoint before it starts its guest, and then reads the
    /// monitor's command line. A guest that measures boots to a checkpoint of its own, and if it is Linux, its program
    /// then reads `rest`.
    fn under_kvm(
        job: &Job,
        variant: Variant,
        built: &Built,
        place: &Path,
        mut guest_arguments: String,
        rest: Option<String>,
    ) -> Result<Self> {
        let host = built.host.as_ref().context("there is no host for KVM")?;
        let mode = variant.under.kvm_mode().unwrap_or_default();
        guest_arguments += &core_clock(job);
        let guest_boots = job.measures();
        // The boot arguments of a measured Linux ask for the checkpoint already.
        if guest_boots && rest.is_none() {
            guest_arguments += &format!(" {PREFIX}{CHECKPOINT}");
        }
        // All repetitions of a measured Linux continue from one boot.
        let seed = rest.as_ref().map_or(variant.seed, |_| Variant::FIRST_SEED);
        let booted = Variant { seed, ..variant };
        let guest = GuestBoot::new(job, booted, mode, built, 0, guest_arguments)?;
        let host = host.write_for_gem5(
            &kvm::Boot {
                cpus: job.cpus,
                memory: guest.memory,
                arguments: guest.kernel_arguments.clone(),
                runs: &[],
                guests: &guest.files(),
            },
            place,
        )?;
        Ok(Self {
            image: host.image,
            initrd: Some(host.initrd),
            cpus: host.cpus,
            memory: format!("{}MiB", host.memory),
            boot_arguments: host.arguments,
            spin_table: true,
            has_guests: true,
            vhe: variant.under == Under::Kvm,
            is_linux: true,
            guest_boots,
            after_guest_checkpoint: rest,
            after_checkpoint: Some(vmm::archive::runs_text(&[guest.words])),
        })
    }

    /// Adds this machine's arguments to `command`.
    pub fn add_arguments(&self, command: &mut Command) {
        command
            .arg("--image")
            .arg(&self.image)
            .args(["--cpus", &self.cpus.to_string()])
            .args(["--memory", &self.memory])
            .arg(format!("--bootargs={}", self.boot_arguments));
        if let Some(initrd) = &self.initrd {
            command.arg("--initrd").arg(initrd);
        }
        if self.spin_table {
            command.arg("--spin-table");
        }
        if self.has_guests {
            command.arg("--has-guests");
        }
        if self.vhe {
            command.arg("--vhe");
        }
        if self.guest_boots {
            command.arg("--guest-boots");
        }
    }

    /// Returns the files that the machine gets.
    pub fn files(&self) -> impl Iterator<Item = &Path> + Clone {
        let initrd = self.initrd.as_deref();
        [Some(&*self.image), initrd].into_iter().flatten()
    }
}

/// Returns the boot argument that gives the clock of the cores.
fn core_clock(job: &Job) -> String {
    let clock = job.parameters.get(CORE_MHZ);
    clock.map_or_else(String::new, |clock| {
        format!(" {PREFIX}{CORE_MHZ}={}", clock.value)
    })
}
