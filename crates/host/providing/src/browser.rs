// SPDX-License-Identifier: MIT OR Apache-2.0
//! A headless browser that checks pages. The browser is one that the user names, or Debian's, unpacked below
//! `target/tools/chromium` with its libraries and fonts.
//!
//! Debian's browser uses none of the system's fonts, so pages look the same on each machine that provides it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::apt::{self, Remedy};
use crate::manager;
use shell::failure::bad_input;
use shell::places;

/// The variable that names a browser's program; crates/test/browser reads it.
pub const VARIABLE: &str = "ROUSE_CHROMIUM";
/// Remedy for a missing browser.
const REMEDY: Remedy = Remedy {
    missing: "a headless browser",
    instead: "set ROUSE_CHROMIUM=/path/to/chromium",
};
/// The second font package has the tick and cross symbols that the first one lacks.
const PACKAGES: [&str; 3] = [
    "chromium-headless-shell",
    "fonts-liberation",
    "fonts-dejavu-core",
];
/// Debian's loader, and its copy next to the browser's program. The program looks for its files next to its executable,
/// which is the loader.
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
const BESIDE: &str = "usr/lib/chromium/loader";
const START: &str = "start";
/// The browser and its child processes run with Debian's C library. The options turn off the browser's zygote, from
/// which the child processes would be forked.
const SCRIPT: &str = r#"#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
libraries=$here/usr/lib/x86_64-linux-gnu
export FONTCONFIG_FILE="$here/fonts.conf" XDG_CACHE_HOME="$here/cache"
exec "$here/usr/lib/chromium/loader" --library-path "$libraries:$libraries/pulseaudio:$here/usr/lib/chromium" \
    "$here/usr/lib/chromium/chromium-headless-shell" --no-zygote --browser-subprocess-path="$here/start" "$@"
"#;
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir prefix="relative">usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias><family>monospace</family><prefer><family>Liberation Mono</family></prefer></alias>
  <alias><family>ui-monospace</family><prefer><family>Liberation Mono</family></prefer></alias>
  <match target="pattern"><edit name="family" mode="append_last"><string>Liberation Sans</string></edit></match>
</fontconfig>
"#;

fn install_folder() -> PathBuf {
    places::target().join("tools/chromium")
}

/// If this variable is set, as `.ci/run` does, tests fetch everything that they need, however large.
const EVERYTHING: &str = "CI";

/// Returns the named browser, or the browser that an earlier run has provided.
pub fn find() -> Option<PathBuf> {
    let named = env::var_os(VARIABLE).map(PathBuf::from);
    named.or_else(|| Some(install_folder().join(START)).filter(|start| start.is_file()))
}

/// Returns a browser of this computer, which checks pages only if the user names it, because its fonts differ.
pub fn find_other_browser() -> Option<PathBuf> {
    let mut known = ["chromium", "chromium-browser", "google-chrome"].into_iter();
    known.find_map(manager::on_the_path)
}

/// If this computer cannot check pages, returns the name of the missing tool, with the remedy.
pub fn lacks() -> Option<String> {
    let Remedy { missing, instead } = &REMEDY;
    match find() {
        Some(_) => None,
        None if obstacle().is_none() && env::var_os(EVERYTHING).is_some() => None,
        None if obstacle().is_none() => Some(format!(
            "{missing} is missing: `cargo xtask dev pages` fetches Debian's (165 MB, once), or {instead}"
        )),
        None => Some(format!("{missing} is missing; {instead}")),
    }
}

/// Returns the reason why no browser can be provided here.
fn obstacle() -> Option<&'static str> {
    let x86_64_linux = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    (!x86_64_linux || !apt::usable())
        .then_some("only Debian's apt can fetch it, on Linux and x86-64")
}

/// Fetches, checks and unpacks Debian's browser, unless a browser exists.
pub fn provide() -> Result<PathBuf> {
    let Remedy { missing, instead } = REMEDY;
    if find().is_none()
        && let Some(why) = obstacle()
    {
        bad_input!("{missing} is missing, and {why}; {instead}");
    }
    REMEDY.provide_once("", find, |tools| {
        let apt = tools.apt(None, &REMEDY)?;
        let install = [
            "-y",
            "--no-install-recommends",
            "--download-only",
            "install",
        ];
        apt.run(
            "downloading Chromium",
            &[&install[..], &PACKAGES[..]].concat(),
        )?;
        let prefix = install_folder();
        apt.unpack(&prefix)?;
        prepare(&prefix).with_context(|| prefix.display().to_string())?;
        match find() {
            Some(program) => Ok(program),
            None => bail!("the packages have no browser; {instead}"),
        }
    })
}

/// Adds the start script last, so that it exists only if all other files do.
fn prepare(prefix: &Path) -> Result<()> {
    fs::copy(prefix.join(LOADER), prefix.join(BESIDE))?;
    fs::write(prefix.join("fonts.conf"), FONTS)?;
    let start = prefix.join(START);
    let partial = start.with_extension("partial");
    fs::write(&partial, SCRIPT)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o755))?;
    }
    fs::rename(partial, start)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_whole_is_no_browser() {
        let place = tempfile::tempdir().unwrap();
        assert!(prepare(place.path()).is_err());
        assert!(!place.path().join(START).exists());
        for file in [LOADER, BESIDE] {
            let folder = place.path().join(file);
            fs::create_dir_all(folder.parent().unwrap()).unwrap();
        }
        fs::write(place.path().join(LOADER), "x").unwrap();
        prepare(place.path()).unwrap();
        assert!(place.path().join(BESIDE).is_file() && place.path().join(START).is_file());
    }

    #[test]
    fn the_remedy_names_the_variable() {
        assert!(REMEDY.instead.contains(VARIABLE));
    }
}
