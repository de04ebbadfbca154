// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths of the workspace. All output is below `target/`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// The environment variable that contains the workspace's root.
pub const ROOT: &str = "ROUSE_ROOT";
const NO_FILE: &str = "this program has no file";

/// Returns the workspace's root, as `cargo xtask` reports it, or else as it was at compilation. The latter is wrong if
/// the workspace has moved since.
pub fn root() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| match env::var_os(ROOT) {
        Some(root) => root.into(),
        None => {
            let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
            manifest.ancestors().nth(3).unwrap_or(manifest).into()
        }
    })
}

/// Returns a path inside the workspace.
pub fn inside(path: &str) -> PathBuf {
    root().join(path)
}

/// Returns the folder of all output. This folder stays the same even if Cargo's target directory is moved, so downloads
/// and results stay in place.
pub fn target() -> PathBuf {
    inside("target")
}

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Returns the path of this program's file, for starting the program again. Call this function before
/// anything is built: Cargo may replace the file, and the system then names a file that no longer
/// exists.
pub fn program() -> Result<&'static Path> {
    if PROGRAM.get().is_none() {
        // Another thread may have been faster, with the same result.
        let _ = PROGRAM.set(this_program()?);
    }
    let program = PROGRAM.get().context(NO_FILE)?;
    Ok(program)
}

/// Makes [`program`] return a file that Cargo does not touch, until the result is
/// dropped. Call this function while nothing is being built.
pub fn keep_program() -> Result<TempDir> {
    let failed = "this program's file can't be kept below target/";
    fs::create_dir_all(target()).context(failed)?;
    let kept = tempfile::Builder::new()
        .prefix("program-")
        .tempdir_in(target())
        .context(failed)?;
    let (this, file) = (this_program()?, kept.path().join("xtask"));
    // Not every file system supports hard links.
    if fs::hard_link(&this, &file).is_err() {
        fs::copy(&this, &file).context(failed)?;
    }
    ensure!(PROGRAM.set(file).is_ok(), "{failed}: it is in use");
    Ok(kept)
}

fn this_program() -> Result<PathBuf> {
    env::current_exe().context(NO_FILE)
}

/// Returns `path` as people type it: relative to the current folder if it is below that folder.
pub fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    match path.strip_prefix(here) {
        Ok(below) if below.as_os_str().is_empty() => ".".into(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
