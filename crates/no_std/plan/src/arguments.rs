// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rouse's own boot arguments: the words that begin with `rouse.`.
//!
//! The hypervisor, the guest and the host all read them with [`Arguments`], so they know the same
//! words and refuse the same mistakes. Words with other prefixes belong to whatever else is booted.
//!
//! Some words are for the hypervisor alone, which does not pass them to the guest ([`guest_part`]).
//! `rouse.fault=` is not such a word: it asks the hypervisor or the guest to fail, and the guest
//! triggers some of the hypervisor's faults.

use core::fmt;

use crate::dimensions;
use crate::nearest::nearest;
use crate::value::read_switch;
use crate::{Atomics, Error, Fault, GuestStates, Neighbour, PREFIX, Plan, Trap, Under, Word};

/// Declares the arguments outside the plan.
macro_rules! arguments {
    (
        guest { $($(#[$doc:meta])* $field:ident: $type:ty = $key:tt, $read:expr;)* }
        hypervisor { $($(#[$own_doc:meta])* $own:ident: $own_type:ty = $own_key:tt, $own_read:expr;)* }
    ) => {
        /// Boot arguments of an image.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Arguments<'a, P = Plan> {
            /// Plan of the measurements.
            pub plan: P,
            $($(#[$doc])* pub $field: $type,)*
            $($(#[$own_doc])* pub $own: $own_type,)*
        }

        /// Names of the arguments outside the plan, except [`HYPERVISORS`].
        const KEYS: &[&str] = &[$($key),*];
        /// Names of the arguments that are for the hypervisor alone.
        const HYPERVISORS: &[&str] = &[$($own_key),*];

        impl<'a, P: Part<'a>> Arguments<'a, P> {
            /// Stores one argument. If a name repeats, the first value counts for arguments outside the plan, and
            /// the last value for arguments of the plan.
            fn take_argument(&mut self, key: &'a str, value: &'a str) -> Result<(), Error<'a>> {
                match key {
                    $($key => keep_first(&mut self.$field, $read(key, value)?),)*
                    $($own_key => keep_first(&mut self.$own, $own_read(key, value)?),)*
                    _ => return self.plan.take_argument(key, value),
                }
                Ok(())
            }
        }
    };
}

/// Stores `read` in `field`, unless the field already has a value.
fn keep_first<T: Default + PartialEq>(field: &mut T, read: T) {
    if *field == T::default() {
        *field = read;
    }
}

/// Asks the hypervisor to print a description of the machine.
pub const SURVEY: &str = "survey";
/// The key of [`Arguments::fault`].
const FAULT: &str = "fault";
/// The key of [`Arguments::floor`].
pub const FLOOR: &str = "floor";
/// The key of [`Arguments::cost_brief`].
pub const COST_BRIEF: &str = "cost-brief";
/// The key of [`Arguments::cost_cold`].
pub const COST_COLD: &str = "cost-cold";
/// Limits the seconds that a run may take.
pub const DEADLINE: &str = "deadline";
/// Limits the seconds that a pass of a cell may take.
pub const CELL_DEADLINE: &str = "cell-deadline";
/// Seeds random choices.
pub const SEED: &str = "seed";
/// Gives the guest's CPUs idle states besides WFI.
pub const GUEST_STATES: &str = "guest-states";
/// Asks a simulator for a checkpoint before the measurement.
pub const CHECKPOINT: &str = "checkpoint";
/// Gives the clock frequency of a simulator's cores, in MHz.
pub const CORE_MHZ: &str = "core-mhz";
/// Reserves a CPU that enforces the deadlines.
pub const KEEP_CPU: &str = "keep-cpu";
/// Names the waits that trap in this boot, if cells can't change which waits trap.
pub(crate) const GIVEN_TRAP: &str = "given-trap";
/// Gives the time for which the layer below polls in this boot, if cells can't change that time.
pub(crate) const GIVEN_HOST_POLL_US: &str = "given-host-poll-us";
/// Means that all boots of the run trap the same waits.
pub(crate) const GIVEN_ALONE: &str = "given-alone";
/// The word after which the boot arguments begin.
pub const OPTIONS: &str = "options";

/// The dimension that decides which image of the guest runs.
const ATOMICS: &str = "atomics";
/// The dimension that decides whether there are neighbours.
const NEIGHBOUR: &str = "neighbour";

arguments! {
    guest {
        /// The check to run instead of the plan, or `all`.
        check: Option<&'a str> = "check", read_text;
        /// The code paths to run once each, for a tracer: `all`, or comma-separated names.
        cost: Option<&'a str> = "cost", read_text;
        /// Runs only a few passes of each path, with short pauses, for a core simulator.
        cost_brief: bool = COST_BRIEF, read_switch;
        /// Empties caches and TLBs before each pass of a path.
        cost_cold: bool = COST_COLD, read_switch;
        /// A failure to cause on purpose.
        fault: Option<Fault> = FAULT, read_word;
        /// The class of hostile guests to run instead of the plan, or `all`.
        hostile: Option<&'a str> = "hostile", read_text;
        /// The layer below the guest, if that layer does not name itself.
        under: Option<Under> = "under", read_word;
        /// The waits that trap in this boot under the layer below the guest.
        given_trap: Option<Trap> = GIVEN_TRAP, read_word;
        /// How long the layer below the guest polls on a trapped WFI, in microseconds.
        given_host_poll_us: Option<u64> = GIVEN_HOST_POLL_US, read_count;
        /// Whether all boots of the run trap the same waits.
        given_alone: bool = GIVEN_ALONE, read_switch;
        /// Seed of random choices.
        seed: Option<u64> = SEED, read_count;
        /// Number of wake-ups in a soak that runs instead of the plan.
        soak: Option<u64> = "soak", read_count;
        /// Number of wake-ups in a soak without other operations.
        stress: Option<u64> = "stress", read_count;
        /// Length of a Linux soak, in seconds; the program that otherwise measures Linux runs the soak.
        linux_soak: Option<u64> = "linux-soak", read_count;
        /// Asks the simulator for a checkpoint before measuring and, on Linux, afterwards for the program's arguments.
        checkpoint: bool = CHECKPOINT, read_switch;
        /// Clock frequency of a simulator's cores, in MHz; converts ticks to cycles.
        core_mhz: Option<u64> = CORE_MHZ, read_count;
    }
    hypervisor {
        /// The hypervisor prints a description of the machine.
        survey: bool = SURVEY, read_switch;
        /// Names of registers that the hypervisor leaves as firmware set them.
        leave: Option<&'a str> = "leave", read_text;
        /// Generic watchdogs stay as firmware set them.
        keep_watchdogs: bool = "keep-watchdogs", read_switch;
        /// Seconds that the run may take from the hypervisor's start; 0 means no limit.
        deadline: Option<u64> = DEADLINE, read_count;
        /// Seconds that a pass of a cell may take, including its report; 0 means no limit.
        cell_deadline: Option<u64> = CELL_DEADLINE, read_count;
        /// One CPU is reserved for the hypervisor and has no vCPU, so that a deadline ends any
        /// guest.
        keep_cpu: bool = KEEP_CPU, read_switch;
        /// Whether a vCPU may use minimal exception vectors, a baseline for the cost of exits.
        floor: bool = FLOOR, read_switch;
        /// The boot arguments begin here; a boot manager may put other text in front.
        options: bool = OPTIONS, read_switch;
        /// Idle states besides WFI in the guest's device tree, which give its governor a choice.
        guest_states: Option<GuestStates> = GUEST_STATES, read_states;
        /// The console, in the form that `platform::uart::Named` reads.
        uart: Option<&'a str> = "uart", read_text;
    }
}

/// The programs of the guest. Each has its own image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Measures the cells of the plan.
    Measuring,
    /// Runs checks, soaks and hostile guests, measures the cost of code paths, and causes faults.
    Trials,
}

/// Which images of a boot must be built for tests (Cargo's feature `planted`): such images contain
/// code that no measurement uses, mostly planted faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Planted {
    /// The hypervisor.
    pub hypervisor: bool,
    /// The guest.
    pub guest: bool,
}

impl Planted {
    /// Neither image.
    pub const NOTHING: Self = Self {
        hypervisor: false,
        guest: false,
    };
}

/// The booted image does not have the program that the arguments ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The program that the arguments ask for.
    asked: Program,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.asked {
            Program::Trials => {
                "they ask for a trial, and this image only measures; give the same arguments \
                 to `cargo xtask image --append` (or `run`), which packs the trials, or leave \
                 out rouse.check, cost, fault, hostile, soak and stress"
            }
            Program::Measuring => {
                "this image has only trials, and they name none; add rouse.check, cost, fault, \
                 hostile, soak or stress, or boot the image that `cargo xtask image` (or `run`) \
                 packs without them"
            }
        })
    }
}

/// Receiver of the arguments that make a plan.
pub trait Part<'a>: Default {
    /// Takes one argument.
    ///
    /// # Errors
    /// Returns an [`Error`] that names the mistake.
    fn take_argument(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>>;

    /// Whether a vCPU may have a neighbour.
    fn has_neighbours(&self) -> bool;
}

impl<'a> Part<'a> for Plan {
    fn take_argument(&mut self, key: &'a str, values: &'a str) -> Result<(), Error<'a>> {
        self.set(key, values)
    }

    fn has_neighbours(&self) -> bool {
        let mut values = self.lists.neighbour.values.iter();
        values.any(|neighbour| neighbour.is_there())
    }
}

/// The hypervisor's view of the plan's arguments. The hypervisor measures nothing, so it only checks
/// the arguments' names, and leaves their values to the guest, except those that decide which image
/// of the guest runs and how much memory a neighbour may need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The atomic instructions that the guest must be compiled to use, if the arguments name them.
    pub atomics: Option<Atomics>,
    /// The most memory that a neighbour goes through, in KiB, if the arguments ask for a neighbour.
    pub neighbours: Option<u32>,
}

