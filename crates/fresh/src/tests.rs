// SPDX-License-Identifier: MIT OR Apache-2.0
use std::env::consts::DLL_EXTENSION;
use std::fs::File;
use std::time::Duration;

use super::*;
use tempfile::TempDir;

/// A workspace with a program of one source, both older than any build of now.
struct Workspace(TempDir);

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Self(folder);
        for (name, text) in [
            ("Cargo.toml", "[workspace]"),
            ("Cargo.lock", "version = 4"),
            ("p/Cargo.toml", "[package]"),
            ("p/src/a file.rs", "fn main() {}"),
        ] {
            workspace.write(name, text);
        }
        workspace.compile();
        workspace
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.back(name, 60);
    }

    /// Says that a file was written some seconds ago.
    fn back(&self, name: &str, seconds: u64) {
        let file = File::options().write(true).open(self.at(name)).unwrap();
        let time = SystemTime::now() - Duration::from_secs(seconds);
        file.set_modified(time).unwrap();
    }

    /// What Cargo leaves.
    fn compile(&self) {
        let (program, source) = (self.at("t/p"), self.at("p/src/a file.rs"));
        self.write("t/p", "program");
        let source = source.to_str().unwrap().replace(' ', "\\ ");
        self.write("t/p.d", &format!("{}: {source}\n", program.display()));
    }

    fn build(&self, words: &[&str]) -> Build {
        Build::new(self.0.path(), &self.at("t"), words, vec![self.at("t/p")])
    }

    fn built(&self) -> Build {
        let build = self.build(&["build"]);
        assert!(build.begin().unwrap().keep());
        assert!(build.is_fresh());
        build
    }
}

#[test]
fn a_build_is_fresh_until_a_file_or_a_word_is_another() {
    let workspace = Workspace::new();
    assert!(!workspace.build(&["build"]).is_fresh());
    workspace.built();
    assert!(workspace.build(&["build"]).is_fresh());
    assert!(!workspace.build(&["build", "--release"]).is_fresh());
    for name in [
        "Cargo.toml",
        "Cargo.lock",
        "p/Cargo.toml",
        "p/src/a file.rs",
        "t/p",
    ] {
        let build = workspace.built();
        // The same text with another time, an older one too.
        workspace.back(name, 3600);
        assert!(!build.is_fresh(), "{name}");
        let build = workspace.built();
        fs::remove_file(workspace.at(name)).unwrap();
        assert!(!build.is_fresh(), "{name}");
        workspace.write(name, "again");
    }
}

#[test]
fn a_length_is_looked_at_as_well() {
    let workspace = Workspace::new();
    let build = workspace.built();
    let source = workspace.at("p/src/a file.rs");
    let time = fs::metadata(&source).unwrap().modified().unwrap();
    fs::write(&source, "fn main() { }").unwrap();
    let file = File::options().write(true).open(&source).unwrap();
    file.set_modified(time).unwrap();
    assert!(!build.is_fresh());
}

#[test]
fn settings_that_were_not_there_are_heeded() {
    for name in [".cargo/config.toml", "rust-toolchain.toml"] {
        let workspace = Workspace::new();
        let build = workspace.built();
        workspace.write(name, "");
        assert!(!build.is_fresh(), "{name}");
    }
}

#[test]
fn a_library_is_one_of_which_cargo_says_it_elsewhere() {
    let workspace = Workspace::new();
    let name = format!("t/libl.{DLL_EXTENSION}");
    let library = || vec![workspace.at(&name)];
    let build = || Build::new(workspace.0.path(), &workspace.at("t"), ["build"], library());
    workspace.write(&name, "library");
    assert!(!build().begin().unwrap().keep());
    let source = workspace.at("p/src/lib.rs");
    workspace.write("p/src/lib.rs", "fn one() {}");
    let line = format!("{}: {}\n", library()[0].display(), source.display());
    workspace.write("t/libl.d", &line);
    assert!(build().begin().unwrap().keep());
    assert!(build().is_fresh());
    workspace.write("p/src/lib.rs", "fn another() {}");
    assert!(!build().is_fresh());
}

#[test]
fn what_changes_while_it_is_built_is_not_taken_for_built() {
    let workspace = Workspace::new();
    let build = workspace.build(&["build"]);
    let begun = build.begin().unwrap();
    fs::write(workspace.at("p/src/a file.rs"), "fn main() { new() }").unwrap();
    assert!(!begun.keep());
    assert!(!build.is_fresh());
}

#[test]
fn a_build_that_does_not_end_is_not_fresh() {
    let workspace = Workspace::new();
    let build = workspace.built();
    let _ended = build.begin().unwrap();
    assert!(!build.is_fresh());
    // Nor one whose program was not written, or of whose sources nothing is known.
    for name in ["t/p", "t/p.d"] {
        fs::remove_file(workspace.at(name)).unwrap();
        assert!(!build.begin().unwrap().keep(), "{name}");
        workspace.compile();
    }
}

#[test]
fn what_is_cut_is_not_fresh() {
    let workspace = Workspace::new();
    let build = workspace.built();
    let text = fs::read_to_string(&build.stamp).unwrap();
    fs::write(&build.stamp, &build.words).unwrap();
    assert!(!build.is_fresh());
    fs::write(&build.stamp, &text[..text.len() - 2]).unwrap();
    assert!(!build.is_fresh());
}

#[test]
fn variables_that_cargo_heeds_are_known() {
    for name in ["RUSTFLAGS", "RUSTC_WRAPPER", "CARGO_PROFILE_DEV_DEBUG"] {
        assert!(is_heeded(OsStr::new(name)), "{name}");
    }
    for name in [
        "CARGO_PKG_NAME",
        "CARGO_MANIFEST_DIR",
        "RUST_BACKTRACE",
        "PATH",
    ] {
        assert!(!is_heeded(OsStr::new(name)), "{name}");
    }
}
