// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job to boot: checks the options before anything is built.

pub mod checks;
mod deadlines;
mod load;
mod planned;
mod ram;
mod variant;

pub use load::Load;
pub use planned::{PlannedCell, Seconds};
pub use ram::Ram;
pub use variant::Variant;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use plan::{Machine, Plan, Shard, Under, Word};
use providing::bao::Bao;
use results::Watts;

use deadlines::Deadlines;

use crate::board::{Board, EmulatedMachine};
use crate::boot_cache::BootCache;
use crate::disturb;
use crate::gem5::parameters::Values;
use crate::limits::Limits;
use crate::options::{Boot, JobArgs, LimitArgs, Metric, RunArgs, Unders};
use reporting::watts;
use shell::failure::{BadInput, bad_input};
use shell::side_by_side;
use shell::terminal::note;

/// One request to boot and measure.
#[derive(Debug)]
pub struct Job {
    /// Images to boot, and their arguments.
    pub load: Load,
    pub boot: Boot,
    /// Hypervisors, each with one boot or more: see [`Job::variants`].
    pub unders: Vec<Under>,
    /// The kernel of KVM's host, if not Debian's.
    pub host_kernel: Option<PathBuf>,
    /// The checkout of Bao.
    pub bao: Option<PathBuf>,
    /// The Xen to use, if not Debian's.
    pub xen: Option<PathBuf>,
    /// Further arguments for Xen.
    pub xen_args: Option<String>,
    /// Number of repetitions of all boots.
    pub repeat: usize,
    /// Largest number of boots at a time.
    pub jobs: NonZeroUsize,
    pub cpus: u32,
    pub model: String,
    /// Unit of the values.
    pub metric: Metric,
    /// Whether WFE instructions of other kernels are replaced by YIELD: see [`guests::handover`].
    pub hands_over: bool,
    pub memory: Ram,
    /// The device tree to boot with, if it is not the machine's own.
    pub dtb: Option<PathBuf>,
    /// Parameters of the machine, if any.
    pub parameters: Values,
    /// The gem5 program to use.
    pub gem5: Option<PathBuf>,
    pub limits: Limits,
    /// Power of a CPU in each state, for the energy model.
    pub watts: Option<Watts>,
    /// Whether the guest must end with a reset.
    pub expect_reset: bool,
    /// The seed of disturbances, if any.
    pub disturb: Option<u64>,
    /// Firmware that runs before the image, in tests.
    pub dirty_firmware: Option<DirtyFirmware>,
    /// Whether to watch for violations of the architecture's rules: see [`crate::strict`].
    pub strict: bool,
    /// Whether to keep the instructions of samples: see [`crate::traces`].
    pub traces: bool,
    /// Kept outcomes of the boots of a test or of two kernels, so that no boot is repeated.
    pub before: Option<Arc<BootCache>>,
}

/// The firmware of `dirty-firmware/`.
#[derive(Clone, Debug)]
pub struct DirtyFirmware {
    pub file: PathBuf,
    /// The words for the state that the firmware leaves (docs/bring-up.md), separated by commas.
    pub leaves: String,
}