impl<'a> Part<'a> for Names {
    fn take_argument(&mut self, key: &'a str, value: &'a str) -> Result<(), Error<'a>> {
        match key {
            ATOMICS if value.contains(',') || value == "all" => {
                Err(Error::Several { key, words: value })
            }
            ATOMICS => {
                self.atomics = read_word(key, value)?;
                Ok(())
            }
            NEIGHBOUR => {
                let named = |one: &&Neighbour| {
                    let mut words = value.split(',');
                    words.any(|word| one.is_meant_by(word))
                };
                let there = Neighbour::ALL.iter().filter(|one| one.is_there());
                self.neighbours = there.filter(named).map(|one| one.kib()).max();
                Ok(())
            }
            _ if keys().any(|known| known == key) => Ok(()),
            _ => Err(Error::unknown_key(key)),
        }
    }

    fn has_neighbours(&self) -> bool {
        self.neighbours.is_some()
    }
}

impl<'a> Arguments<'a> {
    /// Reads the words of `text` that begin with `rouse.`.
    ///
    /// # Errors
    /// Returns an [`Error`] that names the first mistake.
    pub fn parse(text: &'a str) -> Result<Self, Error<'a>> {
        let (arguments, wrong) = Self::read(text);
        wrong.map_or(Ok(arguments), Err)
    }
}

impl<'a, P: Part<'a>> Arguments<'a, P> {
    /// Like [`Arguments::parse`], but also returns the arguments that could be read despite an
    /// error, so that the error can be reported on the console that they name.
    #[must_use]
    pub fn read(text: &'a str) -> (Self, Option<Error<'a>>) {
        let mut arguments = Self::default();
        let mut wrong = None;
        for word in text.split_ascii_whitespace() {
            if let Some(argument) = word.strip_prefix(PREFIX) {
                let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
                wrong = wrong.or(arguments.take_argument(key, value).err());
            }
        }
        (arguments, wrong)
    }

