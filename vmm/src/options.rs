// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, ValueEnum, value_parser};
use wire::Source;

/// A KiB.
pub const KIB: u64 = 1 << 10;
/// A MiB.
pub const MIB: u64 = 1 << 20;

const AFTER: &str = "\
Exit status: 0 the guest turned its machine off; 1 it crashed, hung, or wrote too much;
2 it could not be started; 3 it reset its machine.";

/// Run a guest's image under KVM
///
/// The guest gets RAM, vCPUs that are each pinned to a CPU, KVM's GICv3 and PSCI, and a console, which is standard
/// output. The guest has no disk, no network and no input.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "rouse-kvm",
    version,
    after_help = AFTER,
    override_usage = "rouse-kvm boot [OPTIONS] IMAGE [WORD...]",
    no_binary_name = true,
    args_override_self = true
)]
pub struct Options {
    /// An arm64 Image, such as Rouse's guest (- is standard input), and its boot arguments
    #[arg(required = true, trailing_var_arg = true, value_names = ["IMAGE", "WORD"])]
    guest: Vec<String>,
    /// Number of vCPUs
    #[arg(long, value_name = "N", default_value = "2", value_parser = cpus_parser())]
    pub cpus: usize,
    /// RAM
    #[arg(long, value_name = "MIB", default_value = "256", value_parser = memory_parser())]
    pub memory: u64,
    /// The guest's initial RAM disk: a cpio archive, compressed or not
    #[arg(long, value_name = "FILE")]
    pub initrd: Option<PathBuf>,
    /// Seed of the guest kernel's random numbers [default: left to the kernel]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// CPUs of this machine for the vCPUs, such as 2,3 [default: the last ones]
    #[arg(long = "pin", value_name = "LIST", value_delimiter = ',')]
    pub pins: Option<Vec<usize>>,
    /// Wait before the guest starts
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds_parser(0..=3600))]
    pub rest: Duration,
    /// Longest time that KVM polls before it halts a vCPU [default: KVM's own setting]
    #[arg(long, value_name = "US", value_parser = value_parser!(u32).range(..=1_000_000))]
    pub host_poll_us: Option<u32>,
    /// Refuse to run unless KVM is in this mode
    #[arg(long, value_enum)]
    pub mode: Option<Mode>,
    /// Give the guest a PMU, for cycles; KVM's work for it then adds to the time of every exit
    #[arg(long)]
    pub pmu: bool,
    /// End when the parent process does
    #[arg(long)]
    pub with_parent: bool,
    /// Do something that this program may not do while a guest runs, to test that it is killed for it
    #[arg(long, value_enum, value_name = "CALL")]
    pub break_bound: Option<Breach>,
    /// End a guest whose console is silent for this long
    #[arg(long, value_name = "SECONDS", default_value = "240", value_parser = seconds_parser(1..=1 << 30))]
    pub timeout: Duration,
    /// Who writes the guest's console; `program` means another kernel with a program of ours, whose records count
    ///
    /// A backslash breaks whatever looks like our lines in the text of others. Foreign text is passed on at once, other
    /// text line by line.
    #[arg(long, value_name = "WHOSE", default_value = "ours", value_parser = source_parser())]
    pub source: Source,
    /// End a guest that writes more than this to its console
    #[arg(long, value_name = "KIB", default_value = "65536", value_parser = console_parser())]
    pub console: u64,
}

impl Options {
    /// Returns the file of the guest's image.
    #[must_use]
    pub fn image(&self) -> &Path {
        Path::new(&self.guest[0])
    }

    /// Returns the guest's boot arguments.
    #[must_use]
    pub fn arguments(&self) -> String {
        self.guest[1..].join(" ")
    }
}

fn seconds_parser(range: RangeInclusive<u64>) -> impl TypedValueParser<Value = Duration> {
    value_parser!(u64).range(range).map(Duration::from_secs)
}

fn cpus_parser() -> impl TypedValueParser<Value = usize> {
    value_parser!(u16).range(1..=512).map(usize::from)
}