impl Job {
    pub fn new(args: &JobArgs) -> Result<Self> {
        let mut load = Load::new(&args.load)?;
        let board = &load.board;
        if args.dtb.is_some() && matches!(board.machine, EmulatedMachine::Gem5(_)) {
            bad_input!("--dtb: gem5 describes the machine that it makes; leave --dtb out");
        }
        let model = &board.model(args.cpu.as_deref())?.to_owned();
        let metric = board.metric(args.metric)?;
        load.plan.cycles = metric == Metric::Cycles;
        load.plan.event_loses_irq = board.machine.event_loses_irq(model);
        variant::restrict_to_usable(&mut load, model)?;
        let hands_over = checks::replaces_waits(args, metric, &load);
        let measured = load.measures_linux();
        if let Some(guest) = load.guest.as_mut().filter(|_| hands_over && measured) {
            guest.yield_at_waits();
        }
        let board = &load.board;
        let cpus = board.cpus(args.cpus)?;
        args.load.exec.check_cpus(cpus)?;
        let programs = args.load.exec.longest_pass(&load.plan) * SLOWER;
        let mut job = Self {
            boot: board.boot(args.boot)?,
            unders: match &args.under {
                None => vec![board.usual_under()],
                Some(Unders::All) => Vec::new(),
                Some(Unders::Named(named)) => named.clone(),
            },
            host_kernel: args.host_kernel.clone(),
            bao: args.bao.clone(),
            xen: args.xen.clone(),
            xen_args: args.xen_args.clone(),
            repeat: 1,
            jobs: NonZeroUsize::MIN,
            cpus,
            model: model.into(),
            metric,
            hands_over,
            memory: checks::choose_ram(args, board)?,
            dtb: args.dtb.as_ref().map(checks::check_tree).transpose()?,
            parameters: checks::choose_parameters(args, board)?,
            gem5: args.gem5.clone(),
            limits: Limits::new(&LimitArgs::default(), default_patience(&load) + programs),
            watts: board.watts.clone(),
            expect_reset: args.expect_reset,
            disturb: args.disturb,
            dirty_firmware: None,
            strict: false,
            traces: false,
            before: None,
            load,
        };
        if job.unders.is_empty() {
            job.unders = job.possible_hypervisors()?;
        }
        job.check_reset()?;
        if job.boot != Boot::Kernel {
            job.board().boots_disks("--boot")?;
        }
        if job.disturb.is_some() {
            job.board().qemu("--disturb")?;
            if let Some(why) = disturb::obstacle() {
                bad_input!("--disturb: {why}");
            }
        }
        if job.load.survey && !job.unders.contains(&Under::Rouse) {
            bad_input!("--survey: it is the hypervisor that prints it; use --under rouse");
        }
        let other = job.unders.iter().find(|under| under.is_other());
        if let (Some(under), Some(_)) = (other, &job.dtb) {
            bad_input!("--dtb: under {under} that describes the guest's machine; leave --dtb out");
        }
        let elsewhere = job.unders.iter().find(|under| **under != Under::Rouse);
        if let (Some(under), Some(_)) = (elsewhere, &args.load.given.guest_states) {
            bad_input!(
                "--guest-states: Rouse describes the states and spends the time to leave them, and --under has {under}; \
                 use --under rouse"
            );
        }
        let names_bao = job.unders.contains(&Under::Bao);
        if !names_bao && job.bao.is_some() {
            bad_input!("--bao: it is for guests under Bao; add --under bao, or leave it out");
        }
        let boots_linux = |under: Under| under.kvm_mode().is_some() && job.load.measures_linux();
        let runs_own_guest = |under: &&Under| {
            under.is_other() && job.board().check_machine(**under).is_ok() && !boots_linux(**under)
        };
        if job.is_simulated()
            && job.load.guest.is_some()
            && let Some(under) = job.unders.iter().find(runs_own_guest)
        {
            bad_input!(
                "--under {under}: on gem5 it does not run this guest; leave out --guest, or use --board virt"
            );
        }
        let is_xen = job.unders.contains(&Under::Xen);
        if !is_xen && (job.xen.is_some() || job.xen_args.is_some()) {
            bad_input!(
                "--xen, --xen-args: they are for guests under Xen; add --under xen, or leave them out"
            );
        }
        let is_kvm = job.unders.iter().any(|under| under.kvm_mode().is_some());
        if !is_kvm && job.host_kernel.is_some() {
            bad_input!(
                "--host-kernel: it is for guests under KVM; add --under kvm, or leave it out"
            );
        }
        if args.as_loaded && (metric != Metric::Insns || !is_kvm && !job.load.measures_linux()) {
            bad_input!(
                "--as-loaded: no kernel is changed here; use --metric insns with --guest and --workload linux-pipe, or with --under \
                 kvm, or leave it out"
            );
        }
        if job.load.deadlines != Deadlines::default() && !job.unders.contains(&Under::Rouse) {
            bad_input!(
                "--deadline, --cell-deadline, --keep-cpu: the hypervisor sees to them; use --under rouse, or --time-limit"
            );
        }
        for &under in &job.unders {
            job.board().check_machine(under)?;
            job.check_audit(under)?;
        }
        // Cells that can't run under one of several hypervisors are skipped in its boots.
        let runs = job.unders.iter().map(|&under| job.check_any_runs(under));
        let runs: Vec<_> = runs.collect();
        if runs.iter().all(Result::is_err) {
            runs.into_iter().collect::<Result<()>>()?;
        }
        Ok(job)
    }

