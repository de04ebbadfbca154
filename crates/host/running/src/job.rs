// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job to boot: the options, checked before anything is built.

pub mod checks;
mod deadlines;
mod load;
mod ram;
mod variant;

pub use load::Load;
pub use ram::Ram;
pub use variant::Variant;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use plan::{Machine, Plan, Shard, Under, Word};
use results::Watts;

use deadlines::Deadlines;

use crate::board::{Board, EmulatedMachine};
use crate::boot_cache::BootCache;
use crate::disturb;
use crate::gem5::parameters::Values;
use crate::limits::Limits;
use crate::options::{Boot, JobArgs, LimitArgs, Metric, RunArgs, Unders};
use reporting::watts;
use shell::failure::bad_input;
use shell::side_by_side;
use shell::terminal::note;

/// One request to boot and measure.
#[derive(Debug)]
pub struct Job {
    /// Images to boot, and their arguments.
    pub load: Load,
    /// How it gets there.
    pub boot: Boot,
    /// A boot for each, or more: see [`Job::variants`].
    pub unders: Vec<Under>,
    /// The kernel of KVM's host, if not Debian's.
    pub host_kernel: Option<PathBuf>,
    /// The Xen to use, if not Debian's.
    pub xen: Option<PathBuf>,
    /// Xen's further arguments.
    pub xen_args: Option<String>,
    /// How often all of that is done.
    pub repeat: usize,
    /// How many boots there may be at a time.
    pub jobs: NonZeroUsize,
    /// Number of CPUs.
    pub cpus: u32,
    /// Name of the CPU model.
    pub model: String,
    /// Unit of the values.
    pub metric: Metric,
    /// RAM, as the emulator takes it.
    pub memory: Ram,
    /// A device tree to boot with.
    pub dtb: Option<PathBuf>,
    /// Parameters of the machine, where they can be chosen.
    pub parameters: Values,
    /// The gem5 to use.
    pub gem5: Option<PathBuf>,
    /// How long a boot may take.
    pub limits: Limits,
    /// Power of a CPU in each state, for a model of energy.
    pub watts: Option<Watts>,
    /// Whether the guest is to end by a reset.
    pub expect_reset: bool,
    /// The seed with which the emulator is disturbed, if it is.
    pub disturb: Option<u64>,
    /// Firmware that is there before what is booted, in tests.
    pub dirty_firmware: Option<DirtyFirmware>,
    /// Whether the rules of the architecture are watched: see [`crate::strict`].
    pub strict: bool,
    /// Boots that need not be made again, where it is a test's.
    pub before: Option<Arc<BootCache>>,
}

/// The firmware of `dirty-firmware/`.
#[derive(Clone, Debug)]
pub struct DirtyFirmware {
    /// Its file.
    pub file: PathBuf,
    /// State that it leaves, as words with commas between them.
    pub leaves: String,
}

