// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interprets the lines of the board's console.
//!
//! A foreign guest writes to the console that Rouse uses. The foreign guest's output must not be mistaken for our
//! records. So when EL2, or the monitor under KVM, forwards this output, it breaks the marks that identify our lines
//! ([`wire::Guard`]). On the bare machine and under Xen or Bao, where no software of ours is below the guest, this
//! module breaks the marks.

use abi::Ended;
use results::records::{Collector, GivenUp};
use wire::{Guard, OURS, Source};

use guests::symbols::Symbols;
use shell::terminal;

/// Prefix of the line that names a deadline, and of the lines of its dump.
const LATE: &str = results::capture::LATE;

/// The mark at the start of a dump, in a line of ours.
const PANIC: &str = "rouse: panic:";

/// Prefixes of the panic messages of kernels, among them Linux and the BSDs.
const PANICS: [&str; 2] = ["Kernel panic - not syncing: ", "panic: "];
/// The last lines of Linux on a machine that nothing can turn off or reset.
const HALTED: [&str; 3] = [
    "reboot: Power off not available",
    "reboot: System halted",
    REBOOT_FAILED,
];
/// Linux's last line if the reboot after a panic has failed.
const REBOOT_FAILED: &str = "Reboot failed -- System halted";
/// Largest number of characters to quote from a guest's line.
const QUOTED: usize = 120;

/// The prefix of EDK2's boot manager, its messages if it does not start the image, and their meaning. Guests may print
/// these messages, but without the prefix.
const BOOT_MANAGER: &str = "BdsDxe: ";
const NOT_STARTED: [(&str, &str); 4] = [
    (": Access Denied", SECURE_BOOT),
    (": Security Violation", SECURE_BOOT),
    ("No bootable option or device was found", NOTHING),
    ("\"EFI Internal Shell\"", NOTHING),
];
const SECURE_BOOT: &str = "firmware's Secure Boot does not let the image start, as it is not \
    signed: turn Secure Boot off, or sign the image with a key that the firmware has";
const NOTHING: &str = "firmware finds nothing that it can start; serial.log has its attempts";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A record, or the remains of one.
    Record,
    /// Part of a dump, which is made after a crash or at a machine's deadline.
    Crash,
    /// The report of the images' exit status.
    Exit,
    /// Rouse cannot run on the machine.
    Refused,
    /// A description of the machine, for a first boot.
    Survey,
    /// Anything else.
    Other,
}

/// Everything learned from the console.
#[derive(Debug, Default)]
pub struct Console {
    pub collector: Collector,
    /// The last boot stage: its name and its text.
    pub stage: Option<String>,
    /// The exit status that the images reported.
    pub status: Option<u32>,
    /// Whether the machine stays on after its end, because nothing in it can turn it off.
    pub stays_on: bool,
    /// Whether the machine tried to reboot, as after a panic, and failed.
    pub reboot_failed: bool,
    /// How the guest ended the boot, if it reported no exit status.
    pub ended: Option<Ended>,
    /// Why Rouse cannot run on the machine.
    pub refused: Option<String>,
    /// Description of the machine, line by line, if it was requested.
    pub survey: Vec<String>,
    /// The name of the hypervisor's deadline that has passed.
    pub late: Option<String>,
    /// Lines of a dump, with the functions' names added.
    pub crash: Vec<String>,
    /// The last line that is not ours. Like a kernel's last panic message, it is only a hint for people, and does not
    /// affect the verdict.
    last: Option<String>,
    panicked: Option<String>,
    pub symbols: Symbols,
    /// Breaks marks in the text of a foreign guest that arrives unfiltered.
    guard: Guard,
    /// Whether firmware has ended, because an image of ours has started, or because only a foreign guest writes to this
    /// console.
    firmware_is_over: bool,
}

impl Console {
    /// Creates the console of images with `symbols`. `raw` is the source of text that arrives unfiltered.
    pub fn new(symbols: Symbols, raw: Source) -> Self {
        Self {
            symbols,
            guard: Guard::new(raw),
            firmware_is_over: raw != Source::Ours,
            ..Self::default()
        }
    }

    /// Returns a line in a form that is safe to read and keep.
    pub fn safe_form(&mut self, line: &str) -> String {
        let passed = escape_text(&mut self.guard, line);
        // Pass the guard a newline at the end of each complete line.
        let _ = self.guard.pass(b'\n');
        passed
    }

    /// Like [`safe_form`](Self::safe_form), for an unfinished line.
    pub fn safe_form_so_far(&self, begun: &str) -> String {
        escape_text(&mut self.guard.clone(), begun)
    }

