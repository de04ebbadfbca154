// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a boot: starts the emulator, reads its output, and stops it.

use std::collections::VecDeque;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result};

use super::clock::Clock;
use super::{Ending, Show};
use crate::boot_cache::BootOutcome;
use crate::console::{Console, LineKind};
use crate::disturb::{Disturber, Done};
use crate::limits::Limits;
use providing::qemu;
use providing::qemu::{Events, Shutdown};
use shell::advance::Advance;
use shell::emulator_process::{EmulatorProcess, End, OutputLine};
use shell::emulator_time;
use shell::interrupt;
use shell::progress::Progress;
use shell::terminal::{self, note, say};

/// How long a machine may be silent after a crash, or continue to run after it has reported its exit. This limit is in
/// the emulator's own time.
const GRACE: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_millis(50);
/// Number of lines to read before the limits are checked again.
const AT_ONCE: usize = 1000;
/// How long to wait for the last lines of an emulator that has ended.
const LAST_LINES: Duration = Duration::from_secs(2);
/// Error text for a log that can't be written.
const NO_LOG: &str = "serial.log can't be written";
/// Number of the emulator's own lines to keep.
const SAID: usize = 200;

#[derive(Debug)]
pub struct Outcome {
    pub ending: Ending,
    /// The console's output.
    pub console: Console,
    /// The CPUs' registers, if they were dumped.
    pub registers: Vec<String>,
    /// The last lines of the emulator's own output.
    pub said: Vec<String>,
    /// The disturbances, if any.
    pub disturbed: Option<Done>,
    /// The complete output, if it was requested and the emulator ended without being stopped.
    pub went: Option<BootOutcome>,
}

impl Outcome {
    /// Describes for people how the guest ended the boot, if it reported no exit status. Only the hypervisor reports
    /// which vCPU ended it.
    pub fn ended(&self) -> Option<String> {
        match (&self.console.ended, &self.ending) {
            (Some(ended), _) => Some(ended.to_string()),
            (None, Ending::Off) => Some("guest ended: off".into()),
            (None, Ending::Reset) => Some("guest ended: reset".into()),
            (None, _) => None,
        }
    }
}

/// Settings for following a boot.
#[derive(Debug)]
pub struct Watch<'a> {
    /// Folder of the emulator's monitor, if it has one.
    pub place: &'a Path,
    pub limits: Limits,
    /// The seed of disturbances, if any.
    pub disturb: Option<u64>,
    /// The lines that the terminal shows.
    pub show: Show,
    /// Shows progress to people.
    pub progress: Progress,
    /// Whether to return [`Outcome::went`], the complete output.
    pub keep: bool,
    /// Whether the emulator writes large files at its end, which may take longer than [`GRACE`].
    pub writes: bool,
    /// The end of the line that a hypervisor prints if it refuses the guest's request to turn the machine off.
    pub refuses_off: Option<&'static str>,
}

/// Boots a machine, and follows it until its end. Writes every line to `log` as it arrives.
pub fn follow(
    mut command: Command,
    console: Console,
    log: &mut impl Write,
    mut watch: Watch<'_>,
) -> Result<Outcome> {
    let events = Events::listen(watch.place)?;
    let (process, lines) = EmulatorProcess::start(&mut command)?;
    let mut follower = Follower::new(console, log);
    follower.lines = watch.keep.then(Vec::new);
    let start = |seed| Disturber::start(process.id(), watch.place, seed);
    let disturber = watch.disturb.map(start);
    let stopped = follower.follow(&process, &lines, &mut watch);
    let disturbed = disturber.map(Disturber::end).transpose()?;
    let stopped = stopped?;
    let mut registers = Vec::new();
    let end = match &stopped {
        None => process.wait(),
        Some(ending) => {
            if matches!(ending, Ending::Hang(_) | Ending::Crash) {
                registers = follower.registers(watch.place);
            }
            match ending {
                Ending::Status(_) | Ending::Off => process.stop(),
                _ => drop(process),
            }
            End::Killed
        }
    };
    // Some lines may still be on their way, for instance an unfinished one.
    while let Ok(line) = lines.recv_timeout(LAST_LINES) {
        follower.take_line(line, &mut watch)?;
    }
    let report = events.read_shutdown();
    let by_itself = stopped.is_none() && end == End::Well;
    let lines = follower.lines.take().filter(|_| by_itself);
    let went = lines.map(|lines| BootOutcome {
        lines,
        report: report.clone(),
    });
    Ok(Outcome {
        registers,
        disturbed,
        went,
        ..follower.outcome(stopped, end, report)
    })
}

