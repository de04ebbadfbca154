// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compiler for kernels, and the programs that their build runs: this machine's own, or else provided ones.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use providing::apt::Remedy;
use providing::compiler;
use providing::manager::on_the_path;
use providing::toolchain::answer;
use shell::failure::bad_input;
use shell::places;

const REMEDY: Remedy = Remedy {
    missing: "a compiler for arm64 kernels",
    instead: "install gcc-aarch64-linux-gnu, or clang with lld and llvm; and make, flex, bison and bc",
};

/// Programs that each build runs, besides the compiler.
const TOOLS: [&str; 4] = ["make", "flex", "bison", "bc"];

/// Programs of LLVM that a build runs (Linux, Documentation/kbuild/llvm.rst).
const OF_LLVM: [&str; 6] = [
    "clang",
    "ld.lld",
    "llvm-ar",
    "llvm-nm",
    "llvm-objcopy",
    "llvm-readelf",
];

/// A compiler that was found.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// Variables to pass to `make`.
    pub variables: Vec<String>,
    /// A folder with provided programs, if this machine lacks some.
    provided: Option<PathBuf>,
    /// The first line of the compiler's output about its version.
    pub version: String,
}

impl Compiler {
    /// Finds a compiler, or provides one.
    pub fn find() -> Result<Self> {
        let here = find_family(is_on_path);
        let tools = TOOLS.iter().all(|tool| is_on_path(tool));
        if !is_on_path("gcc") && !is_on_path("clang") && !is_on_path("cc") {
            bad_input!(
                "a kernel's build needs a C compiler for this machine, for its own tools; install gcc"
            );
        }
        let provided = match here.is_some() && tools {
            true => None,
            false => Some(provide()?),
        };
        let family = here.unwrap_or(Family::Gcc(compiler::PREFIX));
        let mut variables = vec!["ARCH=arm64".to_owned()];
        let program = match family {
            Family::Gcc(prefix) => {
                variables.push(format!("CROSS_COMPILE={prefix}"));
                format!("{prefix}gcc")
            }
            Family::Clang => {
                variables.push("LLVM=1".into());
                "clang".into()
            }
        };
        if !is_on_path("gcc") && is_on_path("cc") && !is_on_path("clang") {
            variables.push("HOSTCC=cc".into());
        }
        if let Some(folder) = &provided {
            // Without this variable, `make` would start nested instances of itself without the script that runs it.
            variables.push(format!("MAKE={}/make", folder.display()));
        }
        let mut found = Self {
            variables,
            provided,
            version: String::new(),
        };
        let mut version = found.command(&program);
        let said = answer(version.arg("--version")).unwrap_or_default();
        found.version = said.lines().next().unwrap_or(&program).to_owned();
        Ok(found)
    }

    /// Returns a command that finds the provided programs before this machine's.
    pub fn command(&self, program: &str) -> Command {
        let Some(folder) = &self.provided else {
            return Command::new(program);
        };
        let path = env::var_os("PATH").unwrap_or_default();
        let folders = [folder.clone()].into_iter().chain(env::split_paths(&path));
        let path = env::join_paths(folders).unwrap_or(path.clone());
        // A program is searched for on the PATH of this process, and not on the command's PATH.
        let own = folder.join(program);
        let mut command = match own.exists() {
            true => Command::new(own),
            false => Command::new(program),
        };
        command.env("PATH", path);
        command
    }

    /// Returns a compiler whose programs are in `folder`.
    #[cfg(test)]
    pub fn in_folder(folder: &std::path::Path) -> Self {
        Self {
            variables: Vec::new(),
            provided: Some(folder.into()),
            version: "fake".into(),
        }
    }
}

/// A compiler's family, with the prefix of its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Gcc(&'static str),
    Clang,
}

/// Returns the family of the compiler for arm64 that this machine has. `there` tells which programs exist.
fn find_family(there: impl Fn(&str) -> bool) -> Option<Family> {
    if cfg!(target_arch = "aarch64") && there("gcc") {
        return Some(Family::Gcc(""));
    }
    if there("aarch64-linux-gnu-gcc") {
        return Some(Family::Gcc(compiler::PREFIX));
    }
    OF_LLVM
        .iter()
        .all(|tool| there(tool))
        .then_some(Family::Clang)
}

fn is_on_path(program: &str) -> bool {
    on_the_path(program).is_some()
}

/// Provides the cross compiler and the tools. Returns the folder with the scripts that start them.
fn provide() -> Result<PathBuf> {
    let here = || compiler::is_provided().then_some(());
    let Remedy { missing, instead } = REMEDY;
    if here().is_none()
        && let Some(obstacle) = compiler::obstacle()
    {
        bad_input!("{missing} is missing, and {obstacle}; {instead}");
    }
    REMEDY.provide_once("", here, |tools| {
        let apt = tools.all_suites(&REMEDY)?;
        compiler::provide(&apt)
    })?;
    let folder = places::target().join("kernels/programs");
    compiler::write_scripts(&folder)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcc_comes_before_clang_and_half_an_llvm_is_none() {
        let of = |programs: &[&str]| find_family(|program| programs.contains(&program));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(
                of(&["gcc", "aarch64-linux-gnu-gcc"]),
                Some(Family::Gcc(compiler::PREFIX))
            );
            assert_eq!(of(&[&OF_LLVM[..], &["gcc"]].concat()), Some(Family::Clang));
            assert_eq!(of(&["gcc", "clang"]), None);
        }
    }

    #[test]
    fn programs_are_searched_for() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-program-of-anybody"));
    }
}
