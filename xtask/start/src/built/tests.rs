// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(place.at("w/p/src")).unwrap();
        fs::create_dir_all(place.at("w/target/debug")).unwrap();
        for path in ["cargo", "rustc", "w/p/src/main.rs"] {
            place.write(path, "0");
        }
        place.write("w/Cargo.toml", "[workspace]\nmembers = [\"p\"]\n");
        place.build();
        place
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    fn program(&self) -> PathBuf {
        self.at("w/target/debug/p")
    }

    fn state(&self) -> State {
        State::read(&self.at("w"), &self.at("cargo")).unwrap()
    }

    fn build(&self) {
        self.write("w/target/debug/p", "program");
        let source = self.at("w/p/src/main.rs");
        self.write("w/target/debug/p.d", &format!("p: {}\n", source.display()));
    }

    /// Records a build that began when the workspace had state `before`, whose files had not changed for a while.
    fn record(&self, before: State) {
        let when = SystemTime::now() + Duration::from_secs(60);
        let before = State { when, ..before };
        before
            .record(self.state(), &self.at("w"), &self.program())
            .unwrap();
    }

    fn is_built(&self) -> bool {
        self.state().is_of(&self.program())
    }
}

/// Writes a file again, and gives it the time that it had.
fn restore_time(path: &Path, text: &str) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    fs::write(path, text).unwrap();
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(modified).unwrap();
}

#[test]
fn each_change_is_seen() {
    type Change = fn(&Place);
    let changes: [(&str, Change); 8] = [
        ("an edit", |place| place.write("w/p/src/main.rs", "1")),
        ("an edit with the old time", |place| {
            restore_time(&place.at("w/p/src/main.rs"), "1");
        }),
        ("a new file", |place| place.write("w/p/build.rs", "")),
        ("a new configuration", |place| {
            fs::create_dir(place.at("w/.cargo")).unwrap();
            place.write("w/.cargo/config.toml", "");
        }),
        ("no source", |place| {
            fs::remove_file(place.at("w/p/src/main.rs")).unwrap()
        }),
        ("another program", |place| {
            restore_time(&place.program(), "changed");
        }),
        ("no program", |place| {
            fs::remove_file(place.program()).unwrap()
        }),
        ("another compiler", |place| place.write("rustc", "1")),
    ];
    for (name, change) in changes {
        let place = Place::new();
        assert!(!place.is_built(), "{name}: no record");
        place.record(place.state());
        assert!(place.is_built(), "{name}: nothing has changed");
        // The next change must not fall within the same tick of the clock.
        std::thread::sleep(Duration::from_millis(20));
        change(&place);
        assert!(!place.is_built(), "{name}");
    }
}

#[test]
fn a_changed_file_with_an_older_time_gets_a_new_one() {
    let place = Place::new();
    let (source, other) = (place.at("w/p/src/main.rs"), place.at("w/Cargo.toml"));
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    let before = modified(&other);
    // The program must be later than the sources by a tick of the clock, and earlier than the change.
    std::thread::sleep(Duration::from_millis(20));
    place.build();
    std::thread::sleep(Duration::from_millis(20));
    restore_time(&source, "1");
    assert!(modified(&source) < modified(&place.program()));
    touch_disguised(&place.at("w"), &place.program()).unwrap();
    assert!(modified(&source) > modified(&place.program()));
    assert_eq!(modified(&other), before);
}

#[test]
fn other_output_is_no_change() {
    let place = Place::new();
    place.record(place.state());
    place.write("w/target/other", "");
    place.write("w/notes", "");
    assert!(place.is_built());
}

#[test]
fn other_inputs_are_another_state() {
    let place = Place::new();
    place.record(place.state());
    assert!(place.is_built());
    assert!(!place.state().with("an argument").is_of(&place.program()));
}

#[test]
fn this_workspace_has_all_its_packages_among_the_inputs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap();
    let inputs = inputs_of(root).unwrap();
    let lock = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let paths = lock
        .lines()
        .filter_map(|line| line.split_once("path = \"")?.1.split('"').next());
    let paths: Vec<_> = paths.map(|path| root.join(path)).collect();
    assert!(paths.len() > 20);
    for path in paths {
        assert!(
            inputs.iter().any(|input| path.starts_with(input)),
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_build_from_changing_inputs_is_not_recorded() {
    for path in ["w/p/src/main.rs", "w/p/src/new.rs", ".cargo/config.toml"] {
        let place = Place::new();
        fs::create_dir(place.at(".cargo")).unwrap();
        let before = place.state();
        std::thread::sleep(Duration::from_millis(20));
        place.write(path, "1");
        place.record(before);
        assert!(!place.is_built(), "{path}");
        // Without that file, the inputs may be as they were before.
        fs::remove_file(place.at(path)).unwrap();
        assert!(!place.is_built(), "{path}");
    }
}

#[test]
fn a_file_that_came_and_went_during_a_build_is_seen() {
    let place = Place::new();
    let before = place.state();
    std::thread::sleep(Duration::from_millis(20));
    place.write("w/p/src/new.rs", "");
    fs::remove_file(place.at("w/p/src/new.rs")).unwrap();
    place.record(before);
    assert!(!place.is_built());
}

#[test]
fn a_file_that_has_just_changed_may_change_again() {
    let place = Place::new();
    let state = place.state();
    state
        .record(state, &place.at("w"), &place.program())
        .unwrap();
    assert!(!place.is_built());
}

#[test]
fn a_link_counts_with_its_target() {
    let place = Place::new();
    place.write("outside.rs", "0");
    std::os::unix::fs::symlink(place.at("outside.rs"), place.at("w/p/src/a.rs")).unwrap();
    place.record(place.state());
    assert!(place.is_built());
    std::thread::sleep(Duration::from_millis(20));
    place.write("outside.rs", "1");
    assert!(!place.is_built());
}

#[test]
fn a_program_with_inputs_elsewhere_is_not_recorded() {
    let place = Place::new();
    let text = fs::read_to_string(place.at("w/target/debug/p.d")).unwrap();
    place.write("outside.rs", "");
    place.write("w/other.rs", "");
    fs::create_dir(place.at("w/p/src/target")).unwrap();
    place.write("w/p/src/target/mod.rs", "");
    place.write("w/p/src/input.rs", "");
    for (file, is_input) in [
        ("outside.rs", false),
        ("w/other.rs", false),
        ("w/p/src/missing.rs", false),
        ("w/p/src/target/mod.rs", false),
        ("w/p/src/input.rs", true),
    ] {
        let more = format!(" {}\n", place.at(file).display());
        place.write("w/target/debug/p.d", &text.replace('\n', &more));
        place.record(place.state());
        assert_eq!(place.is_built(), is_input, "{file}");
    }
    place.build();
    fs::create_dir(place.at("w/.cargo")).unwrap();
    place.write("w/.cargo/config.toml", "include = [\"other.toml\"]");
    place.record(place.state());
    assert!(!place.is_built());
}
