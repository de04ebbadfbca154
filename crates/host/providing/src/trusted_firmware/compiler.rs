// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's cross compiler for arm64, and `make`, unpacked below `target/tools` like the emulator. They run with their
//! own C library, so the system needs neither.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::apt::{self, Apt};
use shell::command::quoted;
use shell::places;

const PACKAGES: [(&str, &str); 2] = [
    ("gcc-14-aarch64-linux-gnu", "14.2.0-19cross1"),
    ("make", "4.4.1-2"),
];
/// Prefix of the name of each tool.
const PREFIX: &str = "aarch64-linux-gnu-";
/// Suffix of the compiler's and the preprocessor's names.
const VERSION: &str = "-14";
/// Tools of binutils that the build runs.
const BINUTILS: [&str; 8] = [
    "as", "ld", "ld.bfd", "ar", "nm", "objcopy", "objdump", "readelf",
];
/// Programs that the compiler itself runs.
const STEPS: [&str; 2] = ["cc1", "collect2"];

fn prefix() -> PathBuf {
    places::target().join("tools/cross")
}

/// Returns the reason why the compiler is not available here.
pub fn obstacle() -> Option<&'static str> {
    let x86_64_linux = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let usable = x86_64_linux && apt::usable();
    (!usable).then_some("only Debian's apt on x86-64 can fetch what builds it")
}

/// Fetches and unpacks the compiler, unless an earlier run has done so.
pub fn provide(apt: &Apt<'_>) -> Result<()> {
    if prefix().is_dir() {
        return Ok(());
    }
    let install = [
        "-y",
        "--no-install-recommends",
        "--download-only",
        "install",
    ];
    let packages = PACKAGES.map(|(name, version)| apt.pinned(name, version));
    let packages = packages.into_iter().collect::<Result<Vec<_>>>()?;
    let packages = packages.iter().map(String::as_str);
    let arguments: Vec<&str> = install.into_iter().chain(packages).collect();
    apt.run("downloading its compiler", &arguments)?;
    apt.unpack(&prefix())
}

/// Returns `make` with the cross compiler; writes scripts that start the compiler's tools to `folder`.
pub fn make(folder: &Path) -> Result<Command> {
    let (prefix, version) = (prefix(), VERSION.trim_start_matches('-'));
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let bin = prefix.join("usr/bin");
    let itself = format!(" -B{}/", folder.display());
    for tool in ["gcc", "cpp"] {
        let program = bin.join(format!("{PREFIX}{tool}{VERSION}"));
        script(folder, &format!("{PREFIX}{tool}"), &program, &itself)?;
    }
    for tool in BINUTILS {
        let program = bin.join(format!("{PREFIX}{tool}"));
        script(folder, &format!("{PREFIX}{tool}"), &program, "")?;
        script(folder, tool, &program, "")?;
    }
    let steps = prefix
        .join("usr/libexec/gcc-cross/aarch64-linux-gnu")
        .join(version);
    for step in STEPS {
        script(folder, step, &steps.join(step), "")?;
    }
    script(folder, "make", &bin.join("make"), "")?;
    let mut make = Command::new(folder.join("make"));
    // Names the compiler's scripts: by default, `make` uses its own name for the compiler.
    make.arg(format!("CROSS_COMPILE={}/{PREFIX}", folder.display()));
    make.arg(format!("MAKE={}/make", folder.display()));
    Ok(make)
}

/// Writes the script `name`, which starts `program` with its own C library.
fn script(folder: &Path, name: &str, program: &Path, arguments: &str) -> Result<()> {
    let prefix = prefix();
    let shown = |path: &Path| quoted(path);
    let text = format!(
        "#!/bin/sh\nexec {} --library-path {} {}{arguments} \"$@\"\n",
        shown(&prefix.join("usr/lib64/ld-linux-x86-64.so.2")),
        shown(&prefix.join("usr/lib/x86_64-linux-gnu")),
        shown(program)
    );
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| path.display().to_string())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .with_context(|| path.display().to_string())
}
