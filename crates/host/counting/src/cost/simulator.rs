// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots on gem5 that record every instruction with its time.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow};
use cost::Path;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::cache_misses::{self, Missed};
use super::recorder::{self, ALL_PATHS};
use super::requests;
use super::tarmac;
use super::trace::Window;
use running::boot::{Boots, Launch, Ready, Recorder, Show};
use running::job::Job;
use running::options::{JobArgs, LimitArgs};
use shell::partial_files::Scratch;
use shell::progress::Progress;

/// A sender and a receiver.
const CORES: u16 = 2;
/// Arguments for a few passes of every path, including paths with neighbours.
const ARGUMENTS: &str = "rouse.cost=all rouse.cost-brief rouse.neighbour=work rouse.deliver=inject";
/// Bytes of a trace to read at once.
const CHUNK: usize = 1 << 20;

/// Parameters of boots on a model of a core.
#[derive(Debug)]
pub struct Simulator<'a> {
    pub board: &'a str,
    pub model: &'a str,
    pub gem5: Option<&'a std::path::Path>,
    pub limits: &'a LimitArgs,
}

/// A boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A boot of the image for measurements: every path.
    Warm,
    /// Like `Warm`, but caches and TLBs are emptied before each pass.
    Cold,
    /// A boot of the image for tests: the floors, which no other image has.
    Floors,
}

impl Boot {
    pub const ALL: [Self; 3] = [Self::Warm, Self::Floors, Self::Cold];

    const fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::Floors => "floors",
        }
    }

    fn arguments(self) -> String {
        match self {
            Self::Warm => ARGUMENTS.into(),
            Self::Cold => format!("{ARGUMENTS} rouse.cost-cold"),
            Self::Floors => {
                let paths = Path::ALL.iter().filter(|path| path.is_floor());
                let names: Vec<_> = paths.map(|path| path.name()).collect();
                let paths = format!("rouse.cost={}", names.join(","));
                format!("{} rouse.floor", ARGUMENTS.replacen(ALL_PATHS, &paths, 1))
            }
        }
    }
}

/// Record of a boot.
#[derive(Debug)]
pub struct Recorded {
    pub windows: Vec<Window>,
    /// The lines that each path missed, in a cold boot.
    pub missed: BTreeMap<String, Missed>,
    /// The console's output.
    pub console: String,
    /// Name and version of the emulator.
    pub emulator: String,
    /// Ticks per cycle of a core.
    pub period: u64,
}

impl Simulator<'_> {
    /// Boots, and returns a record of the execution.
    pub fn record(&self, boot: Boot) -> Result<Recorded> {
        let job = self.job(boot)?.within(self.limits);
        let cold = boot == Boot::Cold;
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
        let title = format!("{}, {}", self.model, boot.name());
        let mut boots = Boots::new(&ready.emulator, &ready.built, Show::Nothing, Vec::new());
        let outcome = boots.boot(Launch {
            job: &job,
            variant: job.variant(),
            title: title.clone(),
            progress: Progress::new(title),
            recorder: Some(Recorder::Tracers(folder.path())),
        });
        // The traces end in any case: otherwise, a thread would wait for more for ever.
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

    /// Returns how many boots can run in parallel on this computer.
    pub fn at_once(&self) -> Result<NonZeroUsize> {
        Ok(self.job(Boot::Warm)?.emulators())
    }

    fn job(&self, boot: Boot) -> Result<Job> {
        let mut args = JobArgs::on(self.board);
        args.cpus = Some(CORES.into());
        args.cpu = Some(self.model.into());
        args.gem5 = self.gem5.map(PathBuf::from);
        args.load.append = Some(boot.arguments());
        Job::new(&args)
    }
}

/// Returns the period of a core's clock in gem5's ticks, which are picoseconds (its `src/sim/core.hh`).
fn period(job: &Job) -> Result<u64> {
    const NAME: &str = "core-mhz";
    let clock = job.parameters.get(NAME);
    let clock = clock.with_context(|| format!("board {}: no {NAME}", job.board().name))?;
    Ok(1_000_000 / clock.value)
}

/// Reads gem5's output from a FIFO while gem5 writes it: the output is much longer than the part to keep.
struct Reader<T> {
    /// Keeps the FIFO open, so that the reader sees its end only when this file is closed.
    keeper: File,
    reader: JoinHandle<Result<T>>,
}

impl<T: Send + 'static> Reader<T> {
    /// Creates a FIFO at `path` and a thread that runs `read` on it.
    fn listen(
        path: &std::path::Path,
        read: impl FnOnce(&mut BufReader<File>) -> Result<T> + Send + 'static,
    ) -> Result<Self> {
        mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)
            .with_context(|| format!("{} can't be made a FIFO", path.display()))?;
        // Opening both ends does not block (Linux, fifo(7)).
        let keeper = OpenOptions::new().read(true).write(true).open(path)?;
        let mut trace = BufReader::with_capacity(CHUNK, File::open(path)?);
        let reader = std::thread::spawn(move || {
            let found = read(&mut trace);
            // Otherwise, gem5 would block for ever on a full FIFO.
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
