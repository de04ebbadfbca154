// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fetches and unpacks Debian's packages without installing them.
//!
//! This module fetches packages with a private state of apt, which checks them with Debian's keys. It unpacks them
//! below `target/tools`, and touches nothing outside `target/`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::toolchain::output;
use shell::failure::{BadInput, bad_input};
use shell::terminal::{note, step};
use shell::{files, places};

const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Mirror to use if the system's own lists name no mirror of Debian.
const MIRROR: &str = "http://deb.debian.org/debian/";
const SUITES: &str = "trixie trixie-backports";
/// Suites of source packages, including the previous release.
const SOURCES: &str = "bookworm trixie";
const ALL: &str = "bookworm trixie trixie-backports";
/// File with the output of a failed step.
const LOG: &str = "log";
/// Folder of fetched packages.
const ARCHIVES: &str = "cache/archives";

/// A missing package, and what the user can do if apt can't fetch it.
#[derive(Debug)]
pub struct Remedy {
    pub missing: &'static str,
    /// The user's alternative, as a command.
    pub instead: &'static str,
}

impl Remedy {
    /// Returns the result of `here`, which finds the tool, or else the result of `get`, which provides it. Other runs
    /// wait while `get` runs. `of` names one of several variants, or is empty.
    ///
    /// # Errors
    /// If neither works. The message names the missing tool and the remedy.
    pub fn provide_once<T>(
        &self,
        of: &str,
        here: impl Fn() -> Option<T>,
        get: impl FnOnce(&Tools) -> Result<T>,
    ) -> Result<T> {
        let Self { missing, instead } = self;
        if let Some(found) = here() {
            return Ok(found);
        }
        if !usable() {
            bad_input!("{missing} is missing, and only Debian's apt can fetch it; {instead}");
        }
        let space = if of.is_empty() { "" } else { " " };
        step!("{missing}{space}{of} is missing: providing it below target (once)");
        let tools = Tools::lock()?;
        // Another run may have provided the tool while this run waited.
        here().map_or_else(|| get(&tools), Ok)
    }
}

/// Whether this computer has apt and Debian's keys.
pub fn usable() -> bool {
    let tools = ["apt-get", "apt-cache", "dpkg"];
    let there = |tool: &&str| output(*tool, &["--version"]).is_some();
    tools.iter().all(there) && Path::new(KEYS).exists()
}

/// The lock of the folder of tools. While this lock is held, only this run provides tools.
pub struct Tools {
    folder: PathBuf,
    _locked: File,
}

impl Tools {
    /// Waits for other runs that hold the lock, and then takes it.
    pub fn lock() -> Result<Self> {
        let folder = places::target().join("tools");
        let _locked = files::lock(&folder.join("lock"), || {})?;
        Ok(Self { folder, _locked })
    }

    /// Creates a state folder for apt, with fresh package lists for `architecture` or for this machine.
    pub fn apt<'t>(
        &'t self,
        architecture: Option<&'static str>,
        remedy: &'t Remedy,
    ) -> Result<Apt<'t>> {
        self.read_lists("deb", SUITES, architecture, remedy)
    }

    /// Like [`Self::apt`], but lists source packages, and the packages for this machine that are needed to build them.
    pub fn sources<'t>(&'t self, remedy: &'t Remedy) -> Result<Apt<'t>> {
        self.read_lists("deb deb-src", SOURCES, None, remedy)
    }

    /// Like [`Self::apt`], but lists packages for this machine from every known release.
    pub fn all_suites<'t>(&'t self, remedy: &'t Remedy) -> Result<Apt<'t>> {
        self.read_lists("deb", ALL, None, remedy)
    }

    fn read_lists<'t>(
        &'t self,
        types: &str,
        suites: &str,
        architecture: Option<&'static str>,
        remedy: &'t Remedy,
    ) -> Result<Apt<'t>> {
        let apt = Apt::new(self.folder.join("apt"), architecture, remedy)?;
        apt.add_source(types, suites)?;
        apt.run("reading the package lists", &["update"])?;
        Ok(apt)
    }
}

/// A private state of apt. When it is dropped, its package lists remain, so that a later update fetches only lists
/// that have changed.
#[derive(Debug)]
pub struct Apt<'t> {
    folder: PathBuf,
    architecture: Option<&'static str>,
    remedy: &'t Remedy,
}

