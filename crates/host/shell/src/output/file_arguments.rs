// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files on the command line: a verb never replaces a file that it reads.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::{follow_links, parent_folder};
use crate::failure::bad_input;

/// Every path that may be read, with the option that names it.
static NAMED: Mutex<BTreeSet<(String, PathBuf)>> = Mutex::new(BTreeSet::new());

/// Notes every value on the command line. Only the verb knows which values are paths. Other values match no output.
pub fn note_values(command: &Command, matches: &ArgMatches) {
    for (option, value) in values(command, matches) {
        note(&option, Path::new(&value));
    }
}

/// Returns the values of the verb's options as the user typed them, each with its option.
pub fn values(command: &Command, matches: &ArgMatches) -> Vec<(String, OsString)> {
    let Some((verb, matches)) = matches.subcommand() else {
        return Vec::new();
    };
    let arguments = command.find_subcommand(verb).into_iter();
    let typed = arguments
        .flat_map(Command::get_arguments)
        .filter(|argument| {
            argument.get_action().takes_values()
                && matches.value_source(argument.get_id().as_str())
                    == Some(ValueSource::CommandLine)
        });
    typed
        .flat_map(|argument| {
            let id = argument.get_id().as_str();
            let option = match argument.get_long() {
                Some(long) => format!("--{long}"),
                None => id.to_uppercase(),
            };
            let values = matches.get_raw(id).into_iter().flatten();
            values.map(move |value| (option.clone(), value.to_owned()))
        })
        .collect()
}

/// Reads a file that a value of `option` leads to. Refuses pipes, which may never end.
///
/// # Errors
/// If the file can't be read, or is a folder or a device.
pub fn read(option: &str, path: &Path) -> io::Result<Vec<u8>> {
    note(option, path);
    match fs::metadata(path)?.is_file() {
        true => fs::read(path),
        false => Err(io::Error::other("a folder, a pipe or a device")),
    }
}

/// Notes that `path` is read because of a value of `option`, which may name a board or a folder.
pub fn note(option: &str, path: &Path) {
    let path = match path.to_str() {
        Some("-") => Path::new("/dev/stdin"),
        _ => path,
    };
    if let Ok(path) = std::path::absolute(path) {
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        named.insert((option.into(), path));
    }
}

/// Refuses to write to `path`, which `option` names, if another option also names this file.
pub fn refuse(option: &str, path: &Path) -> Result<()> {
    let Some(target) = File::new(path) else {
        return Ok(());
    };
    let named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut others = named.iter().filter(|(other, _)| other != option);
    if let Some((other, _)) = others.find(|(_, other)| File::new(other).as_ref() == Some(&target)) {
        bad_input!(
            "{option}: {} is named by {other} too, and would be replaced; name another file",
            path.display()
        );
    }
    Ok(())
}

/// A file's identity.
#[derive(Debug, PartialEq, Eq)]
enum File {
    /// The device and inode of an existing file.
    There(u64, u64),
    /// The device and inode of a missing file's folder, and the file's name.
    Missing(u64, u64, OsString),
}

impl File {
    /// Returns the file that `path` leads to. `None` for anything but a file or a disk, because nothing else is ever
    /// replaced.
    fn new(path: &Path) -> Option<Self> {
        match fs::metadata(path) {
            Ok(what) => {
                let kept = what.is_file() || what.file_type().is_block_device();
                kept.then_some(Self::There(what.dev(), what.ino()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let path = follow_links(path).ok()?;
                let folder = fs::metadata(parent_folder(&path)).ok()?;
                Some(Self::Missing(
                    folder.dev(),
                    folder.ino(),
                    path.file_name()?.into(),
                ))
            }
            Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::is_bad_input;
    use crate::output::Output;
    use std::os::unix::fs::symlink;

    fn refused(option: &str, path: &Path, other: &str) {
        let error = Output::claim(option, path).unwrap_err();
        let text = error.to_string();
        assert!(
            is_bad_input(&error) && text.contains(other) && text.starts_with(option),
            "{text}"
        );
    }

    #[test]
    fn what_is_read_is_not_replaced_whatever_leads_to_it() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("read"), "kept").unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink(at("read"), at("link")).unwrap();
        symlink("..", at("folder/up")).unwrap();
        fs::hard_link(at("read"), at("second")).unwrap();
        fs::write(at("other"), "").unwrap();
        note("--dtb", &at("link"));
        for name in ["read", "link", "second", "folder/up/read", "folder/../read"] {
            refused("--json", &at(name), "--dtb");
        }
        assert_eq!(fs::read(at("read")).unwrap(), b"kept");
        Output::claim("--json", &at("other")).unwrap();
        // One option may name a file that is changed in place.
        Output::claim("--dtb", &at("read")).unwrap();
        // Two outputs do not overwrite each other.
        note("--save", &at("new"));
        refused("--json", &at("folder/up/new"), "--save");
    }
}
