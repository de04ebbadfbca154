// SPDX-License-Identifier: MIT OR Apache-2.0
//! A kernel's configuration: fragments on a base, and the check that the result can be measured
//! (Linux, Documentation/kbuild/kconfig.rst).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Result;
use shell::failure::{BadInput, bad_input};
use shell::places;

/// The configuration that a kernel needs to be measured.
const BASE: &str = include_str!("base.config");

/// Options without which nothing can be measured, each with the part that needs the option.
const REQUIRED: [(&str, &str); 8] = [
    ("ARM64", "the machine"),
    ("BINFMT_ELF", "the program that measures"),
    (
        "BLK_DEV_INITRD",
        "the RAM disk with the program that measures",
    ),
    ("DEVTMPFS", "the program's console"),
    ("TTY", "the program's console"),
    ("PRINTK", "the kernel's messages"),
    ("PROC_FS", "the program, which reads counts there"),
    ("SYSFS", "the program, which reads cpuidle there"),
];
/// Options with which nothing can be measured, each with the reason.
const FORBIDDEN: [(&str, &str); 2] = [
    (
        "CPU_BIG_ENDIAN",
        "the program that measures is little-endian",
    ),
    ("ARM", "kernels are built for arm64, not for 32 bits"),
];
/// A line that Kconfig writes at the top of a whole configuration.
const WHOLE: &str = "Automatically generated file; DO NOT EDIT.";

/// A file given with `--config`, and its settings: `None` stands for "not set".
#[derive(Clone, Debug)]
pub struct Fragment {
    name: String,
    text: String,
    settings: BTreeMap<String, Option<String>>,
}

/// The configuration to which fragments are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Our base configuration, with everything else off.
    Base,
    /// The architecture's default.
    Defconfig,
    /// A whole configuration from the user.
    Whole,
}

/// A configuration to make.
#[derive(Clone, Debug)]
pub struct Config {
    pub begin: Begin,
    /// The text of all fragments; later lines replace earlier ones.
    pub text: String,
    /// The configuration's text without the options that patches add. Kernels that differ only in their patches share
    /// this text.
    pub shared: String,
    wanted: Vec<Fragment>,
}

impl Config {
    /// Combines the base with fragments. `added` are options that patches add; they are on unless a fragment sets them
    /// differently.
    pub fn new(defconfig: bool, fragments: Vec<Fragment>, added: &[String]) -> Result<Self> {
        for fragment in &fragments {
            fragment.check()?;
        }
        let whole = fragments
            .first()
            .is_some_and(|first| first.text.contains(WHOLE));
        let begin = match (defconfig, whole) {
            (true, _) => Begin::Defconfig,
            (false, true) => Begin::Whole,
            (false, false) => Begin::Base,
        };
        let mut text = String::new();
        if begin == Begin::Base {
            text += BASE;
        }
        let mut shared = format!("{begin:?} {text}");
        shared.extend(fragments.iter().map(|fragment| &*fragment.text));
        let added = added.iter().map(|option| format!("CONFIG_{option}=y\n"));
        let added: String = added.collect();
        // A whole configuration comes before the added options, because it has a line for every option.
        if begin != Begin::Whole {
            text += &added;
        }
        for (n, fragment) in fragments.iter().enumerate() {
            text += &fragment.text;
            text += "\n";
            if begin == Begin::Whole && n == 0 {
                text += &added;
            }
        }
        Ok(Self {
            begin,
            text,
            shared,
            wanted: fragments,
        })
    }

