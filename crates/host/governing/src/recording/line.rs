// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses a line of a recording.
//!
//! ```text
//!          swapper     0 [001]  1234.567890123: power:cpu_idle: state=1 cpu_id=1          perf script
//!           <idle>-0       [001] d..1.  1234.567890: cpu_idle: state=1 cpu_id=1           trace
//!           <idle>-0       [001]  1234.567890: cpu_idle:             state=1 cpu_id=1     trace-cmd report
//! ```
//!
//! The name of a task comes first, and may contain spaces, colons and brackets. Therefore, an event begins at the first
//! CPU number that is followed by a time stamp and by an event's name that ends too late in the line to be part of a
//! task's name.

use super::super::text::quote_shortened;
use super::evidence::{self, Evidence};

/// The state number that stands for the exit from a state: -1 as 32 bits.
const EXIT: u32 = u32::MAX;
const IDLE: &str = "cpu_idle";
/// Largest number of bytes in a task's name (Linux, `TASK_COMM_LEN`, without the terminating zero).
const TASK: usize = 15;

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// An event of a CPU.
    Event(Event),
    /// Events of this CPU, or of any CPU if it is `None`, were lost here.
    Lost(Option<u32>),
    /// Events were lost at an unknown place.
    LostSomewhere,
    /// An event about idling that can't be read, and the reason.
    Broken(String),
    /// A line of Linux that is not about idling.
    Unrelated,
    /// Anything else: a stack, a blank line, text that is not Linux's.
    Other,
}

/// An event of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    pub cpu: u32,
    /// Time since an arbitrary start.
    pub time_ns: u64,
    pub what: What,
}

/// Kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The CPU enters this state.
    Enter(u32),
    /// The CPU has left a state.
    Exit,
    /// The CPU had a possible reason to leave a state.
    Saw(Evidence),
}

/// Returns the lines of a text, with their numbers. In JSON and in the scripts of web pages, Linux's lines are parts of
/// strings, in which a line ends with the two characters `\n`.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().zip(1..);
    lines.flat_map(|(line, number)| {
        let string = line.contains('"') || line.ends_with("\\n\\");
        let end = if string { "\\n" } else { "\n" };
        line.split(end).map(move |line| (number, line))
    })
}

impl Line {
    /// Parses a line.
    pub fn parse(line: &str) -> Self {
        if let Some(lost) = lost_events(line) {
            return lost;
        }
        let Some((cpu, stamp, name, text)) = split_event(line) else {
            return classify_unknown(line);
        };
        if name.starts_with("PERF_RECORD_LOST") {
            return Self::Lost(Some(cpu));
        }
        let idles = name == IDLE;
        let event = |cpu, what| match nanoseconds(stamp) {
            Some(time_ns) => Self::Event(Event { cpu, time_ns, what }),
            None if idles => Self::Broken(format!(
                "{} is a time without a unit; record with a clock in seconds: local into tracing/trace_clock",
                quote_shortened(stamp)
            )),
            None => Self::Unrelated,
        };
        if !idles {
            let evidence = evidence::evidence_in_event(name, text);
            return evidence.map_or(Self::Unrelated, |evidence| event(cpu, What::Saw(evidence)));
        }
        match state_and_cpu(text) {
            Some((EXIT, cpu)) => event(cpu, What::Exit),
            Some((state, cpu)) => event(cpu, What::Enter(state)),
            None => Self::Broken(format!(
                "{} has no numbers state= and cpu_id=; a line has state=1 cpu_id=0",
                quote_shortened(&format!("{IDLE}:{text}"))
            )),
        }
    }
}

/// Splits the event in a line into its CPU, time stamp, name and text.
fn split_event(line: &str) -> Option<(u32, &str, &str, &str)> {
    let line = line.trim_start();
    let (mut cpu, mut stamp) = (None, None);
    for word in line.split_ascii_whitespace() {
        let bare = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'));
        if let Some(number) = bare.and_then(|bare| bare.parse().ok()) {
            (cpu, stamp) = (Some(number), None);
        } else if is_stamp(word) {
            stamp = cpu.zip(Some(word.trim_end_matches(':')));
        } else if let Some((cpu, time)) = stamp {
            // perf may print the period before the event's name.
            if word.bytes().all(|byte| byte.is_ascii_digit()) {
                continue;
            }
            // Words are slices of the line, so the rest begins at the end of the word.
            let end = word.as_ptr() as usize - line.as_ptr() as usize + word.len();
            if let Some(name) = event_name(word).filter(|_| end > TASK) {
                return Some((cpu, time, name, &line[end..]));
            }
            stamp = None;
        }
    }
    None
}

