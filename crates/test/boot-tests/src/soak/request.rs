// SPDX-License-Identifier: MIT OR Apache-2.0
//! The request for a soak: its options, which are checked before anything is built, and the rounds that follow from them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use plan::{Deliver, Word};

use crate::soak::{SoakArgs, SoakMetric};
use guests::kernel::GivenArgs;
use running::job::Job;
use running::options::{JobArgs, LimitArgs, Metric};
use shell::command::quoted;
use shell::failure::bad_input;

/// The boot argument that makes EL2 reserve memory for every kind of neighbour that a soak may choose at random.
const NEIGHBOUR: &str = "rouse.neighbour=cache:16";

/// Number of progress reports per round (`guest-kernel-shim/trials/src/soak/progress.rs`).
const REPORTS: u64 = 40;
/// Number of wake-ups that fit into the board's limit on the time between two reports.
const DUE_AT: u64 = 10_000;
/// Wake-ups per round, unless an option sets their number.
const WAKE_UPS: u64 = 20_000;

#[derive(Debug)]
pub struct Request {
    pub board: String,
    pub cpu: Option<String>,
    /// The machines that the rounds use in turn.
    pub combinations: Vec<Combination>,
    /// Options that name another kernel, which is Linux.
    given: GivenArgs,
    /// How long all rounds together may take.
    pub duration: Duration,
    /// How long a round may take.
    limits: LimitArgs,
    pub seed: u64,
    pub wake_ups: u64,
    /// Further boot arguments.
    pub append: Option<String>,
    /// Whether to disturb the emulator, in each round with the round's seed.
    pub disturb: bool,
}

/// Machine of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    pub cpus: u32,
    /// How the emulator runs the CPUs.
    pub metric: Metric,
    /// How interrupts reach the guest; `None` if the guest changes this itself.
    pub deliver: Option<Deliver>,
}

/// One boot of a soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    pub on: Combination,
    pub seed: u64,
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} CPUs, {}", self.cpus, self.metric)?;
        match self.deliver {
            Some(deliver) => write!(f, ", {deliver}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, seed {}", self.on, self.seed)
    }
}

impl Request {
    /// Creates the request, or returns an error if a round's options can't be used.
    pub fn new(args: &SoakArgs) -> Result<Self> {
        let linux = args.given.guest.is_some();
        if linux && args.minutes == 0 {
            bad_input!("--minutes: with --guest it is time of the guest; use 1 or more");
        }
        let request = Self {
            board: args.board.clone(),
            cpu: args.cpu.clone(),
            combinations: combinations(args)?,
            given: args.given.clone(),
            duration: Duration::from_secs(args.minutes * 60),
            limits: args.limits,
            seed: args.seed.unwrap_or_else(seed_of_the_clock),
            wake_ups: args.wake_ups.unwrap_or(WAKE_UPS),
            append: boot_arguments(args),
            disturb: args.disturb,
        };
        for number in 0..request.combinations.len() {
            request.job(&request.round(number))?;
        }
        Ok(request)
    }

    /// Returns round `number`, counted from 0.
    pub fn round(&self, number: usize) -> Round {
        let on = self.combinations[number % self.combinations.len()];
        let seed = self.seed.wrapping_add(number as u64);
        Round { on, seed }
    }

    pub fn job(&self, round: &Round) -> Result<Job> {
        let mut append = match round.on.deliver {
            None => format!("rouse.soak={}", self.wake_ups),
            Some(deliver) => format!(
                "rouse.linux-soak={} rouse.deliver={deliver}",
                self.duration.as_secs()
            ),
        };
        append += &format!(" rouse.seed={}", round.seed);
        if let Some(more) = &self.append {
            append += &format!(" {more}");
        }
        let mut args = JobArgs::on(&self.board);
        args.load.append = Some(append);
        args.load.given = self.given.clone();
        args.cpus = Some(round.on.cpus);
        args.cpu.clone_from(&self.cpu);
        args.metric = Some(round.on.metric);
        args.disturb = self.disturb.then_some(round.seed);
        let mut job = Job::new(&args)?;
        job.limits.without_progress *= self.patience_factor();
        Ok(job.within(&self.limits))
    }

