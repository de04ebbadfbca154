// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histories of edits and builds. After each successful build, the program must be what a clean build would make.

use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::bail;
use proptest::prelude::*;

use super::*;

/// A workspace with two sources.
struct Place {
    folder: tempfile::TempDir,
    /// How often Cargo ran.
    ran: Cell<usize>,
}

/// How a build ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Well,
    /// A source changes while Cargo runs, and is restored with its old time.
    AfterAnEdit,
    /// Cargo compiles nothing.
    InFailure,
    /// The machine stops after Cargo has compiled the first source, which was edited when Cargo had begun. Then the
    /// source is restored, with the time of the edit.
    CutShort,
}

/// A step of a history.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Writes a source, with a time of now or from before all builds.
    Write { source: bool, text: u8, old: bool },
    /// Writes a file that Cargo finds only by its name, or removes it.
    Appear(bool),
    /// Changes the built program, or removes it.
    Spoil(bool),
    /// Builds with one of two arguments.
    Build { argument: bool, ends: Ends },
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("p/src")).unwrap();
        fs::create_dir_all(folder.path().join("records")).unwrap();
        let manifest = "[workspace]\nmembers = [\"p\"]\nresolver = \"3\"\n";
        fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        let place = Self {
            folder,
            ran: Cell::new(0),
        };
        place.write("p/src/main.rs", "0", true);
        place.write("p/src/b.rs", "0", true);
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file. Its time is `old`, before any build, or later than any other file's.
    fn write(&self, path: &str, text: &str, old: bool) {
        fs::write(self.at(path), text).unwrap();
        if old {
            let file = File::options().append(true).open(self.at(path)).unwrap();
            let hour = Duration::from_secs(3600);
            file.set_modified(SystemTime::now() - hour).unwrap();
        }
    }

    /// Returns the program that a clean build makes.
    fn clean(&self, argument: &str) -> String {
        let sources = ["p/src/main.rs", "p/src/b.rs", "p/build.rs"];
        let texts = sources.map(|path| fs::read_to_string(self.at(path)).unwrap_or_default());
        format!("{argument} {texts:?}")
    }

    fn program(&self) -> PathBuf {
        self.at("target/program")
    }

    /// Does what Cargo does: compiles a source if it is newer than its output, or if the arguments are new. Each source
    /// has an output, from which the program is linked.
    fn run_cargo(&self, argument: &str, cut_short: bool) -> Result<()> {
        self.ran.set(self.ran.get() + 1);
        fs::create_dir_all(self.at("target")).unwrap();
        let modified = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
        let mut texts = Vec::new();
        for (count, path) in ["p/src/main.rs", "p/src/b.rs", "p/build.rs"]
            .iter()
            .enumerate()
        {
            let output = self.at(&format!("target/{argument}-{count}"));
            let made = modified(&output);
            match modified(&self.at(path)) {
                None => fs::write(&output, "").unwrap(),
                source if source > made => drop(fs::copy(self.at(path), &output).unwrap()),
                _ => {}
            }
            if cut_short {
                bail!("cut short");
            }
            texts.push(fs::read_to_string(output).unwrap());
        }
        let linked = format!("{argument} {texts:?}");
        fs::write(self.program(), linked).unwrap();
        let files = ["p/src/main.rs", "p/src/b.rs"].map(|path| self.at(path).display().to_string());
        let depends = format!("{}: {}\n", self.program().display(), files.join(" "));
        fs::write(self.at("target/program.d"), depends).unwrap();
        Ok(())
    }

    /// Builds the program. Returns whether the build succeeded.
    fn build(&self, argument: &str, ends: Ends) -> bool {
        let (records, directories) = (self.at("records"), [self.at("target")]);
        let sources = Sources::new(self.folder.path(), &records, &directories);
        let directory = self.at("target");
        let build = Build {
            directory: &directory,
            arguments: &[argument],
            programs: &[self.program()],
            note: "",
        };
        let run = || match ends {
            Ends::Well => self.run_cargo(argument, false),
            Ends::AfterAnEdit => {
                let before = fs::read_to_string(self.at("p/src/b.rs")).unwrap();
                self.write("p/src/b.rs", "edited", false);
                let ran = self.run_cargo(argument, false);
                self.write("p/src/b.rs", &before, true);
                ran
            }
            Ends::InFailure => bail!("an error in a source"),
            Ends::CutShort => {
                let path = self.at("p/src/main.rs");
                let before = fs::read_to_string(&path).unwrap();
                self.write("p/src/main.rs", "edited", false);
                let time = fs::metadata(&path).unwrap().modified().unwrap();
                let ran = self.run_cargo(argument, true);
                fs::write(&path, before).unwrap();
                let file = File::options().append(true).open(path).unwrap();
                file.set_modified(time).unwrap();
                ran
            }
        };
        let built = sources.build_by(&build, run).is_ok();
        if ends != Ends::CutShort || built {
            sources.write_records().unwrap();
        }
        // A program that is built from changing sources can be either.
        built && ends != Ends::AfterAnEdit
    }

    /// Returns whether Cargo runs for a build.
    fn asks_cargo(&self, argument: &str) -> bool {
        let before = self.ran.get();
        assert!(self.build(argument, Ends::Well));
        self.ran.get() > before
    }

    fn check(&self, argument: &str) {
        let built = fs::read_to_string(self.program()).unwrap();
        assert_eq!(built, self.clean(argument));
    }

    fn apply(&self, step: Step) {
        match step {
            Step::Write { source, text, old } => {
                let path = ["p/src/main.rs", "p/src/b.rs"][usize::from(source)];
                self.write(path, &text.to_string(), old);
            }
            Step::Appear(true) => self.write("p/build.rs", "appeared", true),
            Step::Appear(false) => drop(fs::remove_file(self.at("p/build.rs"))),
            Step::Spoil(true) => drop(fs::remove_file(self.program())),
            Step::Spoil(false) => drop(fs::write(self.program(), "of another tree")),
            Step::Build { argument, ends } => {
                let argument = ["x", "y"][usize::from(argument)];
                if self.build(argument, ends) {
                    self.check(argument);
                }
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let ends = prop_oneof![
        6 => Just(Ends::Well),
        1 => Just(Ends::AfterAnEdit),
        1 => Just(Ends::InFailure),
        1 => Just(Ends::CutShort),
    ];
    prop_oneof![
        (any::<bool>(), 0..3u8, any::<bool>()).prop_map(|(source, text, old)| Step::Write {
            source,
            text,
            old
        }),
        any::<bool>().prop_map(Step::Appear),
        any::<bool>().prop_map(Step::Spoil),
        (any::<bool>(), ends).prop_map(|(argument, ends)| Step::Build { argument, ends }),
    ]
}

proptest! {
    #[test]
    fn every_build_makes_what_a_clean_build_makes(history in prop::collection::vec(steps(), 1..24)) {
        let place = Place::new();
        for step in history {
            place.apply(step);
        }
        prop_assert!(place.build("x", Ends::Well));
        place.check("x");
    }
}

#[test]
fn cargo_is_asked_only_after_a_change() {
    let place = Place::new();
    // A file that has changed a moment ago may change again within the same tick of the clock.
    std::thread::sleep(Duration::from_secs(5));
    assert!(place.asks_cargo("x"));
    assert!(!place.asks_cargo("x"));
    fs::remove_file(place.program()).unwrap();
    assert!(place.asks_cargo("x"), "no program");
    assert!(!place.asks_cargo("x"));
    fs::write(place.program(), "of another tree").unwrap();
    assert!(place.asks_cargo("x"), "another program");
    assert!(place.asks_cargo("y"), "other arguments");
    assert!(place.asks_cargo("x"), "the program of other arguments");
    assert!(!place.asks_cargo("x"));
    assert!(!place.build("x", Ends::AfterAnEdit));
    assert!(!place.asks_cargo("x"), "nothing was built");
    place.write("p/src/main.rs", "1", true);
    assert!(place.asks_cargo("x"), "an edit with an old time");
    place.check("x");
}

#[test]
fn a_directory_of_which_nothing_is_known_is_removed() {
    let place = Place::new();
    let other = place.at("target/other");
    fs::create_dir_all(place.at("target")).unwrap();
    fs::write(&other, "of another tree").unwrap();
    assert!(place.asks_cargo("x"));
    assert!(!other.exists());
    fs::write(&other, "of this tree").unwrap();
    assert!(place.asks_cargo("y"));
    assert!(other.exists());
    fs::write(place.at("records/contents.json"), "cut").unwrap();
    assert!(place.asks_cargo("x"));
    assert!(!other.exists());
}

#[test]
fn a_link_to_another_file_may_lead_to_an_old_one() {
    let place = Place::new();
    let (link, marker) = (place.at("p/src/link.rs"), place.at("target/marker"));
    symlink("main.rs", &link).unwrap();
    assert!(place.asks_cargo("x"));
    fs::write(&marker, "").unwrap();
    fs::remove_file(&link).unwrap();
    // The link is newer than the record by a tick of the clock.
    std::thread::sleep(Duration::from_millis(20));
    symlink("b.rs", &link).unwrap();
    assert!(place.asks_cargo("x"));
    assert!(!marker.exists());
}

#[test]
fn files_that_cargo_ignores_do_no_harm() {
    let place = Place::new();
    symlink("user@host.1234", place.at("p/src/.#main.rs")).unwrap();
    let name = OsStr::from_bytes(b"p/src/\xff.rs");
    fs::write(place.folder.path().join(name), "").unwrap();
    assert!(place.asks_cargo("x"));
    place.check("x");
}

#[test]
fn a_source_is_touched_with_a_later_time_than_the_record_even_if_the_clock_was_set_back() {
    let place = Place::new();
    assert!(place.asks_cargo("x"));
    let later = SystemTime::now() + Duration::from_secs(3600);
    let record = File::open(place.at("records/contents.json")).unwrap();
    record.set_modified(later).unwrap();
    place.write("p/src/b.rs", "1", true);
    assert!(place.asks_cargo("x"));
    let source = fs::metadata(place.at("p/src/b.rs")).unwrap();
    assert!(source.modified().unwrap() > later);
}

/// The real Cargo, which lists the files of a program and compares times.
#[test]
fn a_package_is_compiled_after_each_change() {
    let place = Place::new();
    let manifest = "[package]\nname = \"p\"\nedition = \"2024\"\n";
    place.write("p/Cargo.toml", manifest, true);
    let (records, directories) = (place.at("records"), [place.at("target")]);
    let manifest = place.at("Cargo.toml").display().to_string();
    let arguments = ["--offline", "--manifest-path", &manifest];
    let program = place.at("target/debug/p");
    let build = || {
        let sources = Sources::new(place.folder.path(), &records, &directories);
        let built = sources.build(&Build {
            directory: &directories[0],
            arguments: &arguments,
            programs: std::slice::from_ref(&program),
            note: "",
        });
        sources.write_records().unwrap();
        built
    };
    let says = |text: &str| {
        build().unwrap();
        let said = Command::new(&program).output().unwrap().stdout;
        assert_eq!(String::from_utf8(said).unwrap(), text);
    };
    let source = |text: &str| format!("mod b; fn main() {{ print!(\"{{}}{text}\", b::B); }}");
    place.write("p/src/main.rs", &source("0"), true);
    place.write("p/src/b.rs", "pub const B: &str = \"b\";", true);
    says("b0");
    place.write("p/src/main.rs", &source("1"), true);
    says("b1");
    place.write("p/src/b.rs", "pub const B: &str = \"c\";", true);
    says("c1");
    place.write("p/src/main.rs", &source("0"), true);
    says("c0");
    let sets = "fn main() { println!(\"cargo::rustc-env=SET=s\"); }";
    place.write("p/src/b.rs", "pub const B: &str = env!(\"SET\");", true);
    place.write("p/build.rs", sets, true);
    says("s0");
    place.write("p/src/main.rs", "fn main() {", true);
    assert!(build().is_err());
    assert!(build().is_err());
}
