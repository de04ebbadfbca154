// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use wire::Source;

/// A KiB.
pub const KIB: u64 = 1 << 10;
/// A MiB.
pub const MIB: u64 = 1 << 20;

/// Text of `--help`.
pub const HELP: &str = "\
Run a guest's image under KVM

Usage: rouse-kvm boot [OPTIONS] IMAGE [WORD...]

The guest gets RAM, vCPUs that are each pinned to a CPU, KVM's GICv3 and PSCI, and a console,
which is standard output. It has no disk, no network and no input.

Arguments:
  IMAGE    an arm64 Image, of which Rouse's guest is one; - is standard input
  WORD...  its boot arguments

Options:
  --cpus N            vCPUs [default: 2]
  --memory MIB        RAM [default: 256]
  --initrd FILE       its initial RAM disk
  --seed N            what its kernel's random numbers begin with [default: the kernel's own matter]
  --pin LIST          CPUs of this machine for the vCPUs, as 2,3 [default: the last ones]
  --rest SECONDS      wait before the guest starts [default: 0]
  --host-poll-us US   KVM polls so long at most before it halts a vCPU [default: as KVM is set]
  --mode MODE         refuse unless KVM runs so: vhe, nvhe, protected
  --pmu               the guest has a PMU, for cycles; what KVM does for it is in the time of every exit
  --with-parent       end when what started this ends
  --break-bound CALL  do what this program may not do while a guest runs, as a test that it is ended for it:
                      open, socket, start, execute, ioctl
  --timeout SECONDS   end a guest whose console is silent for so long [default: 240]
  --source WHOSE      whose text the guest's console is: ours; program, another kernel's that runs a program of ours,
                      whose records count; or foreign. What looks like our lines is broken by a backslash in the
                      text of others, which comes at once if it is foreign, and else by lines [default: ours]
  --console KIB       end a guest that has written more to its console [default: 65536]
  --help              print this
  --version           print the version

Exit status: 0 the guest turned its machine off; 1 it crashed, hung, or wrote too much;
2 it could not be started; 3 it reset its machine.
";

/// Guest to run, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The file of the guest's image.
    pub image: PathBuf,
    /// Its boot arguments.
    pub arguments: String,
    /// vCPUs.
    pub cpus: usize,
    /// Bytes of RAM.
    pub memory: u64,
    /// The file of its initial RAM disk, if it has one.
    pub initrd: Option<PathBuf>,
    /// Seed of its kernel's random numbers, if that is to be known.
    pub seed: Option<u64>,
    /// CPUs of the host that the vCPUs are pinned to, if they are named.
    pub pins: Option<Vec<usize>>,
    /// How long to wait before the guest starts.
    pub rest: Duration,
    /// How long KVM polls at most before it halts a vCPU, microseconds.
    pub host_poll_us: Option<u32>,
    /// How KVM has to run.
    pub mode: Option<Mode>,
    /// Whether the guest has a PMU.
    pub pmu: bool,
    /// Action against the bound, as a test of it.
    pub break_bound: Option<Breach>,
    /// Whether to end when the parent process does.
    pub with_parent: bool,
    /// How long the console may be silent.
    pub timeout: Duration,
    /// Bytes that the guest may write to its console.
    pub console: u64,
    /// Whose text that is.
    pub source: Source,
}

/// Something that the program may not do while a guest runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Breach {
    /// Their words.
    const WORDS: [(&'static str, Self); 5] = [
        ("open", Self::Open),
        ("socket", Self::Socket),
        ("start", Self::Start),
        ("execute", Self::Execute),
        ("ioctl", Self::Ioctl),
    ];

    fn of(word: &str) -> Option<Self> {
        let mut known = Self::WORDS.iter();
        known.find_map(|&(name, breach)| (name == word).then_some(breach))
    }
}

/// A mode of KVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// At EL2 together with its host.
    Vhe,
    /// Its part at EL2 alone.
    Nvhe,
    /// The same, which also keeps the host out of guests.
    Protected,
}

impl Mode {
    /// The mode with this name in Linux's log (printed by arch/arm64/kvm/arm.c at its
    /// start).
    #[must_use]
    pub fn of(said: &str) -> Option<Self> {
        match said.split(' ').next()? {
            "VHE" => Some(Self::Vhe),
            "Hyp" => Some(Self::Nvhe),
            "Protected" => Some(Self::Protected),
            _ => None,
        }
    }
}