/// Whether a word is a time stamp of any clock, such as `12.345678:`.
fn is_stamp(word: &str) -> bool {
    let digits = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    word.strip_suffix(':').is_some_and(|stamp| {
        stamp.starts_with(|first: char| first.is_ascii_digit()) && stamp.bytes().all(digits)
    })
}

/// Returns the event's name from a word such as `cpu_idle:`. perf prepends the subsystem, as in `power:cpu_idle:`, and
/// the names of perf's own records have no colon.
fn event_name(word: &str) -> Option<&str> {
    if word.starts_with("PERF_RECORD_") {
        return Some(word.trim_end_matches(':'));
    }
    let name = word.strip_suffix(':')?;
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

/// Parses a time in seconds, such as `12.345678` or `12.345678901`.
fn nanoseconds(stamp: &str) -> Option<u64> {
    let (seconds, part) = stamp.split_once('.')?;
    let digits = u32::try_from(part.len()).ok()?;
    if !(1..=9).contains(&digits) {
        return None;
    }
    let part: u64 = part.parse().ok()?;
    let seconds: u64 = seconds.parse().ok()?;
    let part = part * 10u64.pow(9 - digits);
    seconds.checked_mul(1_000_000_000)?.checked_add(part)
}

/// Parses the state and the CPU in the text of `cpu_idle`.
fn state_and_cpu(text: &str) -> Option<(u32, u32)> {
    let value = |key: &str| {
        let mut words = text.split_ascii_whitespace();
        let value = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
        // The end of a string or of an HTML element may follow, but not a character that makes another word or number.
        let end = value
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(value.len());
        let goes_on = value[end..].starts_with(|c: char| c.is_alphanumeric() || c == '.');
        value[..end].parse().ok().filter(|_| !goes_on)
    };
    Some((value("state")?, value("cpu_id")?))
}

/// Handles a line that has none of the known forms: the line is broken if it is about idling.
fn classify_unknown(line: &str) -> Line {
    let mut words = line.split_ascii_whitespace();
    let named = line.contains(IDLE) && words.any(|word| event_name(word) == Some(IDLE));
    if !named || state_and_cpu(line).is_none() {
        return Line::Other;
    }
    let mut words = line.split_ascii_whitespace();
    Line::Broken(match words.any(is_stamp) {
        true => "cpu_idle has no CPU in brackets before its time, which tells where other events were; print it: perf \
                 script -F comm,pid,cpu,time,event,trace, trace-cmd report without -l"
            .into(),
        false => format!(
            "{} has no time in seconds with a CPU in brackets before it; this is latency-format of ftrace or a form that is \
             not known: echo 0 into tracing/options/latency-format and read trace again, trace-cmd report without -l, or \
             perf script -F comm,pid,cpu,time,event,trace",
            quote_shortened(line)
        ),
    })
}

/// Recognizes a loss of events. ftrace and trace-cmd print a separate line for a loss, `CPU:1 [LOST 5 EVENTS]` or
/// `CPU:1 [5 EVENTS DROPPED]`. perf prints a record, which may have no CPU, and a line at the end.
fn lost_events(line: &str) -> Option<Line> {
    let line = line.trim_start_matches([' ', '\t', '"']);
    if let Some(rest) = line.strip_prefix("CPU:")
        && (rest.contains("[LOST ") || rest.contains("EVENTS DROPPED]"))
    {
        let cpu = rest.split([' ', '[']).next().unwrap_or_default();
        return Some(Line::Lost(cpu.parse().ok()));
    }
    if line.starts_with("Processed ") && line.contains(" lost ") {
        return Some(Line::LostSomewhere);
    }
    let record = line.contains("PERF_RECORD_LOST");
    (record && split_event(line).is_none()).then_some(Line::Lost(None))
}
