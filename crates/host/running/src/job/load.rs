// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images to boot, and their boot arguments.

use std::collections::BTreeSet;

use anyhow::Result;
use plan::{
    Arguments, Atomics, CHECKPOINT, Choice, GUEST_STATES, GuestStates, LinuxCpuidle, Machine,
    PREFIX, Plan, Planted, Program, SEED, SURVEY, Under,
};

use super::Variant;
use super::deadlines::Deadlines;
use crate::board::Board;
use crate::images::{self, Built, Guest};
use crate::kvm::{ALIKE, kernel};
use crate::options::{LoadArgs, Metric};
use guests::kernel::{Given, Initrd};
use shell::failure::{BadInput, bad_input};

/// Images to boot, and their arguments.
#[derive(Debug)]
pub struct Load {
    pub board: Board,
    pub plan: Plan,
    /// Another kernel as the guest.
    pub guest: Option<Given>,
    /// Further boot arguments, for the hypervisor and any guest.
    append: String,
    /// Idle states of a guest that is another kernel.
    states: Option<GuestStates>,
    /// Whether to describe the machine first.
    pub survey: bool,
    pub deadlines: Deadlines,
    /// Whether the guest still measures, despite further arguments.
    pub measures: bool,
    /// The program of our guest that the arguments select.
    program: Program,
}

impl Load {
    pub fn new(args: &LoadArgs) -> Result<Self> {
        let append = args.append.clone().unwrap_or_default();
        let (measures, program, appended, soaks) = match Arguments::parse(&append) {
            Ok(arguments) => (
                arguments.measures(),
                arguments.program(),
                arguments.plan.lists.atomics,
                arguments.linux_soak.is_some(),
            ),
            Err(error) => bad_input!("--append: {error}"),
        };
        let mut plan = args.plan.plan().map_err(BadInput::error)?;
        let mut guest = Given::read(&args.given)?;
        let files = args.exec.archive(&mut plan)?;
        let workloads = &plan.lists.workload;
        let measured =
            workloads.named && workloads.values.iter().any(|workload| workload.is_linux());
        let on_linux = measured || soaks;
        if soaks && guest.is_none() {
            bad_input!(
                "--append: rouse.linux-soak is of a program on Linux; use --guest debian, or rouse.soak"
            );
        }
        if let Some(guest) = guest.as_mut().filter(|_| on_linux) {
            if guest.initrd.is_some() {
                bad_input!(
                    "--initrd: {} needs the initial RAM disk that is made for it; leave one of them out",
                    match soaks {
                        true => "rouse.linux-soak".into(),
                        false => format!("--workload {}", workloads.values[0]),
                    }
                );
            }
            guest.initrd = Some(Initrd::Measuring(files.unwrap_or_default()));
        }
        if guest.is_some() && !on_linux && plan.to_string() != Plan::default().to_string() {
            bad_input!(
                "--guest: `{plan}` says what Rouse's own guest measures, and this is another one; \
                 leave these options out, and pass its boot arguments by --guest-args"
            );
        }
        // A boot has only one image of the guest, and the image must be known here.
        if appended.named && appended.values.len() > 1 {
            bad_input!(
                "--append: rouse.atomics has more than one word, and a boot has one; use --atomics, which boots for each"
            );
        }
        if appended.named && guest.is_none() {
            plan.lists.atomics = appended;
        }
        // Arguments from the command line follow these, and override them.
        let alike = on_linux.then_some(ALIKE);
        let complains = soaks.then_some(COMPLAINS);
        let words = alike
            .into_iter()
            .chain(complains)
            .chain(args.given.guest_args.as_deref());
        let words: Vec<&str> = words.chain([append.as_str()]).collect();
        let append = words.join(" ").trim_end().to_owned();
        Ok(Self {
            board: Board::load(&args.board)?,
            plan,
            guest,
            append,
            states: args.given.guest_states.clone(),
            survey: args.survey,
            deadlines: Deadlines::asked(&args.deadlines),
            measures,
            program,
        })
    }

    /// Like [`new`](Self::new), for a disk. A disk has deadlines by default.
    pub fn of_disk(args: &LoadArgs) -> Result<Self> {
        let mut load = Self::new(args)?;
        let machine = Machine {
            cpus: load.board.cpus(None)? as usize,
            wfxt: true,
            lse: true,
            ecv: true,
            linux: load.measures_linux(),
            frequency: load.board.counter_hz(Metric::Time)?,
            under: Under::Rouse,
            given: None,
            cpus_at_once: true,
            caches: true,
            event_loses_irq: false,
            gicv2: load.board.machine.has_gicv2(),
        };
        load.deadlines = Deadlines::of_disk(&args.deadlines, &load, &load.append, &machine);
        Ok(load)
    }