    /// Interprets a line that [`safe_form`](Self::safe_form) has returned.
    pub fn feed(&mut self, line: &str) -> LineKind {
        if self.collector.feed(line) {
            return self.check_program_gave_up();
        }
        if let Some((_, why)) = line.split_once(LATE)
            && self.crash.is_empty()
        {
            self.late.get_or_insert_with(|| why.trim().to_owned());
        }
        // A crash may begin in the middle of another CPU's line.
        if !self.crash.is_empty() || line.contains(PANIC) || self.late.is_some() {
            self.crash.push(self.symbols.annotate(line, None));
            return LineKind::Crash;
        }
        let Some((_, text)) = line.split_once(OURS) else {
            return self.read_other_line(line);
        };
        self.firmware_is_over = true;
        if let Some(stage) = text.strip_prefix("stage ") {
            self.stage = Some(stage.to_owned());
        } else if let Some(base) = text.strip_prefix("base ") {
            self.note_base(base);
        } else if let Some(status) = text.strip_prefix("exit status ") {
            self.status = status.trim().parse().ok();
            return LineKind::Exit;
        } else if text.starts_with("stays on: ") {
            self.stays_on = true;
        } else if let Some(ended) = Ended::parse(text) {
            self.ended = Some(ended);
            return LineKind::Exit;
        } else if let Some(line) = text.strip_prefix("survey ") {
            self.survey.push(line.to_owned());
            return LineKind::Survey;
        } else if let Some(why) = text.strip_prefix("refused: ") {
            self.note_refusal(why.trim());
            return LineKind::Refused;
        }
        LineKind::Other
    }

    /// Interprets a line that is not ours.
    fn read_other_line(&mut self, line: &str) -> LineKind {
        if let Some(why) = why_not_started(line).filter(|_| !self.firmware_is_over) {
            self.note_refusal(why);
            return LineKind::Refused;
        }
        if !line.trim().is_empty() {
            self.last = Some(line.to_owned());
            self.stays_on |= HALTED.iter().any(|words| line.contains(words));
            self.reboot_failed |= line.contains(REBOOT_FAILED);
            let panics = PANICS.iter().any(|words| line.contains(words));
            self.panicked = panics.then(|| line.to_owned()).or(self.panicked.take());
        }
        LineKind::Other
    }

    /// Notes why our program on Linux has given up, if its last record has the reason.
    fn check_program_gave_up(&mut self) -> LineKind {
        match self.collector.given_up.take() {
            None => LineKind::Record,
            Some(GivenUp::Refused(why)) => {
                self.note_refusal(&format!("the program on Linux: {why}"));
                LineKind::Refused
            }
            Some(GivenUp::Failed(why)) => {
                self.crash
                    .push(format!("panic: the program on Linux: {why}"));
                LineKind::Crash
            }
        }
    }

    /// Returns the end of a sentence that quotes the guest's output, which may explain why the guest makes no progress.
    /// Empty if the guest printed nothing.
    pub fn hint(&self) -> String {
        let quoted = |line: &str| {
            let line = terminal::strip_sequences(line);
            let line = line.trim();
            match line.char_indices().nth(QUOTED) {
                Some((end, _)) => format!("`{}...`", &line[..end]),
                None => format!("`{line}`"),
            }
        };
        match (&self.panicked, &self.last) {
            (Some(line), _) => format!("; the guest printed {}", quoted(line)),
            (None, Some(line)) => format!("; the last line of the guest was {}", quoted(line)),
            (None, None) => String::new(),
        }
    }

    /// Keeps only the first reason why Rouse cannot run on the machine, because later reasons follow from it.
    fn note_refusal(&mut self, why: &str) {
        self.refused.get_or_insert_with(|| why.to_owned());
    }

    fn note_base(&mut self, text: &str) {
        if let Some((name, base)) = text.split_once(" 0x")
            && let Ok(base) = u64::from_str_radix(base.trim(), 16)
        {
            self.symbols.set_base(name, base);
        }
    }

    /// Describes the last stage of a boot that did not end well.
    pub fn last_stage(&self) -> String {
        match &self.stage {
            Some(stage) => format!("the last boot stage was `{stage}`"),
            None => "it reported no boot stage".into(),
        }
    }
}

fn escape_text(guard: &mut Guard, text: &str) -> String {
    let mut passed = String::with_capacity(text.len());
    for c in text.chars() {
        // All marks are ASCII without control characters, so other characters are skipped.
        let byte = u8::try_from(c).ok().filter(u8::is_ascii);
        passed.extend(guard.pass(byte.unwrap_or(b'?')).map(char::from));
        passed.push(c);
    }
    passed
}

/// Returns why firmware does not start the image, if `line` states the reason.
fn why_not_started(line: &str) -> Option<&'static str> {
    let (_, said) = line.split_once(BOOT_MANAGER)?;
    let mut known = NOT_STARTED.iter();
    let (_, why) = known.find(|(words, _)| said.contains(words))?;
    Some(why)
}

#[cfg(test)]
mod tests;