/// Like [`follow`], for a stored boot instead of a new one.
pub fn follow_stored(
    went: BootOutcome,
    console: Console,
    log: &mut impl Write,
    mut watch: Watch<'_>,
) -> Result<Outcome> {
    let mut follower = Follower::new(console, log);
    for line in went.lines {
        follower.take_line(line, &mut watch)?;
    }
    Ok(follower.outcome(None, End::Well, went.report))
}

struct Follower<'a, L> {
    console: Console,
    log: &'a mut L,
    /// The last lines of the emulator's own output.
    said: VecDeque<String>,
    advance: Advance,
    /// Whether there has been progress since the last sample.
    gets_on: bool,
    clock: Clock,
    /// The emulator's own time when an exit or a refusal was reported, or when the last line of a dump arrived.
    grace: Option<Duration>,
    /// All lines, if they are kept.
    lines: Option<Vec<OutputLine>>,
    /// The part of the unfinished line that is already in the log.
    begun: String,
    /// The part of the unfinished line that is already on the terminal.
    shown: String,
}

impl<'a, L: Write> Follower<'a, L> {
    /// Creates the state before the first line.
    fn new(console: Console, log: &'a mut L) -> Self {
        Self {
            console,
            log,
            said: VecDeque::new(),
            advance: Advance::default(),
            gets_on: false,
            clock: Clock::start(),
            grace: None,
            lines: None,
            begun: String::new(),
            shown: String::new(),
        }
    }

    /// Returns the outcome of a boot. `stopped` is the reason why this program stopped it, if it did. `end` and
    /// `report` describe how the emulator ended.
    fn outcome(self, stopped: Option<Ending>, end: End, report: Option<Shutdown>) -> Outcome {
        Outcome {
            ending: Ending::of(stopped, &self.console, &end, report, &self.said),
            console: self.console,
            registers: Vec::new(),
            said: self.said.into(),
            disturbed: None,
            went: None,
        }
    }