impl Drop for Apt<'_> {
    fn drop(&mut self) {
        // Leftovers only cost space.
        for below in ["cache", "etc"] {
            let _ = fs::remove_dir_all(self.folder.join(below));
        }
    }
}

impl<'t> Apt<'t> {
    fn new(
        folder: PathBuf,
        architecture: Option<&'static str>,
        remedy: &'t Remedy,
    ) -> Result<Self> {
        let apt = Self {
            folder,
            architecture,
            remedy,
        };
        for below in [
            "lists/partial",
            "etc/preferences.d",
            "etc/apt.conf.d",
            "etc/sources.list.d",
        ] {
            apt.create(below)?;
        }
        let _ = fs::remove_file(apt.folder.join(LOG));
        apt.empty_archives()?;
        apt.write("status", "")?;
        // The system's lists must not mix with ours.
        let sources = apt.folder.join("etc/sources.list.d");
        for entry in fs::read_dir(&sources)?.flatten() {
            fs::remove_file(entry.path())?;
        }
        Ok(apt)
    }

    /// Writes apt's list of sources, with `types` and `suites`.
    fn add_source(&self, types: &str, suites: &str) -> Result<()> {
        let source = format!(
            "Types: {types}\nURIs: {}\nSuites: {suites}\nComponents: main\nTargets: Packages Sources\nSigned-By: {KEYS}\n",
            choose_mirror()
        );
        self.write("etc/sources.list.d/rouse.sources", &source)
    }

    fn create(&self, below: &str) -> Result<()> {
        files::make_folder(&self.folder.join(below))
    }

    fn write(&self, below: &str, text: &str) -> Result<()> {
        let path = self.folder.join(below);
        fs::write(&path, text).map_err(|error| files::refused(&path, "written", &error))
    }

    /// Removes the files of an earlier download, complete or interrupted.
    fn empty_archives(&self) -> Result<()> {
        let _ = fs::remove_dir_all(self.folder.join("cache"));
        self.create(&format!("{ARCHIVES}/partial"))
    }

    /// Returns the options that make apt's programs use this state.
    fn options(&self) -> Vec<String> {
        let at =
            |option: &str, below: &str| format!("{option}={}", self.folder.join(below).display());
        let mut options = vec![
            at("Dir::Etc", "etc"),
            "Dir::Etc::sourcelist=/dev/null".into(),
            at("Dir::Etc::sourceparts", "etc/sources.list.d"),
            at("Dir::State", ""),
            at("Dir::State::lists", "lists"),
            at("Dir::State::status", "status"),
            at("Dir::Cache", "cache"),
            "Debug::NoLocking=1".into(),
            "APT::Sandbox::User=".into(),
            "Acquire::Languages=none".into(),
            // With this option, a list that can't be fetched is an error.
            "APT::Update::Error-Mode=any".into(),
            // The lists of other suites and architectures stay, too.
            "APT::Get::List-Cleanup=false".into(),
        ];
        if let Some(architecture) = self.architecture {
            options.push(format!("APT::Architecture={architecture}"));
            options.push(format!("APT::Architectures={architecture}"));
        }
        let options = options.into_iter();
        options.flat_map(|option| ["-o".into(), option]).collect()
    }

    /// Returns the names of packages that match a regular expression.
    pub fn matching_names(&self, expression: &str) -> Result<Vec<String>> {
        let found = Command::new("apt-cache")
            .args(self.options())
            .args(["--names-only", "search", expression])
            .output()
            .context(BadInput::context(
                "apt-cache can't be started; is this Debian?",
            ))?;
        let text = String::from_utf8_lossy(&found.stdout);
        let names = text.lines().filter_map(|line| line.split(' ').next());
        Ok(names.map(str::to_owned).collect())
    }

    /// Returns the argument with which apt-get fetches the package or source `name` in this `version`; `name` may have
    /// a suite after `/`. If Debian no longer has the version, prints this and returns the newest version.
    pub fn find_pinned(&self, name: &str, version: &str) -> Result<String> {
        let plain = name.split('/').next().unwrap_or(name);
        let listed = Command::new("apt-cache")
            .args(self.options())
            .args(["madison", plain])
            .output()
            .context("apt-cache can't be started")?;
        let text = String::from_utf8_lossy(&listed.stdout);
        let there = |line: &str| {
            line.split('|')
                .nth(1)
                .is_some_and(|is| is.trim() == version)
        };
        if text.lines().any(there) {
            return Ok(format!("{plain}={version}"));
        }
        note!("  Debian no longer has {plain} {version}: taking the newest");
        Ok(name.into())
    }

