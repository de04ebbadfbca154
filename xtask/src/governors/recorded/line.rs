// SPDX-License-Identifier: MIT OR Apache-2.0
//! A line of a recording.
//!
//! ```text
//!          swapper     0 [001]  1234.567890123: power:cpu_idle: state=1 cpu_id=1          perf script
//!           <idle>-0       [001] d..1.  1234.567890: cpu_idle: state=1 cpu_id=1           trace
//!           <idle>-0       [001]  1234.567890: cpu_idle:             state=1 cpu_id=1     trace-cmd report
//! ```
//!
//! The name of a task may have spaces, colons and brackets in it, so a line is read from the
//! time stamp on: the first word that is one, behind a word that is a CPU.

/// What the state is called in the exit: -1 of 32 bits.
const EXIT: u32 = u32::MAX;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Something that happened on a CPU.
    Event(Event<'a>),
    /// That events were lost: what it says.
    Lost(String),
    /// An event of idling that can't be read, and why.
    Broken(String),
    /// Nothing of these: a heading, a stack, a blank line.
    Other,
}

/// Something that happened on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    cpu: u32,
    /// Since some beginning.
    pub time_ns: u64,
    /// What.
    pub what: What<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// The CPU enters this state.
    Enter(u32),
    /// It has left it.
    Exit,
    /// Anything else: the event's name and its text.
    Else(&'a str, &'a str),
}

impl Event<'_> {
    /// Where.
    pub const fn cpu(&self) -> u32 {
        self.cpu
    }

    /// Whether it is the event `cpu_idle`.
    pub const fn is_idle(&self) -> bool {
        matches!(self.what, What::Enter(_) | What::Exit)
    }
}

impl<'a> Line<'a> {
    /// Reads a line.
    pub fn read(line: &'a str) -> Self {
        if let Some(said) = lost(line) {
            return Self::Lost(said);
        }
        let Some((cpu, stamp, rest)) = parts(line) else {
            return Self::Other;
        };
        let Some((name, text)) = rest.trim_start().split_once(':') else {
            return Self::Other;
        };
        // perf names the system too: `power:cpu_idle:`.
        let (name, text) = match text.split_once(':') {
            Some((event, text)) if is_name(name) && is_name(event) => (event, text),
            _ => (name, text),
        };
        let Some(time_ns) = nanoseconds(stamp) else {
            let whole = stamp.bytes().all(|byte| byte.is_ascii_digit());
            return match whole && name == "cpu_idle" {
                true => Self::Broken(format!(
                    "`{stamp}` is a time without a unit; record with a clock in seconds: local into tracing/trace_clock"
                )),
                false => Self::Other,
            };
        };
        let event = |cpu, what| Self::Event(Event { cpu, time_ns, what });
        if name != "cpu_idle" {
            return event(cpu, What::Else(name, text.trim()));
        }
        match idle(text) {
            Ok((EXIT, cpu)) => event(cpu, What::Exit),
            Ok((state, cpu)) => event(cpu, What::Enter(state)),
            Err(why) => Self::Broken(why),
        }
    }
}

/// CPU, time stamp and what is behind it.
fn parts(line: &str) -> Option<(u32, &str, &str)> {
    let mut cpu = None;
    for word in line.split_ascii_whitespace() {
        let bare = word
            .strip_prefix('[')
            .and_then(|word| word.strip_suffix(']'));
        if let Some(number) = bare.and_then(|bare| bare.parse().ok()) {
            cpu = Some(number);
            continue;
        }
        let stamp = word.strip_suffix(':').filter(|stamp| {
            stamp.starts_with(|first: char| first.is_ascii_digit())
                && stamp
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'.')
        });
        if let (Some(cpu), Some(stamp)) = (cpu, stamp) {
            // Words are slices of the line, so what is behind the stamp begins where it ends.
            let end = word.as_ptr() as usize - line.as_ptr() as usize + word.len();
            return Some((cpu, stamp, &line[end..]));
        }
    }
    None
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// `12.345678` or `12.345678901`, in seconds.
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

/// State and CPU of the event.
fn idle(text: &str) -> Result<(u32, u32), String> {
    let value = |key: &str| {
        let mut words = text.split_ascii_whitespace();
        let value = words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = value.and_then(|value| value.parse().ok());
        number.ok_or_else(|| {
            format!(
                "`cpu_idle:{}` has no number {key}=; a line has state=1 cpu_id=0",
                text.trim_end()
            )
        })
    };
    Ok((value("state")?, value("cpu_id")?))
}

/// What says that events were lost: of ftrace and trace-cmd a line of its own, `CPU:1 [LOST 5 EVENTS]` and `CPU:1 [5 EVENTS
/// DROPPED]`; of perf a record, and what it says at its end.
fn lost(line: &str) -> Option<String> {
    let line = line.trim();
    let of_ftrace = line.starts_with("CPU:")
        && line.ends_with(']')
        && (line.contains("[LOST ") || line.contains("EVENTS DROPPED]"));
    let of_perf = line.contains("PERF_RECORD_LOST")
        || (line.starts_with("Processed ") && line.contains(" lost "));
    (of_ftrace || of_perf).then(|| format!("events were lost, it says `{line}`"))
}
