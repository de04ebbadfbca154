// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use crate::failure::is_bad_input;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::thread;

fn claim(path: &Path) -> Result<Output> {
    Output::claim("--json", path)
}

fn refused(path: &Path, remedy: &str) {
    let error = claim(path).unwrap_err();
    let text = format!("{error:#}");
    assert!(is_bad_input(&error) && text.contains(remedy), "{text}");
}

#[test]
fn a_file_appears_at_once_with_what_it_has() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("results.json");
    let output = claim(&file).unwrap();
    assert!(!file.exists());
    output.write("{}").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
    // No partial file remains next to the file, and no old contents remain in it.
    claim(&file).unwrap().write("[]").unwrap();
    drop(claim(&file).unwrap());
    assert_eq!(fs::read_to_string(&file).unwrap(), "[]");
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    refused(&file.join("x"), "name another file");
    refused(&parent.path().join("no/x"), "name another file");
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let parent = tempfile::tempdir().unwrap();
    let file = parent.path().join("x");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    claim(&file).unwrap().write("new").unwrap();
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o640);
}

#[test]
fn a_link_stays_and_where_it_leads_is_replaced() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    fs::create_dir(at("below")).unwrap();
    fs::write(at("below/old"), "old").unwrap();
    for (link, leads, file) in [
        ("link", "below/old", "below/old"),
        ("dangling", "below/new", "below/new"),
        ("second", "dangling", "below/new"),
    ] {
        symlink(leads, at(link)).unwrap();
        claim(&at(link)).unwrap().write(link).unwrap();
        assert_eq!(fs::read_link(at(link)).unwrap(), Path::new(leads));
        assert_eq!(fs::read_to_string(at(file)).unwrap(), link);
        assert!(at(file).symlink_metadata().unwrap().is_file());
    }
    symlink("circle", at("circle")).unwrap();
    refused(&at("circle"), "name another file");
    symlink("no/where", at("nowhere")).unwrap();
    refused(&at("nowhere"), "name another file");
}

#[test]
fn a_fifo_is_written_through_and_stays() {
    let parent = tempfile::tempdir().unwrap();
    let make = |name: String| {
        let fifo = parent.path().join(name);
        let made = Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        fifo
    };
    // Write many times, because what a reader sees depends on timing. Each write has its own FIFO, because a program
    // that another test starts has this process's descriptors until its exec (fork(2)). The last reader may then still
    // seem to exist, and the data is lost when that descriptor is closed.
    for number in 0..300 {
        let fifo = make(number.to_string());
        let path = fifo.clone();
        let reader = thread::spawn(move || fs::read_to_string(path).unwrap());
        claim(&fifo).unwrap().write("through").unwrap();
        assert_eq!(reader.join().unwrap(), "through");
    }
    let fifo = make("fifo".into());
    // This reader leaves before the end.
    let path = fifo.clone();
    let reader = thread::spawn(move || {
        let mut few = [0; 2];
        File::open(path).unwrap().read_exact(&mut few).unwrap();
    });
    claim(&fifo)
        .unwrap()
        .write_bytes(&vec![b'x'; 1 << 20])
        .unwrap();
    reader.join().unwrap();
    assert!(fifo.metadata().unwrap().file_type().is_fifo());
}

#[test]
fn a_character_device_is_written_through_and_says_what_it_lost() {
    let before = fs::symlink_metadata("/dev/null").unwrap().ino();
    claim(Path::new("/dev/null")).unwrap().write("x").unwrap();
    let after = fs::symlink_metadata("/dev/null").unwrap();
    assert!(after.file_type().is_char_device() && after.ino() == before);
    let error = claim(Path::new("/dev/full")).unwrap().write("x");
    let error = format!("{:#}", error.unwrap_err());
    assert!(error.contains("/dev/full can't be written"), "{error}");
}

#[test]
fn an_open_descriptor_is_written_through() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("x");
    fs::write(&path, "old ").unwrap();
    let file = File::options().append(true).open(&path).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    let named = PathBuf::from(format!("/dev/fd/{number}"));
    claim(&named).unwrap().write("new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old new");
}

#[test]
fn what_is_no_place_for_a_file_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    refused(parent.path(), "is a folder; name a file");
    let socket = parent.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    refused(&socket, "neither file nor FIFO");
    assert!(socket.metadata().unwrap().file_type().is_socket());
}

/// A file stands in for the device: in either, the same bytes are written, and the other bytes stay unchanged.
#[test]
fn a_disk_is_written_from_its_beginning_or_not_at_all() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("device");
    let device = || File::options().read(true).write(true).open(&path).unwrap();
    fs::write(&path, [0xee; 3 * BLOCK]).unwrap();
    let inode = path.metadata().unwrap().ino();
    let error = write_disk(device(), &[0; 3 * BLOCK + 1]).unwrap_err();
    assert!(error.to_string().contains("nothing was written"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), [0xee; 3 * BLOCK]);
    let mut contents = [0; 2 * BLOCK];
    contents[0] = 7;
    write_disk(device(), &contents).unwrap();
    let found = fs::read(&path).unwrap();
    assert_eq!(found[..2 * BLOCK], contents);
    assert_eq!(found[2 * BLOCK..], [0xee; BLOCK]);
    assert_eq!(path.metadata().unwrap().ino(), inode);
}

#[test]
fn a_block_device_is_refused_unless_forced() {
    // Any block device of this machine will do, because nothing is opened.
    let devices = fs::read_dir("/dev").unwrap().flatten();
    let mut blocks = devices.filter(|entry| {
        let kind = entry.file_type();
        kind.is_ok_and(|kind| kind.is_block_device())
    });
    let Some(device) = blocks.next() else { return };
    refused(&device.path(), "block device; name a file");
    let error = Output::claim_disk("--out", &device.path(), Disks::Unforced).unwrap_err();
    assert!(
        is_bad_input(&error) && error.to_string().contains("--force"),
        "{error}"
    );
}

#[test]
fn zeroes_take_no_space_and_are_there() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("x");
    let mut bytes = vec![0; 5 * BLOCK + 1];
    bytes[3 * BLOCK] = 1;
    claim(&path).unwrap().write_bytes(&bytes).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
