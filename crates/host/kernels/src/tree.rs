// SPDX-License-Identifier: MIT OR Apache-2.0
//! The copy of a source, in which the kernel is built. The copy has the source's files, except that patched files
//! replace some of them.
//!
//! A file of the copy is written only if its content changes. A changed file is then newer than every object, so `make`
//! compiles only the objects that depend on the file.

use std::collections::BTreeMap;
use std::fs::{self, FileType, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use shell::failure::bad_input;
use shell::{files, interrupt};

use crate::apply::{Changes, Content};
use crate::source::{Files, git};

/// The folder, inside the copy, that holds the objects. Kbuild uses relative paths if the objects are inside the
/// source, so the folder can be moved together with the copy.
pub const BUILD: &str = "rouse-build";

/// For each file in a tree: the file's size, and when its content or mode last changed, both read when the file was
/// copied.
pub type Seen = BTreeMap<String, (u64, i64, i64)>;

/// Updates the files in `copy` from `source`. `seen` describes the files that were copied earlier, and is updated, too.
/// Returns whether a file has changed.
pub fn sync(source: &Files, copy: &Path, seen: &mut Seen) -> Result<bool> {
    if source.fixed {
        let is_new = !copy.exists();
        if is_new {
            copy_link(&source.folder, copy)?;
        }
        return Ok(is_new);
    }
    files::make_folder(copy)?;
    let mut now = Seen::new();
    let mut changed = Vec::new();
    for path in source_files(&source.folder)? {
        // Git's index may list a file that is not in the folder.
        let Ok(metadata) = source.folder.join(&path).symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            continue;
        }
        let state = (metadata.len(), metadata.ctime(), metadata.ctime_nsec());
        if seen.get(&path) != Some(&state) {
            changed.push((path.clone(), metadata));
        }
        now.insert(path, state);
    }
    // A file may have become a folder, or a folder a file.
    let gone: Vec<&String> = seen
        .keys()
        .filter(|path| !now.contains_key(*path))
        .collect();
    for path in &gone {
        remove(&copy.join(path))?;
    }
    let is_changed = !changed.is_empty() || !gone.is_empty();
    for (path, metadata) in changed {
        interrupt::or(Ok(()))?;
        replace(&source.folder.join(&path), &copy.join(&path), &metadata)?;
    }
    *seen = now;
    Ok(is_changed)
}

/// Returns the files of a tree that belong to its source. In a git repository, these are git's files; otherwise, they
/// are all files that no build has made.
fn source_files(tree: &Path) -> Result<Vec<String>> {
    if tree.join(".git").exists()
        && let Some(text) = git(
            tree,
            &[
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ],
        )
    {
        let paths = text.split('\0').filter(|path| !path.is_empty());
        return Ok(paths.map(str::to_owned).collect());
    }
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(tree.join(&folder))? {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let Some(text) = path.to_str().filter(|text| !is_built(text)) else {
                continue;
            };
            match entry.file_type()?.is_dir() {
                true => folders.push(path),
                false => paths.push(text.to_owned()),
            }
        }
    }
    Ok(paths)
}

/// Whether a build inside the tree has made the file `path`. Kbuild refuses a tree that has such files.
fn is_built(path: &str) -> bool {
    const FOLDERS: [&str; 4] = [
        ".git",
        "include/config",
        "include/generated",
        "arch/arm64/include/generated",
    ];
    const ENDS: [&str; 6] = [".o", ".a", ".ko", ".cmd", ".mod", ".mod.c"];
    FOLDERS.contains(&path)
        || path == ".config"
        || path == "vmlinux"
        || ENDS.iter().any(|end| path.ends_with(end))
}

/// Fills the new folder `copy` with links to the files of `source`, which never change.
fn copy_link(source: &Path, copy: &Path) -> Result<()> {
    let partial = copy.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    for_each_file(
        source,
        &partial,
        &mut |from, to, kind| match kind.is_symlink() {
            true => symlink(fs::read_link(from)?, to),
            // Not every file system supports hard links.
            false => fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop)),
        },
    )?;
    fs::rename(&partial, copy).with_context(|| copy.display().to_string())
}

/// Copies the folder of objects from another copy. The objects keep their times, so `make` considers them up to date.
pub fn copy_build(from: &Path, to: &Path) -> Result<()> {
    let partial = to.with_extension("partial");
    let _ = fs::remove_dir_all(&partial);
    for_each_file(from, &partial, &mut |from, to, kind| {
        if kind.is_symlink() {
            return symlink(fs::read_link(from)?, to);
        }
        fs::copy(from, to)?;
        let modified = from.metadata()?.modified()?;
        fs::File::options()
            .write(true)
            .open(to)?
            .set_modified(modified)
    })?;
    fs::rename(&partial, to).with_context(|| to.display().to_string())
}

