// SPDX-License-Identifier: MIT OR Apache-2.0
//! Line coverage of the pure crates: `cargo xtask test --coverage`.
//!
//! Their tests, and those of crate `fuzz`, are built with the compiler's own
//! instrumentation and run; llvm-profdata and llvm-cov, of the toolchain's
//! component llvm-tools, count. A line counts if it is in `src/` of a pure crate
//! and not in a test: tests cover themselves.

mod lines;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use shell::terminal::print_lines;
use shell::{failure::bad_input, places};
use providing::toolchain;
use page::grid::{self, Column};

/// Least share of a crate's lines that must be covered, in percent.
const LEAST: f64 = 90.0;
/// Crates that touch registers, or that only test.
const NOT_PURE: [&str; 5] = ["arch", "console", "fuzz", "gic", "pages"];

/// Covered and all lines.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    covered: usize,
    all: usize,
}

impl Share {
    fn percent(self) -> f64 {
        100.0 * self.covered as f64 / self.all.max(1) as f64
    }
}

/// Measures, prints the table, and fails where a crate is below [`LEAST`].
pub fn run() -> Result<()> {
    let [profdata, cov] = [tool("llvm-profdata")?, tool("llvm-cov")?];
    let crates = pure_crates()?;
    let folder = places::target().join("coverage");
    let profiles = folder.join("profiles");
    if profiles.exists() {
        fs::remove_dir_all(&profiles)?;
    }
    let tests = test(&crates, &folder, &profiles)?;
    let merged = folder.join("merged.profdata");
    let raw = files(&profiles)?;
    let mut merge = Command::new(profdata);
    merge
        .arg("merge")
        .arg("--sparse")
        .args(raw)
        .arg("--output")
        .arg(&merged);
    ensure!(
        merge.status()?.success(),
        "llvm-profdata failed; what it said is above"
    );
    let mut export = Command::new(cov);
    export
        .args(["export", "--format=lcov", "--instr-profile"])
        .arg(&merged);
    export.args(tests.iter().flat_map(|test| [Path::new("--object"), test]));
    let output = export.output().context("llvm-cov can't be started")?;
    ensure!(
        output.status.success(),
        "llvm-cov failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let shares = shares(&String::from_utf8_lossy(&output.stdout), &crates)?;
    show(&shares)
}

/// A tool of the component llvm-tools.
fn tool(name: &str) -> Result<PathBuf> {
    let sysroot = toolchain::output("rustc", &["--print", "target-libdir"]).unwrap_or_default();
    let tool = Path::new(sysroot.trim()).with_file_name("bin").join(name);
    if !tool.exists() {
        bad_input!("coverage: there is no {name}; get it by rustup component add llvm-tools");
    }
    Ok(tool)
}

/// The names of the pure crates: every one but those that are known not to be,
/// so that a new one is not forgotten.
fn pure_crates() -> Result<Vec<String>> {
    let names = files(&places::inside("crates"))?
        .into_iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    Ok(names
        .filter(|name| !NOT_PURE.contains(&name.as_str()))
        .collect())
}

/// Lists a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| places::shown(folder))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    Ok(paths)
}

/// Builds and runs the tests; their executables.
fn test(crates: &[String], folder: &Path, profiles: &Path) -> Result<Vec<PathBuf>> {
    let cargo = |more: &[&str]| {
        let mut cargo = toolchain::cargo();
        cargo
            .env("RUSTFLAGS", "-C instrument-coverage")
            .env("LLVM_PROFILE_FILE", profiles.join("%p-%m.profraw"))
            .args(["test", "--quiet", "--tests", "--package", "fuzz"])
            .args(crates.iter().flat_map(|name| ["--package", name]))
            .arg("--target-dir")
            .arg(folder)
            .args(more);
        cargo
    };
    let built = cargo(&["--no-run", "--message-format=json"]).output()?;
    if !built.status.success() {
        bail!(
            "tests can't be built: {}",
            String::from_utf8_lossy(&built.stderr).trim()
        );
    }
    let executables = toolchain::executables(&built.stdout);
    let status = cargo(&[]).status().with_context(toolchain::no_cargo)?;
    ensure!(
        status.success(),
        "tests of the host failed; what cargo said is above"
    );
    Ok(executables)
}

/// Sums the lines of an lcov report by crate.
fn shares(report: &str, crates: &[String]) -> Result<BTreeMap<String, Share>> {
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    for file in lines::files(report) {
        let path = Path::new(file.path);
        let Some(name) = crate_of(path).filter(|name| crates.iter().any(|known| known == name))
        else {
            continue;
        };
        let source = fs::read_to_string(path).with_context(|| places::shown(path))?;
        let tests = lines::tests(&source);
        let share = shares.entry(name.to_owned()).or_default();
        for &(line, count) in file.counts.iter().filter(|(line, _)| !tests.contains(line)) {
            let _ = line;
            share.all += 1;
            share.covered += usize::from(count > 0);
        }
    }
    Ok(shares)
}

/// The crate to whose `src/` a file belongs, unless the file is a test.
fn crate_of(path: &Path) -> Option<&str> {
    let below = path.strip_prefix(places::inside("crates")).ok()?;
    let mut parts = below.iter().map(|part| part.to_str().unwrap_or_default());
    let (name, place) = (parts.next()?, parts.next()?);
    let file = path.file_stem()?.to_str()?;
    (place == "src" && file != "tests" && !file.ends_with("_tests")).then_some(name)
}

fn show(shares: &BTreeMap<String, Share>) -> Result<()> {
    let total = shares.values().fold(Share::default(), |sum, share| Share {
        covered: sum.covered + share.covered,
        all: sum.all + share.all,
    });
    let names = shares.keys().map(String::as_str).chain(["total"]);
    let rows: Vec<(&str, Share)> = names.zip(shares.values().copied().chain([total])).collect();
    let numbers = |title, of: fn(Share) -> String| {
        Column::numbers(
            "",
            title,
            rows.iter().map(|(_, share)| of(*share)).collect(),
        )
    };
    let columns = [
        Column::words(
            "crate",
            rows.iter().map(|(name, _)| (*name).to_owned()).collect(),
        ),
        numbers("lines", |share| share.all.to_string()),
        numbers("covered", |share| share.covered.to_string()),
        numbers("percent", |share| format!("{:.1}", share.percent())),
    ];
    print_lines(grid::lines(&columns));
    let below: Vec<&str> = rows
        .iter()
        .filter(|(_, share)| share.percent() < LEAST)
        .map(|(name, _)| *name)
        .collect();
    if !below.is_empty() {
        bail!(
            "less than {LEAST} % of the lines are covered in {}; add tests",
            below.join(", ")
        );
    }
    Ok(())
}
