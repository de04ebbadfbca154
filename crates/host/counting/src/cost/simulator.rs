// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots on gem5 with every instruction and its time looked at.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::cache_misses::{self, Missed};
use super::requests;
use super::trace::Window;
use super::{recorder, tarmac};
use running::boot::{Boots, Launch, Ready, Recorder, Show};
use running::job::Job;
use running::options::{JobArgs, LimitArgs};
use shell::partial_files::Scratch;
use shell::progress::Progress;

/// One core sends, one receives.
const CORES: u16 = 2;
/// Every path in few passes, floors and neighbours too.
const ARGUMENTS: &str =
    "rouse.cost=all rouse.cost-brief rouse.floor rouse.neighbour=work rouse.deliver=inject";
/// Caches and TLBs are emptied before each pass.
const COLD: &str = "rouse.cost-cold";
/// Bytes that are read of a trace at once.
const CHUNK: usize = 1 << 20;

/// Parameters of boots on a model of a core.
#[derive(Debug)]
pub struct Simulator<'a> {
    pub board: &'a str,
    pub model: &'a str,
    pub gem5: Option<&'a Path>,
    pub limits: &'a LimitArgs,
}

/// Record of a boot.
#[derive(Debug)]
pub struct Recorded {
    pub windows: Vec<Window>,
    /// The lines that each path missed, of a cold boot.
    pub missed: BTreeMap<String, Missed>,
    /// Text that the console printed.
    pub console: String,
    /// The emulator, by name and version.
    pub emulator: String,
    /// Ticks of a core's cycle.
    pub period: u64,
}

impl Simulator<'_> {
    /// Boots and answers what was executed, `cold` or warm.
    pub fn record(&self, cold: bool) -> Result<Recorded> {
        let job = self.job(cold)?.within(self.limits);
        let ready = Ready::make(&job)?;
        let folder = Scratch::new()?;
        let traces = (0..CORES).map(|core| {
            Reader::listen(&folder.path().join(format!("cpu{core}")), move |trace| {
                tarmac::windows(trace, core)
            })
        });
        let traces = traces.collect::<Result<Vec<_>>>()?;
        let misses = folder.path().join("misses");
        let misses = cold.then(|| Reader::listen(&misses, |text| requests::requests(text)));
        let misses = misses.transpose()?;
        let title = format!("{}, {}", self.model, if cold { "cold" } else { "warm" });
        let mut boots = Boots::new(&ready.emulator, &ready.built, Show::Nothing, Vec::new());
        let outcome = boots.boot(Launch {
            job: &job,
            variant: job.variant(),
            title: title.clone(),
            progress: Progress::new(title),
            recorder: Some(Recorder::Tracers(folder.path())),
        });
        // The traces end here in any case: a thread would wait for more for ever.
        let windows = traces
            .into_iter()
            .map(Reader::end)
            .collect::<Result<Vec<_>>>();
        let requests = misses.map(Reader::end).transpose();
        let console = String::from_utf8_lossy(&boots.log).into_owned();
        recorder::check(&outcome?, job.variant().under, &console)?;
        let windows = windows?.concat();
        let mut missed = BTreeMap::new();
        if let Some(requests) = requests? {
            missed = cache_misses::most(&windows, &requests);
        }
        Ok(Recorded {
            windows,
            missed,
            console,
            emulator: ready.emulator.shown(),
            period: period(&job)?,
        })
    }

    /// How many can run side by side here.
    pub fn at_once(&self) -> Result<NonZeroUsize> {
        Ok(self.job(false)?.emulators())
    }

    fn job(&self, cold: bool) -> Result<Job> {
        let mut args = JobArgs::on(self.board);
        args.cpus = Some(CORES.into());
        args.cpu = Some(self.model.into());
        args.gem5 = self.gem5.map(PathBuf::from);
        let cold = if cold { COLD } else { "" };
        args.load.append = Some(format!("{ARGUMENTS} {cold}"));
        Job::new(&args)
    }
}

/// gem5's ticks are picoseconds (its `src/sim/core.hh`).
fn period(job: &Job) -> Result<u64> {
    const NAME: &str = "core-mhz";
    let clock = job.parameters.get(NAME);
    let clock = clock.with_context(|| format!("board {}: no {NAME}", job.board().name))?;
    Ok(1_000_000 / clock.value)
}

/// Reader of gem5's output to a FIFO while it is written: it is longer than what is kept of it.
struct Reader<T> {
    /// Keeps the FIFO open, so that it ends when this is closed and not before it has begun.
    keeper: File,
    reader: JoinHandle<Result<T>>,
}

impl<T: Send + 'static> Reader<T> {
    /// Makes a FIFO at `path` and has `read` read it.
    fn listen(
        path: &Path,
        read: impl FnOnce(&mut BufReader<File>) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)
            .with_context(|| format!("{} can't be made a FIFO", path.display()))?;
        // Opening both ends does not wait for another one (Linux, fifo(7)).
        let keeper = OpenOptions::new().read(true).write(true).open(path)?;
        let mut trace = BufReader::with_capacity(CHUNK, File::open(path)?);
        let reader = std::thread::spawn(move || {
            let found = read(&mut trace);
            // gem5 would wait for ever at a FIFO that is full.
            io::copy(&mut trace, &mut io::sink()).context("gem5's trace can't be read")?;
            found
        });
        Ok(Self { keeper, reader })
    }

    fn end(self) -> Result<T> {
        drop(self.keeper);
        let ended = self.reader.join();
        ended.map_err(|_| anyhow!("the reader of gem5's trace has panicked"))?
    }
}