    pub fn of_run(args: &RunArgs) -> Result<Self> {
        let plan = &args.job.load.plan;
        let exec = &args.job.load.exec;
        if !exec.is_given() {
            plan.check_used(&plan.plan().map_err(BadInput::error)?)
                .map_err(BadInput::error)?;
        }
        let mut job = Self::new(&args.job)?.within(&args.limits);
        if exec.is_given() {
            // The plan contains the guest's commands only from here on.
            plan.check_used(&job.load.plan).map_err(BadInput::error)?;
        }
        job.repeat = args.repeat.unwrap_or(1) as usize;
        job.jobs = job.at_a_time(args.jobs)?;
        if let Some(file) = &args.watts {
            job.watts = Some(watts::read(file)?);
        }
        if job.repeat > 1 && !job.measures() {
            bad_input!("--repeat: nothing is measured here that could be repeated; leave it out");
        }
        job.ends_in_a_day()?;
        Ok(job)
    }

    /// Returns how many boots may run at a time, given the requested number. If values are times, only one may run,
    /// because parallel boots would disturb each other.
    pub fn at_a_time(&self, asked: Option<NonZeroUsize>) -> Result<NonZeroUsize> {
        let disturbs = self.metric == Metric::Time;
        match asked {
            Some(jobs) if jobs.get() > 1 && disturbs => bad_input!(
                "--jobs: with --metric time, emulators that run in parallel would disturb each other's values; \
                 leave it out, or use --metric insns"
            ),
            Some(jobs) => Ok(jobs),
            None if disturbs => Ok(NonZeroUsize::MIN),
            None => Ok(self.emulators()),
        }
    }

    /// Returns how many emulators of the job's machine this computer has enough CPUs and memory for.
    pub fn emulators(&self) -> NonZeroUsize {
        side_by_side::emulators_that_fit(self.memory.bytes())
    }

    /// Sets the limits that `args` gives.
    pub fn within(mut self, args: &LimitArgs) -> Self {
        self.limits = Limits::new(args, self.limits.without_progress);
        self
    }

    /// Refuses `--expect-reset` if the guest can't reset the machine, or if neither the hypervisor nor QEMU can detect
    /// the reset.
    fn check_reset(&self) -> Result<()> {
        if self.expect_reset && self.load.guest.is_none() {
            bad_input!(
                "--expect-reset: Rouse's own guest does not reset; use it with --guest IMAGE"
            );
        }
        if self.expect_reset && self.is_simulated() && self.unders != [Under::Rouse] {
            bad_input!(
                "--expect-reset: gem5 does not report how a guest ended; the hypervisor does: use --under rouse"
            );
        }
        Ok(())
    }

    /// Whether the emulator is gem5.
    fn is_simulated(&self) -> bool {
        matches!(self.board().machine, EmulatedMachine::Gem5(_))
    }

    pub fn board(&self) -> &Board {
        &self.load.board
    }

    /// Whether the run measures, instead of checking. Only our guest and our program on another kernel can measure.
    pub fn measures(&self) -> bool {
        (self.load.guest.is_none() || self.load.measures_linux()) && self.load.measures
    }

    /// Whether all boots get the same input from outside. They do if instructions are counted, and also if
    /// the guest is a measured Linux, whose boot depends on this input.
    pub fn boots_are_alike(&self) -> bool {
        self.load.measures_linux() || self.metric == Metric::Insns
    }

    fn counter_hz(&self) -> Result<u64> {
        match self.parameters.get("counter-mhz") {
            Some(mhz) => Ok(mhz.value * 1_000_000),
            None => self.board().counter_hz(self.metric),
        }
    }