    /// Reads lines until the emulator ends or must be stopped. Returns `None` in the first case, and the reason in the
    /// second.
    fn follow(
        &mut self,
        process: &EmulatorProcess,
        lines: &Receiver<OutputLine>,
        watch: &mut Watch<'_>,
    ) -> Result<Option<Ending>> {
        loop {
            match lines.recv_timeout(TICK) {
                Ok(line) => self.take_line(line, watch)?,
                Err(RecvTimeoutError::Timeout) => {
                    let begun = process.unfinished_line();
                    match lines.try_recv() {
                        // This line may complete the unfinished line.
                        Ok(line) => self.take_line(line, watch)?,
                        Err(_) => self.show_begun(&begun, watch)?,
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // A signal that ended the emulator may also have been sent to this program.
                    return Ok(interrupt::signal().map(Ending::Interrupted));
                }
            }
            // Lines that arrived before a limit was reached may still show progress.
            for line in lines.try_iter().take(AT_ONCE) {
                self.take_line(line, watch)?;
            }
            let console = &self.console;
            let stage = console.stage.as_deref();
            watch.progress.show(&console.collector, stage);
            if let Some(signal) = interrupt::signal() {
                return Ok(Some(Ending::Interrupted(signal)));
            }
            if self.clock.read_time(process) {
                if std::mem::take(&mut self.gets_on) {
                    self.clock.note_progress();
                }
                if let Some(ending) = self.limit_reached(process, watch) {
                    return Ok(Some(ending));
                }
            }
        }
    }

    /// Returns the ending, if one of the limits is reached.
    fn limit_reached(&mut self, process: &EmulatorProcess, watch: &Watch<'_>) -> Option<Ending> {
        let now = self.clock.last_read_time();
        let grace = match watch.writes {
            true => watch.limits.without_progress,
            false => GRACE,
        };
        let halted = Ending::of_halted(&self.console);
        if halted.is_some() {
            return halted;
        }
        if self.grace.is_some_and(|since| now - since > grace) {
            let refused = self.console.refused.clone().map(Ending::Refused);
            let ending = Ending::from_console(&self.console).or(refused);
            return Some(ending.unwrap_or(Ending::Crash));
        }
        if watch.limits.are_over() {
            return Some(Ending::OutOfTime);
        }
        let stall = self.clock.stall();
        if stall.own < watch.limits.without_progress {
            return None;
        }
        // A machine that was paused by its monitor uses no CPU time, just like a machine that hangs.
        let sleeps = process
            .sample()
            .is_none_or(|all| emulator_time::all_asleep(&all));
        if sleeps && qemu::is_paused(watch.place) {
            self.gets_on = true;
            return None;
        }
        Some(Ending::Hang(stall))
    }

    fn take_line(&mut self, line: OutputLine, watch: &mut Watch<'_>) -> Result<()> {
        if let Some(lines) = &mut self.lines {
            lines.push(line.clone());
        }
        let line = match line {
            OutputLine::Console(line) => self.console.safe_form(&line),
            OutputLine::Emulator(line) => {
                self.keep_emulator_line(line);
                return Ok(());
            }
        };
        let begun = std::mem::take(&mut self.begun);
        let rest = line.strip_prefix(&*begun).unwrap_or(&line);
        writeln!(self.log, "{rest}").context(NO_LOG)?;
        self.gets_on |= self.advance.is_new_line(&line);
        let kind = self.console.feed(&line);
        let now = self.clock.last_read_time();
        match kind {
            // A dump may be long, so the grace period restarts at each of its lines.
            LineKind::Crash => self.grace = Some(now),
            // The machine is about to turn itself off, and its report of that may arrive first, on another port.
            LineKind::Exit | LineKind::Refused => drop(self.grace.get_or_insert(now)),
            _ => {}
        }
        if watch.refuses_off.is_some_and(|end| line.ends_with(end)) {
            // A stored boot, or a boot that has just ended, has no monitor. If the monitor of a running boot does not
            // answer, the boot makes no progress, and that is reported.
            drop(qemu::quit(watch.place));
        }
        let shown = std::mem::take(&mut self.shown);
        if kind == LineKind::Crash && watch.show >= Show::Dumps {
            let line = self.console.crash.last().unwrap_or(&line);
            note!("{}", terminal::strip_sequences(line));
        } else if least_show(kind).is_some_and(|from| watch.show >= from) {
            let line = terminal::strip_sequences(&line);
            match line.strip_prefix(&*shown) {
                Some(rest) if !shown.is_empty() => terminal::end_line(&line, rest),
                _ => say!("{line}"),
            }
        }
        Ok(())
    }

    /// Shows an unfinished line that is not completed at once: a prompt, or the last output of a guest that hangs.
    fn show_begun(&mut self, begun: &str, watch: &mut Watch<'_>) -> Result<()> {
        let begun = self.console.safe_form_so_far(begun);
        let Some(more) = begun
            .strip_prefix(&*self.begun)
            .filter(|more| !more.is_empty())
        else {
            return Ok(());
        };
        write!(self.log, "{more}").context(NO_LOG)?;
        if watch.show >= Show::Console {
            let plain = terminal::strip_sequences(&begun);
            let more = plain.strip_prefix(&*self.shown).unwrap_or_default();
            if !more.is_empty() {
                terminal::begin_line(more);
            }
            self.shown = plain;
        }
        self.begun = begun;
        Ok(())
    }

    /// Keeps output of the emulator itself.
    fn keep_emulator_line(&mut self, line: String) {
        if self.said.len() == SAID {
            self.said.pop_front();
        }
        self.said.push_back(line);
    }

    fn registers(&self, place: &Path) -> Vec<String> {
        if !place.join(qemu::MONITOR).exists() {
            return vec!["the emulator has no monitor to read the registers".into()];
        }
        match qemu::registers(place) {
            Ok(lines) => self.console.symbols.annotate_registers(&lines),
            Err(error) => vec![format!("the registers can't be read: {error:#}")],
        }
    }
}

/// Returns the least verbose setting that shows lines of `kind` on the terminal, if any does. A crash is shown
/// elsewhere, in more detail.
fn least_show(kind: LineKind) -> Option<Show> {
    match kind {
        LineKind::Survey => Some(Show::Dumps),
        LineKind::Other => Some(Show::Console),
        LineKind::Record | LineKind::Crash | LineKind::Exit | LineKind::Refused => None,
    }
}

#[cfg(test)]
mod tests;