    /// Checks that `result`, the text of `.config`, has both the wanted and the required settings.
    pub fn check(&self, result: &str) -> Result<()> {
        let result = read_settings("", result)?;
        let is = |option: &str| result.get(option).cloned().flatten();
        for fragment in self
            .wanted
            .iter()
            .filter(|fragment| !fragment.text.contains(WHOLE))
        {
            for (option, wanted) in &fragment.settings {
                let is = is(option);
                if is.as_deref().unwrap_or("n") != wanted.as_deref().unwrap_or("n") {
                    bad_input!(
                        "--config {}: CONFIG_{option}={} does not hold, the kernel has {}; is the name right, and is what it depends on set?",
                        fragment.name,
                        wanted.as_deref().unwrap_or("n"),
                        is.as_deref().unwrap_or("n"),
                    );
                }
            }
        }
        let missing: Vec<String> = REQUIRED
            .iter()
            .filter(|(option, _)| is(option).as_deref() != Some("y"))
            .map(|(option, needs)| format!("CONFIG_{option} for {needs}"))
            .collect();
        if !missing.is_empty() {
            bad_input!(
                "this configuration has no {}; set what is missing by --config FRAGMENT",
                missing.join(", and no ")
            );
        }
        refuse_forbidden("this configuration", &result)
    }

    /// Returns the options of the base that `result`, the text of `.config`, does not have.
    pub fn lost_of_base(&self, result: &str) -> Vec<String> {
        if self.begin != Begin::Base {
            return Vec::new();
        }
        let text = read_settings("", result).unwrap_or_default();
        let later: String = self.wanted.iter().map(|fragment| &*fragment.text).collect();
        let later = read_settings("", &later).unwrap_or_default();
        let base = read_settings("", BASE).unwrap_or_default();
        let wanted = base
            .into_iter()
            .filter(|(option, value)| value.is_some() && !later.contains_key(option));
        let lost = wanted.filter(|(option, value)| text.get(option) != Some(value));
        lost.map(|(option, _)| format!("CONFIG_{option}")).collect()
    }

    /// Returns the options in `options` that `result`, the text of `.config`, lacks.
    pub fn missing_options<'o>(&self, options: &'o [String], result: &str) -> Vec<&'o str> {
        let result = read_settings("", result).unwrap_or_default();
        let missing = options
            .iter()
            .filter(|option| !matches!(result.get(*option), Some(Some(_))));
        missing.map(String::as_str).collect()
    }
}

impl Fragment {
    /// Reads a file given with `--config`.
    pub fn read(path: &Path) -> Result<Self> {
        let name = places::shown(path);
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => bad_input!(
                "--config {name}: can't be read ({error}); name a file with lines like CONFIG_SMP=y"
            ),
        };
        let settings = read_settings(&name, &text)?;
        Ok(Self {
            name,
            text,
            settings,
        })
    }

    fn check(&self) -> Result<()> {
        refuse_forbidden(&format!("--config {}", self.name), &self.settings)
    }
}

fn refuse_forbidden(name: &str, settings: &BTreeMap<String, Option<String>>) -> Result<()> {
    for (option, why) in FORBIDDEN {
        if let Some(Some(value)) = settings.get(option) {
            bad_input!("{name}: it has CONFIG_{option}={value}, and {why}; leave it out");
        }
    }
    Ok(())
}