    /// Returns the machine that the guest finds under `under`.
    pub fn machine(&self, under: Under) -> Result<Machine> {
        Ok(Machine {
            cpus: self.cpus as usize,
            // The features are assumed here, because the guest itself detects whether the CPU model has them.
            wfxt: true,
            lse: true,
            ecv: true,
            linux: self.load.measures_linux(),
            frequency: self.counter_hz()?,
            under,
            given: None,
            cpus_at_once: self.metric != Metric::Insns,
            caches: true,
            event_loses_irq: self.load.plan.event_loses_irq,
            gicv2: self.board().machine.has_gicv2(),
        })
    }

    /// Returns all hypervisors of the board under which some part of this request can run. If there are none, the error
    /// gives the first reason.
    fn possible_hypervisors(&self) -> Result<Vec<Under>> {
        let runs = |&under: &Under| {
            let board = self.board().check_machine(under);
            board
                .and_then(|()| self.check_audit(under))
                .and_then(|()| self.check_any_runs(under))
                .and_then(|()| match under {
                    Under::Kvm | Under::KvmNvhe if self.is_simulated() => bad_input!(
                        "{under}: its host takes gem5 minutes to boot; name it by --under {under}"
                    ),
                    Under::Bao => Bao::source(self.bao.as_deref()).map(drop),
                    _ => Ok(()),
                })
                .map(|()| under)
        };
        let all: Vec<_> = Under::ALL.iter().map(runs).collect();
        if all.iter().all(Result::is_err) {
            return all.into_iter().collect();
        }
        let told = |under: Result<Under>| match under {
            Ok(under) => Some(under),
            Err(why) => {
                note!("left out of --under all: {why:#}");
                None
            }
        };
        Ok(all.into_iter().filter_map(told).collect())
    }

    /// Refuses `rouse.linux-soak`, which audits Rouse, if Rouse does not run.
    fn check_audit(&self, under: Under) -> Result<()> {
        if under.is_other() && self.load.measures_linux() && !self.measures() {
            bad_input!(
                "--append: rouse.linux-soak has Rouse audited, and under {under} there is nothing to audit; use --under rouse"
            );
        }
        Ok(())
    }

    /// Refuses a request if every cell would be skipped.
    fn check_any_runs(&self, under: Under) -> Result<()> {
        if self.load.guest.is_some() && !self.measures() {
            return Ok(());
        }
        let machine = self.machine(under)?;
        let mut reasons = Vec::new();
        for cell in self.load.plan.cells(&machine) {
            match cell.skip_reason(&machine).map(|reason| reason.to_string()) {
                None => return Ok(()),
                Some(reason) if reasons.contains(&reason) => {}
                Some(reason) => reasons.push(reason),
            }
        }
        let mut why = reasons.join("; ");
        if why.is_empty() && self.load.plan.shard != Shard::WHOLE {
            why = format!("part {} has no cell; use fewer parts", self.load.plan.shard);
        } else if why.is_empty() {
            why = "name fewer options".into();
        }
        bad_input!("nothing of this can run under {under}: {why}")
    }
}

/// The largest number of seconds that an emulator takes to emulate one second of a program in the guest, at 50 million
/// instructions per second.
const SLOWER: u32 = 20;

/// Returns the default limit on the time without progress. The board's limit is for the default number of wake-ups per
/// cell, because a cell need not show progress before its end. The limit grows with more wake-ups and with pauses
/// between them.
fn default_patience(load: &Load) -> Duration {
    let plan = &load.plan;
    let lists = &plan.lists;
    let longest = [&lists.gap_us, &lists.arrival_us, &lists.service_us]
        .map(|list| list.values.iter().max().copied().unwrap_or(0));
    let pause = longest.into_iter().map(u64::from).sum();
    let pauses = Duration::from_micros(pause) * plan.iterations;
    let more = plan.iterations.div_ceil(Plan::default().iterations).max(1);
    Duration::from_secs(load.board.machine.patience()) * more + pauses
}

#[cfg(test)]
mod tests;
