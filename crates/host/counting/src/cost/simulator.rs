// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots gem5 so that it records every instruction with its time.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ::tarmac::Fifo;
use anyhow::Result;
use cost::Path;

use super::cache_misses::{self, Missed};
use super::recorder::{self, ALL_PATHS};
use super::requests;
use super::tarmac;
use super::trace::Window;
use running::boot::{Boots, Launch, Ready, Recorder, Show};
use running::gem5;
use running::job::Job;
use running::options::{JobArgs, LimitArgs};
use shell::partial_files::Scratch;
use shell::progress::Progress;

/// Number of cores: a sender and a receiver.
const CORES: u16 = 2;
/// Boot arguments for a few passes of every path, including the paths with neighbours.
const ARGUMENTS: &str = "rouse.cost=all rouse.cost-brief rouse.neighbour=work rouse.deliver=inject";

/// Parameters of the boots on one model of a core.
#[derive(Debug)]
pub struct Simulator<'a> {
    pub board: &'a str,
    pub model: &'a str,
    pub gem5: Option<&'a std::path::Path>,
    pub limits: &'a LimitArgs,
}

/// The kinds of boots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A boot of the image for measurements, with every path.
    Warm,
    /// Like `Warm`, but caches and TLBs are emptied before each pass.
    Cold,
    /// A boot of the image for tests. Only this image has the paths with the shortest possible vectors.
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

/// The record of a boot.
#[derive(Debug)]
pub struct Recorded {
    pub windows: Vec<Window>,
    /// The lines that each path missed. Only a cold boot has them.
    pub missed: BTreeMap<String, Missed>,
    /// The console's output.
    pub console: String,
    /// Name and version of the simulator.
    pub emulator: String,
    /// Ticks per cycle of a core.
    pub period: u64,
}

impl Simulator<'_> {
    /// Boots once, and returns the record of the boot.
    pub fn record(&self, boot: Boot) -> Result<Recorded> {
        let job = self.job(boot)?.within(self.limits);
        let cold = boot == Boot::Cold;
        let ready = Ready::make(&job)?;
        let folder = Scratch::new()?;
        let traces = (0..CORES).map(|core| {
            Fifo::listen(&folder.path().join(format!("cpu{core}")), move |trace| {
                tarmac::windows(trace, core)
            })
        });
        let traces = traces.collect::<Result<Vec<_>>>()?;
        let misses = folder.path().join("misses");
        let misses = cold.then(|| Fifo::listen(&misses, |text| requests::parse_requests(text)));
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
        // The traces must be ended even after an error. Otherwise, a thread would wait for more lines for ever.
        let windows = traces
            .into_iter()
            .map(Fifo::end)
            .collect::<Result<Vec<_>>>();
        let requests = misses.map(Fifo::end).transpose();
        let console = String::from_utf8_lossy(&boots.log).into_owned();
        recorder::check_outcome(&outcome?, job.variant().under, &console)?;
        let windows = windows?.concat();
        let mut missed = BTreeMap::new();
        if let Some(requests) = requests? {
            missed = cache_misses::worst_passes(&windows, &requests);
        }
        Ok(Recorded {
            windows,
            missed,
            console,
            emulator: ready.emulator.shown(),
            period: gem5::period(&job)?,
        })
    }

    /// Returns how many boots can run in parallel on this computer.
    pub fn parallel_boots(&self) -> Result<NonZeroUsize> {
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
