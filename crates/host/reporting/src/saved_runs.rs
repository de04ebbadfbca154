// SPDX-License-Identifier: MIT OR Apache-2.0
//! Named runs, to compare with later ones: folders below `target/saved/`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Result;
use foreign::Quoted;

use shell::failure::bad_input;
use shell::places;

/// Largest number of characters in a name. The folder's name is longer during the run, and also after it if the run was
/// killed, and a file system allows 255 characters (NAME_MAX).
const LONGEST: usize = 200;

/// Returns the folder of a run with the new name `name`.
pub fn folder(name: &str) -> Result<PathBuf> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.starts_with(|c| of_name(c) && c != '-') || !name.chars().all(of_name) {
        bad_input!(
            "--save: `{}` is not a name; use letters, digits, - and _, and no - at its beginning",
            Quoted::new(name)
        );
    }
    if name.len() > LONGEST {
        bad_input!(
            "--save: a name of {} characters is too long; use {LONGEST} at most",
            name.len()
        );
    }
    let folder = saved_folder().join(name);
    if folder.exists() {
        bad_input!(
            "--save: there is a run `{name}` already; choose another name, or remove it: rm -r {}",
            places::shown(&folder)
        );
    }
    Ok(folder)
}

/// Resolves `path`. A name that is not a path names a saved run.
pub fn find(path: &Path) -> PathBuf {
    let saved = saved_folder().join(path);
    match is_name(path) && !path.exists() && saved.exists() {
        true => saved,
        false => path.to_owned(),
    }
}

/// Describes the possible inputs, and lists the existing inputs: the newest run and the saved runs.
pub fn possible_inputs() -> String {
    let entries = fs::read_dir(places::target().join("runs"));
    let entries = entries.into_iter().flatten().flatten();
    let runs = entries.map(|entry| entry.path());
    let newest = runs.filter(|path| path.join("results.json").exists()).max();
    let newest = newest.map(|path| format!(", the newest run: {}", places::shown(&path)));
    format!(
        "a run folder, a results.json or a serial log{}{}",
        newest.unwrap_or_default(),
        saved_names()
    )
}

/// Lists the names of all saved runs, for the end of an error's remedy. Empty if there are none.
pub fn saved_names() -> String {
    let entries = fs::read_dir(saved_folder()).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    match names.is_empty() {
        true => String::new(),
        false => format!(", or a saved run: {}", names.join(", ")),
    }
}

/// Returns the folder of saved runs.
pub fn saved_folder() -> PathBuf {
    places::target().join("saved")
}

/// Whether `path` is a single component, other than `.` and `..`.
fn is_name(path: &Path) -> bool {
    let mut parts = path.components();
    matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(part)), None) if part == path.as_os_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::failure::is_bad_input;

    #[test]
    fn a_name_is_no_path() {
        let long = "x".repeat(LONGEST + 1);
        for name in [
            "", ".", "..", "a/b", "/a", "a/", ".hidden", "-x", "a b", "a\nb", "\u{e4}", "a.b",
            &long,
        ] {
            let error = folder(name).unwrap_err();
            assert!(is_bad_input(&error), "{name}");
            assert!(error.to_string().starts_with("--save: "), "{error}");
        }
        assert!(folder("_a-B_9").is_ok() && folder(&"x".repeat(LONGEST)).is_ok());
        assert!(
            folder("no-run-has-this-name")
                .unwrap()
                .ends_with("saved/no-run-has-this-name")
        );
        // An existing file has priority.
        assert_eq!(find(Path::new("src")), Path::new("src"));
        assert_eq!(
            find(Path::new("no-run-has-this-name")),
            Path::new("no-run-has-this-name")
        );
    }
}
