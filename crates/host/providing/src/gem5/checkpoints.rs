// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checkpoints of a booted Linux in `target/gem5/`, so that each boot is made only once.
//!
//! The name of a checkpoint's folder contains a hash of everything on which the boot depends. The machine's script
//! makes a missing checkpoint (`boards/gem5/machine.py`), and holds the lock next to the folder while it does so.

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use twox_hash::XxHash64;

use shell::{files, places};

/// Number of checkpoints that are kept; each has some 50 MB. Two kernels under KVM with two settings of traps have eight.
const KEPT: usize = 24;
/// Ending of the lock's name.
const LOCK: &str = "lock";
/// Ending of the folder's name while a checkpoint is being made or removed.
const PART: &str = "part";

/// Options of the machine that do not affect a boot. Each option is followed by its value.
const OF_THE_REST: [&str; 4] = ["--outdir", "--cpu-model", "--irq-ns", "--wake-ns"];

/// Returns the folder for the checkpoint of the boot that `command` makes. The folder's name depends on the contents of
/// `program` and of the `images` that the command names, so it is the same on every computer. Removes the least
/// recently used checkpoints. `place` is the folder for the emulator's own files.
pub fn folder<'a>(
    program: &Path,
    command: &Command,
    place: &Path,
    images: impl Iterator<Item = &'a Path>,
) -> Result<PathBuf> {
    let mut hasher = XxHash64::with_seed(0);
    hash_contents(program, &mut hasher).with_context(|| places::shown(program))?;
    let mut part = |bytes: &[u8]| {
        hasher.write_u64(bytes.len() as u64);
        hasher.write(bytes);
    };
    let images: Vec<_> = images.collect();
    for path in &images {
        part(&fs::read(path).with_context(|| places::shown(path))?);
    }
    let mut words = command.get_args();
    while let Some(word) = words.next() {
        if OF_THE_REST.iter().any(|option| word == *option) {
            words.next();
        } else if word != place && !images.iter().any(|image| word == *image) {
            part(word.as_encoded_bytes());
        }
    }
    let parent = places::target().join("gem5");
    files::make_folder(&parent)?;
    let folder = parent.join(format!("{:016x}", hasher.finish()));
    remove_oldest(&parent, &folder);
    Ok(folder)
}

/// Hashes a file piece by piece, since a simulator with its symbols has more than a gigabyte.
fn hash_contents(path: &Path, hasher: &mut XxHash64) -> io::Result<()> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            return Ok(());
        }
        hasher.write(piece);
        let length = piece.len();
        file.consume(length);
    }
}

/// Removes all checkpoints except `current` and the most recently used ones, and removes the remains of interrupted
/// ones.
fn remove_oldest(parent: &Path, current: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let locks = entries.map(|entry| entry.path());
    let locks = locks.filter(|path| {
        path.extension().is_some_and(|ending| ending == LOCK) && path.with_extension("") != current
    });
    // The script sets the lock's time with each use.
    let used = |lock: &PathBuf| fs::metadata(lock).and_then(|lock| lock.modified());
    let mut locks: Vec<_> = locks.map(|lock| (used(&lock).ok(), lock)).collect();
    locks.sort_unstable();
    let (complete, remains): (Vec<_>, Vec<_>) = locks
        .into_iter()
        .map(|(_, lock)| lock)
        .partition(|lock| lock.with_extension("").exists());
    let most = complete.len().saturating_sub(KEPT - 1);
    complete[..most]
        .iter()
        .chain(&remains)
        .for_each(|lock| remove_unless_used(lock));
}

/// Removes the checkpoint of `lock`, unless it is being read or made.
fn remove_unless_used(lock: &Path) {
    let Some(_held) = File::open(lock).ok().filter(|lock| lock.try_lock().is_ok()) else {
        return;
    };
    // An interruption must not leave an incomplete checkpoint under its final name.
    let (folder, part) = (lock.with_extension(""), lock.with_extension(PART));
    let _ = fs::remove_dir_all(&part);
    let _ = fs::rename(folder, &part);
    let _ = fs::remove_dir_all(&part);
    let _ = fs::remove_file(lock);
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn a_boot_is_known_by_all_that_it_depends_on() {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("Image");
        let program = place.path().join("gem5");
        fs::write(&program, "gem5 24").unwrap();
        let named = |program: &Path, bytes: &str, words: &[&str]| {
            fs::write(&image, bytes).unwrap();
            let mut command = Command::new("gem5");
            command
                .arg("--outdir")
                .arg(place.path())
                .arg(&image)
                .args(words);
            folder(program, &command, place.path(), [&*image].into_iter()).unwrap()
        };
        // The program on another computer, from which the checkpoint was copied.
        let elsewhere = place.path().join("a copy");
        fs::write(&elsewhere, "gem5 24").unwrap();
        File::open(&elsewhere)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        let first = named(&program, "a", &["--cpus", "2"]);
        assert_eq!(first, named(&program, "a", &["--cpus", "2"]));
        assert_eq!(
            first,
            named(&program, "a", &["--cpu-model", "o3", "--cpus", "2"])
        );
        assert_eq!(
            first,
            named(&program, "a", &["--irq-ns", "500", "--cpus", "2"])
        );
        assert_ne!(first, named(&program, "b", &["--cpus", "2"]));
        assert_ne!(first, named(&program, "a", &["--cpus", "4"]));
        assert_eq!(first, named(&elsewhere, "a", &["--cpus", "2"]));
        fs::write(&elsewhere, "gem5 25").unwrap();
        assert_ne!(first, named(&elsewhere, "a", &["--cpus", "2"]));
    }

    #[test]
    fn those_used_last_are_kept_and_one_that_is_read() {
        let parent = tempfile::tempdir().unwrap();
        let of = |n: usize| parent.path().join(format!("{n:016x}"));
        for n in 0..KEPT + 3 {
            fs::create_dir(of(n)).unwrap();
            let lock = File::create(of(n).with_extension(LOCK)).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(n as u64);
            lock.set_modified(time).unwrap();
        }
        // This folder is the remains of an interrupted run.
        fs::create_dir(of(99).with_extension(PART)).unwrap();
        File::create(of(99).with_extension(LOCK)).unwrap();
        let read = File::open(of(1).with_extension(LOCK)).unwrap();
        read.lock_shared().unwrap();
        remove_oldest(parent.path(), &of(0));
        let left = |n: usize| of(n).exists();
        assert!(left(0) && left(1) && !left(2) && !left(3) && left(4));
        assert!(!of(99).with_extension(PART).exists() && !of(99).with_extension(LOCK).exists());
    }
}
