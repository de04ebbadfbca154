// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of a kernel: a tree, a revision of a tree, or Debian's source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use providing::apt::Remedy;
use providing::toolchain::answer;
use shell::failure::{BadInput, bad_input};
use shell::places;
use shell::terminal::step;

/// A source, as the user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Debian's source. The text is the beginning of its version.
    Debian(String),
    /// A folder with a tree, as it is now.
    Tree(PathBuf),
    /// A commit of a tree in git.
    Revision { tree: PathBuf, commit: String },
}

/// The files of a source.
#[derive(Clone, Debug)]
pub struct Files {
    pub folder: PathBuf,
    /// Whether the files never change, because this program has unpacked them.
    pub fixed: bool,
}

const REMEDY: Remedy = Remedy {
    missing: "Linux's source",
    instead: "name a tree of Linux",
};
/// Prefix of the names of Debian's packages that contain a kernel's source.
const PACKAGE: &str = "linux-source-";

impl Source {
    /// Reads a source's name. Returns `None` if the name is neither a folder nor a Debian version.
    ///
    /// # Errors
    /// If the folder has no tree of Linux, or if git has no such revision.
    pub fn read(name: &str) -> Result<Option<Self>> {
        if let Some(version) = name.strip_prefix("debian") {
            return match version.strip_prefix(':') {
                Some(version) => Ok(Some(Self::Debian(version.into()))),
                None if version.is_empty() => Ok(Some(Self::Debian(String::new()))),
                None => Ok(None),
            };
        }
        if Path::new(name).is_dir() {
            return Ok(Some(Self::Tree(check_tree(Path::new(name))?)));
        }
        let Some((folder, revision)) = name.rsplit_once('@') else {
            return Ok(None);
        };
        if !Path::new(folder).is_dir() {
            return Ok(None);
        }
        let folder = Path::new(folder);
        let Some(commit) = git(
            folder,
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                &format!("{revision}^{{commit}}"),
            ],
        ) else {
            bad_input!(
                "{name}: git has no commit {revision} in {}; see its `git log --all`",
                folder.display()
            );
        };
        Ok(Some(Self::Revision {
            tree: fs::canonicalize(folder)?,
            commit: commit.trim().into(),
        }))
    }

    /// Returns a short name, which may be a part of a folder's name.
    pub fn short_name(&self) -> String {
        let text = match self {
            Self::Debian(version) if version.is_empty() => "debian".into(),
            Self::Debian(version) => format!("debian-{version}"),
            Self::Tree(tree) => name_of(tree),
            Self::Revision { tree, commit } => format!("{}-{:.12}", name_of(tree), commit),
        };
        plain_name(&text)
    }

    /// Returns the source's files, and unpacks them first if necessary.
    pub fn files(&self) -> Result<Files> {
        let (folder, fixed) = match self {
            Self::Debian(version) => (provide_debian(version)?, true),
            Self::Tree(tree) => (tree.clone(), false),
            Self::Revision { tree, commit } => (unpack_revision(tree, commit)?, true),
        };
        Ok(Files { folder, fixed })
    }
}

/// Replaces each character that should not be in the name of a folder or a release.
pub fn plain_name(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
    let text: String = text
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .collect();
    text.trim_matches(['-', '.']).to_owned()
}

fn name_of(tree: &Path) -> String {
    let name = tree.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Checks that `folder` has a tree of Linux that includes arm64, and returns its path.
fn check_tree(folder: &Path) -> Result<PathBuf> {
    let has = |file: &str| folder.join(file).is_file();
    if !has("Kbuild") || !has("init/main.c") {
        bad_input!(
            "{}: no tree of Linux; name the folder that has its MAINTAINERS and Makefile",
            folder.display()
        );
    }
    if !has("arch/arm64/Makefile") {
        bad_input!(
            "{}: this tree of Linux has no arch/arm64; name one of 3.7 or newer",
            folder.display()
        );
    }
    Ok(fs::canonicalize(folder)?)
}

/// Runs git in `folder`, and returns its output; `None` if it fails.
pub fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    answer(
        Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(arguments)
            .stderr(Stdio::null()),
    )
}