/// Reads the settings in a text. Error messages call the file `name`.
fn read_settings(name: &str, text: &str) -> Result<BTreeMap<String, Option<String>>> {
    let mut settings = BTreeMap::new();
    for (n, line) in text.lines().enumerate() {
        let line = line.trim();
        let unset = line
            .strip_prefix("# CONFIG_")
            .and_then(|rest| rest.strip_suffix(" is not set"));
        if let Some(option) = unset {
            settings.insert(option.to_owned(), None);
        } else if !line.is_empty() && !line.starts_with('#') {
            let setting = line
                .strip_prefix("CONFIG_")
                .and_then(|rest| rest.split_once('='));
            let Some((option, value)) = setting else {
                return Err(BadInput::error(format!(
                    "--config {name}, line {}: `{line}` is no setting; write CONFIG_NAME=y, or # CONFIG_NAME is not set",
                    n + 1
                )));
            };
            settings.insert(option.to_owned(), (value != "n").then(|| value.to_owned()));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(text: &str) -> Fragment {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        fs::write(&path, text).unwrap();
        Fragment {
            name: "f".into(),
            ..Fragment::read(&path).unwrap()
        }
    }

    fn refused(result: Result<impl Sized>) -> String {
        match result {
            Ok(_) => String::new(),
            Err(error) => format!("{error:#}"),
        }
    }

    const WELL: &str = "CONFIG_ARM64=y\nCONFIG_BINFMT_ELF=y\nCONFIG_BLK_DEV_INITRD=y\nCONFIG_DEVTMPFS=y\nCONFIG_TTY=y\n\
                        CONFIG_PRINTK=y\nCONFIG_PROC_FS=y\nCONFIG_SYSFS=y\n";

    #[test]
    fn the_base_has_what_is_required() {
        let base = read_settings("base", BASE).unwrap();
        for (option, _) in REQUIRED.iter().filter(|(option, _)| *option != "ARM64") {
            assert!(matches!(base.get(*option), Some(Some(_))), "{option}");
        }
    }

    #[test]
    fn later_lines_replace_earlier_ones_and_options_of_patches_are_between() {
        let config = Config::new(
            false,
            vec![fragment("# CONFIG_NEW is not set\n")],
            &["NEW".into()],
        )
        .unwrap();
        let (on, off) = (
            config.text.find("CONFIG_NEW=y"),
            config.text.find("# CONFIG_NEW is"),
        );
        assert!(on.is_some() && on < off);
        assert_eq!(config.begin, Begin::Base);
        let whole = format!("#\n# {WHOLE}\nCONFIG_A=y\n");
        let config = Config::new(false, vec![fragment(&whole)], &["NEW".into()]).unwrap();
        assert_eq!(config.begin, Begin::Whole);
        assert!(!config.text.contains("CONFIG_SMP") && config.text.ends_with("CONFIG_NEW=y\n"));
    }

    #[test]
    fn what_can_t_be_measured_is_refused_before_and_after() {
        for (text, told) in [
            ("CONFIG_CPU_BIG_ENDIAN=y\n", "little-endian"),
            ("CONFIG_ARM=y\n", "32 bits"),
        ] {
            let error = refused(Config::new(false, vec![fragment(text)], &[]));
            assert!(
                error.starts_with("--config f: ") && error.contains(told),
                "{error}"
            );
        }
        let config = Config::new(true, Vec::new(), &[]).unwrap();
        assert_eq!(refused(config.check(WELL)), "");
        let error = refused(config.check(&WELL.replace("CONFIG_TTY=y", "# CONFIG_TTY is not set")));
        assert!(
            error.contains("no CONFIG_TTY for the program's console"),
            "{error}"
        );
        assert!(
            refused(config.check(&format!("{WELL}CONFIG_CPU_BIG_ENDIAN=y\n"))).contains("endian")
        );
    }

    #[test]
    fn a_setting_that_does_not_hold_is_an_error() {
        let config = Config::new(
            false,
            vec![fragment("CONFIG_NO_SUCH=y\nCONFIG_HZ=250\n")],
            &[],
        )
        .unwrap();
        let error = refused(config.check(&format!("{WELL}CONFIG_HZ=250\n")));
        assert!(
            error.contains("CONFIG_NO_SUCH=y does not hold, the kernel has n"),
            "{error}"
        );
        assert_eq!(
            refused(config.check(&format!("{WELL}CONFIG_HZ=250\nCONFIG_NO_SUCH=y\n"))),
            ""
        );
        let off = Config::new(false, vec![fragment("CONFIG_KVM=n\n")], &[]).unwrap();
        assert_eq!(refused(off.check(WELL)), "");
        assert_eq!(
            config.missing_options(&["HZ".into(), "X".into()], WELL),
            ["HZ", "X"]
        );
    }

    #[test]
    fn a_line_that_is_no_setting_is_named() {
        let error = read_settings("f", "CONFIG_A=y\nint main;\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("--config f, line 2: `int main;`"),
            "{error}"
        );
    }
}
