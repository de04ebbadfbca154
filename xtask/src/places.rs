// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things are. Everything that is written is below `target/`.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};

/// The workspace's root: as `cargo xtask` says, or where this program was compiled. The
/// latter is another place if the workspace was moved since.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| match env::var_os("ROUSE_ROOT") {
        Some(root) => root.into(),
        None => {
            let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
            manifest.parent().unwrap_or(manifest).into()
        }
    })
}

/// A path inside the workspace.
pub fn inside(path: &str) -> PathBuf {
    root().join(path)
}

/// Folder of everything that is made. Not Cargo's target directory when that
/// was moved: downloads and results should stay when it is.
pub fn target() -> PathBuf {
    inside("target")
}

/// The file of this program, to start it again. To be asked for before anything is
/// built: Cargo may put a new file in its place, and the system then names one that is
/// gone.
pub fn program() -> Result<&'static Path> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if PROGRAM.get().is_none() {
        let file = env::current_exe().context("this program has no file")?;
        // Another thread may have been faster; both found the same.
        let _ = PROGRAM.set(file);
    }
    PROGRAM
        .get()
        .map(PathBuf::as_path)
        .context("this program has no file")
}

/// `path` as people type it: relative to where they are, if it is below.
pub fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    match path.strip_prefix(here) {
        Ok(below) if below.as_os_str().is_empty() => ".".into(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
