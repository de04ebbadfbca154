// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the emulator.

mod event_loop;
mod events;
mod firmware;
mod monitor;
mod provide;

pub use event_loop::without_io_uring;
pub use events::{EVENTS, Events, Shutdown};
pub use firmware::firmware;
pub use monitor::{MONITOR, Pauser, is_paused, quit, registers};
pub use provide::obstacle as provide_obstacle;

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::toolchain::output;
use shell::failure::bad_input;
use shell::places;

/// The oldest version to use. Older versions do not model WFE, WFET or traps of WFE.
const FLOOR: Version = Version(11, 1, 0);
const PROGRAM: &str = "qemu-system-aarch64";
/// The variable that names the program to use.
pub const VARIABLE: &str = "ROUSE_QEMU";

/// A version of QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(u32, u32, u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Version {
    /// Parses the version in the first line of `--version`.
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("QEMU emulator version ")?;
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit());
        let mut numbers = rest[..end.unwrap_or(rest.len())].split('.').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self(next()?, next()?, next().unwrap_or(0)))
    }
}

/// An emulator that can be started.
#[derive(Clone, Debug)]
pub struct Emulator {
    program: PathBuf,
    /// Arguments that come before all other arguments.
    prefix: Vec<OsString>,
    pub version: Version,
    /// QEMU's version line, with the package's revision.
    pub exact: String,
}

impl Emulator {
    /// Runs `program` to read its version. Returns `None` if the program can't be started.
    fn probe(program: PathBuf, prefix: Vec<OsString>) -> Option<Self> {
        let mut arguments: Vec<&str> = prefix
            .iter()
            .filter_map(|argument| argument.to_str())
            .collect();
        arguments.push("--version");
        let said = output(&program, &arguments)?;
        let version = Version::parse(&said)?;
        Some(Self {
            program,
            prefix,
            version,
            exact: said.lines().next().unwrap_or_default().trim().into(),
        })
    }

    /// Returns a command that starts the emulator, to which arguments can be added.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.prefix);
        command
    }

    /// Describes the emulator's program, for messages.
    pub fn shown(&self) -> String {
        places::shown(&self.program)
    }
}

/// Result of a search for an emulator. The search does not install one.
#[derive(Debug)]
pub enum Found {
    Usable(Emulator),
    /// The named emulator can't be used. The text is the reason.
    Unusable(String),
    /// No emulator was found, or the search path has only an old version, which is given.
    Missing(Option<Version>),
}

/// Searches for an emulator: the named emulator, then an emulator that was provided earlier, then the system's.
pub fn find() -> Found {
    if let Some(named) = env::var_os(VARIABLE) {
        return match Emulator::probe(PathBuf::from(&named), Vec::new()) {
            Some(emulator) if emulator.version >= FLOOR => Found::Usable(emulator),
            Some(old) => Found::Unusable(format!(
                "{VARIABLE}: {} is version {}; name one from {FLOOR} on, or unset it",
                Path::new(&named).display(),
                old.version
            )),
            None => Found::Unusable(format!(
                "{VARIABLE}: {} can't be started as QEMU; name a {PROGRAM}, or unset it",
                Path::new(&named).display()
            )),
        };
    }
    if let Some(emulator) = provide::find_provided() {
        return Found::Usable(emulator);
    }
    match Emulator::probe(PROGRAM.into(), Vec::new()) {
        Some(emulator) if emulator.version >= FLOOR => Found::Usable(emulator),
        other => Found::Missing(other.map(|old| old.version)),
    }
}

/// Finds an emulator to use, or provides one.
pub fn ensure() -> Result<Emulator> {
    find_usable()?.map_or_else(provide::provide, Ok)
}

/// Finds an emulator to use. Returns `None` if none is found but one can be provided, and an error if none can be
/// provided.
pub fn find_usable() -> Result<Option<Emulator>> {
    match find() {
        Found::Usable(emulator) => Ok(Some(emulator)),
        Found::Unusable(why) => bad_input!("{why}"),
        Found::Missing(old) => {
            if let Some(obstacle) = provide::obstacle() {
                let old = old.map_or("missing".into(), |old| format!("version {old}"));
                bad_input!("{PROGRAM} is {old}: {obstacle}");
            }
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let read = |text| Version::parse(text);
        let debian = read("QEMU emulator version 11.1.3 (Debian 1:11.1.3+ds-1)\nCopyright");
        assert_eq!(debian, Some(Version(11, 1, 3)));
        assert_eq!(
            read("QEMU emulator version 11.1.50-dirty"),
            Some(Version(11, 1, 50))
        );
        assert_eq!(read("QEMU emulator version 12.0"), Some(Version(12, 0, 0)));
        assert_eq!(read("bash 5"), None);
        assert!(Version(10, 2, 9) < FLOOR && Version(11, 1, 0) >= FLOOR);
    }
}
