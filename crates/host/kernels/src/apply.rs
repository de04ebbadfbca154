// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies patches to copies of the files that they change. Git applies each patch; a damaged patch is repaired first.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use shell::failure::{BadInput, bad_input};
use shell::partial_files::Scratch;
use shell::terminal::note;

use crate::diff::{FileDiff, Line};
use crate::loose::{self, Loose};
use crate::mail::Patch;
use crate::restore::{Restored, restore};

/// The files that patches change, with their contents after all patches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Each path, with the content of the file there; `None` if the file was removed.
    pub files: Vec<(String, Option<Content>)>,
    /// Options of Kconfig that the patches add.
    pub options: Vec<String>,
}

/// A patched file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// Applies `patches` in order to files of the tree `source`, which messages call `name`.
pub fn apply(name: &str, source: &Path, patches: &[Patch]) -> Result<Changes> {
    let place = Scratch::new()?;
    let mut touched = BTreeSet::new();
    let mut options = Vec::new();
    for patch in patches {
        let mut read = match loose::parse(&patch.text) {
            Ok(read) if read.files.is_empty() => bad_input!(
                "--patch {}: it has no diff; save the whole mail as text, or use what `git format-patch` wrote",
                patch.name
            ),
            Ok(read) => read,
            Err(why) => bad_input!(
                "--patch {}: {why}; get the patch as it was sent",
                patch.name
            ),
        };
        for file in &mut read.files {
            strip_tree_name(source, place.path(), file);
        }
        for file in &read.files {
            if file.header.iter().any(|line| line.ends_with(" 120000")) {
                bad_input!(
                    "--patch {}: {} is a symbolic link, and only files are taken",
                    patch.name,
                    file.path()
                );
            }
            for path in [&file.old, &file.new].into_iter().flatten() {
                check_inside(patch, path)?;
                if touched.insert(path.clone()) {
                    copy_original(source, place.path(), path)?;
                }
            }
            let old = file
                .old
                .as_deref()
                .filter(|old| !place.path().join(old).exists());
            if let Some(old) = old {
                bad_input!(
                    "--patch {}: {name} has no {old}; is the patch for another base?",
                    patch.name
                );
            }
        }
        apply_one(name, place.path(), patch, &mut read)?;
        options.extend(read.files.iter().flat_map(added_options));
    }
    let contents = |path: String| -> Result<_> {
        let file = place.path().join(&path);
        let contents = match file.exists() {
            true => Some(Content {
                bytes: fs::read(&file)?,
                executable: file.metadata()?.permissions().mode() & 0o100 != 0,
            }),
            false => None,
        };
        Ok((path, contents))
    };
    let files = touched.into_iter().map(contents).collect::<Result<_>>()?;
    Ok(Changes { files, options })
}

/// Removes the first part of the file's paths if the tree has the old path only without that part. Some programs put
/// the name of each tree before its paths.
fn strip_tree_name(source: &Path, place: &Path, file: &mut FileDiff) {
    let there = |path: &str| source.join(path).exists() || place.join(path).exists();
    let Some(old) = file.old.clone().filter(|old| !there(old)) else {
        return;
    };
    let Some((_, rest)) = old.split_once('/').filter(|(_, rest)| there(rest)) else {
        return;
    };
    file.old = Some(rest.to_owned());
    if let Some((_, rest)) = file.new.as_deref().and_then(|new| new.split_once('/')) {
        file.new = Some(rest.to_owned());
    }
}

/// Checks that a path stays in the tree.
fn check_inside(patch: &Patch, path: &str) -> Result<()> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !Path::new(path).components().all(plain) || path.is_empty() {
        bad_input!("--patch {}: {path:?} is outside of the tree", patch.name);
    }
    Ok(())
}

fn copy_original(source: &Path, place: &Path, path: &str) -> Result<()> {
    let (from, to) = (source.join(path), place.join(path));
    if !from.is_file() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::copy(&from, &to)
        .map(drop)
        .with_context(|| from.display().to_string())
}

