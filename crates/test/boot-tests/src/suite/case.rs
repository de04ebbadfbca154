// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test that boots: `tests/<name>.toml`.
//!
//! ```toml
//! about = "the property"
//!
//! [run]                       # options of `cargo xtask run`, without dashes
//! workload = "pingpong"
//! wait = ["wfi", "spin"]      # a list is joined with commas
//! iterations = 400            # `guest`, `dtb` and a file as `board` are paths in the workspace
//! survey = true               # an option without a value
//!
//! [guest]                     # run test-kernel/ in place of Rouse's guest, with these fields of
//! image_size = 0x3c00000      # its header replaced; also text_offset, flags;
//! kvm_unit_test = "gic"       # or run arm/gic.elf of kvm-unit-tests
//!
//! [firmware]                  # boot with dirty-firmware/, which
//! leaves = ["ram", "spis"]    # leaves this state behind (docs/bring-up.md)
//!
//! [expect]
//! status = "ok"               # or crash, hang, stopped-early, exit-status, refused, reset, ..., bad-input
//! says = "text"               # part of the error
//! console = ["stage", "text"] # parts of the console's log, in this order
//! times = { "text" = 1 }      # how often a text occurs in the console's log, anywhere
//! table = ["text"]            # parts of the table on a terminal
//! table_lacks = ["text"]      # and texts that the table must not contain
//! skipped = 0                 # how many cells are skipped; any number if absent
//! functions = { "pipe_write" = [1, 900] } # instructions of a function on the first cell's path
//!
//! [[cell]]                    # every cell that `select` chooses, at least one
//! select = { wait = "wfi", trap = "wfi" }
//! exits = { wfi = 2, irq = [0, 1] }   # per sample: about this number, or between these two
//! no_exits = ["sgi"]
//! ipis = { sent = 2 }
//! wakes = { timeout = 0 }
//! counts = { "irq.taken" = 2 }        # any other counter
//! p50 = [100, 5000]
//! max_p50 = 5000
//! max = [100, 5000]           # the largest sample
//! path = 66                   # critical path of each sample, if samples have stages; [60, 70]: its median
//! samples = [40, 100]
//! ended = "budget"            # or settled, samples
//! equal = true                # all samples are equal
//! rising = [0.9, 1]           # share of the samples that are larger than the one before; needs `raw`
//! same_p50 = "gap-us"         # cells that differ only in this dimension have equal medians
//! unit = "vticks"
//!
//! [[order]]                   # every cell that `less` chooses has a smaller median
//! less = { wait = "wfi" }     # than every cell that `than` chooses; `same` and `as`: equal medians
//! than = { wait = "spin" }
//!
//! [[cut]]                     # the log up to the end of this pass, as `report` reads it, has every cell,
//! after = 2                   # each with this many passes unless the cell ended earlier
//! into_next = 3000            # likewise with this many further bytes, from the next pass
//!
//! [[same]]                    # a further run, with these options in place of those above,
//! run = { boot = "virtio" }   # has the same cells,
//! percent = 1                 # and medians that differ by no more than this
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use plan::Under;
use providing::bao::Bao;
use serde::Deserialize;

use super::cells::Expected;
use super::equal_runs::Same;
use super::expectation::Expect;
use super::firmware::Firmware;
use super::kernel::Kernel;
use super::options::{Options, options, typed};
use super::order::Order;
use super::truncated_log::Cut;
use providing::gem5;
use running::board::{Board, EmulatedMachine};
use running::boot::Show;
use running::boot_cache::BootCache;
use running::job::Job;
use running::options::{Metric, RunArgs, Unders};
use running::session::{self, Session};
use shell::failure::{BadInput, is_bad_input};
use shell::folder::Folder;
use shell::{files, mistake, places};

