// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a measurement, and the plan that they describe.

use clap::Args;
use plan::{DIMENSIONS, Dimension, Info, Plan, Stages};

use crate::ListArgs;

/// Wake-ups per cell if the options give pauses, but no number of wake-ups.
const WITH_GAP: u32 = 200;

/// Largest number of words in a remedy.
const MOST_WORDS: usize = 4;

/// Wake-ups per cell with `--quick`, on machines where only the order of cells varies.
const QUICK: u32 = 24;

/// The plan, and how often each cell is measured.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanArgs {
    /// The values of the dimensions.
    #[command(flatten)]
    pub lists: ListArgs,
    /// Exact number of wake-ups per cell, unless the cell's time is over first (--cell-ms)
    #[arg(long, value_name = "N", visible_aliases = ["loops", "numipi"])]
    pub iterations: Option<String>,
    /// Maximum number of wake-ups per cell. A cell ends earlier if two passes give the same percentiles
    /// (docs/records.md) [default: 2000, or 200 with --gap-us]
    #[arg(long, value_name = "N", conflicts_with = "iterations")]
    pub max_iterations: Option<String>,
    /// Guest time that a cell may take, in milliseconds without requested pauses; 0 means no limit. With --metric
    /// insns, a millisecond is a million instructions [default: 10 with insns, else 500]
    #[arg(long, value_name = "MS")]
    pub cell_ms: Option<String>,
    /// Whether to run pingpong once more with time stamps, to show where the time goes: on, off
    #[arg(long, value_name = "on|off")]
    pub stages: Option<String>,
    /// Measure only part I of N of the cells, where I starts at 1; `report` merges the parts
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Few wake-ups per cell and no stages, for slow machines; options for either take precedence
    #[arg(long)]
    pub quick: bool,
    /// Report every sample, not only the histogram
    #[arg(long, conflicts_with = "compact")]
    pub raw: bool,
    /// Report only what the table needs, for a console ring of 64 KiB: no histograms, no stages
    #[arg(long)]
    pub compact: bool,
}

impl PlanArgs {
    /// Returns options that select these values of dimensions, which are named by their keys. Each cell has this number
    /// of wake-ups, and there are no time stamps.
    pub fn exactly(iterations: u64, lists: &[(&'static str, &str)]) -> Self {
        Self {
            iterations: Some(iterations.to_string()),
            stages: Some("off".into()),
            ..Self::naming(lists)
        }
    }

    /// Returns options that select the values in `lists`, by the dimensions' keys, and otherwise the defaults.
    pub fn naming(lists: &[(&'static str, &str)]) -> Self {
        let lists = lists.iter().map(|&(key, values)| (key, values.to_owned()));
        Self {
            lists: ListArgs(lists.collect()),
            ..Self::default()
        }
    }

    /// Returns the plan that the options describe.
    ///
    /// # Errors
    /// The error names the word that an option does not take, and words that it takes.
    pub fn plan(&self) -> Result<Plan, String> {
        let mut plan = Plan::default();
        let others = [
            ("max-iterations", &self.max_iterations),
            ("iterations", &self.iterations),
            ("cell-ms", &self.cell_ms),
            ("stages", &self.stages),
            ("shard", &self.shard),
        ];
        let others = others
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)));
        for (key, values) in self.lists.iter().chain(others) {
            let set = plan.set(key, values);
            set.map_err(|error| format!("--{error}"))?;
        }
        let numbered = self.iterations.is_some() || self.max_iterations.is_some();
        if self.lists.get("gap-us").is_some() && !numbered {
            plan.iterations = WITH_GAP;
        }
        if self.quick {
            if !numbered {
                plan.iterations = QUICK;
            }
            if self.stages.is_none() {
                plan.stages = Dimension {
                    values: [Stages::Off].into_iter().collect(),
                    named: true,
                };
            }
        }
        plan.raw = self.raw;
        plan.compact = self.compact;
        Ok(plan)
    }

    /// Checks that each named dimension affects some cell of `plan`, which these options describe.
    ///
    /// # Errors
    /// The error names the option, and words with which some cell would use it.
    pub fn check_used(&self, plan: &Plan) -> Result<(), String> {
        for (key, values) in self.lists.iter() {
            let Some(info) = Info::find(key).filter(|info| !plan.uses(info)) else {
                continue;
            };
            let remedy = match self.users_of(info).as_slice() {
                [] => "leave it out".into(),
                users => {
                    let users = users
                        .iter()
                        .map(|(dimension, words)| format!("--{dimension} {}", words.join(", ")));
                    let users: Vec<String> = users.collect();
                    format!("use {}, or leave it out", users.join(" and "))
                }
            };
            // The user may have typed any of the dimension's names.
            let aliases = info.aliases.iter().map(|alias| format!(" (--{alias})"));
            return Err(format!(
                "--{key} {values}{}: no cell of this plan uses it; {remedy}",
                aliases.collect::<String>()
            ));
        }
        Ok(())
    }

    /// Returns dimensions with words that would make a cell use `info`: one dimension, or else a workload together with
    /// one dimension. Returns nothing if these two do not suffice.
    fn users_of(&self, info: &Info) -> Vec<(&'static str, Vec<&'static str>)> {
        if let Some(user) = self.user_of(info) {
            return vec![user];
        }
        let Some((workload, _)) = DIMENSIONS.split_first() else {
            return Vec::new();
        };
        let pair = workload.words.iter().find_map(|word| {
            let other = self.with_word(workload.key, word).user_of(info)?;
            Some(vec![(workload.key, vec![*word]), other])
        });
        pair.unwrap_or_default()
    }

    /// Returns these options with `word` as the list of the dimension `key`.
    fn with_word(&self, key: &'static str, word: &str) -> Self {
        let mut args = self.clone();
        args.lists.0.insert(key, word.to_owned());
        args
    }

    /// Returns the first dimension with words that would make a cell use `info`, together with these words.
    fn user_of(&self, info: &Info) -> Option<(&'static str, Vec<&'static str>)> {
        // The workload comes last, because another workload would be another measurement.
        let (workload, others) = DIMENSIONS.split_first()?;
        let mut all = others.iter().chain([workload]);
        all.find_map(|other| {
            let with = |word: &&&'static str| {
                let plan = self.with_word(other.key, word).plan();
                plan.is_ok_and(|plan| plan.uses(info))
            };
            let words: Vec<&'static str> = other
                .words
                .iter()
                .filter(with)
                .copied()
                .take(MOST_WORDS)
                .collect();
            (!words.is_empty()).then_some((other.key, words))
        })
    }

