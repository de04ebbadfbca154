// SPDX-License-Identifier: MIT OR Apache-2.0

use super::*;
use shell::failure::is_bad_input;

fn some() -> Files {
    let names = ["README.md", "LICENSES/x/MIT", "program"];
    let files = names.map(|name| (name.to_owned(), File::from_text(name.into())));
    let mut files: Files = files.into_iter().collect();
    files.get_mut("program").unwrap().executable = true;
    files.insert(sums::FILE.into(), File::from_text(sums::sums_text(&files)));
    files
}

#[test]
fn what_is_written_has_its_sums() {
    let place = Scratch::new().unwrap();
    let to = place.path().join("dist");
    let folder = Folder::claim_new(TO, &to).unwrap();
    write_files(&folder, &some()).unwrap();
    folder.close(None).complete().unwrap();
    check(&to).unwrap();
    let mode = |name: &str| to.join(name).metadata().unwrap().permissions().mode();
    assert_eq!(mode("program") & 0o111, 0o111);
    assert_eq!(mode("README.md") & 0o111, 0);

    fs::write(to.join("program"), "changed").unwrap();
    let error = check(&to).unwrap_err();
    assert!(
        error.to_string().contains("program does not match"),
        "{error}"
    );
    fs::write(to.join("program"), "program").unwrap();
    fs::write(to.join("one more"), "").unwrap();
    let error = check(&to).unwrap_err();
    assert!(error.to_string().contains("one more"), "{error}");
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let place = Scratch::new().unwrap();
    fs::write(place.path().join("mine"), "kept").unwrap();
    for to in [place.path(), &place.path().join("mine"), "-".as_ref()] {
        let args = DistArgs {
            to: Some(to.into()),
        };
        let error = dist(&args).unwrap_err();
        assert!(is_bad_input(&error), "{error:#}");
        assert!(error.to_string().starts_with("--to: "), "{error:#}");
    }
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(fs::read(place.path().join("mine")).unwrap(), b"kept");
}