    /// Returns whether to start another round after `rounds` rounds, which took `took` in total.
    pub fn is_next_due(&self, rounds: usize, took: Duration) -> bool {
        match self.given.guest {
            Some(_) => rounds < self.combinations.len(),
            None => took < self.duration,
        }
    }

    /// Returns the factor by which to raise the board's limit on the time without progress. A round makes at most
    /// [`REPORTS`] reports, so a round with more wake-ups has more of them between two reports.
    fn patience_factor(&self) -> u32 {
        let times = match self.given.guest {
            // Linux reports 60 times (`linux/src/soak/hotplug.rs`). A minute of its own time takes some ten seconds of
            // real time, or longer on a busy host.
            Some(_) => self.duration.as_secs().div_ceil(600),
            None => self.wake_ups.div_ceil(REPORTS * DUE_AT),
        };
        u32::try_from(times).unwrap_or(u32::MAX).max(1)
    }

    /// Returns the command that repeats a round.
    pub fn command(&self, round: &Round) -> String {
        let Combination {
            cpus,
            metric,
            deliver,
        } = round.on;
        let mut command = format!(
            "cargo xtask dev soak --board {} --cpus {cpus} --metric {metric} --seed {}",
            quoted(&self.board),
            round.seed
        );
        command += &match deliver {
            None => format!(" --minutes 0 --wake-ups {}", self.wake_ups),
            Some(deliver) => format!(
                " --minutes {} --deliver {deliver}",
                self.duration.as_secs() / 60
            ),
        };
        if let Some(guest) = &self.given.guest {
            command += &format!(" --guest {}", quoted(guest));
        }
        if let Some(words) = &self.given.guest_args {
            command += &format!(" --guest-args {}", quoted(words));
        }
        if let Some(cpu) = &self.cpu {
            command += &format!(" --cpu {}", quoted(cpu));
        }
        if self.disturb {
            command += " --disturb";
        }
        if let Some(append) = &self.append {
            command += &format!(" --append {}", quoted(append));
        }
        command
    }
}