/// Parses the size of RAM, rounded up to 2 MiB, the unit in which RAM is placed and mapped.
fn memory_parser() -> impl TypedValueParser<Value = u64> {
    let mib = value_parser!(u64).range(1..=1 << 20);
    mib.map(|mib| mib.next_multiple_of(2) * MIB)
}

fn console_parser() -> impl TypedValueParser<Value = u64> {
    value_parser!(u64).range(..=1 << 30).map(|kib| kib * KIB)
}

fn source_parser() -> impl TypedValueParser<Value = Source> {
    let words = PossibleValuesParser::new(Source::ALL.map(Source::word));
    words.try_map(|word| {
        let mut known = Source::ALL.into_iter();
        known.find(|source| source.word() == word).ok_or(word)
    })
}

/// Something that the program may not do while a guest runs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Breach {
    /// Open a file.
    Open,
    /// Make a socket.
    Socket,
    /// Start a program.
    Start,
    /// Get memory that can be executed.
    Execute,
    /// Issue an ioctl that the seccomp filter does not allow.
    Ioctl,
}

/// A mode of KVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// KVM runs at EL2 together with its host.
    Vhe,
    /// Only a part of KVM runs at EL2.
    Nvhe,
    /// Like nvhe, and KVM also keeps the host out of guests.
    Protected,
}

impl Mode {
    /// Returns the mode that Linux's log calls `said` (arch/arm64/kvm/arm.c prints the name when KVM starts).
    #[must_use]
    pub fn from_log_name(said: &str) -> Option<Self> {
        match said.split(' ').next()? {
            "VHE" => Some(Self::Vhe),
            "Hyp" => Some(Self::Nvhe),
            "Protected" => Some(Self::Protected),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, clap::Error> {
        Options::try_parse_from(line.split(' '))
    }

    fn run(line: &str) -> Options {
        read(line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn options_come_before_the_image_and_words_after_it() {
        let options = run("--cpus 4 --pin 1,2,3,5 --memory 63 --rest 3 Image --cpus 9 -x -- a=b");
        assert_eq!(options.cpus, 4);
        assert_eq!(options.pins, Some(vec![1, 2, 3, 5]));
        assert_eq!(options.memory, 64 * MIB);
        assert_eq!(options.rest, Duration::from_secs(3));
        assert_eq!(options.image(), Path::new("Image"));
        assert_eq!(options.arguments(), "--cpus 9 -x -- a=b");
        let options = run("--host-poll-us=500 --timeout 9 --console 7 --console 1 Image");
        assert_eq!(options.host_poll_us, Some(500));
        assert_eq!(options.timeout, Duration::from_secs(9));
        assert_eq!(options.console, KIB);
        assert_eq!((options.cpus, options.arguments()), (2, String::new()));
    }

    #[test]
    fn switches_have_no_value() {
        let options = run("--pmu --with-parent --source foreign - a=b");
        assert!(options.pmu && options.with_parent);
        assert_eq!(options.source, Source::Foreign);
        assert_eq!(options.image(), Path::new("-"));
        assert_eq!(options.arguments(), "a=b");
        assert!(read("--pmu=on Image").is_err());
    }

    #[test]
    fn modes_have_the_words_of_linux() {
        for (word, mode) in [
            ("VHE", Some(Mode::Vhe)),
            ("Hyp nVHE", Some(Mode::Nvhe)),
            ("Protected hVHE", Some(Mode::Protected)),
            ("Realm", None),
        ] {
            assert_eq!(Mode::from_log_name(word), mode, "{word}");
        }
    }

    #[test]
    fn a_mistake_names_the_word() {
        for (line, words) in [
            ("--cpus 513 Image", ["'513'", "1..=512"]),
            ("--pin 1,,2 Image", ["''", "--pin"]),
            ("--mode el3 Image", ["'el3'", "nvhe"]),
            ("--source theirs Image", ["'theirs'", "foreign"]),
            ("--gpu Image", ["'--gpu'", "unexpected"]),
            ("--cpus 2", ["not provided", "<IMAGE>"]),
        ] {
            let mistake = read(line).unwrap_err().to_string();
            for word in words {
                assert!(mistake.contains(word), "{line}: {mistake}");
            }
        }
    }
}