    /// Returns the images that have to be built for tests if these arguments are to have an effect.
    #[must_use]
    pub fn planted(&self) -> Planted {
        let of_fault = self.fault.map_or(Planted::NOTHING, Fault::planted);
        Planted {
            hypervisor: of_fault.hypervisor || self.floor || self.has_hostile_neighbours(),
            guest: of_fault.guest,
        }
    }

    /// Whether the arguments ask for a trial with neighbours, which then try forbidden operations.
    fn has_hostile_neighbours(&self) -> bool {
        let Self {
            check,
            hostile,
            soak,
            stress,
            ..
        } = self;
        let may = check.is_some() || hostile.is_some() || soak.is_some() || stress.is_some();
        may && self.plan.has_neighbours()
    }

    /// Returns why an image that is built for measurements can't be booted with these arguments.
    /// `image` returns the field of [`Planted`] for that image.
    #[must_use]
    pub fn unplanted(&self, image: impl Fn(Planted) -> bool) -> Option<Error<'static>> {
        let fault = self.fault.filter(|fault| image(fault.planted()));
        match fault {
            Some(fault) => Some(Error::Unplanted {
                key: FAULT,
                word: fault.name(),
            }),
            None => image(self.planted()).then_some(Error::Unplanted {
                key: if self.floor { FLOOR } else { NEIGHBOUR },
                word: "",
            }),
        }
    }

    /// Returns the program of the guest that these arguments ask for.
    #[must_use]
    pub fn program(&self) -> Program {
        let is_trial = !self.measures() || self.fault.is_some_and(Fault::is_trial);
        match is_trial {
            true => Program::Trials,
            false => Program::Measuring,
        }
    }

    /// Checks that the booted `program` is the one that these arguments ask for.
    ///
    /// # Errors
    /// Returns [`Unfit`], which names the remedy.
    pub fn fit(&self, program: Program) -> Result<(), Unfit> {
        match self.program() {
            asked if asked == program => Ok(()),
            asked => Err(Unfit { asked }),
        }
    }

    /// Whether the boot runs the plan.
    #[must_use]
    pub const fn measures(&self) -> bool {
        let Self {
            check,
            cost,
            hostile,
            soak,
            stress,
            linux_soak,
            ..
        } = self;
        let ours = check.is_some() || cost.is_some() || hostile.is_some();
        !ours && soak.is_none() && stress.is_none() && linux_soak.is_none()
    }
}

