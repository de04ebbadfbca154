// SPDX-License-Identifier: MIT OR Apache-2.0
//! The boots of an experiment, and how their repetitions differ.

use plan::{PASSES, Under};

use super::posted::{ARGUMENTS, KERNEL, SET};
use super::runs::SHORT;
use running::options::{JobArgs, Unders};

/// Values of dimensions, by their keys.
pub type Lists = &'static [(&'static str, &'static str)];

/// A boot and its repetitions. The boot takes no time stamps.
pub struct Boot {
    pub label: &'static str,
    /// Hypervisor below the guest.
    pub under: Under,
    /// Number of CPUs; the board's number if `None`.
    pub cpus: Option<u32>,
    /// Values that differ from the defaults.
    pub lists: Lists,
    /// Wake-ups per cell.
    pub iterations: u64,
    /// Repetitions of the boot; [`ONCE`] if no figure can vary. All repeated boots of an experiment have the same
    /// repetitions.
    pub repeats: &'static [Repeat],
}

/// How one repetition differs from its boot.
#[derive(Clone, Copy)]
pub struct Repeat {
    /// The repetition's name, which is also part of folder names.
    pub name: &'static str,
    /// Seed of the random times; the guest's default if `None`.
    pub seed: Option<u64>,
    /// Number of CPUs, instead of the boot's. This number affects on which CPUs tasks run, and in which
    /// order.
    pub cpus: Option<u32>,
    /// Values that differ from the boot's.
    pub lists: Lists,
    /// The smaller request for boards that simulate cores. `None` if only its number of wake-ups is smaller.
    pub brief: Option<Brief>,
}

/// A smaller request for a simulator of cores, which executes some 100,000 instructions per second.
#[derive(Clone, Copy)]
pub struct Brief {
    /// Values that replace the boot's.
    pub lists: Lists,
    /// Wake-ups per cell.
    pub iterations: u64,
}

impl Repeat {
    /// Repeats the boot unchanged.
    pub const SAME: Self = Self {
        name: "same",
        seed: None,
        cpus: None,
        lists: &[],
        brief: None,
    };

    /// Creates a repetition with times drawn from `seed`.
    pub const fn seed(name: &'static str, seed: u64) -> Self {
        Self {
            name,
            seed: Some(seed),
            ..Self::SAME
        }
    }

    /// Creates a repetition with `cpus` CPUs.
    pub const fn cpus(name: &'static str, cpus: u32) -> Self {
        Self {
            name,
            cpus: Some(cpus),
            ..Self::SAME
        }
    }
}

/// The factor by which a simulator of cores gets fewer wake-ups, and the minimum number of wake-ups that it gets.
const SLOWER: u64 = 10;
const FEWEST: u64 = 10;

/// Number of low bits in a seed, which differ between repetitions; the higher bits differ between choices.
const SEED_BITS: u32 = 8;

/// A single boot, without repetitions.
pub const ONCE: &[Repeat] = &[Repeat::SAME];

/// Twelve repetitions with different random times, for an effect that is no larger than the variation between boots.
pub const TWELVE_SEEDS: &[Repeat] = &[
    Repeat::seed("seed-1", 1),
    Repeat::seed("seed-2", 2),
    Repeat::seed("seed-3", 3),
    Repeat::seed("seed-4", 4),
    Repeat::seed("seed-5", 5),
    Repeat::seed("seed-6", 6),
    Repeat::seed("seed-7", 7),
    Repeat::seed("seed-8", 8),
    Repeat::seed("seed-9", 9),
    Repeat::seed("seed-10", 10),
    Repeat::seed("seed-11", 11),
    Repeat::seed("seed-12", 12),
];

/// The first three of the twelve repetitions.
pub const SEEDS: &[Repeat] = TWELVE_SEEDS.split_at(3).0;

/// Three repetitions with work for two CPUs: there are no other CPUs, the other CPUs are idle, or the work is spread
/// over more CPUs.
pub const PLACES: &[Repeat] = &[
    Repeat::cpus("2-cpus", 2),
    Repeat::cpus("4-cpus", 4),
    Repeat::cpus("8-cpus", 8),
];

impl Boot {
    /// Returns the kernel that has to be built for the boot, in the words of
    /// [`posted::build_kernel`](super::posted::build_kernel).
    pub fn kernel(&self) -> Option<&'static str> {
        self.value_of(KERNEL)
    }

    /// Whether the boot changes parameters of the simulated machine.
    pub fn sets_parameters(&self) -> bool {
        self.value_of(SET).is_some()
    }

    /// Returns the boot's value for `key`, if it has one.
    fn value_of(&self, key: &str) -> Option<&'static str> {
        let mut lists = self.lists.iter();
        lists.find_map(|(other, value)| (*other == key).then_some(*value))
    }

    /// Returns the name of a repetition.
    pub fn name(&self, repeat: &Repeat) -> String {
        match self.repeats {
            [_] => self.label.into(),
            _ => format!("{}-{}", self.label, repeat.name),
        }
    }

    /// Returns the smaller request for a repetition on a board that simulates cores.
    pub fn brief(&self, repeat: &Repeat) -> (Self, Repeat) {
        // A shorter boot, whose counters are subtracted from a longer boot's, must have fewer wake-ups than that boot.
        // Each pass of a plan has at least one wake-up.
        let fewest = match self.label.ends_with(SHORT) {
            true => PASSES.into(),
            false => FEWEST.min(self.iterations),
        };
        let brief = repeat.brief.unwrap_or(Brief {
            lists: repeat.lists,
            iterations: (self.iterations / SLOWER).max(fewest),
        });
        let boot = Self {
            iterations: brief.iterations,
            ..*self
        };
        let lists = brief.lists;
        (boot, Repeat { lists, ..*repeat })
    }

    /// Returns the arguments of the job on `board`. If `choice` is given, its seeds are used.
    pub fn args(&self, board: &str, repeat: &Repeat, choice: Option<u32>) -> JobArgs {
        let mut args = JobArgs::on(board);
        let special = |key: &str| repeat.lists.iter().any(|(other, _)| *other == key);
        let own = self.lists.iter().filter(|(key, _)| !special(key));
        let lists = own.chain(repeat.lists).copied();
        let lists: Vec<_> = lists
            .filter(|(key, _)| ![KERNEL, ARGUMENTS, SET].contains(key))
            .collect();
        args.load.plan = request::PlanArgs::exactly(self.iterations, &lists);
        // Experiments need a fixed number of wake-ups, however long these take.
        args.load.plan.cell_ms = Some("0".into());
        let seed = match choice.map(u64::from) {
            None => repeat.seed,
            // Seeds of different choices differ in their high bits, so no repetition has the seed of another choice.
            Some(choice) => Some((choice << SEED_BITS) + repeat.seed.unwrap_or_default()),
        };
        let seed = seed.map(|seed| format!("rouse.seed={seed}"));
        let words = self
            .value_of(ARGUMENTS)
            .map(str::to_owned)
            .into_iter()
            .chain(seed);
        let words: Vec<_> = words.collect();
        args.load.append = Some(words.join(" ")).filter(|words| !words.is_empty());
        // Workloads whose names contain `linux` run on Linux.
        let linux = lists
            .iter()
            .any(|(key, words)| *key == "workload" && words.starts_with("linux-"));
        args.load.given.guest = linux.then(|| "debian".into());
        args.under = Some(Unders::Named(vec![self.under]));
        args.cpus = repeat.cpus.or(self.cpus);
        args.set = self.value_of(SET).map(str::to_owned);
        args
    }
}