/// Applies one patch. Tries the patch unchanged first, then repaired, then with less context.
fn apply_one(name: &str, place: &Path, patch: &Patch, read: &mut Loose) -> Result<()> {
    if read.joined == 0 && read.unmarked == 0 && !read.quoted && !read.no_break {
        let whole = print_diff(&read.files);
        if run_git_apply(place, &[], &whole)?.is_ok() {
            return Ok(());
        }
        if run_git_apply(place, &["--reverse", "--check"], &whole)?.is_ok() {
            bad_input!(
                "--patch {}: {name} has it already; leave it out",
                patch.name
            );
        }
    }
    let mut restored = Restored::default();
    for file in &mut read.files {
        let before = file.old.as_ref().map(|old| place.join(old));
        if let Some(Ok(before)) = before.map(fs::read) {
            let more = restore(file, &String::from_utf8_lossy(&before));
            restored.lines += more.lines;
            restored.guessed += more.guessed;
        } else if file.old.is_none() {
            // A new file in a patch from an archive's web page has lost white space, too, and nothing shows where it
            // was.
            restored.guessed += usize::from(file.path().ends_with("Kconfig"));
        }
    }
    let mended = print_diff(&read.files);
    let (less, why) = match run_git_apply(place, &[], &mended)? {
        Ok(()) => (false, None),
        Err(why) => match run_git_apply(place, &["-C1"], &mended)? {
            Ok(()) => (true, None),
            Err(_) => (false, Some(why)),
        },
    };
    if let Some(why) = why {
        bad_input!(
            "--patch {}: {}",
            patch.name,
            failed_hunk(name, &read.files, &why)
        );
    }
    let guesses = list_guesses(read, restored, less);
    if !guesses.is_empty() {
        note!("note: --patch {}: {}", patch.name, guesses.join("; "));
    }
    Ok(())
}

fn print_diff(files: &[FileDiff]) -> String {
    files.iter().map(ToString::to_string).collect()
}

/// Describes the assumptions that were made in order to apply a patch.
fn list_guesses(read: &Loose, restored: Restored, less: bool) -> Vec<String> {
    let counted = [
        (read.joined, "broken lines are joined"),
        (read.unmarked, "lines without a mark are context"),
        (
            restored.lines,
            "lines have the white space of the tree again",
        ),
        (
            restored.guessed,
            "added lines of Kconfig are indented by a guess",
        ),
    ];
    let counted = counted.into_iter().filter(|(count, _)| *count > 0);
    let counted = counted.map(|(count, what)| format!("{count} {what}"));
    let quoted = read
        .quoted
        .then(|| "the diff is quoted, and text between its lines is left out".into());
    let no_break = read.no_break.then(|| "no-break spaces are blanks".into());
    let less = less.then(|| "it applies with one line of context, so look at the result".into());
    quoted
        .into_iter()
        .chain(no_break)
        .chain(counted)
        .chain(less)
        .collect()
}