/// The folder of sources that this program has unpacked.
fn unpacked_folder() -> PathBuf {
    places::target().join("kernels/sources")
}

/// Unpacks the files of a commit, unless an earlier run has done so, and returns their folder.
fn unpack_revision(tree: &Path, commit: &str) -> Result<PathBuf> {
    let folder = unpacked_folder().join(format!("git-{commit}"));
    if folder.is_dir() {
        return Ok(folder);
    }
    let has = format!("{commit}:arch/arm64/Makefile");
    if git(tree, &["cat-file", "-e", &has]).is_none() {
        bad_input!(
            "{}@{commit:.12}: no tree of Linux with arch/arm64; name a commit of one, of 3.7 or newer",
            tree.display()
        );
    }
    let waits = || step!("waiting for another run that copies {commit:.12}");
    let _locked = shell::files::lock(&unpacked_folder().join("lock"), waits)?;
    if folder.is_dir() {
        return Ok(folder);
    }
    step!("copying commit {commit:.12} of {}", tree.display());
    let partial = empty_partial(&folder)?;
    let mut archive = Command::new("git")
        .arg("-C")
        .arg(tree)
        .args(["archive", "--format=tar", commit])
        .stdout(Stdio::piped())
        .spawn()
        .context(BadInput::context("git can't be started; install it"))?;
    let stdout = archive.stdout.take().context("git has no output")?;
    let unpacked = Command::new("tar")
        .arg("-x")
        .current_dir(&partial)
        .stdin(stdout)
        .output()?;
    shell::interrupt::or(Ok(()))?;
    if !archive.wait()?.success() || !unpacked.status.success() {
        return Err(cannot_unpack(&unpacked.stderr));
    }
    fs::rename(&partial, &folder)?;
    Ok(folder)
}

/// Creates an empty folder next to `folder`, which holds the files until they are complete.
fn empty_partial(folder: &Path) -> Result<PathBuf> {
    let partial = folder.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    shell::files::make_folder(&partial)?;
    Ok(partial)
}

fn cannot_unpack(stderr: &[u8]) -> anyhow::Error {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().next().unwrap_or("no reason given").to_owned();
    BadInput::error(format!(
        "the source can't be unpacked ({line}); make room in {}, or install tar and xz-utils",
        places::shown(&unpacked_folder())
    ))
}

/// Provides Debian's source of the newest version that begins with `version`, and returns its folder.
fn provide_debian(version: &str) -> Result<PathBuf> {
    if !version.chars().all(|c| c.is_ascii_digit() || c == '.') {
        bad_input!("debian:{version}: no version; use numbers, as in debian:6.12");
    }
    REMEDY.provide_once(
        version,
        || find_provided(version),
        |tools| {
            let apt = tools.all_suites(&REMEDY)?;
            let names = apt.matching_names(&format!("^{PACKAGE}[0-9.]+$"))?;
            let Some(name) = newest_of(&names, version) else {
                let have: Vec<_> = names
                    .iter()
                    .filter_map(|name| name.strip_prefix(PACKAGE))
                    .collect();
                bad_input!(
                    "debian:{version}: Debian has no such source, it has {}; {}",
                    have.join(", "),
                    REMEDY.instead
                );
            };
            apt.run("downloading Linux's source (150 MB)", &["download", name])?;
            let release = apt
                .find_archive(name, ".deb")
                .and_then(|path| release_of(&path))
                .with_context(|| format!("{name} has no package"))?;
            if !numbers_of(&release).starts_with(&numbers_of(version)) {
                bad_input!("debian:{version}: Debian has the source of {release}, and not of that version; {}", REMEDY.instead);
            }
            let package = unpacked_folder().join("package");
            apt.unpack(&package)?;
            let archive = package.join(format!("usr/src/{name}.tar.xz"));
            let folder = unpacked_folder().join(format!("debian-{release}"));
            let partial = empty_partial(&folder)?;
            let unpacked = Command::new("tar")
                .arg("-xJf")
                .arg(&archive)
                .arg("--strip-components=1")
                .current_dir(&partial)
                .output()?;
            let _ = fs::remove_dir_all(&package);
            shell::interrupt::or(Ok(()))?;
            if !unpacked.status.success() {
                return Err(cannot_unpack(&unpacked.stderr));
            }
            let _ = fs::remove_dir_all(&folder);
            fs::rename(&partial, &folder)?;
            Ok(folder)
        },
    )
}

