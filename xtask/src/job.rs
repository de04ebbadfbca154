// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be booted: the options, checked before anything is built.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use dtoolkit::fdt::Fdt;
use plan::{Arguments, Dimension, Machine, Plan, Program, Shard, Stages, Under, Word};
use platform::arguments;

use crate::board::Board;
use crate::cli::{Boot, JobArgs, LimitArgs, LoadArgs, Metric, PlanArgs, RunArgs};
use crate::failure::{BadInput, bad_input};
use crate::gem5::parameters::{Parameters, Values};
use crate::images::Guest;
use crate::limits::Limits;
use crate::{disturb, pack};

/// What is booted, and what it is told.
#[derive(Debug)]
pub struct Load {
    /// Where.
    pub board: Board,
    /// What is measured.
    pub plan: Plan,
    /// Somebody else's guest.
    pub guest: Option<Vec<u8>>,
    /// Further boot arguments.
    append: String,
    /// Whether the machine is to be described first.
    pub survey: bool,
    /// The further arguments leave the guest to measure.
    measures: bool,
    /// The program of our guest that they ask for.
    program: Program,
}

impl Load {
    /// Checks the options.
    pub fn new(args: &LoadArgs) -> Result<Self> {
        let append = args.append.clone().unwrap_or_default();
        let (measures, program) = match Arguments::parse(&append) {
            Ok(arguments) => (arguments.measures(), arguments.program()),
            Err(error) => bad_input!("--append: {error}"),
        };
        let plan = plan(&args.plan)?;
        let guest = args.guest.as_ref().map(read_guest).transpose()?;
        if guest.is_some() && plan.to_string() != Plan::default().to_string() {
            bad_input!(
                "--guest: `{plan}` says what Rouse's own guest measures, and this is another one; \
                 leave these options out, and pass its boot arguments by --append"
            );
        }
        Ok(Self {
            board: Board::load(&args.board)?,
            plan,
            guest,
            append,
            survey: args.survey,
            measures,
            program,
        })
    }

    /// What is packed behind the hypervisor.
    pub fn packed(&self) -> Guest<'_> {
        match &self.guest {
            Some(image) => Guest::Given(image),
            None => Guest::Ours(self.program),
        }
    }

    /// What is passed to the images. Somebody else's guest gets what was given and
    /// nothing of ours; the hypervisor keeps its own words.
    pub fn boot_arguments(&self) -> String {
        let plan = self.guest.is_none().then(|| self.plan.to_string());
        let survey = self.survey.then(|| arguments::SURVEY.to_owned());
        let parts = [plan, survey, Some(self.append.clone())];
        let parts: Vec<String> = parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(" ").trim_end().to_owned()
    }
}

/// One request to boot and measure.
#[derive(Debug)]
pub struct Job {
    /// What is booted.
    pub load: Load,
    /// How it gets there.
    pub boot: Boot,
    /// A boot for each.
    pub unders: Vec<Under>,
    /// Number of CPUs.
    pub cpus: u32,
    /// Name of the CPU model.
    pub model: String,
    /// What is counted.
    pub metric: Metric,
    /// RAM, as the emulator takes it.
    pub memory: String,
    /// A device tree to boot with.
    pub dtb: Option<PathBuf>,
    /// What the machine is made of, where that can be chosen.
    pub parameters: Values,
    /// The gem5 to use.
    pub gem5: Option<PathBuf>,
    /// How long a boot may take.
    pub limits: Limits,
    /// Whether the guest is to end by a reset.
    pub expect_reset: bool,
    /// The seed with which the emulator is disturbed, if it is.
    pub disturb: Option<u64>,
}

impl Job {
    /// Checks the options.
    pub fn new(args: &JobArgs) -> Result<Self> {
        let mut load = Load::new(&args.load)?;
        let board = &load.board;
        if args.dtb.is_some() && board.gem5.is_some() {
            bad_input!("--dtb: gem5 describes the machine that it makes; leave --dtb out");
        }
        let model = board.model(args.cpu.as_deref())?;
        let metric = board.metric(args.metric)?;
        load.plan.cycles = metric == Metric::Cycles;
        load.plan.event_loses_irq = board.event_loses_irq(model);
        let job = Self {
            boot: args.boot,
            unders: words("--under", args.under.as_deref().unwrap_or("rouse"))?,
            cpus: board.cpus(args.cpus)?,
            model: model.into(),
            metric,
            memory: memory(args, board)?,
            dtb: args.dtb.as_ref().map(tree).transpose()?,
            parameters: parameters(args, board)?,
            gem5: args.gem5.clone(),
            limits: Limits::new(&LimitArgs::default(), patience(&load)),
            expect_reset: args.expect_reset,
            disturb: args.disturb,
            load,
        };
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
        for &under in &job.unders {
            if job.board().gem5.is_none() {
                job.board().machine(under)?;
            }
            job.something_runs(under)?;
        }
        Ok(job)
    }