/// How long a boot may go without progress while the architecture's rules are checked at each instruction, in seconds
/// of the emulator's own time. Linux prints nothing for a long time while it boots.
const WATCHED_PATIENCE: u64 = 7200;
/// Factor by which a boot takes longer while the rules are checked. The emulator runs each CPU as a thread: when 512
/// CPUs hand over a lock in order, each handover waits until the host runs the next thread.
const WATCHED_SLOWER: u64 = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name of the file.
    #[serde(skip)]
    pub name: String,
    /// The property that the test proves.
    #[expect(
        dead_code,
        reason = "for readers of the file; required so that it is written"
    )]
    about: String,
    /// Options of `run`, without dashes.
    #[serde(default)]
    run: Options,
    /// The kernel to run in place of Rouse's own guest.
    guest: Option<Kernel>,
    /// The firmware to boot with; `None` to boot in the board's usual way.
    firmware: Option<Firmware>,
    #[serde(default)]
    expect: Expect,
    #[serde(default, rename = "cell")]
    cells: Vec<Expected>,
    /// Cells that must cost less than, or as much as, other cells.
    #[serde(default)]
    order: Vec<Order>,
    /// Requirements on the results read from a truncated log.
    #[serde(default)]
    cut: Vec<Cut>,
    /// Further runs that must have equal results.
    #[serde(default)]
    same: Vec<Same>,
}