impl Job {
    /// Checks the options.
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
        variant::usable(&mut load, model)?;
        let board = &load.board;
        let mut job = Self {
            boot: board.boot(args.boot)?,
            unders: match &args.under {
                None => vec![Under::Rouse],
                Some(Unders::All) => Vec::new(),
                Some(Unders::Named(named)) => named.clone(),
            },
            host_kernel: args.host_kernel.clone(),
            xen: args.xen.clone(),
            xen_args: args.xen_args.clone(),
            repeat: 1,
            jobs: NonZeroUsize::MIN,
            cpus: board.cpus(args.cpus)?,
            model: model.into(),
            metric,
            memory: checks::memory(args, board)?,
            dtb: args.dtb.as_ref().map(checks::tree).transpose()?,
            parameters: checks::parameters(args, board)?,
            gem5: args.gem5.clone(),
            limits: Limits::new(&LimitArgs::default(), patience(&load)),
            watts: board.watts.clone(),
            expect_reset: args.expect_reset,
            disturb: args.disturb,
            dirty_firmware: None,
            strict: false,
            before: None,
            load,
        };
        if job.unders.is_empty() {
            job.unders = job.possible()?;
        }
        job.resets()?;
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
        if job.load.deadlines != Deadlines::default() && !job.unders.contains(&Under::Rouse) {
            bad_input!(
                "--deadline, --cell-deadline, --keep-cpu: the hypervisor sees to them; use --under rouse, or --time-limit"
            );
        }
        for &under in &job.unders {
            job.board().runs(under)?;
            job.something_runs(under)?;
        }
        Ok(job)
    }

    /// Checks the options of `run`.
    pub fn of_run(args: &RunArgs) -> Result<Self> {
        let mut job = Self::new(&args.job)?.within(&args.limits);
        job.repeat = args.repeat.unwrap_or(1) as usize;
        job.jobs = job.at_a_time(args.jobs)?;
        if let Some(file) = &args.watts {
            job.watts = Some(watts::read(file)?);
        }
        if job.repeat > 1 && !job.measures() {
            bad_input!("--repeat: nothing is measured here that could be repeated; leave it out");
        }
        Ok(job)
    }

    /// How many boots there may be at a time, of which `asked` are asked for. Where values are times, CPUs that
    /// others use would be in them.
    pub fn at_a_time(&self, asked: Option<NonZeroUsize>) -> Result<NonZeroUsize> {
        let disturbs = self.metric == Metric::Time;
        match asked {
            Some(jobs) if jobs.get() > 1 && disturbs => bad_input!(
                "--jobs: with --metric time, emulators beside each other would be in each other's values; \
                 leave it out, or use --metric insns"
            ),
            Some(jobs) => Ok(jobs),
            None if disturbs => Ok(NonZeroUsize::MIN),
            None => Ok(self.emulators()),
        }
    }

    /// How many emulators of its machine this computer has CPUs and memory for.
    pub fn emulators(&self) -> NonZeroUsize {
        side_by_side::emulators(self.memory.bytes())
    }

    /// With these limits, as far as any are given.
    pub fn within(mut self, args: &LimitArgs) -> Self {
        self.limits = Limits::new(args, self.limits.without_progress);
        self
    }

    /// A reset is expected only where there can be one, and where it can be told:
    /// by the hypervisor, or by QEMU.
    fn resets(&self) -> Result<()> {
        if self.expect_reset && self.load.guest.is_none() {
            bad_input!(
                "--expect-reset: Rouse's own guest does not reset; use it with --guest IMAGE"
            );
        }
        if self.expect_reset
            && matches!(self.board().machine, EmulatedMachine::Gem5(_))
            && self.unders != [Under::Rouse]
        {
            bad_input!(
                "--expect-reset: gem5 does not report how a guest ended; the hypervisor does: use --under rouse"
            );
        }
        Ok(())
    }

    pub fn board(&self) -> &Board {
        &self.load.board
    }

    /// Whether it is our guest that runs, or our program on another, and to measure, not to check.
    pub fn measures(&self) -> bool {
        (self.load.guest.is_none() || self.load.linux()) && self.load.measures
    }

    /// Whether what comes from outside is the same in each boot: where instructions are counted, and for a kernel that draws on it.
    pub fn boots_are_alike(&self) -> bool {
        self.load.linux() || self.metric == Metric::Insns
    }

    /// Frequency of the machine's counter.
    fn counter_hz(&self) -> Result<u64> {
        match self.parameters.get("counter-mhz") {
            Some(mhz) => Ok(mhz.value * 1_000_000),
            None => self.board().counter_hz(self.metric),
        }
    }

    /// The machine as its guest finds it under `under`.
    pub fn machine(&self, under: Under) -> Result<Machine> {
        Ok(Machine {
            cpus: self.cpus as usize,
            // Whether the model has it is the guest's to find out.
            wfxt: true,
            lse: true,
            ecv: true,
            linux: self.load.linux(),
            frequency: self.counter_hz()?,
            under,
            given: None,
            cpus_at_once: self.metric != Metric::Insns,
            caches: true,
            event_loses_irq: self.load.plan.event_loses_irq,
        })
    }

    /// Everything that the board has to run the guest under, where something of this request
    /// can run; the reason of the first if there is nothing.
    fn possible(&self) -> Result<Vec<Under>> {
        let runs = |&under: &Under| {
            let board = self.board().runs(under);
            board
                .and_then(|()| self.something_runs(under))
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

    /// A request of which every cell would be skipped is refused right away.
    fn something_runs(&self, under: Under) -> Result<()> {
        if under.is_other() && self.load.linux() && !self.measures() {
            bad_input!(
                "--append: rouse.linux-soak has Rouse audited, and under {under} there is nothing to audit; use --under rouse"
            );
        }
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

/// How long a boot may go without progress, unless asked otherwise. The board's limit is for the wake-ups of a cell by
/// default: there need be no progress within a cell. More of them take longer, and the pauses between them come on top.
fn patience(load: &Load) -> Duration {
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
