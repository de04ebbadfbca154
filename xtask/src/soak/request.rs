// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be soaked: the options, checked before anything is built, and the
//! rounds that they make.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::cli::{JobArgs, LimitArgs, Metric, SoakArgs, SoakMetric};
use crate::failure::bad_input;
use crate::job::Job;
use crate::launch::quoted;

/// How often a round reports its progress (`guest-kernel-shim/trials/soak/progress.rs`).
const REPORTS: u64 = 40;
/// How many wake-ups between two reports the board's patience is enough for.
const DUE_AT: u64 = 10_000;

#[derive(Debug)]
pub struct Request {
    /// Machine.
    pub board: String,
    /// CPU model, if it was named.
    pub cpu: Option<String>,
    /// What each round in turn runs on.
    pub combinations: Vec<(u32, Metric)>,
    /// How long altogether.
    pub duration: Duration,
    /// How long a round may take.
    limits: LimitArgs,
    /// Seed of the first round.
    pub seed: u64,
    /// Wake-ups per round.
    pub wake_ups: u64,
    /// Further boot arguments.
    pub append: Option<String>,
    /// The emulator is disturbed, each round with its seed.
    pub disturb: bool,
}

/// A boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Number of CPUs.
    pub cpus: u32,
    /// How the emulator runs them.
    pub metric: Metric,
    pub seed: u64,
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpus, metric, seed } = self;
        write!(f, "{cpus} CPUs, {metric}, seed {seed}")
    }
}

impl Request {
    /// Checks the options.
    pub fn new(args: &SoakArgs) -> Result<Self> {
        let metrics: &[Metric] = match args.metric {
            SoakMetric::Insns => &[Metric::Insns],
            SoakMetric::Time => &[Metric::Time],
            SoakMetric::Both => &[Metric::Insns, Metric::Time],
        };
        let mut combinations = Vec::new();
        for word in args.cpus.split(',') {
            match word.parse::<u32>() {
                Ok(cpus) if (2..=8).contains(&cpus) => {
                    combinations.extend(metrics.iter().map(|&metric| (cpus, metric)));
                }
                _ => bad_input!("--cpus: `{word}` is no number from 2 to 8"),
            }
        }
        let request = Self {
            board: args.board.clone(),
            cpu: args.cpu.clone(),
            combinations,
            duration: Duration::from_secs(args.minutes * 60),
            limits: args.limits,
            seed: args.seed.unwrap_or_else(seed_of_the_clock),
            wake_ups: args.wake_ups,
            append: args.append.clone(),
            disturb: args.disturb,
        };
        for number in 0..request.combinations.len() {
            request.job(&request.round(number))?;
        }
        Ok(request)
    }

    /// Round `number`, from 0.
    pub fn round(&self, number: usize) -> Round {
        let (cpus, metric) = self.combinations[number % self.combinations.len()];
        let seed = self.seed.wrapping_add(number as u64);
        Round { cpus, metric, seed }
    }

    /// What is booted for a round.
    pub fn job(&self, round: &Round) -> Result<Job> {
        let mut append = format!("rouse.soak={} rouse.seed={}", self.wake_ups, round.seed);
        if let Some(more) = &self.append {
            append += &format!(" {more}");
        }
        let mut args = JobArgs::on(&self.board);
        args.load.append = Some(append);
        args.cpus = Some(round.cpus);
        args.cpu.clone_from(&self.cpu);
        args.metric = Some(round.metric);
        args.disturb = self.disturb.then_some(round.seed);
        let mut job = Job::new(&args)?;
        job.limits.without_progress *= self.longer();
        Ok(job.within(&self.limits))
    }

    /// How many times longer than the board has it a round may go without progress,
    /// which it reports [`REPORTS`] times at most: more wake-ups, more between two.
    fn longer(&self) -> u32 {
        let times = self.wake_ups.div_ceil(REPORTS * DUE_AT);
        u32::try_from(times).unwrap_or(u32::MAX).max(1)
    }

    /// The command that does a round again.
    pub fn command(&self, round: &Round) -> String {
        let Round { cpus, metric, seed } = round;
        let mut command = format!(
            "cargo xtask soak --minutes 0 --board {} --cpus {cpus} --metric {metric} --seed {seed} --wake-ups {}",
            quoted(&self.board),
            self.wake_ups
        );
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

/// A seed that is another one each time.
fn seed_of_the_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use crate::failure::is_bad_input;
    use clap::Parser;

    fn request(options: &[&str]) -> Result<Request> {
        let line = ["cargo xtask", "soak", "--minutes", "1"]
            .iter()
            .chain(options);
        match Cli::try_parse_from(line)?.verb {
            Verb::Soak(args) => Request::new(&args),
            _ => unreachable!("the verb is soak"),
        }
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
        let words: Vec<&str> = command.split(' ').skip(2).collect();
        assert_eq!(words[..3], ["soak", "--minutes", "0"]);
        let again = request(&words[3..]).unwrap();
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
