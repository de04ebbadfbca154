// SPDX-License-Identifier: MIT OR Apache-2.0
//! `LICENSES/`: our licences, and for each product, the crates that are linked into it with their own licence texts.
//! MIT and BSD require that binaries carry their notice, and MPL requires that binaries tell where the source is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;

use super::cargo::{self, Crate, Key};
use super::products::Product;
use super::{File, Files};
use providing::toolchain;
use shell::places;

/// Prefixes of the names of licence files.
const BEGINNINGS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
/// The notice of musl, which is linked into Rust's Linux programs.
const MUSL: &str = include_str!("musl.txt");
/// Licences of the libraries that come with Rust's toolchain.
const RUST: [&str; 3] = [
    "share/doc/rust/COPYRIGHT-library.html",
    "share/doc/rust/licenses/Apache-2.0.txt",
    "share/doc/rust/licenses/MIT.txt",
];
/// Cargo's folder of sources, as images name it: `images` passes this name to the compiler.
const SOURCES: &str = "/cargo/registry/src/";

/// Returns the files that `products` need in the folder of licences.
pub fn licence_files(products: &[Product]) -> Result<Files> {
    let known = cargo::locked_crates()?;
    let mut files = Files::new();
    let mut add = |name: &str, bytes: Vec<u8>| {
        let executable = false;
        files.insert(format!("LICENSES/{name}"), File { bytes, executable });
    };
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        let path = places::inside(name);
        add(name, fs::read(&path).with_context(|| name.to_owned())?);
    }
    let mut all = BTreeSet::new();
    let mut text = HEAD.to_owned();
    for product in products {
        let linked = cargo::linked_crates(product.packages)?;
        check_named_crates(product, &linked)?;
        text += &crates_section(product, &linked, &known)?;
        all.extend(linked);
    }
    add("CRATES.md", text.into_bytes());
    for key in &all {
        let one = known.get(key).context("a crate that Cargo knows")?;
        for (name, bytes) in licence_texts(one)? {
            add(&format!("crates/{}-{}/{name}", key.0, key.1), bytes);
        }
    }
    add("musl/COPYRIGHT", MUSL.into());
    for (name, bytes) in rust_licences() {
        add(&format!("rust/{name}"), bytes);
    }
    Ok(files)
}

const HEAD: &str = "\
# What the files consist of

Rouse is licensed under MIT or Apache-2.0, at your option: `LICENSE-MIT`, `LICENSE-APACHE`. Below are the crates whose code is linked into each
file, by Cargo's account. `crates/` has the texts that came with them. The source of NAME in VERSION is at
<https://crates.io/crates/NAME/VERSION>; all are used unchanged.

Every file also has parts of Rust's own libraries (MIT or Apache-2.0; `rust/`), and the programs of Linux have musl's C library (MIT;
`musl/COPYRIGHT`) and LLVM's libunwind (Apache-2.0 with LLVM exception), which come with Rust's toolchain.

`site/` was made by mdBook (MPL-2.0, <https://github.com/rust-lang/mdBook>), with its style sheets and scripts: elasticlunr.js, mark.js and clipboard.js
(MIT), highlight.js (BSD-3-Clause), and fonts: Open Sans (Apache-2.0), Source Code Pro (OFL-1.1), Font Awesome (CC-BY-4.0).
";

/// Returns the section that lists the crates of a product.
fn crates_section(
    product: &Product,
    linked: &BTreeSet<Key>,
    known: &BTreeMap<Key, Crate>,
) -> Result<String> {
    let mut text = format!(
        "\n## {}\n\n| crate | version | licence |\n|---|---|---|\n",
        product.name
    );
    for key in linked {
        let (name, version) = key;
        let one = known
            .get(key)
            .with_context(|| format!("Cargo knows no {name} {version}"))?;
        let Some(licence) = &one.license else {
            bail!("{name} {version} names no licence; it can't be published");
        };
        let ours = if one.source.is_none() { " (ours)" } else { "" };
        text += &format!("| {name}{ours} | {version} | {licence} |\n");
    }
    Ok(text)
}

/// Returns the licence texts next to a crate's Cargo.toml, by name; our own texts are already in the folder.
fn licence_texts(one: &Crate) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut texts = BTreeMap::new();
    if one.source.is_none() {
        return Ok(texts);
    }
    let folder = one.manifest_path.parent().unwrap_or(Path::new("/"));
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let upper = name.to_uppercase();
        let is_text = BEGINNINGS.iter().any(|begin| upper.starts_with(begin));
        if is_text && entry.path().is_file() {
            texts.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(texts)
}

/// Returns the licence texts in the toolchain; a distribution's toolchain may lack them.
fn rust_licences() -> Vec<(&'static str, Vec<u8>)> {
    let sysroot = toolchain::sysroot().unwrap_or_default();
    let read = |path: &'static str| {
        let bytes = fs::read(sysroot.join(path)).ok()?;
        let name = path.rsplit('/').next()?;
        Some((name, bytes))
    };
    RUST.into_iter().filter_map(read).collect()
}

/// Fails if a product names a crate that is not in the list. The panic messages of a crate name the crate's source
/// files.
fn check_named_crates(product: &Product, linked: &BTreeSet<Key>) -> Result<()> {
    let folders: BTreeSet<_> = linked
        .iter()
        .map(|(name, version)| format!("{name}-{version}"))
        .collect();
    for named in named_crates(&product.file.bytes) {
        ensure!(
            folders.contains(&named),
            "{} has code of {named}, which `cargo tree` does not name",
            product.name
        );
    }
    Ok(())
}

/// Returns the folders of crates that occur in `bytes`: `/cargo/registry/src/INDEX/NAME-VERSION/`.
fn named_crates(bytes: &[u8]) -> BTreeSet<String> {
    let found = memmem::find_iter(bytes, SOURCES);
    let folders = found.filter_map(|at| {
        let rest = &bytes[at + SOURCES.len()..];
        let folder = rest.split(|&byte| byte == b'/').nth(1)?;
        Some(String::from_utf8_lossy(folder).into_owned())
    });
    folders.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(bytes: &[u8]) -> Product {
        Product {
            name: "x".into(),
            about: String::new(),
            packages: &[],
            file: File {
                bytes: bytes.into(),
                executable: false,
            },
        }
    }

    #[test]
    fn a_crate_that_an_image_names_has_to_be_listed() {
        let image = product(b"..\0/cargo/registry/src/index-1/spin-0.12.3/src/once.rs\0..");
        let key = |name: &str| BTreeSet::from([(name.to_owned(), "0.12.3".to_owned())]);
        assert!(check_named_crates(&image, &key("spin")).is_ok());
        let error = check_named_crates(&image, &key("spun")).unwrap_err();
        assert!(error.to_string().contains("spin-0.12.3"), "{error}");
    }

    #[test]
    fn a_crate_without_a_licence_is_not_published() {
        let known = cargo::locked_crates().unwrap();
        let (key, one) = known.iter().find(|((name, _), _)| name == "spin").unwrap();
        let only = BTreeSet::from([key.clone()]);
        let text = crates_section(&product(b""), &only, &known).unwrap();
        assert!(text.ends_with(&format!("| spin | {} | MIT |\n", key.1)));
        assert!(!licence_texts(one).unwrap().is_empty());
        let mut bare = cargo::locked_crates().unwrap();
        bare.get_mut(key).unwrap().license = None;
        assert!(crates_section(&product(b""), &only, &bare).is_err());
    }
}
