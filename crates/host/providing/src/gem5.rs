// SPDX-License-Identifier: MIT OR Apache-2.0
//! gem5: the program to use.
//!
//! Unlike QEMU, gem5 is not packaged by any distribution, so the user provides a program that was built for Arm.

pub mod checkpoints;

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::toolchain::output;
use shell::failure::bad_input;
use shell::partial_files::Scratch;
use shell::places;

/// The oldest version with which the board was tested: year and release.
const FLOOR: (u32, u32) = (24, 0);
/// The environment variable that names the program to use.
const VARIABLE: &str = "GEM5";
/// The program's names on the search path.
const PROGRAMS: [&str; 3] = ["gem5.fast", "gem5.opt", "gem5"];
/// The Python program that prints gem5's version.
const ASK: &str = "import _m5.core, m5.objects\n\
                   print('gem5 version', _m5.core.gem5Version, hasattr(m5.objects, 'ArmSystem'))";
/// How to get gem5.
const REMEDY: &str = "build gem5 24.0 or newer for Arm as its documentation says (`scons build/ARM/gem5.opt`), \
                          and name the program by --gem5 PATH or GEM5=PATH, or have it on the PATH";

#[derive(Clone, Debug)]
pub struct Emulator {
    pub program: PathBuf,
    pub version: String,
}

/// Finds the gem5 program: the `named` one, the one that the environment names, or the one on the search path. An error
/// describes what is wrong with the program that was found.
pub fn find(named: Option<&Path>) -> Result<Emulator> {
    if let Some(path) = named {
        return probe("--gem5", path.as_os_str(), ask_version(path.as_os_str()));
    }
    if let Some(path) = env::var_os(VARIABLE) {
        return probe(VARIABLE, &path, ask_version(&path));
    }
    for program in PROGRAMS {
        let said = ask_version(OsStr::new(program));
        if said.is_some() {
            return probe("gem5 on the PATH", OsStr::new(program), said);
        }
    }
    bad_input!("gem5 is missing: {REMEDY}")
}

/// Returns what `program` prints for [`ASK`], or `None` if it can't run Python code like gem5. (gem5's option
/// --build-info would print the same, but fails in 24.0.)
fn ask_version(program: &OsStr) -> Option<String> {
    let place = Scratch::new().ok()?;
    let place = format!("--outdir={}", place.path().display());
    output(program, &["--quiet", "--quiet", &place, "-c", ASK])
}

/// Checks a program by its answer `said`. `option` is the option or variable that named the program, for error
/// messages.
fn probe(option: &str, program: &OsStr, said: Option<String>) -> Result<Emulator> {
    let shown = program.to_string_lossy();
    let Some(said) = said else {
        bad_input!("{option}: {shown} can't be started as gem5; {REMEDY}");
    };
    let Some((version, has_arm)) = parse_version(&said) else {
        bad_input!("{option}: {shown} does not say that it is gem5; {REMEDY}");
    };
    if year_and_release(version) < FLOOR {
        let (year, release) = FLOOR;
        bad_input!(
            "{option}: {shown} is version {version}, and {year}.{release} is needed: {REMEDY}"
        );
    }
    if !has_arm {
        bad_input!("{option}: {shown} was built without Arm; {REMEDY}");
    }
    // A relative path is relative to the current folder.
    let program = std::fs::canonicalize(program).unwrap_or_else(|_| program.into());
    Ok(Emulator {
        program,
        version: version.into(),
    })
}

/// Parses the answer to [`ASK`]. Returns the version, and whether gem5 was built for Arm.
fn parse_version(said: &str) -> Option<(&str, bool)> {
    let mut lines = said.lines();
    let answer = lines.find_map(|line| line.strip_prefix("gem5 version "))?;
    let (version, has_arm) = answer.rsplit_once(' ')?;
    Some((version, has_arm == "True"))
}

/// Returns the year and the release number of a version; `[DEVELOP-FOR-24.1]` counts as 24.1.
fn year_and_release(version: &str) -> (u32, u32) {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

impl Emulator {
    /// Describes the program, for people.
    pub fn shown(&self) -> String {
        places::shown(&self.program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::failure::is_bad_input;

    const SAID: &str = "info: Standard input is not a terminal.\ngem5 version 24.0.0.1 True\n";

    #[test]
    fn what_a_program_says_of_itself_is_read() {
        assert_eq!(parse_version(SAID), Some(("24.0.0.1", true)));
        assert_eq!(parse_version("QEMU emulator version 11"), None);
        assert!(year_and_release("24.0.0.1") >= FLOOR && year_and_release("23.1.0.0") < FLOOR);
        assert!(year_and_release("[DEVELOP-FOR-25.1]") >= FLOOR);
    }

    /// A program with the answer `said`.
    fn program(said: &str) -> tempfile::TempPath {
        use std::io::Write;
        use std::os::unix::fs::PermissionsExt;
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "#!/bin/sh\ncat <<'EOF'\n{said}EOF\n").unwrap();
        let path = file.into_temp_path();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_program_that_fits_is_taken() {
        assert_eq!(find(Some(&program(SAID))).unwrap().version, "24.0.0.1");
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_remedy() {
        let old = program(&SAID.replace("24.0.0.1", "23.1.0.0"));
        let other = program(&SAID.replace("True", "False"));
        for (path, why) in [
            (Path::new("/nonexistent/gem5"), "can't be started"),
            (Path::new("true"), "does not say that it is gem5"),
            (&old, "23.1.0.0, and 24.0 is needed"),
            (&other, "without Arm"),
        ] {
            let error = find(Some(path)).unwrap_err();
            assert!(is_bad_input(&error), "{error:#}");
            let text = format!("{error:#}");
            assert!(text.contains(why), "{text}");
            assert!(text.contains("scons build/ARM/gem5.opt"), "{text}");
        }
    }
}