/// Copies a file from another copy of the tree, with the file's time. Removes the file here if the other copy lacks it.
pub fn copy_file(from: &Path, to: &Path) -> Result<()> {
    remove(to)?;
    if !from.exists() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        files::make_folder(parent)?;
    }
    copy_with_time(from, to).map_err(|error| files::refused(to, "written", &error))
}

fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let modified = from.metadata()?.modified()?;
    fs::File::options()
        .write(true)
        .open(to)?
        .set_modified(modified)
}

/// Calls `place` for each file below `from`, with its path, the corresponding path below `to`, and its type. Creates
/// the folders below `to`.
fn for_each_file(
    from: &Path,
    to: &Path,
    place: &mut impl FnMut(&Path, &Path, FileType) -> io::Result<()>,
) -> Result<()> {
    interrupt::or(Ok(()))?;
    files::make_folder(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        match kind.is_dir() {
            true => for_each_file(&from, &to, place)?,
            false => {
                place(&from, &to, kind).map_err(|error| files::refused(&to, "written", &error))?
            }
        }
    }
    Ok(())
}

/// Puts the patched files into `copy`, and restores the source's file for each path in `before` that is no longer
/// patched. Returns the paths that are patched now.
pub fn put_patched(
    source: &Files,
    copy: &Path,
    before: &[String],
    changes: Changes,
) -> Result<Vec<String>> {
    let now: BTreeMap<String, Option<Content>> = changes.files.into_iter().collect();
    for path in before.iter().filter(|path| !now.contains_key(*path)) {
        let from = source.folder.join(path);
        match from.symlink_metadata() {
            Ok(metadata) => replace(&from, &copy.join(path), &metadata)?,
            Err(_) => remove(&copy.join(path))?,
        }
    }
    for (path, content) in &now {
        if let Some(link) = link_above(copy, path) {
            bad_input!(
                "a patch changes {path}, and {link} is a symbolic link, which may lead to files of others; put the folder itself into the tree"
            );
        }
        let to = copy.join(path);
        match content {
            Some(content) if has_content(&to, content) => {}
            Some(content) => {
                remove(&to)?;
                fs::create_dir_all(to.parent().unwrap_or(copy))?;
                write(&to, content).map_err(|error| files::refused(&to, "written", &error))?;
            }
            None => remove(&to)?,
        }
    }
    Ok(now.into_keys().collect())
}

/// Returns the first folder on `path` that is a symbolic link in `copy`.
fn link_above(copy: &Path, path: &str) -> Option<String> {
    let above: Vec<&Path> = Path::new(path).ancestors().skip(1).collect();
    let mut folders = above.into_iter().rev();
    let link = folders.find(|folder| copy.join(folder).is_symlink())?;
    Some(link.display().to_string())
}

fn has_content(path: &Path, content: &Content) -> bool {
    let executable = |metadata: Metadata| metadata.mode() & 0o100 != 0;
    fs::read(path).is_ok_and(|bytes| bytes == content.bytes)
        && path
            .metadata()
            .is_ok_and(|metadata| executable(metadata) == content.executable)
}