/// Runs `git apply` in `place`. The inner error is the first line of git's error output.
fn run_git_apply(place: &Path, options: &[&str], diff: &str) -> Result<Result<(), String>> {
    let file = place.join(".diff");
    fs::write(&file, diff)?;
    let output = Command::new("git")
        .args(["apply", "--whitespace=nowarn"])
        .args(options)
        .arg(".diff")
        .current_dir(place)
        // Without this variable, git would skip the files if the folder were inside a repository.
        .env("GIT_CEILING_DIRECTORIES", place.parent().unwrap_or(place))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .context(BadInput::context(
            "git can't be started, and it applies patches; install it",
        ))?;
    fs::remove_file(&file)?;
    if output.status.success() {
        return Ok(Ok(()));
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().find_map(|line| line.strip_prefix("error: "));
    Ok(Err(line.unwrap_or("git refuses it").to_owned()))
}

/// Names the hunk that git's error is about: `patch failed: FILE:LINE`.
fn failed_hunk(name: &str, files: &[FileDiff], why: &str) -> String {
    let place = why
        .strip_prefix("patch failed: ")
        .and_then(|place| place.rsplit_once(':'));
    let found = place.and_then(|(path, line)| {
        let line: usize = line.parse().ok()?;
        let file = files.iter().find(|file| file.path() == path)?;
        let hunk = file.hunks.iter().position(|hunk| hunk.start == line)?;
        Some((path, hunk + 1, line))
    });
    match found {
        Some((path, hunk, line)) => format!(
            "hunk {hunk} of {path} (line {line}) does not apply to {name}; name the tree that the patch was made for, or rebase it"
        ),
        None => format!(
            "it does not apply to {name} ({why}); name the tree that the patch was made for, or rebase it"
        ),
    }
}

/// Returns the options of type `bool` or `tristate` that a diff adds to a Kconfig file.
fn added_options(file: &FileDiff) -> Vec<String> {
    let name = file.path().rsplit('/').next().unwrap_or_default();
    if !name.starts_with("Kconfig") {
        return Vec::new();
    }
    let mut options = Vec::new();
    let mut last = None;
    let added = file.hunks.iter().flat_map(|hunk| &hunk.lines);
    for line in added {
        let Line::Added(text) = line else { continue };
        let mut words = text.split_whitespace();
        match (words.next(), words.next()) {
            (Some("config" | "menuconfig"), Some(name)) => last = Some(name.to_owned()),
            (Some("bool" | "tristate"), Some(_)) => options.extend(last.take()),
            _ => {}
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("k")).unwrap();
        let lines: String = (1..20).map(|n| format!("\tline {n};\n")).collect();
        fs::write(tree.path().join("k/a.c"), lines).unwrap();
        fs::write(tree.path().join("k/Kconfig"), "config A\n\tbool \"a\"\n").unwrap();
        tree
    }

    fn patch(text: &str) -> Patch {
        Patch {
            name: "x.patch".into(),
            text: text.into(),
        }
    }

    const CHANGE: &str = "--- a/k/a.c\n+++ b/k/a.c\n@@ -4,3 +4,4 @@\n \tline 4;\n-\tline 5;\n+\tLINE 5;\n+\tmore;\n \tline 6;\n";

    fn after(text: &str) -> String {
        let changes = apply("tree", tree().path(), &[patch(text)]).unwrap();
        let [(path, Some(contents))] = &changes.files[..] else {
            panic!("{changes:?}")
        };
        assert_eq!(path, "k/a.c");
        String::from_utf8(contents.bytes.clone()).unwrap()
    }

    #[test]
    fn damaged_patches_do_the_same_as_whole_ones() {
        let whole = after(CHANGE);
        assert!(whole.contains("\tline 4;\n\tLINE 5;\n\tmore;\n\tline 6;\n"));
        let quoted: String = CHANGE
            .lines()
            .map(|line| format!("> {line}\n\nno\n"))
            .collect();
        assert_eq!(after(&quoted), whole);
        let blanks = CHANGE.replace('\t', "        ");
        assert_eq!(
            after(&blanks),
            whole.replace("\tLINE 5;\n\tmore;", "        LINE 5;\n        more;")
        );
        let bare = CHANGE.replace(" \tline", "line").replace("-\t", "-");
        assert_eq!(after(&bare), whole);
        let other = CHANGE
            .replace("a/k/a.c", "linux.orig/k/a.c")
            .replace("b/k/a.c", "linux/k/a.c");
        assert_eq!(after(&other), whole);
        let moved = CHANGE.replace("-4,3 +4,4", "-9,3 +9,4");
        assert_eq!(after(&moved), whole);
    }

    #[test]
    fn patches_apply_one_after_another() {
        let second = "--- a/k/a.c\n+++ b/k/a.c\n@@ -5,2 +5,2 @@\n-\tLINE 5;\n+\tLast;\n \tmore;\n";
        let changes = apply("tree", tree().path(), &[patch(CHANGE), patch(second)]).unwrap();
        let contents = changes.files[0].1.clone().unwrap();
        assert!(
            String::from_utf8(contents.bytes)
                .unwrap()
                .contains("\tLast;\n\tmore;\n")
        );
    }

    #[test]
    fn files_come_and_go_and_options_are_found() {
        let text = "--- a/k/a.c\n+++ /dev/null\n@@ -1,19 +0,0 @@\n";
        let lines: String = (1..20).map(|n| format!("-\tline {n};\n")).collect();
        let new = "--- /dev/null\n+++ b/k/b.c\n@@ -0,0 +1 @@\n+int b;\n";
        let option = "--- a/k/Kconfig\n+++ b/k/Kconfig\n@@ -1,2 +1,5 @@\n config A\n \tbool \"a\"\n+config B\n+\tbool \"b\"\n+\tdefault n\n";
        let changes = apply(
            "tree",
            tree().path(),
            &[patch(&[text, &lines, new, option].concat())],
        )
        .unwrap();
        let paths: Vec<_> = changes
            .files
            .iter()
            .map(|(path, has)| (path.as_str(), has.is_some()))
            .collect();
        assert_eq!(
            paths,
            [("k/Kconfig", true), ("k/a.c", false), ("k/b.c", true)]
        );
        assert_eq!(changes.options, ["B"]);
    }

    #[test]
    fn a_refusal_names_file_hunk_and_remedy() {
        for (text, told) in [
            (
                CHANGE.replace("line 6", "other"),
                "hunk 1 of k/a.c (line 4) does not apply to tree",
            ),
            (CHANGE.replace("k/a.c", "k/z.c"), "tree has no k/z.c"),
            (CHANGE.replace("k/a.c", "../a.c"), "outside of the tree"),
            (
                CHANGE.replace("-4,3", "-4,9"),
                "hunk 1 of k/a.c has other lines",
            ),
            ("no diff".into(), "has no diff"),
        ] {
            let error = apply("tree", tree().path(), &[patch(&text)]).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(told), "{error}");
            assert!(
                error.starts_with("--patch x.patch: ") && !error.contains('\n'),
                "{error}"
            );
        }
        let twice = apply("tree", tree().path(), &[patch(CHANGE), patch(CHANGE)]);
        assert!(twice.unwrap_err().to_string().contains("has it already"));
    }
}