/// Request of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// To run a guest.
    Run(Options),
    /// To print [`HELP`].
    Help,
    /// To print the version.
    Version,
}

/// A command line that means nothing: why, and what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake(String);

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a command line, the program's name left out.
///
/// # Errors
/// [`Mistake`] names the word and the remedy.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, Mistake> {
    let mut words = words.into_iter();
    let mut options = Options {
        image: PathBuf::new(),
        arguments: String::new(),
        cpus: 2,
        memory: 256 * MIB,
        initrd: None,
        seed: None,
        pins: None,
        rest: Duration::ZERO,
        host_poll_us: None,
        mode: None,
        pmu: false,
        break_bound: None,
        with_parent: false,
        timeout: Duration::from_secs(240),
        console: 64 * MIB,
        source: Source::Ours,
    };
    let image = loop {
        let Some(word) = words.next() else {
            return Err(Mistake(
                "no image; name an arm64 Image, or see --help".into(),
            ));
        };
        let Some(option) = word.strip_prefix("--") else {
            break word;
        };
        let (option, value) = option
            .split_once('=')
            .map_or((option, None), |(option, value)| {
                (option, Some(value.to_owned()))
            });
        match option {
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            "pmu" if value.is_none() => options.pmu = true,
            "with-parent" if value.is_none() => options.with_parent = true,
            _ => {
                let mut next = value.into_iter().chain(words.by_ref());
                take(&mut options, &format!("--{option}"), &mut next)?;
            }
        }
    };
    options.image = image.into();
    options.arguments = words.collect::<Vec<_>>().join(" ");
    if options.arguments.contains('\0') {
        return Err(Mistake(
            "the boot arguments hold a zero byte; leave it out".into(),
        ));
    }
    Ok(Command::Run(options))
}

/// Takes `option` with its value, which comes next.
fn take(
    options: &mut Options,
    option: &str,
    words: &mut impl Iterator<Item = String>,
) -> Result<(), Mistake> {
    let mut value = |most: u64| -> Result<u64, Mistake> {
        let word = words.next().unwrap_or_default();
        number(option, &word, most)
    };
    match option {
        "--cpus" => options.cpus = value(512)?.max(1) as usize,
        "--memory" => options.memory = value(1 << 20)?.next_multiple_of(2).max(2) * MIB,
        "--seed" => options.seed = Some(value(u64::MAX)?),
        "--rest" => options.rest = Duration::from_secs(value(3600)?),
        "--host-poll-us" => options.host_poll_us = Some(value(1_000_000)? as u32),
        "--timeout" => options.timeout = Duration::from_secs(value(1 << 30)?.max(1)),
        "--console" => options.console = value(1 << 30)? * KIB,
        "--initrd" => {
            let word = words.next().unwrap_or_default();
            if word.is_empty() {
                return Err(Mistake(
                    "--initrd: no file; name an archive of cpio, compressed or not".into(),
                ));
            }
            options.initrd = Some(word.into());
        }
        "--source" => {
            let word = words.next().unwrap_or_default();
            let mut known = Source::ALL.into_iter();
            let source = known.find(|source| source.word() == word);
            options.source = source.ok_or_else(|| {
                Mistake(format!(
                    "--source: there is no `{word}`; use ours, program or foreign"
                ))
            })?;
        }
        "--mode" => {
            let word = words.next().unwrap_or_default();
            options.mode = Some(match &*word {
                "vhe" => Mode::Vhe,
                "nvhe" => Mode::Nvhe,
                "protected" => Mode::Protected,
                _ => {
                    return Err(Mistake(format!(
                        "--mode: there is no `{word}`; use vhe, nvhe or protected"
                    )));
                }
            });
        }
        "--break-bound" => {
            let word = words.next().unwrap_or_default();
            options.break_bound = Some(Breach::of(&word).ok_or_else(|| {
                Mistake(format!("--break-bound: there is no `{word}`; see --help"))
            })?);
        }
        "--pin" => {
            let list = words.next().unwrap_or_default();
            let pins: Result<Vec<usize>, _> = list
                .split(',')
                .map(|cpu| number(option, cpu, 1 << 16).map(|cpu| cpu as usize))
                .collect();
            options.pins = Some(pins?);
        }
        _ => {
            return Err(Mistake(format!("there is no option {option}; see --help")));
        }
    }
    Ok(())
}