/// Returns every name that an argument can have.
pub fn keys() -> impl Iterator<Item = &'static str> {
    // The table is not used here: it would pull in everything else about the dimensions.
    let names = dimensions::NAMES.iter().chain(Plan::OTHERS);
    names.chain(KEYS).chain(HYPERVISORS).copied()
}

/// Returns the guest's part of `bootargs`: everything except the hypervisor's words, with the
/// original spaces. The concatenated pieces are the text.
pub fn guest_part(bootargs: &str) -> impl Iterator<Item = &str> + Clone {
    let mut text = bootargs.trim_ascii_end();
    // Words removed from the end leave no trailing spaces.
    while let Some(word) = text.split_ascii_whitespace().next_back()
        && is_for_hypervisor(word)
    {
        text = text[..text.len() - word.len()].trim_ascii_end();
    }
    let pieces = text.split_inclusive(|c: char| c.is_ascii_whitespace());
    pieces.filter(|piece| !is_for_hypervisor(piece.trim_ascii_end()))
}

/// Returns the words of a plan's text that the hypervisor also reads at boot; see [`Names`].
pub fn read_at_boot(plan: &str) -> impl Iterator<Item = &str> {
    let is_read = |word: &&str| {
        let argument = word.strip_prefix(PREFIX).unwrap_or_default();
        let key = argument.split_once('=').map_or(argument, |(key, _)| key);
        [ATOMICS, NEIGHBOUR].contains(&key)
    };
    plan.split_ascii_whitespace().filter(is_read)
}

/// Whether `word` is for the hypervisor alone.
fn is_for_hypervisor(word: &str) -> bool {
    let argument = word.strip_prefix(PREFIX);
    argument.is_some_and(|argument| {
        let key = argument.split_once('=').map_or(argument, |(key, _)| key);
        HYPERVISORS.contains(&key)
    })
}

impl<'a> Error<'a> {
    /// Returns the error for an unknown argument `key`, with the nearest known argument.
    pub(crate) fn unknown_key(key: &'a str) -> Self {
        let nearest = nearest(key, keys()).unwrap_or_default();
        Self::UnknownKey { key, nearest }
    }
}

fn read_text<'a>(key: &'a str, value: &'a str) -> Result<Option<&'a str>, Error<'a>> {
    if value.is_empty() {
        Err(Error::NeedsValue(key))
    } else {
        Ok(Some(value))
    }
}

fn read_word<'a, W: Word>(key: &'a str, word: &'a str) -> Result<Option<W>, Error<'a>> {
    let known = W::NAMES;
    match W::parse(word) {
        Some(value) => Ok(Some(value)),
        None => Err(Error::UnknownName {
            key,
            word,
            nearest: nearest(word, known.iter().copied()).unwrap_or_default(),
        }),
    }
}

fn read_states<'a>(key: &'a str, word: &'a str) -> Result<Option<GuestStates>, Error<'a>> {
    GuestStates::read(key, word).map(Some)
}

fn read_count<'a>(key: &'a str, word: &'a str) -> Result<Option<u64>, Error<'a>> {
    let count = word.parse();
    count.map(Some).map_err(|_| Error::Count { key, word })
}
