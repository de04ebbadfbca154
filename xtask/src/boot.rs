// SPDX-License-Identifier: MIT OR Apache-2.0
//! One boot: starting the emulator, following its console, ending it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::console::{Console, Kind};
use crate::disturb::{Disturber, Done};
use crate::progress::Progress;
use crate::terminal::{self, say};
use crate::{interrupt, qemu};

/// How long a machine that has crashed may be silent, or one that has reported
/// its exit go on.
const GRACE: Duration = Duration::from_secs(3);
const TICK: Duration = Duration::from_millis(50);

/// How a boot ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The images reported this exit status.
    Status(u32),
    /// The machine stopped without a report; the emulator's last words.
    Stopped(String),
    /// Something in it crashed.
    Crash,
    /// It is none to run on, for this reason.
    Refused(String),
    /// It did not end in time.
    Hang,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// What came of a boot.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// What the console said.
    pub console: Console,
    /// The CPUs' registers when they had to be looked at.
    pub registers: Vec<String>,
    /// How it was disturbed, if it was.
    pub disturbed: Option<Done>,
}

/// What the terminal shows of a boot while it runs; the log has everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Show {
    /// Nothing.
    Nothing,
    /// Dumps, and what the machine is if that was asked for.
    Dumps,
    /// That, and every line that is no record.
    Console,
}

/// How a boot is followed.
#[derive(Debug)]
pub struct Watch<'a> {
    /// Where the emulator has its monitor, if it has one.
    pub place: &'a Path,
    /// When patience ends.
    pub timeout: Duration,
    /// The seed with which the emulator is disturbed, if it is.
    pub disturb: Option<u64>,
    /// What the terminal shows of it.
    pub show: Show,
    /// Where people see that something goes on.
    pub progress: Progress,
}

/// A line of the console or of the emulator itself.
enum Line {
    Console(String),
    Emulator(String),
}

/// The emulator; it ends with us, however we end.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended on its own.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Boots and follows until the end. Every line goes to `log` as it comes.
pub fn boot(
    mut command: Command,
    console: Console,
    log: &mut impl Write,
    mut watch: Watch<'_>,
) -> Result<Outcome> {
    let piped = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = piped.spawn().context("the emulator can't be started")?;
    let (sender, lines) = channel();
    if let Some(stdout) = child.stdout.take() {
        read_lines(stdout, sender.clone(), Line::Console);
    }
    if let Some(stderr) = child.stderr.take() {
        read_lines(stderr, sender, Line::Emulator);
    }
    let mut follower = Follower {
        console,
        log,
        last_words: String::new(),
        grace: None,
    };
    let start = |seed| Disturber::start(child.id(), watch.place, seed);
    let disturber = watch.disturb.map(start);
    let running = Running(child);
    let stopped = follower.follow(&lines, &mut watch);
    let disturbed = disturber.map(Disturber::end).transpose()?;
    let stopped = stopped?;
    let mut registers = Vec::new();
    if stopped == Some(Ending::Hang) || stopped == Some(Ending::Crash) {
        registers = follower.registers(watch.place);
    }
    drop(running);
    // What was still on its way, a line without end for instance.
    while let Ok(line) = lines.recv_timeout(TICK) {
        follower.take(line, &mut watch)?;
    }
    Ok(Outcome {
        ending: follower.ending(stopped),
        console: follower.console,
        registers,
        disturbed,
    })
}

/// Sends every line of `source`, whatever bytes it has.
fn read_lines(source: impl Read + Send + 'static, sender: Sender<Line>, kind: fn(String) -> Line) {
    thread::spawn(move || {
        let mut source = BufReader::new(source);
        let mut bytes = Vec::new();
        while source
            .read_until(b'\n', &mut bytes)
            .is_ok_and(|length| length > 0)
        {
            let text = String::from_utf8_lossy(&bytes);
            if sender
                .send(kind(text.trim_end_matches(['\r', '\n']).to_owned()))
                .is_err()
            {
                break;
            }
            bytes.clear();
        }
    });
}

struct Follower<'a, L> {
    console: Console,
    log: &'a mut L,
    /// What the emulator itself complained about last.
    last_words: String,
    /// Since when it should have ended, or has been silent.
    grace: Option<Instant>,
}