/// Returns the release of a package's file, such as 6.12.107 of `linux-source-6.12_6.12.107-1_all.deb`.
fn release_of(package: &Path) -> Option<String> {
    let name = package.file_name()?.to_str()?;
    let version = name.split('_').nth(1)?;
    Some(version.split(['-', '+', '~']).next()?.to_owned())
}

/// Returns the folder of a source that an earlier run has unpacked and that fits `version`.
fn find_provided(version: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(unpacked_folder()).ok()?.flatten();
    let names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("debian-") && !name.ends_with("partial"))
        .filter(|name| numbers_of(&name["debian-".len()..]).starts_with(&numbers_of(version)))
        .collect();
    Some(unpacked_folder().join(newest_of(&names, version)?))
}

fn numbers_of(version: &str) -> Vec<u32> {
    version.split('.').flat_map(str::parse).collect()
}

/// Returns the name with the newest version that begins with `version`. Each name ends with its version.
fn newest_of<'n>(names: &'n [String], version: &str) -> Option<&'n str> {
    let of = |name: &String| numbers_of(name.rsplit('-').next().unwrap_or_default());
    let wanted = numbers_of(version);
    // A package's version has two numbers, and a release's version has three.
    let fits = |name: &&String| {
        of(name).starts_with(&wanted) || wanted.starts_with(&of(name)) && !of(name).is_empty()
    };
    let fits = names.iter().filter(fits);
    fits.max_by_key(|name| of(name)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_version_a_folder_or_a_revision() {
        let read = |name: &str| Source::read(name).unwrap();
        assert_eq!(read("debian:6.12"), Some(Source::Debian("6.12".into())));
        assert_eq!(read("debian"), Some(Source::Debian(String::new())));
        assert_eq!(read("debianx"), None);
        assert_eq!(read("/nonexistent@v6.12"), None);
        assert_eq!(read("Image"), None);
    }

    #[test]
    fn a_folder_without_linux_is_refused_with_the_remedy() {
        let place = tempfile::tempdir().unwrap();
        let name = place.path().to_str().unwrap();
        let refused = Source::read(name).unwrap_err().to_string();
        assert!(
            refused.starts_with(name) && refused.contains("MAINTAINERS"),
            "{refused}"
        );
        for file in ["Kbuild", "init/main.c"] {
            let path = place.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let refused = Source::read(name).unwrap_err().to_string();
        assert!(refused.contains("arch/arm64"), "{refused}");
        let refused = Source::read(&format!("{name}@v1")).unwrap_err().to_string();
        assert!(refused.contains("no commit v1"), "{refused}");
    }

    #[test]
    fn a_part_of_a_version_takes_the_newest_that_fits() {
        let names = ["linux-source-6.1", "linux-source-6.12", "linux-source-7.3"];
        let names = names.map(str::to_owned);
        assert_eq!(newest_of(&names, "6.1"), Some("linux-source-6.1"));
        assert_eq!(newest_of(&names, "6"), Some("linux-source-6.12"));
        assert_eq!(newest_of(&names, ""), Some("linux-source-7.3"));
        assert_eq!(newest_of(&names, "6.12.117"), Some("linux-source-6.12"));
        assert_eq!(newest_of(&names, "5"), None);
        let package = Path::new("/a/linux-source-6.12_6.12.107-1~bpo1_all.deb");
        assert_eq!(release_of(package).unwrap(), "6.12.107");
    }

    #[test]
    fn names_of_folders_have_plain_characters() {
        let source = Source::Revision {
            tree: "/home/me/my linux".into(),
            commit: "0123456789abcdef".into(),
        };
        assert_eq!(source.short_name(), "my-linux-0123456789ab");
    }
}