    /// Returns the downloaded file whose name begins with `begins` and also contains `goes_on`.
    pub fn find_archive(&self, begins: &str, goes_on: &str) -> Option<PathBuf> {
        let entries = fs::read_dir(self.folder.join(ARCHIVES)).ok()?.flatten();
        entries.map(|entry| entry.path()).find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(begins) && name.contains(goes_on)
        })
    }

    /// Runs apt-get.
    pub fn run(&self, step: &str, arguments: &[&str]) -> Result<()> {
        step!("  {step}");
        let output = Command::new("apt-get")
            .args(self.options())
            .args(arguments)
            .current_dir(self.folder.join(ARCHIVES))
            .stdin(Stdio::null())
            .output()
            .context(BadInput::context(
                "apt-get can't be started; is this Debian?",
            ))?;
        if output.status.success() {
            return Ok(());
        }
        let log = self.folder.join(LOG);
        fs::write(&log, [output.stdout, output.stderr].concat())?;
        let log = places::shown(&log);
        let Remedy { missing, instead } = self.remedy;
        bad_input!(
            "{missing} is missing, and {step} failed, perhaps without a network ({log} has apt-get's output); try again \
             with a network, or {instead}"
        )
    }

    /// Unpacks every fetched package into `prefix`, which exists only once it is complete.
    pub fn unpack(&self, prefix: &Path) -> Result<()> {
        step!("  unpacking");
        let partial = prefix.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
        for entry in fs::read_dir(self.folder.join(ARCHIVES))? {
            let package = entry?.path();
            if package
                .extension()
                .is_some_and(|extension| extension == "deb")
            {
                let dpkg = Command::new("dpkg")
                    .arg("-x")
                    .arg(&package)
                    .arg(&partial)
                    .status();
                if !dpkg
                    .context(BadInput::context("dpkg can't be started; is this Debian?"))?
                    .success()
                {
                    bail!("{} can't be unpacked; is the disk full?", package.display());
                }
            }
        }
        let _ = fs::remove_dir_all(prefix);
        fs::rename(&partial, prefix).with_context(|| prefix.display().to_string())
    }
}

/// Returns the system's own mirror of Debian.
fn choose_mirror() -> String {
    let targets = output("apt-get", &["indextargets", "--no-release-info"]);
    let mut mirrors: Vec<String> = targets
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("Repo-URI: "))
        .filter(|uri| uri.ends_with("/debian/"))
        .map(str::to_owned)
        .collect();
    mirrors.sort();
    mirrors.into_iter().next().unwrap_or_else(|| MIRROR.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::failure::is_bad_input;

    /// Runs apt itself with empty lists, which has the effect of a missing package or network.
    #[test]
    fn a_package_that_can_t_be_had_is_one_line_with_the_remedy() {
        if !usable() {
            return;
        }
        const REMEDY: Remedy = Remedy {
            missing: "Xen",
            instead: "name one by --xen",
        };
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("apt");
        let apt = Apt::new(folder.clone(), Some("arm64"), &REMEDY).unwrap();
        apt.add_source("deb", SUITES).unwrap();
        assert_eq!(apt.find_pinned("xen", "1").unwrap(), "xen");
        assert_eq!(apt.matching_names("xen").unwrap(), Vec::<String>::new());
        let failed = apt.run("downloading Xen", &["download", "xen"]);
        let error = failed.unwrap_err();
        assert!(is_bad_input(&error));
        let told = error.to_string();
        for said in ["Xen is missing", "downloading Xen", LOG, REMEDY.instead] {
            assert!(told.contains(said), "{told}");
        }
        assert!(!told.contains('\n'), "{told}");
        drop(apt);
        // Of the failed step, only the log with apt's output remains.
        let log = fs::read_to_string(folder.join(LOG)).unwrap();
        assert!(log.contains("xen"), "{log}");
        assert!(!folder.join("cache").exists());
    }
}