impl Case {
    pub fn load(path: &Path) -> Result<Self> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let shown = places::shown(path);
        let text = files::read_text(path).map_err(|error| {
            BadInput::error(format!("{shown} can't be read ({error}); correct it"))
        })?;
        Self::parse(&name, &text)
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let place = || BadInput::context(format!("tests/{name}.toml can't be used; correct it"));
        let parsed = toml::from_str(text).map_err(|error| anyhow!(mistake::told(text, &error)));
        let mut case: Self = parsed.with_context(place)?;
        case.name = name.into();
        case.expect.check().with_context(place)?;
        options(&case.run).with_context(place)?;
        for same in &case.same {
            options(&same.options(&case.run)).with_context(place)?;
        }
        Ok(case)
    }

    /// Returns the time limit of each of the test's boots in seconds, or a huge number if the test sets no limit. The
    /// shortest tests do set one.
    pub fn patience(&self) -> i64 {
        let timeout = self.run.get("timeout");
        timeout
            .and_then(toml::Value::as_integer)
            .unwrap_or(i64::MAX)
    }

    /// Returns the name of a tool that the test needs but this computer lacks. Such a tool is an emulator that no
    /// distribution packages, or a firmware, hypervisor or guest that can't be fetched.
    pub fn lacks(&self) -> Option<String> {
        let job = options(&self.run).ok()?.job;
        let is_bao =
            |unders: &Unders| matches!(unders, Unders::Named(named) if named.contains(&Under::Bao));
        // A test that expects a refusal names Bao's folder itself.
        if job.under.as_ref().is_some_and(is_bao) && job.bao.is_none() {
            return Some(format!("{:#}", Bao::source(None).err()?));
        }
        if let Some(lacks) = self.guest.as_ref().and_then(Kernel::lacks) {
            return Some(lacks);
        }
        match self.board()?.machine {
            EmulatedMachine::Qemu(qemu) => qemu.lacks(),
            EmulatedMachine::Gem5(_) => Some(format!("{:#}", gem5::find(None).err()?)),
        }
    }

    /// Returns whether the test boots on QEMU, which xtask provides if it is missing.
    pub fn needs_qemu(&self) -> bool {
        self.board()
            .is_none_or(|board| matches!(board.machine, EmulatedMachine::Qemu(_)))
    }

    fn board(&self) -> Option<Board> {
        Board::load(&options(&self.run).ok()?.job.load.board).ok()
    }

    /// Boots, and compares the results with the requirements. With `again`, repeats even boots whose outcome is known.
    /// Returns the folder with the logs, as text to display.
    pub fn run(&self, again: bool) -> Result<String> {
        let test = |before: &Arc<BootCache>| self.boot_and_compare(before);
        let (place, as_before) = BootCache::of_test(&self.name, again, test)?;
        Ok(match as_before {
            Some(boots) => format!("{place}, {boots}"),
            None => place,
        })
    }

    /// Boots unless the outcome is in `before`, and compares all results. Returns the folder.
    fn boot_and_compare(&self, before: &Arc<BootCache>) -> Result<String> {
        let session = match self.run_session(&self.run, &self.name, before) {
            Err(error) if is_bad_input(&error) && self.expect.wants_bad_input() => {
                self.expect.check_error(&format!("{error:#}"))?;
                return Ok("refused".into());
            }
            other => other?,
        };
        let compared = self.expect.compare(&session).and_then(|()| {
            let mut cells = self.cells.iter();
            cells.try_for_each(|expected| expected.compare(&session.results))?;
            let mut orders = self.order.iter();
            orders.try_for_each(|order| order.compare(&session.results))?;
            let mut cuts = self.cut.iter();
            cuts.try_for_each(|cut| cut.compare(&session.console, &session.results))
        });
        compared.map_err(|error| anyhow!("{error:#}; see {}", session.place))?;
        for (number, same) in (2..).zip(&self.same) {
            let further = self.run_session(
                &same.options(&self.run),
                &format!("{}-{number}", self.name),
                before,
            )?;
            let compared = match &further.failure {
                Some(failure) => Err(anyhow!("{}", failure.why)),
                None => same.compare(&session.results, &further.results),
            };
            compared.map_err(|error| anyhow!("{error:#}; see {}", further.place))?;
        }
        Ok(session.place)
    }

    /// Returns why the rules can't be checked during this test, or `None` if they can. Checking needs an emulator that
    /// reports the instructions of its CPUs.
    pub fn why_no_rules(&self) -> Option<String> {
        let args = options(&self.run).ok()?;
        match self.board()?.machine {
            EmulatedMachine::Gem5(_) => Some("gem5 has no plugins".into()),
            EmulatedMachine::Qemu(_) if self.expect.wants_bad_input() => {
                Some("nothing boots".into())
            }
            EmulatedMachine::Qemu(_) if args.job.disturb.is_some() => {
                Some("it holds the threads of the emulator".into())
            }
            EmulatedMachine::Qemu(_) if args.job.as_loaded => {
                Some("the rules are watched in a mode that changes no kernel, where --as-loaded is refused".into())
            }
            EmulatedMachine::Qemu(_) if is_foreign(&args) => {
                Some("its hypervisor is not Rouse, so the rules do not know what its guest's accesses are".into())
            }
            EmulatedMachine::Qemu(_) => None,
        }
    }

    /// Returns the length of the test's boot arguments in characters.
    pub fn append_length(&self) -> usize {
        let append = self.run.get("append").and_then(toml::Value::as_str);
        append.unwrap_or_default().len()
    }

    /// Returns the parts of the images that the test reaches, as far as its options show: ways to boot, to deliver and
    /// to trap, its own firmware or kernel, and the `rouse.` boot arguments. Returns none if the rules can't be
    /// checked, if Linux is the kernel, or if the test compares several hypervisors, which count different events.
    pub fn reached_parts(&self) -> BTreeSet<String> {
        /// Options of which each value is a separate part.
        const BY_VALUE: [&str; 3] = ["boot", "deliver", "trap"];
        let append = self.run.get("append").and_then(toml::Value::as_str);
        let arguments = append.unwrap_or_default().split(' ');
        let names = arguments.filter_map(|one| one.split('=').next());
        let ours: BTreeSet<String> = names
            .filter(|name| name.starts_with("rouse."))
            .map(Into::into)
            .collect();
        let linux = |name: &String| name.starts_with("rouse.linux");
        let several = |under: &toml::Value| typed(under).contains(',');
        if self.why_no_rules().is_some()
            || self.run.get("under").is_some_and(several)
            || ours.iter().any(linux)
            || self.run.contains_key("linux")
        {
            return BTreeSet::new();
        }
        let values = BY_VALUE.iter().flat_map(|option| {
            let value = self.run.get(*option).map(typed).unwrap_or_default();
            let words = value.split(',').filter(|word| !word.is_empty());
            words
                .map(|word| format!("{option} {word}"))
                .collect::<Vec<_>>()
        });
        let neighbour = self
            .run
            .contains_key("neighbour")
            .then(|| "rouse.neighbour".into());
        let firmware = self.firmware.is_some().then(|| "firmware".into());
        let kernel = self.guest.is_some().then(|| "kernel".into());
        let more = [neighbour, firmware, kernel].into_iter().flatten();
        ours.into_iter().chain(values).chain(more).collect()
    }

    pub fn is_to_succeed(&self) -> bool {
        self.expect.wants_success()
    }

    /// Makes the test's first run, and watches for breaches of the architecture's rules. The CPUs run in parallel, so
    /// the measured values mean nothing, and no results are compared.
    pub fn run_strict(&self) -> Result<Session> {
        let mut args = options(&self.run)?;
        args.job.metric = Some(Metric::Time);
        let timeout = args.limits.timeout.map(|timeout| timeout * WATCHED_SLOWER);
        args.limits.timeout = timeout.or(Some(WATCHED_PATIENCE));
        let kernel = self.guest.as_ref().map(Kernel::file).transpose()?;
        if let Some(kernel) = &kernel {
            args.job.load.given.guest = Some(kernel.path().display().to_string());
        }
        let mut job = Job::of_run(&args)?;
        job.strict = true;
        self.boot(job, &format!("{}-strict", self.name))
    }

    /// Returns the folders of the test's boots. A refused boot has none.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        let names = (2..).map(|number| format!("{}-{number}", self.name));
        let names = std::iter::once(self.name.clone()).chain(names);
        let places = names.map(|name| places::target().join("tests").join(name));
        places.take(1 + self.same.len())
    }

    /// Makes a run with the options `run`.
    fn run_session(&self, run: &Options, name: &str, before: &Arc<BootCache>) -> Result<Session> {
        let mut args = options(run)?;
        let kernel = self.guest.as_ref().map(Kernel::file).transpose()?;
        if let Some(kernel) = &kernel {
            args.job.load.given.guest = Some(kernel.path().display().to_string());
        }
        let mut job = Job::of_run(&args)?;
        job.before = Some(before.clone());
        job.traces = self.expect.needs_traces();
        self.boot(job, name)
    }

    /// Boots `job`, with the firmware that the test asks for.
    fn boot(&self, mut job: Job, name: &str) -> Result<Session> {
        let file = self.firmware.as_ref().map(Firmware::file).transpose()?;
        job.dirty_firmware = file.as_ref().map(|(_, firmware)| firmware.clone());
        boot(&job, name)
    }
}

/// Returns whether this run is exempt from the rules. The rules do not apply if another kernel runs only under other
/// hypervisors or on the bare machine, or if our guest runs under KVM, whose second stage of translation makes the
/// guest's accesses cacheable (HCR_EL2.FWB).
fn is_foreign(args: &RunArgs) -> bool {
    let unders = args.job.under.as_ref().map_or(&[][..], Unders::hypervisors);
    let alone = !unders.is_empty() && !unders.contains(&Under::Rouse);
    let is_kvm = unders.iter().any(|under| under.kvm_mode().is_some());
    alone && (args.job.load.given.guest.is_some() || is_kvm)
}

/// Boots `job`. The folder with its results replaces any older folder of the same name.
fn boot(job: &Job, name: &str) -> Result<Session> {
    let tests = places::target().join("tests");
    let out = tests.join(name);
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| places::shown(&out))?;
    }
    let folder = Folder::claim_numbered(&tests, name)?;
    session::run(job, folder, Show::Nothing)
}

#[cfg(test)]
mod tests;
