// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a boot ended.

use std::collections::VecDeque;
use std::time::Duration;

use abi::Ended;

use crate::console::Console;
use providing::qemu::Shutdown;
use shell::emulator_process::End;
use shell::interrupt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The images reported this exit status.
    Status(u32),
    /// The guest ended the boot, in the way that the hypervisor reports.
    Guest(Ended),
    /// The machine was turned off, without a report from the images or the hypervisor.
    Off,
    /// The machine was reset, without a report from the images or the hypervisor.
    Reset,
    /// The machine stopped without any report. The text is the emulator's last line that may explain why.
    Stopped(String),
    /// The emulator ended abnormally. The texts say how it ended, and quote its last line that may explain why.
    Died(String, String),
    Crash,
    /// The hypervisor ended the boot at the named deadline.
    Late(String),
    /// Rouse cannot run on the machine. The text is the reason.
    Refused(String),
    /// The boot made no progress within the permitted time.
    Hang(Stall),
    /// The time limit of the whole command has passed.
    OutOfTime,
    /// A signal interrupted the boot.
    Interrupted(interrupt::Signal),
}

/// A time without progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Length of the stall in the emulator's own time.
    pub own: Duration,
    /// Length of the stall by the wall clock.
    pub wall: Duration,
}

impl Ending {
    /// Returns the ending that the console has reported.
    pub fn from_console(console: &Console) -> Option<Self> {
        let status = console.status.map(Self::Status);
        status.or(console.ended.map(Self::Guest))
    }

    /// Returns the ending of a machine that stays on after it has halted.
    pub fn of_halted(console: &Console) -> Option<Self> {
        let otherwise = match console.reboot_failed {
            true => Self::Reset,
            false => Self::Off,
        };
        let refused = console.refused.clone().map(Self::Refused);
        let ending = refused
            .or_else(|| Self::from_console(console))
            .unwrap_or(otherwise);
        console.stays_on.then_some(ending)
    }

    /// Returns the ending of a boot. `stopped` is the reason why this program stopped it, if it did. `end` and `report`
    /// describe how the emulator ended, and `said` has the emulator's last lines.
    pub fn of(
        stopped: Option<Self>,
        console: &Console,
        end: &End,
        report: Option<Shutdown>,
        said: &VecDeque<String>,
    ) -> Self {
        let last_words = said.iter().rfind(|line| explains_end(line));
        let last_words = last_words.cloned().unwrap_or_default();
        // After a refusal, a machine that can't turn itself off stays on and makes no progress.
        let still = matches!(stopped, None | Some(Self::Hang(_) | Self::OutOfTime));
        if let (true, Some(why)) = (still, &console.refused) {
            return Self::Refused(why.clone());
        }
        match (stopped, Self::from_console(console), end.describe_mishap()) {
            (Some(asked @ Self::Interrupted(_)), ..) => asked,
            _ if console.late.is_some() => Self::Late(console.late.clone().unwrap_or_default()),
            _ if !console.crash.is_empty() => Self::Crash,
            (Some(ending), ..) => ending,
            (None, Some(ending), _) => ending,
            (None, None, Some(how)) => Self::Died(how, last_words),
            (None, None, None) => match report {
                Some(Shutdown::Off) => Self::Off,
                Some(Shutdown::Reset) => Self::Reset,
                Some(Shutdown::Other(why)) => Self::Died(format!("ended by {why}"), last_words),
                None => Self::Stopped(last_words),
            },
        }
    }
}

/// Whether a line of the emulator may explain its end. A line that only names a position in the emulator's code does
/// not, nor does a line that every run prints.
fn explains_end(line: &str) -> bool {
    const OTHERWISE: [&str; 4] = [": warn: ", ": info: ", "Memory Usage:", "At:"];
    let says_where = line.starts_with(char::is_whitespace);
    !line.is_empty() && !says_where && !OTHERWISE.iter().any(|words| line.contains(words))
}