/// The value of `option`, at most `most`.
fn number(option: &str, word: &str, most: u64) -> Result<u64, Mistake> {
    match u64::from_str(word) {
        Ok(number) if number <= most => Ok(number),
        _ => Err(Mistake(format!(
            "{option}: `{word}` is not a number from 0 to {most}; see --help"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, Mistake> {
        parse(line.split(' ').map(String::from))
    }

    fn run(line: &str) -> Options {
        match read(line) {
            Ok(Command::Run(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn options_come_before_the_image_and_words_behind_it() {
        let options = run("--cpus 4 --pin 1,2,3,5 --memory 64 --rest 3 Image --cpus 9 rouse.x=y");
        assert_eq!(options.cpus, 4);
        assert_eq!(options.pins, Some(vec![1, 2, 3, 5]));
        assert_eq!(options.memory, 64 * MIB);
        assert_eq!(options.rest, Duration::from_secs(3));
        assert_eq!(options.image, PathBuf::from("Image"));
        assert_eq!(options.arguments, "--cpus 9 rouse.x=y");
        let options = run("--host-poll-us=500 --timeout 9 --console 1 Image");
        assert_eq!(options.host_poll_us, Some(500));
        assert_eq!(options.timeout, Duration::from_secs(9));
        assert_eq!(options.console, KIB);
        assert_eq!(
            (options.cpus, options.pins, options.arguments),
            (2, None, String::new())
        );
    }

    #[test]
    fn help_and_version_win_over_what_is_missing() {
        assert_eq!(read("--cpus 1 --help"), Ok(Command::Help));
        assert_eq!(read("--version"), Ok(Command::Version));
        for word in [
            "--cpus",
            "--pin",
            "--initrd",
            "--seed",
            "--host-poll-us",
            "--timeout",
            "--console",
            "--rest",
        ] {
            assert!(HELP.contains(word), "{word}");
        }
    }

    #[test]
    fn switches_have_no_value() {
        let options = run("--initrd=disk --seed 7 Image");
        assert_eq!(options.initrd, Some(PathBuf::from("disk")));
        assert_eq!(options.seed, Some(7));
        let options = run("--pmu --with-parent - a=b");
        assert!(options.pmu && options.with_parent);
        assert_eq!(options.image, PathBuf::from("-"));
        assert_eq!(options.arguments, "a=b");
        assert!(read("--pmu=on Image").is_err());
    }

    #[test]
    fn modes_are_told_by_the_words_of_linux() {
        assert_eq!(run("--mode protected Image").mode, Some(Mode::Protected));
        assert_eq!(run("--source foreign Image").source, Source::Foreign);
        for (said, mode) in [
            ("VHE", Some(Mode::Vhe)),
            ("Hyp nVHE", Some(Mode::Nvhe)),
            ("Protected hVHE", Some(Mode::Protected)),
            ("Realm", None),
        ] {
            assert_eq!(Mode::of(said), mode, "{said}");
        }
    }

    #[test]
    fn a_mistake_names_the_word_and_the_remedy() {
        for (line, words) in [
            ("--cpus", ["--cpus", "from 0 to 512"]),
            ("--cpus many Image", ["`many`", "see --help"]),
            ("--cpus 513 Image", ["`513`", "512"]),
            ("--pin 1,,2 Image", ["--pin", "``"]),
            ("--break-bound fly Image", ["`fly`", "see --help"]),
            ("--mode el3 Image", ["`el3`", "nvhe"]),
            ("--source theirs Image", ["`theirs`", "foreign"]),
            ("--initrd", ["--initrd", "archive of cpio"]),
            ("--seed x Image", ["--seed", "`x`"]),
            ("--gpu Image", ["--gpu", "see --help"]),
            ("--cpus 2", ["no image", "arm64 Image"]),
            ("Image a\0b", ["zero byte", "leave it out"]),
        ] {
            let mistake = read(line).unwrap_err().to_string();
            for word in words {
                assert!(mistake.contains(word), "{line}: {mistake}");
            }
            assert!(!mistake.contains('\n'), "{line}: {mistake}");
        }
    }
}
