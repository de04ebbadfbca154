// SPDX-License-Identifier: MIT OR Apache-2.0
//! Debian's cross compiler for arm64, `make`, and the other programs that a kernel's build runs, unpacked below
//! `target/tools` like the emulator. These programs run with their own C library, and none of them has to be installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::apt::{self, Apt};
use shell::command::quoted;
use shell::{partial_files, places};

const PACKAGES: [(&str, &str); 6] = [
    ("gcc-14-aarch64-linux-gnu", "14.2.0-19cross1"),
    ("make", "4.4.1-2"),
    ("flex", "2.6.4-8.2+b4"),
    ("bison", "2:3.8.2+dfsg-1+b2"),
    ("m4", "1.4.19-8"),
    ("bc", "1.07.1-4"),
];
/// Prefix of the name of each tool.
pub const PREFIX: &str = "aarch64-linux-gnu-";
/// Suffix of the compiler's and the preprocessor's names.
const VERSION: &str = "-14";
/// Tools of binutils that a build runs.
const BINUTILS: [&str; 9] = [
    "as", "ld", "ld.bfd", "ar", "nm", "objcopy", "objdump", "readelf", "strip",
];
/// Programs that the compiler itself runs.
const STEPS: [&str; 2] = ["cc1", "collect2"];
/// Programs besides the compiler.
const OTHERS: [&str; 5] = [MAKE, "flex", "bison", "m4", "bc"];
const MAKE: &str = "make";

fn install_folder() -> PathBuf {
    places::target().join("tools/compiler")
}

/// Returns the reason why the compiler is not available on this machine.
pub fn obstacle() -> Option<&'static str> {
    let x86_64_linux = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let usable = x86_64_linux && apt::usable();
    (!usable).then_some("only Debian's apt on x86-64 can fetch what builds it")
}

/// Whether an earlier run has provided the compiler.
pub fn is_provided() -> bool {
    install_folder().is_dir()
}

/// Fetches and unpacks the compiler, unless an earlier run has done so.
pub fn provide(apt: &Apt<'_>) -> Result<()> {
    if is_provided() {
        return Ok(());
    }
    let install = [
        "-y",
        "--no-install-recommends",
        "--download-only",
        "install",
    ];
    let packages = PACKAGES.map(|(name, version)| apt.find_pinned(name, version));
    let packages = packages.into_iter().collect::<Result<Vec<_>>>()?;
    let packages = packages.iter().map(String::as_str);
    let arguments: Vec<&str> = install.into_iter().chain(packages).collect();
    apt.run("downloading its compiler", &arguments)?;
    apt.unpack(&install_folder())
}

/// Writes to `folder` the scripts that start the tools. The names of the compiler's and binutils' scripts begin with
/// [`PREFIX`]; the other scripts have their tools' names.
pub fn write_scripts(folder: &Path) -> Result<()> {
    let (prefix, version) = (install_folder(), VERSION.trim_start_matches('-'));
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // The compiler starts its assembler and its steps by their plain names. The scripts with these names have a folder
    // of their own, where nothing else finds them.
    let own = folder.join("steps");
    fs::create_dir_all(&own).with_context(|| own.display().to_string())?;
    let bin = prefix.join("usr/bin");
    let itself = format!(" -B{}/", own.display());
    for tool in ["gcc", "cpp"] {
        let program = bin.join(format!("{PREFIX}{tool}{VERSION}"));
        write_script(folder, &format!("{PREFIX}{tool}"), &program, &itself)?;
    }
    for tool in BINUTILS {
        let program = bin.join(format!("{PREFIX}{tool}"));
        write_script(folder, &format!("{PREFIX}{tool}"), &program, "")?;
        write_script(&own, tool, &program, "")?;
    }
    let steps = prefix
        .join("usr/libexec/gcc-cross/aarch64-linux-gnu")
        .join(version);
    for step in STEPS {
        write_script(&own, step, &steps.join(step), "")?;
    }
    for tool in OTHERS {
        write_script(folder, tool, &bin.join(tool), "")?;
    }
    Ok(())
}

/// Returns `make` with the cross compiler, and writes to `folder` the scripts that start the tools.
pub fn make_command(folder: &Path) -> Result<Command> {
    write_scripts(folder)?;
    let mut make = Command::new(folder.join("make"));
    // Without this variable, `make` would use its own name for the compiler instead of the script's.
    make.arg(format!("CROSS_COMPILE={}/{PREFIX}", folder.display()));
    make.arg(format!("MAKE={}/make", folder.display()));
    Ok(make)
}

/// Writes the script `name`, which starts `program` with its own C library.
fn write_script(folder: &Path, name: &str, program: &Path, arguments: &str) -> Result<()> {
    let prefix = install_folder();
    let shown = |path: &Path| quoted(path);
    // After `make` has remade a makefile, it starts itself again by this name. The compiler finds its parts by the path
    // of its own program.
    let own_name = match name {
        MAKE => " --argv0 \"$0\"",
        _ => "",
    };
    let text = format!(
        "#!/bin/sh\nexport M4={} BISON_PKGDATADIR={}\nexec {}{own_name} --library-path {} {}{arguments} \"$@\"\n",
        shown(&folder.join("m4")),
        shown(&prefix.join("usr/share/bison")),
        shown(&prefix.join("usr/lib64/ld-linux-x86-64.so.2")),
        shown(&prefix.join("usr/lib/x86_64-linux-gnu")),
        shown(program)
    );
    let path = folder.join(name);
    if fs::read_to_string(&path).is_ok_and(|is| is == text) {
        return Ok(());
    }
    // Another run may be executing the script.
    partial_files::write(&path, text.as_bytes(), 0o755).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `make` starts itself again by its argument 0, and would otherwise run without its own C library.
    #[test]
    fn make_knows_its_script_and_the_compiler_its_own_place() {
        let place = tempfile::tempdir().unwrap();
        let text = |name: &str| {
            write_script(place.path(), name, Path::new("/tools/program"), "").unwrap();
            fs::read_to_string(place.path().join(name)).unwrap()
        };
        assert!(text(MAKE).contains(" --argv0 \"$0\" --library-path"));
        assert!(!text("aarch64-linux-gnu-gcc").contains("--argv0"));
    }
}
