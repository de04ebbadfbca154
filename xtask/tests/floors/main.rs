// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the modules of an image lie on floors, in the order that `docs/architecture.md` shows. A module may use
//! its own floor and lower ones. This test fails if a module uses a higher floor, if more modules than allowed form a
//! circle in which they use each other, or if the picture differs from the files.

mod picture;
mod reader;
mod rules;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A crate whose modules lie on floors.
struct House {
    /// The folder of the crate's files, as the picture's heading names it.
    source: &'static str,
    /// Maximum number of modules that may form a circle.
    circle: usize,
}

const HOUSES: [House; 3] = [
    House {
        source: "hypervisor/src",
        circle: 8,
    },
    House {
        source: "guest-kernel-shim/src",
        circle: 4,
    },
    House {
        source: "guest-kernel-shim/trials/src",
        circle: 4,
    },
];

/// Maximum number of modules that may form a circle in any crate. Images, which have a picture, may have a smaller
/// limit.
const CIRCLE: usize = 8;

/// Maximum number of lines in the folder `src` of a crate.
const LINES: usize = 14_000;

/// The folder of code that only test images contain. This code may use every floor. In place of the folder, other
/// images have a file with the same name, which every floor may use.
const FOR_TESTS: &str = "planted";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the Rust files below `folder` that measurement images contain, by their paths in the folder.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.extend((!path.ends_with(FOR_TESTS)).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                files.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    files
}

fn architecture() -> String {
    fs::read_to_string(root().join("docs/architecture.md")).unwrap()
}

#[test]
fn no_module_uses_a_higher_floor_and_circles_are_small() {
    for house in &HOUSES {
        let uses = reader::read(&files(&root().join(house.source)));
        let floors = picture::floors(&architecture(), house.source);
        let faults = rules::faults(&uses, &floors, house.circle);
        assert!(
            faults.is_empty(),
            "{}:\n{}",
            house.source,
            faults.join("\n")
        );
    }
}

/// Returns the source folders of all packages, found through the manifests of the workspace.
fn sources() -> Vec<PathBuf> {
    let mut sources = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap();
        let below = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_dir());
        for path in below {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == "src" && folder.join("Cargo.toml").is_file() {
                sources.push(path);
            } else if !name.starts_with('.') && path != root().join("target") {
                folders.push(path);
            }
        }
    }
    sources
}

#[test]
fn no_crate_has_a_large_circle() {
    let sources = sources();
    assert!(sources.len() > 40, "{sources:?}");
    for source in sources {
        let uses = rules::between(reader::read(&files(&source)));
        assert_eq!(rules::circle(&uses, CIRCLE), None, "{}", source.display());
    }
}

#[test]
fn each_library_introduces_itself() {
    let crates = root().join("crates");
    let without: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|source| {
            source.starts_with(&crates) && !source.with_file_name("README.md").is_file()
        })
        .collect();
    assert!(without.is_empty(), "no README.md next to {without:?}");
}

#[test]
fn no_crate_is_too_large() {
    for source in sources() {
        let lines: usize = files(&source)
            .values()
            .map(|text| text.lines().count())
            .sum();
        assert!(
            lines <= LINES,
            "{}: {lines} lines; {LINES} is the most",
            source.display()
        );
    }
}

/// Returns the faults of files in a house with two floors.
fn faults_of(files: &[(&str, &str)]) -> Vec<String> {
    let picture = "```text\nx/src, the top floor first\n\ntop  a b\n     c\nlow  d e\n```\n";
    let floors = picture::floors(picture, "x/src");
    let all = [
        "top", "top/a", "top/b", "top/c", "low", "low/d", "low/e", "main",
    ];
    let mut house: BTreeMap<String, String> =
        all.map(|name| (format!("{name}.rs"), String::new())).into();
    for (name, text) in files {
        house.insert(format!("{name}.rs"), (*text).to_owned());
    }
    rules::faults(&reader::read(&house), &floors, 2)
}

#[test]
fn uses_of_lower_floors_and_of_the_same_are_right() {
    let files = [
        ("top/a", "use crate::low::{d::Thing, e}; use super::b::x;"),
        (
            "low/d",
            "/// [`crate::top::a`]\nconst TEXT: &str = \"crate::top::a::x\";",
        ),
    ];
    assert_eq!(faults_of(&files), [""; 0]);
}

#[test]
fn a_use_of_a_higher_floor_is_found_however_it_is_written() {
    for text in [
        "use crate::top::a::Thing;",
        "use crate::{low::e, top::{b, a::{self, Thing}}};",
        "fn f() { crate::top::a::g() }",
        "asm!(\"bl {x}\", x = sym crate::top::a::g);",
        "macro_rules! m { () => { $crate::top::a::g() } }",
        "use super::super::top::a;",
        "use crate::shout;",
    ] {
        let top = "#[macro_export]\nmacro_rules! shout { () => {} }";
        let faults = faults_of(&[("low/d", text), ("top/a", top)]);
        let found = faults
            .iter()
            .any(|fault| fault.starts_with("low::d uses top::a,"));
        assert!(found, "{text}: {faults:?}");
    }
}

#[test]
fn a_circle_that_is_too_large_is_found() {
    let mut files = vec![("top/a", "use crate::top::b;"), ("top/b", "use super::a;")];
    assert_eq!(faults_of(&files), [""; 0]);
    files[1].1 = "use crate::top::c;";
    files.push(("top/c", "use crate::top::a;"));
    let faults = faults_of(&files);
    let circle = "3 modules form a circle, and 2 is the most: top::a, top::b, top::c";
    assert_eq!(faults, [circle]);
}

#[test]
fn a_picture_that_differs_from_the_files_is_found() {
    let faults = faults_of(&[("low/f", ""), ("up", "")]);
    let missing = ["low::f is not in the picture", "up is not in the picture"];
    assert_eq!(faults, missing);
}