/// Returns the further boot arguments. If they reserve memory for neighbours, each CPU sometimes gets a neighbour.
fn boot_arguments(args: &SoakArgs) -> Option<String> {
    let neighbour = args.neighbour.then_some(NEIGHBOUR);
    let words: Vec<&str> = neighbour
        .into_iter()
        .chain(args.append.as_deref())
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the machines that the rounds use in turn.
fn combinations(args: &SoakArgs) -> Result<Vec<Combination>> {
    let linux = args.given.guest.is_some();
    let metric = match args.metric {
        Some(metric) => metric,
        None if linux => SoakMetric::Insns,
        None => SoakMetric::Both,
    };
    let metrics: &[Metric] = match metric {
        SoakMetric::Insns => &[Metric::Insns],
        SoakMetric::Time => &[Metric::Time],
        SoakMetric::Both => &[Metric::Insns, Metric::Time],
    };
    let delivers = match (linux, &args.deliver) {
        (false, _) => vec![None],
        (true, None) => Deliver::ALL.iter().copied().map(Some).collect(),
        (true, Some(words)) => words.split(',').map(delivery).collect::<Result<_>>()?,
    };
    let cpus = args.cpus.as_deref();
    let mut all = Vec::new();
    for word in cpus.unwrap_or(if linux { "4" } else { "4,8" }).split(',') {
        let Some(cpus) = word.parse().ok().filter(|cpus| (2..=8).contains(cpus)) else {
            bad_input!("--cpus: `{word}` is not a number from 2 to 8");
        };
        for &metric in metrics {
            let on = delivers.iter().map(|&deliver| Combination {
                cpus,
                metric,
                deliver,
            });
            all.extend(on);
        }
    }
    Ok(all)
}

fn delivery(word: &str) -> Result<Option<Deliver>> {
    match Deliver::parse(word) {
        Some(deliver) => Ok(Some(deliver)),
        None => bad_input!("--deliver: `{word}` is neither inject nor direct"),
    }
}

/// Returns the clock's seconds as a seed, so that the seed differs each time.
fn seed_of_the_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::args::parse;
    use shell::failure::is_bad_input;

    fn request(options: &[&str]) -> Result<Request> {
        let line = ["soak", "--minutes", "1"].iter().chain(options);
        Request::new(&parse(line)?)
    }

    #[test]
    fn rounds_take_turns_and_have_a_seed_each() {
        let request = request(&["--cpus", "4,8", "--metric", "both", "--seed", "7"]).unwrap();
        let round = |number| request.round(number).to_string();
        assert_eq!(round(0), "4 CPUs, insns, seed 7");
        assert_eq!(round(1), "4 CPUs, time, seed 8");
        assert_eq!(round(3), "8 CPUs, time, seed 10");
        assert_eq!(round(4), "4 CPUs, insns, seed 11");
    }

    #[test]
    fn the_options_of_another_kernel_are_checked() {
        let refused = |options: &[&str]| {
            let error = request(options).unwrap_err();
            format!("{error:#}")
        };
        // The delivery is checked before the kernel's file is opened.
        assert!(refused(&["--guest", "no-file", "--deliver", "both"]).contains("`both`"));
        assert!(refused(&["--guest", "no-file"]).contains("no-file"));
        assert!(refused(&["--guest", "no-file", "--wake-ups", "5"]).contains("--wake-ups"));
        assert!(refused(&["--deliver", "direct"]).contains("--guest"));
        let args = |options: &[&str]| {
            let line = ["soak", "--guest", "debian", "--minutes"];
            parse::<SoakArgs>(line.iter().chain(options)).unwrap()
        };
        let all = |options: &[&str]| -> Vec<String> {
            let all = combinations(&args(options)).unwrap();
            all.iter().map(Combination::to_string).collect()
        };
        assert_eq!(
            all(&["1"]),
            ["4 CPUs, insns, inject", "4 CPUs, insns, direct"]
        );
        let some = [
            "60",
            "--cpus",
            "2,3",
            "--metric",
            "time",
            "--deliver",
            "direct",
        ];
        assert_eq!(all(&some), ["2 CPUs, time, direct", "3 CPUs, time, direct"]);
        let none = Request::new(&args(&["0"])).unwrap_err();
        assert!(format!("{none:#}").contains("--minutes"));
    }

    #[test]
    fn the_command_does_the_same_again() {
        let options = [
            "--seed",
            "7",
            "--append",
            "a b",
            "--wake-ups",
            "500",
            "--disturb",
        ];
        let first = request(&options).unwrap();
        let round = first.round(3);
        let command = first.command(&round).replace("'a b'", "a_b");
        let words: Vec<&str> = command.split(' ').skip(3).collect();
        assert_eq!(words[0], "soak");
        let mut words = words[1..].to_vec();
        let minutes = words.iter().position(|word| *word == "--minutes").unwrap();
        assert_eq!(words.drain(minutes..minutes + 2).nth(1), Some("0"));
        let again = request(&words).unwrap();
        assert_eq!(again.round(0), round);
        assert_eq!(again.wake_ups, 500);
        assert_eq!(again.job(&round).unwrap().disturb, Some(10));
    }

    #[test]
    fn what_can_not_be_is_refused_with_the_remedy() {
        for (options, remedy) in [
            (&["--cpus", "1"][..], "from 2 to 8"),
            (&["--cpus", "4,x"], "`x`"),
            (&["--board", "no-such"], "--board"),
            (&["--cpu", "z80"], "--cpu"),
        ] {
            let error = request(options).unwrap_err();
            assert!(is_bad_input(&error), "{options:?}");
            assert!(format!("{error:#}").contains(remedy), "{error:#}");
        }
    }
}