    /// Checks the options of `run`.
    pub fn of_run(args: &RunArgs) -> Result<Self> {
        Ok(Self::new(&args.job)?.within(&args.limits))
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
        if self.expect_reset && self.board().gem5.is_some() && self.unders != [Under::Rouse] {
            bad_input!(
                "--expect-reset: gem5 does not report how a guest ended; the hypervisor does: use --under rouse"
            );
        }
        Ok(())
    }

    /// The board.
    pub fn board(&self) -> &Board {
        &self.load.board
    }

    /// Whether it is our guest that runs, and to measure, not to check.
    pub fn measures(&self) -> bool {
        self.load.guest.is_none() && self.load.measures
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
            ecv: true,
            frequency: self.counter_hz()?,
            hypervisor: under == Under::Rouse,
            event_loses_irq: self.load.plan.event_loses_irq,
        })
    }

    /// A request of which every cell would be skipped is refused right away.
    fn something_runs(&self, under: Under) -> Result<()> {
        if self.load.guest.is_some() {
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

/// How long a boot may go without progress, unless asked otherwise. What the board
/// allows is for the wake-ups of a cell by default: there need be no progress within
/// a cell. More of them take longer, and the pauses between them come on top.
fn patience(load: &Load) -> Duration {
    let plan = &load.plan;
    let pause = plan.lists.gap_us.values.iter().max().copied().unwrap_or(0);
    let pauses = Duration::from_micros(u64::from(pause)) * plan.iterations;
    let more = plan.iterations.div_ceil(Plan::default().iterations).max(1);
    Duration::from_secs(load.board.patience()) * more + pauses
}

/// What the machine is made of: what its board says, and what was asked for.
fn parameters(args: &JobArgs, board: &Board) -> Result<Values> {
    let (preset, set) = (args.preset.as_deref(), args.set.as_deref());
    for (option, asked) in [
        ("--preset", preset.is_some()),
        ("--set", set.is_some()),
        ("--gem5", args.gem5.is_some()),
    ] {
        if asked {
            board.gem5(option)?;
        }
    }
    match &board.gem5 {
        None => Ok(Values::new()),
        Some(gem5) => Parameters::load(&board.beside(&gem5.parameters))?.choose(preset, set),
    }
}

/// How much RAM there is to be.
fn memory(args: &JobArgs, board: &Board) -> Result<String> {
    let Some(memory) = &args.memory else {
        return Ok(board.memory().into());
    };
    let number = memory.trim_end_matches(['M', 'G']);
    if number.parse::<u32>().is_ok_and(|number| number > 0) && memory.len() - number.len() < 2 {
        return Ok(memory.clone());
    }
    bad_input!("--memory: `{memory}` is no size; use for instance 64M or 2G")
}

/// A device tree's file, which has to be there and to be one.
fn tree(path: &PathBuf) -> Result<PathBuf> {
    let shown = path.display();
    let read = fs::canonicalize(path).and_then(|path| Ok((fs::read(&path)?, path)));
    let (bytes, path) = match read {
        Ok(read) => read,
        Err(error) => bad_input!("--dtb: {shown}: {error}; name a flattened device tree"),
    };
    match Fdt::new(&bytes) {
        Ok(_) => Ok(path),
        Err(error) => bad_input!(
            "--dtb: {shown} is no flattened device tree ({error}); name one, which `dtc -O dtb` makes of a source"
        ),
    }
}

/// Wake-ups per cell if pauses are asked for and no number is.
const WITH_GAP: u32 = 200;

/// Wake-ups per cell of `--quick`, on machines where nothing but the order of cells varies.
const QUICK: u32 = 24;

/// The plan that the options describe.
fn plan(args: &PlanArgs) -> Result<Plan> {
    let mut plan = Plan::default();
    let others = [
        ("max-iterations", &args.max_iterations),
        ("iterations", &args.iterations),
        ("cell-ms", &args.cell_ms),
        ("stages", &args.stages),
        ("shard", &args.shard),
    ];
    let others = others
        .into_iter()
        .filter_map(|(key, value)| Some((key, value.as_deref()?)));
    for (key, values) in args.lists.iter().chain(others) {
        let set = plan.set(key, values);
        set.map_err(|error| BadInput::error(format!("--{error}")))?;
    }
    let numbered = args.iterations.is_some() || args.max_iterations.is_some();
    if args.lists.get("gap-us").is_some() && !numbered {
        plan.iterations = WITH_GAP;
    }
    if args.quick {
        if !numbered {
            plan.iterations = QUICK;
        }
        if args.stages.is_none() {
            plan.stages = Dimension {
                values: [Stages::Off].into_iter().collect(),
                named: true,
            };
        }
    }
    plan.raw = args.raw;
    plan.compact = args.compact;
    Ok(plan)
}

/// A list of words that is not part of the plan.
fn words<T: Word>(option: &str, text: &str) -> Result<Vec<T>> {
    if text == "all" {
        return Ok(T::ALL.to_vec());
    }
    let mut values = Vec::new();
    for word in text.split(',') {
        let Some(value) = T::parse(word) else {
            bad_input!(
                "{option}: there is no `{word}`; use all, {}",
                T::NAMES.join(", ")
            );
        };
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// Reads and checks somebody else's guest.
pub fn read_guest(path: &PathBuf) -> Result<Vec<u8>> {
    let shown = path.display();
    let image = match fs::read(path) {
        Ok(image) => image,
        Err(error) => bad_input!("--guest: {shown} can't be read ({error}); name an arm64 Image"),
    };
    match pack::check_guest(&image) {
        Ok(()) => Ok(image),
        Err(why) => bad_input!("--guest: {shown} {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Verb};
    use crate::failure::is_bad_input;
    use clap::Parser;

    fn job(options: &[&str]) -> Result<Job> {
        let line = ["cargo xtask", "run"].iter().chain(options);
        match Cli::try_parse_from(line)?.verb {
            Verb::Run(args) => Job::of_run(&args),
            _ => unreachable!("the verb is run"),
        }
    }

    #[test]
    fn nothing_asked_for_is_the_default_matrix() {
        let job = job(&[]).unwrap();
        assert_eq!(job.unders, [Under::Rouse]);
        assert_eq!(job.load.boot_arguments(), Plan::default().to_string());
    }

    #[test]
    fn more_wake_ups_and_pauses_give_more_time() {
        let patience = |options: &[&str]| job(options).unwrap().limits.without_progress.as_secs();
        assert_eq!(patience(&[]), 240);
        assert_eq!(patience(&["--quick"]), 240);
        assert_eq!(patience(&["--iterations", "20000"]), 2400);
        assert_eq!(patience(&["--gap-us", "20,1000000"]), 440);
        assert_eq!(patience(&["--timeout", "7", "--iterations", "20000"]), 7);
        let gem5 = ["--board", "gem5", "--metric", "cycles"];
        assert_eq!(patience(&gem5), 3600);
    }

    #[test]
    fn options_become_boot_arguments() {
        let options = [
            "--wait",
            "wfi,wfe",
            "--poll-limit-us",
            "50",
            "--append",
            "x=1",
        ];
        let arguments = job(&options).unwrap().load.boot_arguments();
        assert!(arguments.starts_with("rouse.wait=wfi,wfe "), "{arguments}");
        assert!(arguments.ends_with(" x=1"), "{arguments}");
    }

    #[test]
    fn the_program_that_the_boot_arguments_ask_for_is_packed() {
        for (append, program) in [
            ("x=1", Program::Measuring),
            ("rouse.fault=el2-panic", Program::Measuring),
            ("rouse.fault=guest-panic", Program::Trials),
            ("x=1 rouse.stress=9", Program::Trials),
        ] {
            let job = job(&["--append", append]).unwrap();
            let packed = job.load.packed();
            assert!(
                matches!(packed, Guest::Ours(packed) if packed == program),
                "{append}: {packed:?}"
            );
        }
    }

    #[test]
    fn another_guest_is_told_what_was_given_and_nothing_else() {
        let mut image = [0; 64];
        image[56..60].copy_from_slice(b"ARM\x64");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), image).unwrap();
        let guest = ["--guest", file.path().to_str().unwrap()];
        let arguments = |more: &[&str]| {
            let job = job(&[&guest[..], more].concat());
            job.map(|job| job.load.boot_arguments())
        };
        assert_eq!(arguments(&[]).unwrap(), "");
        assert_eq!(arguments(&["--append", "a  b"]).unwrap(), "a  b");
        // One CPU is enough, where our own guest would have nothing to measure.
        assert_eq!(
            arguments(&["--survey", "--cpus", "1"]).unwrap(),
            "rouse.survey"
        );
        for (more, why) in [
            (&["--wait", "wfi"][..], "leave these options out"),
            (
                &[
                    "--board",
                    "gem5",
                    "--metric",
                    "cycles",
                    "--expect-reset",
                    "--under",
                    "none",
                ],
                "use --under rouse",
            ),
        ] {
            let error = arguments(more).unwrap_err();
            assert!(is_bad_input(&error), "{error:#}");
            assert!(format!("{error:#}").contains(why), "{error:#}");
        }
    }

    #[test]
    fn what_can_not_be_is_refused_with_the_remedy() {
        for (options, remedy) in [
            (&["--wait", "wfx"][..], "use all, busy"),
            (&["--under", "xen"], "use all, rouse, none"),
            (&["--board", "no-such"], "use altra, gem5, graviton2"),
            (&["--survey", "--under", "none"], "use --under rouse"),
            (&["--preset", "graviton-like"], "use --board gem5"),
            (
                &["--board", "gem5", "--metric", "cycles", "--preset", "x"],
                "use graviton-like, plain",
            ),
            (
                &[
                    "--board",
                    "gem5",
                    "--metric",
                    "cycles",
                    "--dtb",
                    "Cargo.toml",
                ],
                "leave --dtb out",
            ),
            (
                &["--board", "gem5", "--metric", "cycles", "--boot", "nvme"],
                "use board virt-uefi",
            ),
            (&["--boot", "nvme"], "use board virt-uefi"),
            (&["--board", "altra", "--cpu", "max"], "use neoverse-n1"),
            (
                &["--board", "virt-uefi", "--cpus", "65"],
                "the nearest is 64",
            ),
            (&["--cpus", "65"], "the nearest is 64"),
            (&["--cpus", "1e20"], "the nearest is 64"),
            (&["--iterations", "1e20"], "the nearest is 1000000000"),
            (&["--dtb", "Cargo.toml"], "no flattened device tree"),
            (&["--dtb", "."], "name a flattened device tree"),
            (&["--metric", "cycles"], "QEMU does not model them"),
            (&["--metric", "cycles"], "--metric insns, time"),
            (&["--iterations", "0"], "the nearest is 4"),
            (&["--shard", "9/8"], "the nearest is 8/8"),
            (&["--memory", "much"], "use for instance 64M"),
            (&["--memory", "64MM"], "use for instance 64M"),
            (&["--dtb", "no-such.dtb"], "name a flattened device tree"),
            (&["--shard", "9999/9999"], "use fewer parts"),
            (&["--guest", "/nonexistent"], "name an arm64 Image"),
            (&["--wait", "wfi", "--wake", "elide"], "use wake ipi"),
            (&["--under", "none", "--trap", "wfi"], "use trap none"),
            (
                &["--workload", "ipistorm", "--offset", "2"],
                "offset: 2 maps a CPU onto itself",
            ),
            (
                &["--workload", "ipistorm", "--cpulist", "0+3"],
                "cpulist: CPU 3 is not online",
            ),
            (
                &["--workload", "timer", "--gap-us", "0"],
                "use --gap-us 1000",
            ),
            (&["--groups", "17"], "the nearest is 16"),
            (&["--expect-reset"], "use it with --guest IMAGE"),
            (&["--numipi", "0"], "the nearest is 4"),
        ] {
            let error = job(options).unwrap_err();
            assert!(is_bad_input(&error), "{options:?}");
            assert!(format!("{error:#}").contains(remedy), "{error:#}");
        }
    }
}