fn write(path: &Path, content: &Content) -> io::Result<()> {
    fs::write(path, &content.bytes)?;
    let mode = if content.executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Replaces a file by a copy with the current time. The old file may be a link, so it is removed, and never written to.
fn replace(from: &Path, to: &Path, metadata: &Metadata) -> Result<()> {
    remove(to)?;
    if let Some(parent) = to.parent() {
        files::make_folder(parent)?;
    }
    let done = match metadata.is_symlink() {
        true => fs::read_link(from).and_then(|target| symlink(target, to)),
        false => fs::copy(from, to).map(drop),
    };
    done.map_err(|error| files::refused(to, "written", &error))
}

fn remove(path: &Path) -> Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        _ => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(files::refused(path, "removed", &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a source of two files, and a path for its copy, at which nothing exists yet.
    fn source(fixed: bool) -> (tempfile::TempDir, Files, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("tree");
        fs::create_dir_all(folder.join("k")).unwrap();
        fs::write(folder.join("k/a.c"), "a").unwrap();
        fs::write(folder.join("b.c"), "b").unwrap();
        fs::write(folder.join(".config"), "built").unwrap();
        symlink("b.c", folder.join("link")).unwrap();
        let copy = place.path().join("copy");
        (place, Files { folder, fixed }, copy)
    }

    fn content(text: &str) -> Content {
        Content {
            bytes: text.into(),
            executable: false,
        }
    }

    fn changes(files: &[(&str, Option<&str>)]) -> Changes {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).into(), text.map(content)));
        Changes {
            files: files.collect(),
            ..Changes::default()
        }
    }

    #[test]
    fn only_files_that_changed_are_copied_again() {
        let (_place, source, copy) = source(false);
        let mut seen = Seen::new();
        assert!(sync(&source, &copy, &mut seen).unwrap());
        assert!(!copy.join(".config").exists() && copy.join("link").is_symlink());
        assert!(!sync(&source, &copy, &mut seen).unwrap());
        fs::write(copy.join("b.c"), "of nobody").unwrap();
        fs::write(source.folder.join("k/a.c"), "another").unwrap();
        assert!(sync(&source, &copy, &mut seen).unwrap());
        assert_eq!(fs::read_to_string(copy.join("k/a.c")).unwrap(), "another");
        assert_eq!(fs::read_to_string(copy.join("b.c")).unwrap(), "of nobody");
        fs::remove_file(source.folder.join("b.c")).unwrap();
        assert!(sync(&source, &copy, &mut seen).unwrap());
        assert!(!copy.join("b.c").exists());
    }

    #[test]
    fn patched_files_never_reach_the_source_and_come_back_from_it() {
        for fixed in [false, true] {
            let (_place, source, copy) = source(fixed);
            sync(&source, &copy, &mut Seen::new()).unwrap();
            let patches = changes(&[
                ("k/a.c", Some("patched")),
                ("b.c", None),
                ("n/new.c", Some("n")),
            ]);
            let patched = put_patched(&source, &copy, &[], patches).unwrap();
            assert_eq!(patched, ["b.c", "k/a.c", "n/new.c"]);
            let text = |path: &Path| fs::read_to_string(path).unwrap();
            assert_eq!(text(&copy.join("k/a.c")), "patched");
            assert!(!copy.join("b.c").exists() && copy.join("n/new.c").exists());
            assert_eq!(text(&source.folder.join("k/a.c")), "a");
            let patched = put_patched(&source, &copy, &patched, changes(&[])).unwrap();
            assert!(patched.is_empty() && !copy.join("n/new.c").exists());
            assert_eq!(text(&copy.join("k/a.c")) + &text(&copy.join("b.c")), "ab");
        }
    }

    #[test]
    fn a_path_may_become_a_folder_and_a_mode_may_change() {
        let (_place, source, copy) = source(false);
        let mut seen = Seen::new();
        sync(&source, &copy, &mut seen).unwrap();
        fs::remove_file(source.folder.join("b.c")).unwrap();
        fs::create_dir(source.folder.join("b.c")).unwrap();
        fs::write(source.folder.join("b.c/x"), "x").unwrap();
        fs::set_permissions(source.folder.join("k/a.c"), Permissions::from_mode(0o755)).unwrap();
        assert!(sync(&source, &copy, &mut seen).unwrap());
        assert!(copy.join("b.c/x").is_file());
        assert_eq!(copy.join("k/a.c").metadata().unwrap().mode() & 0o777, 0o755);
        let script = Content {
            executable: true,
            ..content("new")
        };
        let changes = Changes {
            files: vec![("k/a.c".into(), Some(script.clone()))],
            ..Changes::default()
        };
        put_patched(&source, &copy, &[], changes).unwrap();
        assert!(has_content(&copy.join("k/a.c"), &script));
    }

    #[test]
    fn a_link_out_of_the_tree_is_never_followed() {
        let (place, source, copy) = source(false);
        let outside = place.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("x.c"), "mine").unwrap();
        symlink(&outside, source.folder.join("my")).unwrap();
        sync(&source, &copy, &mut Seen::new()).unwrap();
        let error =
            put_patched(&source, &copy, &[], changes(&[("my/x.c", Some("patched"))])).unwrap_err();
        assert!(
            error.to_string().contains("my is a symbolic link"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(outside.join("x.c")).unwrap(), "mine");
    }

    #[test]
    fn a_patched_file_with_the_same_content_keeps_its_time() {
        let (_place, source, copy) = source(true);
        sync(&source, &copy, &mut Seen::new()).unwrap();
        let again = || changes(&[("k/a.c", Some("patched"))]);
        put_patched(&source, &copy, &[], again()).unwrap();
        let time = || copy.join("k/a.c").metadata().unwrap().modified().unwrap();
        let before = time();
        put_patched(&source, &copy, &["k/a.c".into()], again()).unwrap();
        assert_eq!(time(), before);
    }
}
