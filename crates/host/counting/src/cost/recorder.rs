// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots images with the recorder, and reads the recorder's traces.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use plan::{Atomics, Planted, Program, Under};

use super::costs::Mode;
use super::trace::Trace;
use running::board::Board;
use running::boot::{Boots, Launch, Outcome, Ready, Recorder, Show};
use running::emulator::Emulator;
use running::images::{self, Built, Guest};
use running::job::Job;
use running::options::{JobArgs, LimitArgs, Metric, Unders};
use running::{memory, verdict};
use shell::failure;
use shell::interrupt;
use shell::partial_files::Scratch;
use shell::progress::Progress;

/// Boot argument that selects every path.
pub const ALL_PATHS: &str = "rouse.cost=all";
/// Boot argument that makes EL2 reserve memory for neighbours, because one path has a neighbour.
const NEIGHBOUR: &str = "rouse.neighbour=work";
/// Like [`NEIGHBOUR`], but also makes EL2 use the shortest possible vectors for the guest. Only images for tests
/// contain these vectors.
const FLOORS: &str = "rouse.neighbour=work rouse.floor";
/// Number of CPUs in the boots that count paths: a sender and a receiver.
pub const CPUS: u32 = 2;

/// The data that all boots need: the emulator, the images and the time limits.
#[derive(Debug)]
pub struct Bench {
    pub emulator: Emulator,
    /// The images whose guest runs the trials.
    pub built: Built,
    /// The images whose guest is the measuring program.
    pub measuring: Built,
    /// Boot arguments of the trials, besides the arguments that select the paths.
    lent: &'static str,
    plugin: PathBuf,
    board: String,
    /// The kind of atomic instructions that the running guest uses.
    pub atomics: Atomics,
    pub limits: LimitArgs,
}

/// The record of a boot.
#[derive(Debug)]
pub struct Recorded {
    /// The passes of the paths, each with the instructions that it executed.
    pub trace: Trace,
    /// The console's output.
    pub console: String,
}

impl Bench {
    /// Builds everything for `board`. All boots will have the limits `limits`.
    pub fn new(board: &str, limits: &LimitArgs) -> Result<Self> {
        Self::build(board, limits, NEIGHBOUR)
    }

    /// Like [`Self::new`], but with the boot arguments for the shortest possible vectors.
    pub fn with_floors(board: &str, limits: &LimitArgs) -> Result<Self> {
        Self::build(board, limits, FLOORS)
    }

    fn build(board: &str, limits: &LimitArgs, lent: &'static str) -> Result<Self> {
        Board::load(board)?.qemu("cost")?;
        let first = job(board, Mode::Inject, CPUS, &format!("{ALL_PATHS} {lent}"))?;
        let Ready { emulator, built } = Ready::make(&first)?;
        let measuring = Guest::Ours(Program::Measuring);
        let atomics = first.image(first.variant());
        let needed = BTreeSet::from([atomics]);
        let board_name = &first.board().name;
        let measuring = images::build_planted(board_name, measuring, &needed, Planted::NOTHING);
        Ok(Self {
            emulator,
            built,
            measuring: interrupt::or(measuring)?,
            lent,
            plugin: interrupt::or(images::recorder())?,
            board: board.into(),
            atomics,
            limits: *limits,
        })
    }

    /// Boots the trials in `mode` with `arguments`, and returns the record.
    pub fn record(&self, mode: Mode, cpus: u32, arguments: &str) -> Result<Recorded> {
        let arguments = format!("{arguments} {}", self.lent);
        self.record_image(&self.built, mode, cpus, &arguments)
    }

    /// Like [`Self::record`], for any image.
    pub fn record_image(
        &self,
        built: &Built,
        mode: Mode,
        cpus: u32,
        arguments: &str,
    ) -> Result<Recorded> {
        let job = job(&self.board, mode, cpus, arguments)?.within(&self.limits);
        let folder = Scratch::new()?;
        let trace = folder.path().join("trace");
        memory::settle(&job, built)?;
        let mut boots = Boots::new(&self.emulator, built, Show::Nothing, Vec::new());
        let outcome = boots.boot(Launch {
            job: &job,
            variant: job.variant(),
            title: mode.name().into(),
            progress: Progress::new(format!("{}, {cpus} CPUs", mode.name())),
            recorder: Some(Recorder::Plugin {
                plugin: &self.plugin,
                options: vec![("out", &trace)],
            }),
        })?;
        let console = String::from_utf8_lossy(&boots.log).into_owned();
        check_outcome(&outcome, mode.layer_below(), &console)?;
        let bytes = fs::read(&trace).context("the recorder left no trace")?;
        Ok(Recorded {
            trace: Trace::parse(&bytes)?,
            console,
        })
    }
}

/// Returns a job whose CPUs run in parallel. The guest gets the boot arguments `arguments`.
fn job(board: &str, mode: Mode, cpus: u32, arguments: &str) -> Result<Job> {
    let deliver = mode.delivery();
    let mut args = JobArgs::on(board);
    args.under = Some(Unders::Named(vec![mode.layer_below()]));
    args.cpus = Some(cpus);
    args.metric = Some(Metric::Time);
    args.load.append = Some(format!("{arguments} rouse.deliver={deliver}"));
    Job::new(&args)
}

pub fn check_outcome(outcome: &Outcome, under: Under, console: &str) -> Result<()> {
    match verdict::judge(outcome, under, false) {
        None if console.contains("exit status 0") => Ok(()),
        None => Err(failure::listed(
            &format!("under {under}: ended without a report; the console printed"),
            console,
        )),
        Some(failed) => Err(failure::listed(
            &format!("{}; the console printed", failed.told()),
            console,
        )),
    }
}
