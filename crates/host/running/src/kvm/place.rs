// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides where KVM runs for a request: on this machine, or on a host in the emulator.

use std::fs::File;

use anyhow::Result;
use plan::Under;

use super::local_run::BOARD;
use crate::options::{Boot, Metric, Place, RunArgs, Unders};
use shell::failure::bad_input;

/// The device of KVM.
const KVM: &str = "/dev/kvm";
/// Whether to measure `args` here.
pub fn is_measured_here(args: &RunArgs) -> Result<bool> {
    choose_place(args, check_native().is_ok()).and_then(|here| {
        // If the command line says `--kvm here`, this machine must have KVM.
        let named = args.kvm == Some(Place::Here);
        match check_native() {
            Err(why) if here && named => bad_input!("--kvm here: {why}"),
            _ => Ok(here),
        }
    })
}

/// Checks that this machine can run the program. The error is the reason why it can't.
fn check_native() -> Result<(), String> {
    if !cfg!(all(target_os = "linux", target_arch = "aarch64")) {
        return Err("this machine is not an arm64 Linux; use --kvm emulator, or take the program of `cargo xtask image --for kvm` to one".into());
    }
    let opened = File::options().read(true).write(true).open(KVM);
    opened.map(drop).map_err(|error| {
        format!("{KVM} can't be opened ({error}); run as root or in the group kvm, on a machine that has KVM, or use --kvm emulator")
    })
}

/// Like [`is_measured_here`]. `native` tells whether this machine can run the program.
fn choose_place(args: &RunArgs, native: bool) -> Result<bool> {
    let unders = args.job.under.as_ref().map_or(&[][..], Unders::hypervisors);
    let is_kvm = |under: &Under| under.kvm_mode().is_some();
    let wants = emulator_option(args);
    match args.kvm {
        Some(Place::Emulator) => Ok(false),
        Some(Place::Here) => match (unders, wants) {
            ([under], None) if is_kvm(under) => Ok(true),
            (_, Some(option)) => {
                bad_input!("--kvm here: {option} is for an emulator; leave one of the two out")
            }
            _ => bad_input!(
                "--kvm here: this machine has one KVM; use it with one of --under kvm, kvm-nvhe, kvm-protected"
            ),
        },
        None => Ok(native && wants.is_none() && matches!(unders, [under] if is_kvm(under))),
    }
}

/// Returns the first given option that makes sense only for an emulator.
fn emulator_option(args: &RunArgs) -> Option<&'static str> {
    let (job, load) = (&args.job, &args.job.load);
    let options = [
        ("--board", load.board != BOARD),
        ("--boot", job.boot.is_some_and(|boot| boot != Boot::Kernel)),
        ("--cpu", job.cpu.is_some()),
        ("--metric insns", job.metric == Some(Metric::Insns)),
        ("--dtb", job.dtb.is_some()),
        ("--gem5", job.gem5.is_some()),
        ("--preset", job.preset.is_some()),
        ("--set", job.set.is_some()),
        ("--guest", load.given.guest.is_some()),
        ("--survey", load.survey),
        ("--deadline", load.deadlines.deadline.is_some()),
        ("--cell-deadline", load.deadlines.cell_deadline.is_some()),
        ("--keep-cpu", load.deadlines.keep_cpu.is_some()),
        ("--expect-reset", job.expect_reset),
        ("--disturb", job.disturb.is_some()),
        ("--host-kernel", job.host_kernel.is_some()),
    ];
    let mut named = options.into_iter().filter(|(_, named)| *named);
    named.next().map(|(option, _)| option)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use shell::args::parse;

    pub fn args(line: &str) -> RunArgs {
        parse(["run"].into_iter().chain(line.split_ascii_whitespace())).unwrap()
    }

    #[test]
    fn kvm_is_this_machines_where_nothing_wants_an_emulator() {
        for (line, native, here) in [
            ("--under kvm", true, true),
            ("--under kvm", false, false),
            ("--under kvm-nvhe --metric cycles", true, true),
            ("--under kvm,rouse", true, false),
            ("--under rouse", true, false),
            ("", true, false),
            ("--under kvm --metric insns", true, false),
            ("--under kvm --board virt-uefi", true, false),
            ("--under kvm --kvm emulator", true, false),
            ("--under kvm --kvm here", false, true),
        ] {
            assert_eq!(choose_place(&args(line), native).unwrap(), here, "{line}");
        }
        for (line, says) in [
            ("--under rouse --kvm here", "--under kvm"),
            ("--under kvm --kvm here --metric insns", "--metric insns"),
        ] {
            let why = choose_place(&args(line), true).unwrap_err().to_string();
            assert!(why.contains(says), "{line}: {why}");
        }
    }

    #[test]
    fn this_machine_is_taken_by_name_only_if_it_can() {
        let asked = is_measured_here(&args("--under kvm --kvm here"));
        assert_eq!(asked.is_ok(), check_native().is_ok());
    }
}