    /// Whether the guest is Linux with the program that measures it.
    pub fn measures_linux(&self) -> bool {
        self.guest.as_ref().is_some_and(Given::is_measured)
    }

    /// Returns the release of the measured Linux, from its banner, if there is one.
    pub fn kernel(&self) -> Option<String> {
        let given = self.guest.as_ref().filter(|given| given.is_measured())?;
        kernel::release(&given.image).map(str::to_owned)
    }

    /// Returns the guest that is packed after the hypervisor.
    pub fn packed(&self) -> Guest<'_> {
        match &self.guest {
            Some(given) => Guest::Given(given),
            None => Guest::Ours(self.program),
        }
    }

    /// Builds and packs the images that the boot arguments need, with our guest for the kinds of atomics that are
    /// `needed`.
    pub fn build(&self, needed: &BTreeSet<Atomics>) -> Result<Built> {
        images::build_planted(&self.board.name, self.packed(), needed, self.planted())
    }

    /// Returns which images to build for tests. All variants of a job share them.
    pub fn planted(&self) -> Planted {
        let text = self.boot_arguments(Variant::of(Choice::NONE));
        let read = Arguments::parse(&text);
        read.map_or(Planted::NOTHING, |arguments| arguments.planted())
    }

    /// Returns the part of the plan that the boot `variant` measures.
    pub fn plan_of(&self, variant: Variant) -> Plan {
        let plan = self.plan.chosen(variant.choice);
        let part = variant.part;
        Plan { part, ..plan }
    }

    /// Returns Linux's arguments for idling by `cpuidle`, and the hypervisor's arguments that provide idle states.
    fn idle_arguments(&self, cpuidle: LinuxCpuidle) -> String {
        let needed = cpuidle.needs_states().then(GuestStates::standby);
        let states = self.states.clone().or(needed);
        let words = cpuidle.arguments().iter().map(ToString::to_string);
        let words = words.chain(states.as_ref().map(states_argument));
        words.collect::<Vec<_>>().join(" ")
    }

    /// Returns the images' arguments in a boot. Another kernel gets only the command line's arguments, unless our
    /// program runs on it. The hypervisor does not pass its own arguments on.
    pub fn boot_arguments(&self, variant: Variant) -> String {
        let Variant { choice, seed, .. } = variant;
        let linux = self.measures_linux();
        let ours = self.guest.is_none() || linux;
        let plan = ours.then(|| self.plan_of(variant).to_string());
        let survey = self.survey.then(|| format!("{PREFIX}{SURVEY}"));
        let deadlines = Some(self.deadlines.to_string());
        let idles = match linux {
            true => Some(self.idle_arguments(choice.cpuidle)),
            false => self.states.as_ref().map(states_argument),
        };
        let seed = linux.then(|| format!("{PREFIX}{SEED}={seed}"));
        // Arguments from the command line follow these, and override them.
        join_texts([
            plan,
            survey,
            deadlines,
            idles,
            Some(self.append.clone()),
            seed,
        ])
    }

    /// Like [`boot_arguments`](Self::boot_arguments), for a measured Linux that boots to a checkpoint. Returns two
    /// texts: the arguments of the boot, which all measurements share, and the arguments of the measurement that
    /// continues from the checkpoint.
    pub fn checkpoint_arguments(&self, variant: Variant) -> [String; 2] {
        let plan = self.plan_of(variant).to_string();
        let boot = join_texts([
            Some(plan::read_at_boot(&plan).collect::<Vec<_>>().join(" ")),
            self.survey.then(|| format!("{PREFIX}{SURVEY}")),
            Some(self.deadlines.to_string()),
            Some(self.idle_arguments(variant.choice.cpuidle)),
            Some(self.append.clone()),
            Some(format!(
                "{PREFIX}{SEED}={} {PREFIX}{CHECKPOINT}",
                Variant::FIRST_SEED
            )),
        ]);
        let seed = format!("{PREFIX}{SEED}={}", variant.seed);
        [
            boot,
            // The program uses the first seed, and ignores the boot's seed, which is added after it.
            join_texts([Some(seed), Some(plan), Some(self.append.clone())]),
        ]
    }
}

/// Joins the parts that have text.
fn join_texts<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts = parts.into_iter().flatten();
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(" ").trim_end().to_owned()
}

/// Linux's argument in a soak, which makes Linux print warnings on the console too.
const COMPLAINS: &str = "loglevel=4";

/// Returns the argument that makes the hypervisor provide idle states.
fn states_argument(states: &GuestStates) -> String {
    format!("{PREFIX}{GUEST_STATES}={states}")
}
