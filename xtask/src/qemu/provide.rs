// SPDX-License-Identifier: MIT OR Apache-2.0
//! Providing an emulator where the system has none that is new enough.
//!
//! On Debian and its derivatives on x86-64, Debian's own packages are fetched
//! with a private state of apt, checked by apt with Debian's keys, and unpacked
//! below `target/tools/qemu` together with the C library that they want. Nothing
//! is installed and nothing outside `target/` is touched.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{Emulator, FLOOR, PROGRAM, VARIABLE};
use crate::failure::bad_input;
use crate::places;
use crate::terminal::note;
use crate::toolchain::output;

const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Used when the system's own lists name no mirror of Debian.
const MIRROR: &str = "http://deb.debian.org/debian/";
const SUITES: &str = "trixie trixie-backports";
const PACKAGES: [&str; 4] = [
    "qemu-system-arm/trixie-backports",
    "qemu-system-common/trixie-backports",
    "qemu-system-data/trixie-backports",
    "qemu-efi-aarch64",
];

fn prefix() -> PathBuf {
    places::target().join("tools/qemu")
}

/// A folder of this name, were it the system's, as it came with a provided emulator.
pub fn folder(system: &str) -> PathBuf {
    prefix().join(system.trim_start_matches('/'))
}

/// The emulator that an earlier run has provided.
pub fn provided() -> Option<Emulator> {
    let prefix = prefix();
    let libraries = [
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
        "usr/lib/x86_64-linux-gnu/pulseaudio",
    ];
    let path = libraries.map(|folder| prefix.join(folder).into_os_string());
    // It runs with the C library that came with it, so that it does not matter
    // how old the system's is.
    let arguments: Vec<OsString> = vec![
        "--library-path".into(),
        path.join(":".as_ref()),
        prefix.join("usr/bin").join(PROGRAM).into(),
        "-L".into(),
        prefix.join("usr/share/qemu").into(),
    ];
    let loader = prefix.join("usr/lib64/ld-linux-x86-64.so.2");
    Emulator::probe(loader, arguments).filter(|emulator| emulator.version >= FLOOR)
}

/// Why none can be provided here, and what to do instead.
pub fn obstacle() -> Option<String> {
    let x86_64_linux = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    let apt = ["apt-get", "dpkg"]
        .iter()
        .all(|tool| output(tool, &["--version"]).is_some());
    if x86_64_linux && apt && Path::new(KEYS).exists() {
        return None;
    }
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let way = match cfg!(target_os = "macos") {
        true => "brew install qemu",
        false => way_of_distribution(&release),
    };
    Some(format!(
        "{way}, or build it (https://www.qemu.org/download) and set {VARIABLE}=/path/to/{PROGRAM}"
    ))
}

/// How the distribution that wrote this `os-release` installs QEMU.
fn way_of_distribution(release: &str) -> &'static str {
    let ids = release.lines().filter_map(|line| {
        line.strip_prefix("ID=")
            .or_else(|| line.strip_prefix("ID_LIKE="))
    });
    let ids: Vec<&str> = ids
        .flat_map(|ids| ids.trim_matches('"').split(' '))
        .collect();
    let ways = [
        ("fedora", "dnf install qemu-system-aarch64"),
        ("arch", "pacman -S qemu-system-aarch64"),
        ("suse", "zypper install qemu-arm"),
        ("alpine", "apk add qemu-system-aarch64"),
        (
            "debian",
            "apt-get install debian-archive-keyring (QEMU is then fetched on its own)",
        ),
    ];
    let way = ways.iter().find(|(id, _)| ids.contains(id));
    way.map_or("install it with the system's packages", |(_, way)| way)
}

/// Fetches, checks and unpacks an emulator.
pub fn provide() -> Result<Emulator> {
    note!("{PROGRAM} {FLOOR} or newer is missing: providing it below target/tools (once)");
    let tools = places::target().join("tools");
    let _lock = lock(&tools)?;
    // Another run may have provided it while this one waited.
    if let Some(emulator) = provided() {
        return Ok(emulator);
    }
    let apt = Apt::new(tools.join("apt"))?;
    apt.run("reading the package lists", &["update"])?;
    let install = [
        "-y",
        "--no-install-recommends",
        "--download-only",
        "install",
    ];
    apt.run("downloading QEMU", &[&install[..], &PACKAGES[..]].concat())?;
    apt.unpack(&prefix())?;
    apt.remove();
    provided().with_context(|| {
        format!("the {PROGRAM} below target/tools does not start; set {VARIABLE} to one that does")
    })
}

