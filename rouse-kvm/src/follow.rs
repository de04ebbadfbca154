// SPDX-License-Identifier: MIT OR Apache-2.0
//! Follows a guest: starts the process that runs it, reads its output, and ends it if necessary.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use results::records::{Collector, Records};

use crate::failure::Failure;

/// The interval at which signals and the clock are checked.
const TICK: Duration = Duration::from_millis(100);
/// Maximum length of a line in bytes; the rest is dropped.
const LONGEST: usize = 1 << 20;

/// External reasons to end a guest.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The number of the signal that arrived, or 0.
    pub signal: Arc<AtomicUsize>,
    /// When the time limit of the whole command expires.
    pub until: Option<Instant>,
}

impl Limits {
    /// Returns the reason to end now, if there is one.
    pub fn reason_to_end(&self) -> Option<Failure> {
        match self.signal.load(Ordering::Relaxed) {
            0 => {}
            signal => return Some(Failure::ended_by_signal(signal)),
        }
        let over = self.until.is_some_and(|until| Instant::now() >= until);
        over.then(|| Failure::run_failed("the time is over; --time-limit gives it longer"))
    }
}

/// Starts `command`, writes `input` to its standard input, and reads its output until the process has ended. Calls
/// `line` with each line. Returns what the guest measured, and the failure if there was one.
pub fn follow(
    mut command: Command,
    input: &[u8],
    limits: &Limits,
    mut line: impl FnMut(&str),
) -> (Records, Option<Failure>) {
    let nothing = |why| (Collector::default().finish(), Some(why));
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let why = format!(
                "{} can't be started ({error})",
                command.get_program().display()
            );
            return nothing(Failure::bad_input(why));
        }
    };
    if let Some(mut stdin) = child.stdin.take() {
        // If the process does not read its input, its exit status tells why.
        let _ = stdin.write_all(input);
    }
    let (send, lines) = mpsc::channel();
    let said = child.stdout.take().map(BufReader::new);
    let reader = thread::spawn(move || {
        for line in said.into_iter().flat_map(|said| said.split(b'\n')) {
            let Ok(mut line) = line else { break };
            line.truncate(LONGEST);
            let line = String::from_utf8_lossy(&line);
            if send.send(line.trim_end_matches('\r').to_owned()).is_err() {
                break;
            }
        }
    });
    let mut console = Console::default();
    let mut ended = None;
    loop {
        match lines.recv_timeout(TICK) {
            Ok(text) => {
                console.feed_line(&text);
                line(&text);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if ended.is_none()
            && let Some(why) = limits.reason_to_end()
        {
            // An error does not matter, because the process may have ended by itself in the meantime.
            let _ = child.kill();
            ended = Some(why);
        }
    }
    // The reader has sent every line.
    let _ = reader.join();
    let failure = find_failure(&mut child, &console);
    (console.collector.finish(), ended.or(failure))
}

/// State of the guest's console that shows how the guest ended.
#[derive(Debug, Default)]
struct Console {
    collector: Collector,
    refused: Option<String>,
    status: Option<u32>,
    panic: Option<String>,
}

impl Console {
    fn feed_line(&mut self, line: &str) {
        if self.collector.feed(line) {
            return;
        }
        let Some((_, text)) = line.split_once("rouse: ") else {
            return;
        };
        if let Some(why) = text.strip_prefix("refused: ") {
            self.refused.get_or_insert_with(|| why.trim().to_owned());
        } else if let Some(status) = text.strip_prefix("exit status ") {
            self.status = status.trim().parse().ok();
        } else if text.starts_with("panic:") {
            self.panic.get_or_insert_with(|| text.trim().to_owned());
        }
    }
}

/// Returns the failure, if the guest failed. The process prints its own messages to standard error.
fn find_failure(child: &mut Child, console: &Console) -> Option<Failure> {
    let status = match child.wait() {
        Ok(status) => status,
        Err(error) => return Some(Failure::run_failed(format!("the guest's process: {error}"))),
    };
    if let Some(why) = &console.refused {
        return Some(Failure::bad_input(format!("the guest refuses: {why}")));
    }
    if let Some(panic) = &console.panic {
        return Some(Failure::run_failed(format!("the guest crashed: {panic}")));
    }
    match (status.code(), console.status) {
        (Some(0), None | Some(0)) => None,
        (Some(0), Some(status)) => Some(Failure::run_failed(format!(
            "the guest ended with status {status}"
        ))),
        (Some(2), _) => Some(Failure::bad_input(
            "the guest was not started; the line above says why",
        )),
        (Some(3), _) => Some(Failure::run_failed("the guest has reset its machine")),
        (Some(_), _) => Some(Failure::run_failed(
            "the guest ended badly; the lines above say how",
        )),
        (None, _) => Some(Failure::run_failed(format!(
            "the guest's process was ended by {status}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits {
            signal: Arc::default(),
            until: None,
        }
    }

    fn shell(script: &str, limits: &Limits) -> (Records, Option<Failure>, Vec<String>) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stderr(Stdio::null());
        let mut said = Vec::new();
        let (records, failure) =
            follow(command, b"image", limits, |line| said.push(line.to_owned()));
        (records, failure, said)
    }

    #[test]
    fn what_a_guest_sends_is_collected_and_passed_on() {
        let log = results::samples::lines().join("\n");
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        std::fs::write(&path, &log).unwrap();
        let script = format!("cat; echo; cat {}", path.display());
        let (records, failure, said) = shell(&script, &limits());
        assert_eq!(failure, None);
        assert!(!records.cells.is_empty() && records.ended);
        assert_eq!(said[0], "image");
        assert_eq!(said[1..].join("\n"), log);
    }

    #[test]
    fn each_bad_end_has_words_and_a_status() {
        for (script, words, status) in [
            ("exit 1", "ended badly", 1),
            ("exit 2", "not started", 2),
            ("exit 3", "reset its machine", 1),
            ("kill -9 $$", "signal: 9", 1),
            ("echo rouse: exit status 7", "status 7", 1),
            ("echo rouse: refused: started at EL0", "started at EL0", 2),
            (
                "echo x rouse: panic: guest on CPU 0; exit 1",
                "panic: guest",
                1,
            ),
        ] {
            let failure = shell(script, &limits()).1.unwrap();
            assert!(failure.why.contains(words), "{script}: {failure:?}");
            assert_eq!(failure.status, status, "{script}");
        }
        let gone = Command::new("/nowhere/rouse-kvm");
        let (_, failure) = follow(gone, b"", &limits(), |_| {});
        assert_eq!(failure.unwrap().status, 2);
    }

    #[test]
    fn a_signal_or_the_clock_ends_what_would_go_on_for_ever() {
        let signalled = limits();
        signalled.signal.store(15, Ordering::Relaxed);
        assert_eq!(shell("exec sleep 1000", &signalled).1.unwrap().status, 143);
        let late = Limits {
            until: Some(Instant::now()),
            ..limits()
        };
        let failure = shell("exec sleep 1000", &late).1.unwrap();
        assert!(failure.why.contains("--time-limit"), "{failure:?}");
    }
}