    /// Returns these options as the words of a command line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let others = [
            ("iterations", &self.iterations),
            ("max-iterations", &self.max_iterations),
            ("cell-ms", &self.cell_ms),
            ("stages", &self.stages),
            ("shard", &self.shard),
        ];
        let others = others
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)));
        let named = self.lists.iter().chain(others);
        let named = named.map(|(key, values)| format!("--{key}={values}"));
        let switches = [
            ("quick", self.quick),
            ("raw", self.raw),
            ("compact", self.compact),
        ];
        let switches = switches.into_iter().filter(|(_, on)| *on);
        named
            .chain(switches.map(|(key, _)| format!("--{key}")))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        plan: PlanArgs,
    }

    #[test]
    fn words_say_the_same_plan_again() {
        for line in [
            "",
            "--quick",
            "--wait wfi,wfe --host-poll-us 0,50 --raw --shard 1/2",
            "--gap-us 100 --compact --stages off --cell-ms 5",
            "--max-iterations 9",
            "--loops 7 --workload all",
        ] {
            let read = |words: &[String]| {
                let words = ["line".to_owned()].into_iter().chain(words.iter().cloned());
                Typed::try_parse_from(words).unwrap().plan
            };
            let typed: Vec<String> = line.split_ascii_whitespace().map(String::from).collect();
            let args = read(&typed);
            let again = read(&args.words());
            assert_eq!(args.plan(), again.plan(), "{line}: {:?}", args.words());
        }
    }

    #[test]
    fn a_list_given_twice_is_refused_as_one() {
        let told = |line: &str| {
            let words = ["line"].into_iter().chain(line.split(' '));
            crate::one_line(&Typed::try_parse_from(words).unwrap_err())
        };
        assert_eq!(
            told("--wait wfi --wait wfe"),
            "--wait is given twice; write its words as one list: --wait A,B"
        );
        assert!(told("--quick --quick").contains("'--quick' cannot be used multiple times"));
        assert!(told("--iterations 9 --max-iterations 9").contains("cannot be used with"));
    }

    #[test]
    fn an_option_that_no_cell_uses_is_refused_with_what_would_use_it() {
        let checked = |line: &str| {
            let words = ["line"].into_iter().chain(line.split(' '));
            let args = Typed::try_parse_from(words).unwrap().plan;
            args.check_used(&args.plan().unwrap())
        };
        const PLAIN: &str = "--workload pingpong --wait wfi";
        for (option, remedy) in [
            ("--groups 3", "--workload messaging"),
            ("--device-us 50", "--workload io"),
            ("--slice-us 100", "--neighbour work"),
            ("--arrival-us 50", "--workload notify"),
            ("--hz 100", "--wait governor:"),
            ("--mask 3", "leave it out"),
            ("--hint tell", "leave it out"),
            ("--linux-cpuidle nohlt", "--workload linux-pipe"),
            ("--psd-ms 3", "--workload io and --wait governor:menu"),
            ("--groups 3", "--groups 3 (--clients): "),
            ("--states poll+wfi", "--wait governor:"),
            ("--shape self", "--workload ipi"),
            ("--poll-limit-us 9", "--wait poll-wfi"),
        ] {
            let why = checked(&format!("{PLAIN} {option}")).unwrap_err();
            assert!(why.starts_with(option) && why.contains(remedy), "{why}");
        }
        for line in [
            PLAIN,
            "--wait all",
            "--workload pingpong --wait wfi --trap wfi --host-poll-us 0,50 --host-poll adaptive",
            "--workload messaging --groups 3",
            "--workload io --wait governor:menu --device-us 20 --states poll+wfi",
        ] {
            assert_eq!(checked(line), Ok(()), "{line}");
        }
    }

    #[test]
    fn a_word_that_no_option_takes_is_named_with_its_option() {
        let typed = Typed::try_parse_from(["line", "--wait", "sleep"]).unwrap();
        let why = typed.plan.plan().unwrap_err();
        assert!(
            why.starts_with("--wait") && why.contains("`sleep`"),
            "{why}"
        );
    }
}
