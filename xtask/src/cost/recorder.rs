// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots with the recorder looking on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use plan::{Program, Under};

use super::card::Mode;
use super::trace::Trace;
use crate::board::Board;
use crate::boot::{self, Outcome, Show, Watch};
use crate::cli::{Cli, LimitArgs, Verb};
use crate::console::Console;
use crate::images::{self, Built, Guest};
use crate::job::Job;
use crate::partial::Scratch;
use crate::progress::Progress;
use crate::qemu::{self, Emulator};
use crate::symbols::{self, Symbols};
use crate::{interrupt, launch, places, toolchain, verdict};

const PACKAGE: &str = "recorder";

/// What boots need.
#[derive(Debug)]
pub struct Bench {
    /// The emulator.
    pub emulator: Emulator,
    /// The images, with the trials as guest.
    pub built: Built,
    /// The same with the measuring program.
    pub measuring: Built,
    plugin: PathBuf,
    board: String,
    /// How long a boot may take.
    pub limits: LimitArgs,
}

/// What came of a boot.
#[derive(Debug)]
pub struct Recorded {
    /// What was executed.
    pub trace: Trace,
    /// What the console said.
    pub console: String,
}

impl Bench {
    /// Builds everything for `board`, whose boots have these limits.
    pub fn new(board: &str, limits: &LimitArgs) -> Result<Self> {
        interrupt::catch()?;
        let emulator = interrupt::or(qemu::ensure_for(&Board::load(board)?, "cost"))?;
        let built = interrupt::or(images::build(board, Guest::Ours(Program::Trials)))?;
        let measuring = interrupt::or(images::build(board, Guest::Ours(Program::Measuring)))?;
        Ok(Self {
            emulator,
            built,
            measuring,
            plugin: interrupt::or(build())?,
            board: board.into(),
            limits: *limits,
        })
    }

    /// A job whose CPUs run at the same time; `arguments` are the guest's.
    fn job(&self, mode: Mode, cpus: u32, arguments: &str) -> Result<Job> {
        let (under, deliver) = match mode {
            Mode::Inject => ("rouse", "inject"),
            Mode::Direct => ("rouse", "direct"),
            Mode::None => ("none", "inject"),
        };
        let options = [
            format!("--board={}", self.board),
            format!("--under={under}"),
            format!("--cpus={cpus}"),
            format!("--append={arguments} rouse.deliver={deliver}"),
            "--metric=time".into(),
        ];
        let line = ["cargo xtask".to_owned(), "run".into()]
            .into_iter()
            .chain(options);
        match Cli::try_parse_from(line)?.verb {
            Verb::Run(args) => Ok(Job::of_run(&args)?.within(&self.limits)),
            _ => unreachable!("the verb is run"),
        }
    }

    /// Boots the trials in `mode` with `arguments` and answers what was recorded.
    pub fn record(&self, mode: Mode, cpus: u32, arguments: &str) -> Result<Recorded> {
        self.record_of(&self.built, mode, cpus, arguments)
    }

    /// The same of any image.
    pub fn record_of(
        &self,
        built: &Built,
        mode: Mode,
        cpus: u32,
        arguments: &str,
    ) -> Result<Recorded> {
        let job = self.job(mode, cpus, arguments)?;
        let under = job.unders[0];
        let folder = Scratch::new()?;
        let trace = folder.path().join("trace");
        let mut command = launch::command(&job, under, &self.emulator, built)?;
        attach(&mut command, &self.plugin, &[("out", &*trace)]);
        launch::supervise(&mut command, &folder.path().join(qemu::MONITOR));
        let watch = Watch {
            place: folder.path(),
            limits: job.limits,
            disturb: job.disturb,
            show: Show::Nothing,
            progress: Progress::new(format!("{}, {cpus} CPUs", mode.name())),
        };
        let console = Console::new(symbols_of(built, under, job.board().image_base));
        let mut log = Vec::new();
        let outcome = boot::boot(command, console, &mut log, watch)?;
        let console = String::from_utf8_lossy(&log).into_owned();
        check(&outcome, under, &console)?;
        let bytes = fs::read(&trace).context("the recorder left no trace")?;
        Ok(Recorded {
            trace: Trace::parse(&bytes)?,
            console,
        })
    }
}

fn symbols_of(built: &Built, under: Under, base: Option<u64>) -> Symbols {
    let mut symbols = Symbols::default();
    if under == Under::Rouse {
        symbols.add(symbols::HYPERVISOR, &built.hypervisor, base);
    }
    if let Some(guest) = &built.guest {
        let base = base.filter(|_| under == Under::None);
        symbols.add(symbols::GUEST, guest, base);
    }
    symbols
}

fn check(outcome: &Outcome, under: Under, console: &str) -> Result<()> {
    match verdict::judge(outcome, under, false) {
        None if console.contains("exit status 0") => Ok(()),
        None => bail!("under {under}: ended without saying so; the console said:\n{console}"),
        Some(failure) => bail!("{}; the console said:\n{console}", failure.told()),
    }
}

/// Has the emulator load the plugin, with options that name files.
pub fn attach(command: &mut Command, plugin: &Path, options: &[(&str, &Path)]) {
    let doubled = |path: &Path| path.display().to_string().replace(',', ",,");
    let mut value = format!("file={}", doubled(plugin));
    for (name, path) in options {
        value += &format!(",{name}={}", doubled(path));
    }
    command.arg("-plugin").arg(value);
}

/// Builds the plugin, in a directory of its own: Cargo locks the one that runs
/// this program.
pub fn build() -> Result<PathBuf> {
    let directory = places::inside("target/recorder");
    let mut cargo = Command::new(toolchain::cargo());
    cargo
        .current_dir(places::root())
        .args(["build", "--quiet", "--release", "--package", PACKAGE])
        .arg("--target-dir")
        .arg(&directory);
    let status = cargo.status().context("cargo can't be started")?;
    if !status.success() {
        bail!("the recorder does not build; what cargo said is above");
    }
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    Ok(directory.join(format!("release/{prefix}{PACKAGE}{suffix}")))
}