impl<L: Write> Follower<'_, L> {
    /// Reads until the machine stops, which is `None`, or has to be stopped.
    fn follow(&mut self, lines: &Receiver<Line>, watch: &mut Watch<'_>) -> Result<Option<Ending>> {
        let start = Instant::now();
        loop {
            match lines.recv_timeout(TICK) {
                Ok(line) => self.take(line, watch)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            let console = &self.console;
            watch.progress.show(
                console.collector.progress,
                &console.collector.at,
                console.stage.as_deref(),
            );
            if interrupt::requested() {
                return Ok(Some(Ending::Interrupted));
            }
            if let Some(why) = &self.console.refused {
                return Ok(Some(Ending::Refused(why.clone())));
            }
            if self.grace.is_some_and(|since| since.elapsed() > GRACE) {
                return Ok(Some(match self.console.status {
                    Some(status) => Ending::Status(status),
                    None => Ending::Crash,
                }));
            }
            if start.elapsed() > watch.timeout {
                return Ok(Some(Ending::Hang));
            }
        }
    }

    fn take(&mut self, line: Line, watch: &mut Watch<'_>) -> Result<()> {
        let line = match line {
            Line::Console(line) => line,
            Line::Emulator(line) => {
                if says_why(&line) {
                    self.last_words = line;
                }
                return Ok(());
            }
        };
        writeln!(self.log, "{line}").context("serial.log can't be written")?;
        let kind = self.console.feed(&line);
        match kind {
            // It may take its time over its dump.
            Kind::Crash => self.grace = Some(Instant::now()),
            Kind::Exit => drop(self.grace.get_or_insert_with(Instant::now)),
            _ => {}
        }
        if kind == Kind::Crash && watch.show >= Show::Dumps {
            watch.progress.clear();
            eprintln!("{}", self.console.crash.last().unwrap_or(&line));
        } else if shown_from(kind).is_some_and(|from| watch.show >= from) {
            watch.progress.clear();
            say!("{}", terminal::plain(&line));
        }
        Ok(())
    }

    fn registers(&self, place: &Path) -> Vec<String> {
        if !place.join(qemu::MONITOR).exists() {
            return vec!["the emulator has no monitor that would tell the registers".into()];
        }
        match qemu::registers(place) {
            Ok(lines) => self.console.symbols.annotate_registers(&lines),
            Err(error) => vec![format!("the registers can't be read: {error:#}")],
        }
    }

    fn ending(&self, stopped: Option<Ending>) -> Ending {
        if let (None, Some(why)) = (&stopped, &self.console.refused) {
            return Ending::Refused(why.clone());
        }
        match (stopped, self.console.status) {
            (Some(Ending::Interrupted), _) => Ending::Interrupted,
            _ if !self.console.crash.is_empty() => Ending::Crash,
            (Some(ending), _) => ending,
            (None, Some(status)) => Ending::Status(status),
            (None, None) => Ending::Stopped(self.last_words.clone()),
        }
    }
}

/// Whether a line of the emulator may say why it ended: not where in its own code,
/// nor what it would say otherwise.
fn says_why(line: &str) -> bool {
    const OTHERWISE: [&str; 4] = [": warn: ", ": info: ", "Memory Usage:", "At:"];
    let says_where = line.starts_with(char::is_whitespace);
    !line.is_empty() && !says_where && !OTHERWISE.iter().any(|words| line.contains(words))
}

/// From when on lines of this kind go to the terminal; of a crash the reader
/// gets more than the line.
fn shown_from(kind: Kind) -> Option<Show> {
    match kind {
        Kind::Survey => Some(Show::Dumps),
        Kind::Other => Some(Show::Console),
        Kind::Record | Kind::Crash | Kind::Exit | Kind::Refused => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Boots a shell script instead of an emulator.
    fn outcome(script: &str) -> (Ending, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let watch = Watch {
            place: Path::new("/nonexistent"),
            timeout: Duration::from_millis(300),
            disturb: None,
            show: Show::Nothing,
            progress: Progress::new("test".into()),
        };
        let mut log = Vec::new();
        let outcome = boot(command, Console::default(), &mut log, watch).unwrap();
        (outcome.ending, String::from_utf8(log).unwrap())
    }

    #[test]
    fn every_ending_is_told_from_the_others() {
        let ended = |script| outcome(script).0;
        assert_eq!(ended("echo 'rouse: exit status 0'"), Ending::Status(0));
        assert_eq!(
            ended("echo 'rouse: exit status 3'; exit 1"),
            Ending::Status(3)
        );
        assert_eq!(ended("echo x; echo bad >&2"), Ending::Stopped("bad".into()));
        assert_eq!(ended("echo 'rouse: panic: boo'"), Ending::Crash);
        let last = "echo 'a.cc:1: fatal: bad' >&2; echo 'b.cc:2: warn: x' >&2; echo >&2; echo 'Memory Usage: 1' >&2";
        assert_eq!(ended(last), Ending::Stopped("a.cc:1: fatal: bad".into()));
        assert_eq!(ended("exec sleep 60"), Ending::Hang);
        let refused = Ending::Refused("why".into());
        assert_eq!(ended("echo 'rouse: refused: why'; exec sleep 60"), refused);
        assert_eq!(ended("echo 'rouse: refused: why'"), refused);
    }

    #[test]
    fn the_log_has_every_line_whatever_its_bytes() {
        let (_, log) = outcome(r"printf 'a\r\n\377b\nrest'");
        assert_eq!(log, "a\n\u{fffd}b\nrest\n");
    }
}
