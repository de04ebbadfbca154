// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things are. Everything that is written is below `target/`.

use std::env;
use std::path::{Path, PathBuf};

/// The workspace's root.
pub fn root() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
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

/// `path` as people type it: relative to where they are, if it is below.
pub fn shown(path: &Path) -> String {
    let here = env::current_dir().unwrap_or_default();
    match path.strip_prefix(here) {
        Ok(below) if below.as_os_str().is_empty() => ".".into(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