/// Keeps other runs from providing at the same time, until it is dropped.
fn lock(tools: &Path) -> Result<File> {
    let path = tools.join("lock");
    let locked = fs::create_dir_all(tools)
        .and_then(|()| File::create(&path))
        .and_then(|file| file.lock().map(|()| file));
    locked.or_else(|error| {
        bad_input!(
            "{} can't be locked ({error}); make target/ writable",
            path.display()
        )
    })
}

/// A private state of apt.
struct Apt {
    folder: PathBuf,
}

impl Apt {
    fn new(folder: PathBuf) -> Result<Self> {
        let apt = Self { folder };
        for below in [
            "lists/partial",
            "etc/preferences.d",
            "etc/apt.conf.d",
            "etc/sources.list.d",
        ] {
            apt.create(below)?;
        }
        apt.empty_archives()?;
        apt.write("status", "")?;
        // Lists of another make must not mix with ours.
        let sources = apt.folder.join("etc/sources.list.d");
        for entry in fs::read_dir(&sources)?.flatten() {
            fs::remove_file(entry.path())?;
        }
        let source = format!(
            "Types: deb\nURIs: {}\nSuites: {SUITES}\nComponents: main\nSigned-By: {KEYS}\n",
            mirror()
        );
        apt.write("etc/sources.list.d/rouse.sources", &source)?;
        Ok(apt)
    }

    fn create(&self, below: &str) -> Result<()> {
        let folder = self.folder.join(below);
        fs::create_dir_all(&folder).or_else(|error| {
            bad_input!(
                "{} can't be created ({error}); make target/ writable",
                folder.display()
            )
        })
    }

    fn write(&self, below: &str, text: &str) -> Result<()> {
        let path = self.folder.join(below);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Without what an interrupted or an earlier download has left.
    fn empty_archives(&self) -> Result<()> {
        let _ = fs::remove_dir_all(self.folder.join("cache"));
        self.create("cache/archives/partial")
    }

    fn run(&self, step: &str, arguments: &[&str]) -> Result<()> {
        note!("  {step}");
        let at =
            |option: &str, below: &str| format!("{option}={}", self.folder.join(below).display());
        let options = [
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
            // A list that can't be fetched is no success.
            "APT::Update::Error-Mode=any".into(),
        ];
        let output = Command::new("apt-get")
            .args(options.iter().flat_map(|option| ["-o", option]))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("apt-get can't be started")?;
        if output.status.success() {
            return Ok(());
        }
        let log = self.folder.join("log");
        fs::write(&log, [output.stdout, output.stderr].concat())?;
        let log = places::shown(&log);
        bad_input!(
            "{PROGRAM} is missing, and {step} failed, is there no network? ({log} has what apt-get said); try again \
             where there is, or set {VARIABLE}=/path/to/{PROGRAM}"
        )
    }

    /// Unpacks every package; the prefix appears only when it is complete.
    fn unpack(&self, prefix: &Path) -> Result<()> {
        note!("  unpacking");
        let partial = prefix.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).with_context(|| partial.display().to_string())?;
        for entry in fs::read_dir(self.folder.join("cache/archives"))? {
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
                if !dpkg.context("dpkg can't be started")?.success() {
                    bail!("{} can't be unpacked; is the disk full?", package.display());
                }
            }
        }
        let _ = fs::remove_dir_all(prefix);
        fs::rename(&partial, prefix).with_context(|| prefix.display().to_string())
    }

    /// Frees what is no longer needed.
    fn remove(self) {
        // Left-overs cost space and nothing else.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The mirror of Debian that the system itself uses.
fn mirror() -> String {
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

    #[test]
    fn every_distribution_is_told_its_own_way() {
        assert!(way_of_distribution("NAME=x\nID=fedora\n").starts_with("dnf"));
        assert!(way_of_distribution("ID=manjaro\nID_LIKE=arch\n").starts_with("pacman"));
        assert!(
            way_of_distribution("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"")
                .starts_with("zypper")
        );
        assert!(way_of_distribution("").contains("packages"));
    }
}
