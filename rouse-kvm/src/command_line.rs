// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line: the options of `cargo xtask run` that apply here.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use request::PlanArgs;

const AFTER: &str = "\
A LIST is values with commas between them, or `all`. The cells are the product of
the lists; what is not named has a default. A cell that contradicts itself or that
the machine can't run is listed as skipped, with the reason. What KVM traps was
decided when the host's kernel was booted: kvm-arm.wfi_trap_policy and
kvm-arm.wfe_trap_policy, notrap or trap. Without them it traps wfi.

Standard output has the records (lines with `@r1 `) as they come, and the table
after them: `rouse-kvm > log` is an input of `cargo xtask report`.

rouse-kvm boot [OPTIONS] IMAGE [WORD...]   runs any arm64 Image: rouse-kvm boot --help

Exit status:
  0  what was asked for happened
  1  it failed while running: a hang, a crash, damaged records
  2  it could not be tried: an unknown word, no /dev/kvm, a file that is there
  128 + N  signal N asked for the end. Finished cells are kept and shown";

/// Rouse: what it costs to wake an idle CPU, in a guest under this machine's KVM.
///
/// This file contains the virtual machine monitor and the guest, and needs nothing but /dev/kvm.
#[derive(Debug, Parser)]
#[command(name = "rouse-kvm", version, after_help = AFTER)]
pub struct Words {
    /// The plan.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Number of vCPUs, each on a CPU of its own
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=512))]
    pub cpus: u32,
    /// CPUs of this machine for the vCPUs, such as 2,3 [default: the last ones]
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub pin: Option<Vec<usize>>,
    /// RAM of the guest, with a unit: 256M, 2G
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = mib)]
    pub memory: u64,
    /// Unit: time, or cycles of the core as its PMU counts them
    #[arg(long, value_enum, default_value_t = Metric::Time)]
    pub metric: Metric,
    /// Refuse to run unless KVM is in this mode: kvm (at EL2 with its host), kvm-nvhe, kvm-protected [default: any]
    #[arg(long, value_enum, value_name = "NAME")]
    pub under: Option<Under>,
    /// Further boot arguments of the guest, passed on as they are
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub append: Option<String>,
    /// Measure everything R times, each time with new boots: times differ from boot to boot, and `compare` needs at
    /// least five runs
    #[arg(long, value_name = "R", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Seconds to wait before each guest starts, so that a host that has just booted settles
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=3600))]
    pub rest: u64,
    /// How long a guest's console may be silent
    #[arg(long, value_name = "SECONDS", default_value_t = 240, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub timeout: u64,
    /// How long the whole command may take, with or without progress; results up to then are kept [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// Write results.json to FILE, which must not exist; - is standard output, and everything else then goes to
    /// standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print the table alone, without the records
    #[arg(long)]
    pub table: bool,
}

/// Quantity that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Metric {
    /// Time.
    Time,
    /// Cycles of the core.
    Cycles,
}

/// How KVM runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Under {
    /// KVM runs at EL2 together with its host.
    Kvm,
    /// Only a part of KVM runs at EL2.
    KvmNvhe,
    /// Like kvm-nvhe, and KVM also keeps the host out of guests.
    KvmProtected,
}

impl From<Under> for plan::Under {
    fn from(under: Under) -> Self {
        match under {
            Under::Kvm => Self::Kvm,
            Under::KvmNvhe => Self::KvmNvhe,
            Under::KvmProtected => Self::KvmProtected,
        }
    }
}

/// Parses a size with its unit, and returns it in MiB.
fn mib(word: &str) -> Result<u64, String> {
    let (number, unit) = word.split_at(word.len() - usize::from(word.ends_with(['M', 'G'])));
    let number = number
        .parse::<u64>()
        .ok()
        .filter(|number| (1..=1 << 20).contains(number));
    match (number, unit) {
        (Some(number), "M") => Ok(number),
        (Some(number), "G") => Ok(number << 10),
        _ => Err("not a size; use a number with its unit: 256M, 2G".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use plan::DIMENSIONS;

    #[test]
    fn every_dimension_is_a_word() {
        let command = Words::command();
        command.clone().debug_assert();
        for info in &DIMENSIONS {
            let has = |arg: &clap::Arg| arg.get_long() == Some(info.key);
            assert!(command.get_arguments().any(has), "{}", info.key);
        }
    }

    #[test]
    fn mistakes_name_the_word_in_one_line() {
        for (line, told) in [
            (["--wiat", "wfi"], "--wiat"),
            (["--metric", "insns"], "time, cycles"),
            (["--under", "xen"], "kvm-nvhe"),
            (["--memory", "256"], "256M"),
            (["--cpus", "0"], "--cpus"),
            (["--trap", ""], "--trap"),
        ] {
            let words = Words::try_parse_from(["rouse-kvm"].into_iter().chain(line));
            let text = match words {
                Err(error) => request::one_line(&error),
                Ok(words) => words.plan.plan().unwrap_err(),
            };
            assert!(text.contains(told) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(mib("64M"), Ok(64));
        assert_eq!(mib("2G"), Ok(2048));
        for word in ["", "M", "0M", "2T", "-1G", "99999999999999999999M"] {
            assert!(mib(word).is_err(), "{word}");
        }
    }
}
