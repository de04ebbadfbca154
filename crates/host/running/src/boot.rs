// SPDX-License-Identifier: MIT OR Apache-2.0
//! Boots machines, for every verb that needs a boot.
//!
//! [`Ready`] has the emulator and the images for boots. [`Boots`] boots machines one after another. For each machine,
//! it makes the emulator's command, starts the emulator, and follows it ([`follow`]) until the emulator ends or must be
//! stopped ([`Ending`]). [`Boots`] keeps the output in [`TextFiles`].

mod clock;
mod ending;
mod follow;
mod ordered_log;
pub mod places;
mod startup_lines;
mod text_files;

pub use ending::{Ending, Stall};
pub use follow::Outcome;
pub use ordered_log::Turns;
pub use startup_lines::startup_lines;
pub use text_files::TextFiles;

use std::io::Write;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use anyhow::{Error, Result};
use plan::Under;
use wire::Source;

use crate::boot_cache::Boot;
use crate::console::Console;
use crate::emulator::Emulator;
use crate::images::{self, Built};
use crate::job::{Job, Variant};
use crate::kvm::Host;
use crate::options::Metric;
use crate::xen::Xen;
use crate::{launch, memory};
use follow::Watch;
use guests::symbols::{self, Symbols};
use providing::bao::Bao;
use providing::{qemu, toolchain};
use shell::failure::is_bad_input;
use shell::interrupt;
use shell::partial_files::Scratch;
use shell::processor_time::Account;
use shell::progress::Progress;
use shell::timings::{self, Part};

/// Emulator and images for boots.
#[derive(Debug)]
pub struct Ready {
    pub emulator: Emulator,
    pub built: Built,
}

/// Missing hypervisors, and why each is not available here.
pub type Lacks = Vec<(Under, Error)>;

impl Ready {
    /// Finds the emulator of `job`, and builds its images. From this call on, a signal is only noted, so that the
    /// program can remove its unfinished files and folders before it ends.
    pub fn make(job: &Job) -> Result<Self> {
        let (ready, lacks) = Self::make_available(job, |_, _| ())?;
        lacks
            .into_iter()
            .next()
            .map_or(Ok(ready), |(_, why)| Err(why))
    }

    /// Like [`make`](Self::make), but leaves out hypervisors that are not available. Fails if none is available. Calls
    /// `meanwhile` when the emulator is available, while the images are still being built.
    pub fn make_available(job: &Job, meanwhile: fn(&Emulator, &Job)) -> Result<(Self, Lacks)> {
        interrupt::catch()?;
        let usable = timings::time_part(Part::Emulator, || interrupt::or(Emulator::usable(job)))?;
        toolchain::look_up_early();
        let account = Account::of_this_thread();
        // A missing emulator is downloaded while the images are compiled.
        let emulator = || -> Result<Emulator> {
            let emulator = usable.map_or_else(|| interrupt::or(Emulator::provide()), Ok)?;
            meanwhile(&emulator, job);
            Ok(emulator)
        };
        let (emulator, built) = thread::scope(|scope| {
            let emulator = scope.spawn(|| account.charge(emulator));
            let built = timings::time_part(Part::Pack, || interrupt::or(job.build()));
            let emulator = emulator.join().unwrap_or_else(|panic| resume_unwind(panic));
            anyhow::Ok((emulator?, built?))
        })?;
        // Too little RAM is reported before anything is fetched, and before anything is booted to read its version.
        memory::settle(job, &built)?;
        let mut ready = Self { emulator, built };
        let mut lacks = Lacks::new();
        for &under in &job.unders {
            match interrupt::or(ready.provide_hypervisor(job, under)) {
                Err(why) if is_bad_input(&why) => lacks.push((under, why)),
                provided => provided?,
            }
        }
        if lacks.len() == job.unders.len() {
            let (_, why) = lacks.swap_remove(0);
            return Err(why);
        }
        Ok((ready, lacks))
    }

    /// Provides the hypervisor `under`, unless it is Rouse or none.
    fn provide_hypervisor(&mut self, job: &Job, under: Under) -> Result<()> {
        let built = &mut self.built;
        if under.kvm_mode().is_some() && built.host.is_none() {
            built.host = Some(Host::ensure(
                job.host_kernel.as_deref(),
                job.hands_over,
                images::monitor,
            )?);
        }
        if under == Under::Bao {
            built.bao = Some(Bao::find(job.bao.as_deref())?);
        }
        if let (Under::Xen, Emulator::Qemu(qemu)) = (under, &self.emulator) {
            built.xen = Some(Xen::ensure(
                job.xen.as_deref(),
                job.xen_args.as_deref(),
                |xen| startup_lines(launch::xen_alone(job, qemu, xen)?, job.limits, Xen::is_last),
            )?);
        }
        Ok(())
    }
}

/// The lines that the terminal shows while a boot runs; the log has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Show {
    Nothing,
    /// Dumps, and the machine's description if it was requested.
    Dumps,
    /// Dumps, the description, and every line that is not a record.
    Console,
}

/// A boot to make.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The machine, its options, and its time limits.
    pub job: &'a Job,
    pub variant: Variant,
    /// The boot's name in its files.
    pub title: String,
    /// Shows the boot's progress to people.
    pub progress: Progress,
    pub recorder: Option<Recorder<'a>>,
}

