// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patches as they were posted, in the kernels that they were made for: the `posted-*` experiments.
//!
//! Other experiments rebuild what a patch does in Rouse's own guest. These take the patch itself from the folder of
//! `--patches`, apply it to Debian's source, and measure that kernel with and without it.

mod arm_poll_idle;
mod idle_poll;
mod skip_newidle;
mod teo_util;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use shell::failure::bad_input;

use super::Experiment;
use super::runs::MeasuredCell;

/// Experiments that need the folder of `--patches`.
pub const ALL: [&Experiment; 4] = [
    &arm_poll_idle::EXPERIMENT,
    &skip_newidle::EXPERIMENT,
    &idle_poll::EXPERIMENT,
    &teo_util::EXPERIMENT,
];

/// Key of a boot's kernel among its lists: the version of Debian's source, and the beginnings of the names of patches,
/// as `6.12+000`.
pub const KERNEL: &str = "kernel";

/// Interrupts between CPUs per operation, as Linux counts them.
fn ipis(cell: &MeasuredCell<'_>) -> f64 {
    cell.each("linux", "call") + cell.each("linux", "resched")
}

/// Builds the kernel `named`, with patches from `folder`, and returns the path of its Image.
pub fn kernel(named: &str, folder: Option<&Path>) -> Result<String> {
    let mut parts = named.split('+');
    let version = parts.next().unwrap_or_default();
    let mut patches = Vec::new();
    for begins in parts {
        let Some(folder) = folder else {
            bad_input!(
                "this experiment measures a kernel with the patch {begins}; name the folder with the patches: --patches DIR"
            );
        };
        patches.push(patch(folder, begins, version)?);
    }
    Ok(kernels::built(version, patches)?.display().to_string())
}

/// Returns the path of the patch whose name begins with `begins`: if there are several, the one that names `version`.
fn patch(folder: &Path, begins: &str, version: &str) -> Result<PathBuf> {
    let shown = folder.display();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries.flatten(),
        Err(error) => bad_input!("--patches {shown}: can't be read ({error}); name a folder"),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(begins))
        .collect();
    if names.len() > 1 {
        names.retain(|name| name.contains(&format!("{version}.")));
    }
    match &names[..] {
        [name] => Ok(folder.join(name)),
        [] => bad_input!(
            "--patches {shown}: no file begins with {begins} and is for Linux {version}; name it like {begins}-NAME.on-{version}.patch"
        ),
        _ => bad_input!(
            "--patches {shown}: {} begin with {begins}; leave one",
            names.join(" and ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_found_by_its_number_and_version() {
        let place = tempfile::tempdir().unwrap();
        let of = |begins, version| patch(place.path(), begins, version);
        for name in [
            "000-a.on-6.12.patch",
            "001-b.on-6.1.patch",
            "001-b.on-6.12.patch",
        ] {
            fs::write(place.path().join(name), "").unwrap();
        }
        assert!(of("000", "6.1").unwrap().ends_with("000-a.on-6.12.patch"));
        assert!(of("001", "6.1").unwrap().ends_with("001-b.on-6.1.patch"));
        assert!(of("001", "6.12").unwrap().ends_with("001-b.on-6.12.patch"));
        let told = |result: Result<PathBuf>| result.unwrap_err().to_string();
        assert!(told(of("002", "6.1")).contains("no file begins with 002"));
        assert!(told(patch(Path::new("/nonexistent"), "0", "6")).contains("can't be read"));
        assert!(told(kernel("6.12+000", None).map(PathBuf::from)).contains("--patches DIR"));
    }
}
