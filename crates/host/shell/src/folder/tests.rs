// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests folders that are completed, that stay incomplete, and that can't be created.

use super::*;
use crate::failure::is_bad_input;
use std::os::unix::fs::symlink;

fn claim(out: &Path) -> Result<Folder> {
    Folder::claim(Some(out), "virt")
}

#[test]
fn a_folder_appears_complete_or_not_at_all() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("a/b");
    drop(claim(&out).unwrap());
    assert_eq!(fs::read_dir(parent.path().join("a")).unwrap().count(), 0);
    let mut folder = claim(&out).unwrap();
    folder.write("x", "y");
    assert!(!out.exists());
    assert_eq!(folder.close(None).complete().unwrap(), places::shown(&out));
    assert_eq!(fs::read_to_string(out.join("x")).unwrap(), "y");
    let again = claim(&out).unwrap_err();
    assert!(is_bad_input(&again), "{again:#}");
}

#[test]
fn an_empty_folder_is_taken_over_and_a_file_is_not() {
    let parent = tempfile::tempdir().unwrap();
    let empty = parent.path().join("empty");
    fs::create_dir(&empty).unwrap();
    symlink("empty", parent.path().join("link")).unwrap();
    let mut folder = claim(&parent.path().join("link")).unwrap();
    folder.write("x", "y");
    folder.close(None).complete().unwrap();
    assert!(empty.join("x").exists());
    let file = parent.path().join("file");
    fs::write(&file, "").unwrap();
    for out in [file.clone(), file.join("below"), PathBuf::from("-")] {
        assert!(is_bad_input(&claim(&out).unwrap_err()));
    }
}

#[test]
fn a_name_is_given_once_whenever_it_is_asked_for() {
    let parent = tempfile::tempdir().unwrap();
    let names: Vec<String> = std::thread::scope(|threads| {
        let claims = [(); 8].map(|()| {
            threads.spawn(|| {
                let mut folder = Folder::claim_numbered(parent.path(), "name").unwrap();
                folder.write("x", "y");
                let name = folder.name();
                folder.close(None).complete().unwrap();
                name
            })
        });
        claims.map(|claim| claim.join().unwrap()).into()
    });
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), 8, "{names:?}");
    let first = claim(&parent.path().join("x")).unwrap();
    let second = claim(&parent.path().join("x")).unwrap_err();
    assert!(second.to_string().contains("another run"), "{second}");
    drop(first);
}

#[test]
fn what_can_not_be_written_costs_no_more_than_that() {
    let parent = tempfile::tempdir().unwrap();
    let mut folder = claim(&parent.path().join("run")).unwrap();
    symlink("/dev/full", folder.inside("results.json")).unwrap();
    folder.write("results.json", "{}");
    folder.write("serial.log", "said");
    let closed = folder.close(None);
    assert!(closed.lacks.as_ref().unwrap().contains("results.json"));
    assert!(closed.place.ends_with("run-incomplete"));
    let log = parent.path().join("run-incomplete/serial.log");
    assert_eq!(fs::read_to_string(log).unwrap(), "said");
    assert!(!parent.path().join("run").exists());
}

#[test]
fn what_can_not_be_put_in_place_is_left_beside_it() {
    let parent = tempfile::tempdir().unwrap();
    let out = parent.path().join("run");
    let mut folder = claim(&out).unwrap();
    folder.write("x", "y");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("theirs"), "").unwrap();
    let error = folder.close(None).complete().unwrap_err().to_string();
    assert!(error.contains("can't be put in place"), "{error}");
    assert!(parent.path().join("run-incomplete/x").exists());
}