/// Recorder of the instructions that CPUs execute.
#[derive(Clone, Debug)]
pub enum Recorder<'a> {
    /// A plugin of QEMU.
    Plugin {
        plugin: &'a Path,
        /// The plugin's options, each with a file.
        options: Vec<(&'static str, &'a Path)>,
    },
    /// gem5's own tracers, which write to the files `cpuN` in a folder.
    Tracers(&'a Path),
}

/// Boots machines one after another, and keeps their output. Writes every line of the machines' consoles to the log as
/// it arrives.
#[derive(Debug)]
pub struct Boots<'a, L> {
    /// Emulator of all boots.
    pub emulator: &'a Emulator,
    pub built: &'a Built,
    show: Show,
    /// The consoles' log.
    pub log: L,
    /// Files in addition to the log.
    pub kept: TextFiles,
}

impl<'a, L: Write> Boots<'a, L> {
    /// Creates the state before the first boot.
    pub fn new(emulator: &'a Emulator, built: &'a Built, show: Show, log: L) -> Self {
        Self {
            kept: TextFiles::new(&emulator.shown()),
            ..Self::part(emulator, built, show, log)
        }
    }

    /// Like [`new`](Self::new), for the second and later parts of a run: their files already have a heading.
    pub fn part(emulator: &'a Emulator, built: &'a Built, show: Show, log: L) -> Self {
        Self {
            kept: TextFiles::default(),
            emulator,
            built,
            show,
            log,
        }
    }

    /// Boots the machine, and follows it until it ends.
    pub fn boot(&mut self, launch: Launch<'_>) -> Result<Outcome> {
        let Launch { job, variant, .. } = launch;
        let place = Scratch::new()?;
        let mut command = self
            .emulator
            .command(job, variant, self.built, place.path())?;
        let before = job.before.as_deref().zip(self.repeating_emulator(job));
        let before = before.map(|(before, qemu)| {
            before.boot(&qemu.exact, &command, place.path(), &plugin_files(&launch))
        });
        let before = before.transpose()?;
        self.emulator.supervise(&mut command, place.path());
        match &launch.recorder {
            Some(Recorder::Plugin { plugin, options }) => {
                launch::load_recorder(&mut command, plugin, options);
            }
            Some(Recorder::Tracers(folder)) => {
                command.arg("--trace").arg(folder);
            }
            None => {}
        }
        self.kept
            .add_command(&launch.title, &shell::command::typed(&command));
        let watch = Watch {
            place: place.path(),
            limits: job.limits,
            disturb: job.disturb,
            show: self.show,
            progress: launch.progress,
            keep: before.is_some(),
            writes: job.traces,
            refuses_off: (variant.under == Under::Bao).then_some(launch::BAO_REFUSES_OFF),
        };
        let raw = raw_source(variant.under, job.load.packed().source());
        let console = Console::new(symbols_of_boot(job, variant, self.built), raw);
        let log = &mut self.log;
        let mut outcome =
            timings::time_part(Part::Boots, || match before.as_ref().and_then(Boot::went) {
                Some(went) => follow::follow_stored(went, console, log, watch),
                None => follow::follow(command, console, log, watch),
            })?;
        if let Some((before, went)) = before.zip(outcome.went.take()) {
            before.keep(&went)?;
        }
        self.kept.add_boot(&launch.title, &outcome, self.show);
        Ok(outcome)
    }

    /// Returns the emulator if a repeated boot of `job` must have the same outcome: see [`crate::boot_cache`].
    fn repeating_emulator(&self, job: &Job) -> Option<&'a qemu::Emulator> {
        match self.emulator {
            Emulator::Qemu(qemu) if job.metric == Metric::Insns => {
                job.disturb.is_none().then_some(qemu)
            }
            Emulator::Qemu(_) | Emulator::Gem5(_) => None,
        }
    }
}

/// Returns the plugin that observes a boot, and its options.
fn plugin_files<'a>(launch: &'a Launch) -> Vec<(&'static str, &'a Path)> {
    match &launch.recorder {
        Some(Recorder::Plugin { plugin, options }) => {
            let plugin = [("file", *plugin)].into_iter();
            plugin.chain(options.iter().copied()).collect()
        }
        Some(Recorder::Tracers(_)) | None => Vec::new(),
    }
}

/// Returns the source of the text that reaches the console unfiltered: `source` if neither our EL2 nor our monitor is
/// below the guest, or else our own images.
const fn raw_source(under: Under, source: Source) -> Source {
    match under {
        Under::None | Under::Xen | Under::Bao => source,
        Under::Rouse | Under::Kvm | Under::KvmNvhe | Under::KvmProtected => Source::Ours,
    }
}

/// Returns the names of functions in the images of a boot.
fn symbols_of_boot(job: &Job, variant: Variant, built: &Built) -> Symbols {
    let mut symbols = Symbols::default();
    let base = job.board().machine.image_base();
    if variant.under == Under::Rouse {
        symbols.add_image(symbols::HYPERVISOR, &built.hypervisor, base);
    }
    if let Some(guest) = built.guest_elf(job.image(variant)) {
        let base = base.filter(|_| variant.under == Under::None);
        symbols.add_image(symbols::GUEST, guest, base);
    }
    symbols
}
