// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests the reuse of kept boots, without booting a machine.

use super::*;

/// A folder for the kept boots of a test. The folder also has a file that the boots' command names, a file that a
/// recorder reads, and a file with the emulator's version text.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["image", "chart", "emulator"] {
            fs::write(place.at(name), name).unwrap();
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn test(&self, again: bool) -> BootCache {
        BootCache::in_folder(&self.at("boots"), "t", again)
    }

    /// Returns the outcome of a boot with option `option`. If the outcome is not kept, the boot is made: it prints
    /// `said`, and writes `said` to the file of samples.
    fn boot(&self, before: &BootCache, option: &str, said: &str) -> BootOutcome {
        let scratch = tempfile::tempdir().unwrap();
        let drive = format!("if=none,file={}", self.at("image").display());
        let mut command = Command::new("/emulator");
        command.args([option, "-drive", &drive, "-qmp"]);
        command.arg(scratch.path().join("socket"));
        let (chart, samples) = (self.at("chart"), scratch.path().join("samples"));
        let files = [("chart", &*chart), ("samples", &*samples)];
        let emulator = fs::read_to_string(self.at("emulator")).unwrap();
        let boot = before.boot(&emulator, &command, scratch.path(), &files);
        let boot = boot.unwrap();
        let went = boot.went().unwrap_or_else(|| {
            fs::write(&samples, said).unwrap();
            let went = BootOutcome {
                lines: vec![
                    OutputLine::Console(said.into()),
                    OutputLine::Emulator("warn".into()),
                ],
                report: Some(Shutdown::Off),
            };
            boot.keep(&went).unwrap();
            went
        });
        let OutputLine::Console(line) = &went.lines[0] else {
            panic!("{went:?}");
        };
        // The file of samples belongs to the boot whose output is returned.
        assert_eq!(&fs::read_to_string(&samples).unwrap(), line);
        went
    }

    /// Whether a boot with option `option` is made, instead of reused.
    fn makes(&self, before: &BootCache, option: &str, said: &str) -> bool {
        self.boot(before, option, said).lines[0] == OutputLine::Console(said.into())
    }
}

#[test]
fn a_boot_is_made_if_a_byte_of_it_is_another() {
    let place = Place::new();
    assert!(place.makes(&place.test(false), "-S", "1"));
    assert!(!place.makes(&place.test(false), "-S", "2"));
    assert!(place.makes(&place.test(false), "-s", "3"));
    for (file, said) in [("image", "4"), ("chart", "5"), ("emulator", "7")] {
        let was = fs::read(place.at(file)).unwrap();
        fs::write(place.at(file), format!("another {file}")).unwrap();
        assert!(place.makes(&place.test(false), "-S", said), "{file}");
        fs::write(place.at(file), was).unwrap();
        assert!(!place.makes(&place.test(false), "-S", "6"), "{file}");
    }
}

#[test]
fn what_is_not_booted_any_more_goes_and_so_does_all_of_a_failure() {
    let place = Place::new();
    let test = place.test(false);
    place.boot(&test, "-a", "1");
    place.boot(&test, "-b", "2");
    assert_eq!(test.prune_after_pass(), None);
    let test = place.test(false);
    assert!(!place.makes(&test, "-a", "3"));
    assert!(place.makes(&test, "-c", "4"));
    assert_eq!(test.prune_after_pass().unwrap(), "1 of 2 boots as before");
    let test = place.test(false);
    assert!(place.makes(&test, "-b", "5"));
    assert!(!place.makes(&test, "-c", "6"));
    test.forget_all().unwrap();
    test.forget_all().unwrap();
    assert!(place.makes(&place.test(false), "-c", "7"));
}

#[test]
fn boots_are_made_again_if_that_is_asked_for() {
    let place = Place::new();
    place.boot(&place.test(false), "-a", "1");
    let test = place.test(true);
    assert!(place.makes(&test, "-a", "2"));
    assert_eq!(test.prune_after_pass(), None);
    assert!(!place.makes(&place.test(false), "-a", "3"));
    assert!(!place.makes(&place.test(false), "-a", "1"));
}

#[test]
fn the_second_of_the_same_in_one_test_is_made() {
    let place = Place::new();
    let test = place.test(false);
    assert!(place.makes(&test, "-a", "1"));
    assert!(place.makes(&test, "-a", "2"));
    let test = place.test(false);
    assert!(!place.makes(&test, "-a", "3"));
    assert!(place.makes(&test, "-a", "4"));
    assert_eq!(test.prune_after_pass().unwrap(), "1 of 2 boots as before");
}

#[test]
fn a_damaged_one_is_made_again() {
    let place = Place::new();
    place.boot(&place.test(false), "-a", "1");
    for kept in fs::read_dir(place.at("boots/t")).unwrap() {
        fs::write(kept.unwrap().path().join(SAID), "{").unwrap();
    }
    assert!(place.makes(&place.test(false), "-a", "2"));
}

#[test]
fn contents_stand_for_files_whatever_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["a,b", "c=d"].map(|name| folder.path().join(name));
    for path in [&one, &other] {
        fs::write(path, "contents").unwrap();
    }
    let sum = xxh3_hex(b"contents");
    let [one, other] = [one, other].map(|path| path.display().to_string());
    let doubled = one.replace(',', ",,");
    for word in [&one, &other] {
        assert_eq!(with_contents(word).unwrap(), sum, "{word}");
    }
    for path in [&doubled, &other] {
        let word = format!("if=pflash,file={path},unit=0");
        let with = format!("if=pflash,file={sum},unit=0");
        assert_eq!(with_contents(&word).unwrap(), with);
    }
    for word in ["rouse.wait=wfi,poll-wfi x", "", "-kernel", "a,,b"] {
        assert_eq!(with_contents(word).unwrap(), word.replace(",,", "\0"));
    }
}

#[test]
fn an_old_boot_is_made_again() {
    let place = Place::new();
    let test = place.test(false);
    assert!(place.makes(&test, "-a", "1"));
    assert_eq!(test.reused(), None);
    test.remove_old(SystemTime::now());
    let test = place.test(false);
    assert!(!place.makes(&test, "-a", "2"));
    assert_eq!(test.reused(), Some((1, 1)));
    test.remove_old(SystemTime::now() + 2 * KEPT);
    assert!(place.makes(&place.test(false), "-a", "3"));
}

#[test]
fn a_boot_that_wrote_less_is_another_one() {
    let place = Place::new();
    let test = place.test(false);
    let scratch = tempfile::tempdir().unwrap();
    let wrote = |names: &[&'static str]| {
        let paths: Vec<_> = names.iter().map(|name| scratch.path().join(name)).collect();
        let files: Vec<_> = names
            .iter()
            .copied()
            .zip(paths.iter().map(|path| &**path))
            .collect();
        let boot = test.boot("e", &Command::new("/e"), scratch.path(), &files);
        boot.unwrap().name
    };
    assert_eq!(wrote(&["samples"]), wrote(&["samples"]));
    assert_ne!(wrote(&["samples"]), wrote(&["samples", "traces"]));
}
