// SPDX-License-Identifier: MIT OR Apache-2.0
//! The verb `dist`: makes a folder to publish, with which users measure a machine without building anything.
//!
//! ```text
//! README.md         each file, and how to use it
//! measure.disk ...  files for a machine: [products]
//! LICENSES/         their components, with authors: [licences]
//! site/             the documents: [crate::book]
//! SHA256SUMS        hashes of all other files: [sums]
//! ```
//!
//! Wherever and whenever `dist` runs, it makes the same folder from the same commit, bit for bit. Therefore, no file
//! may depend on the machine that made it; [`traces`] checks every file before any is written.

mod cargo;
mod licences;
mod products;
mod readme;
pub mod sums;
mod traces;

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;

use crate::book;
use providing::toolchain;
use shell::failure;
use shell::folder::Folder;
use shell::output::Output;
use shell::partial_files::Scratch;
use shell::terminal::{note, say};
use shell::{interrupt, places};
use traces::Traces;

pub use sums::{FILE as SUMS, check};

/// The option that names the folder.
const TO: &str = "--to";
/// The folder of the site.
const SITE: &str = "site";

/// Options of `dist`.
#[derive(Args, Debug)]
pub struct DistArgs {
    /// The folder; new or empty [default: target/dist]
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// Files by path in the folder, sorted by path.
type Files = BTreeMap<String, File>;

/// A file of the folder.
#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    /// Whether the file is a Linux program.
    executable: bool,
}

impl File {
    fn from_text(text: String) -> Self {
        Self {
            bytes: text.into_bytes(),
            executable: false,
        }
    }
}

pub fn dist(args: &DistArgs) -> Result<()> {
    let default = || places::target().join("dist");
    let to = args.to.clone().unwrap_or_else(default);
    // This query has to come before the folder is created, which would change the tree.
    let build = toolchain::build();
    let folder = Folder::claim_new(TO, &to)?;
    interrupt::catch()?;
    let files = interrupt::or(checked_files(build.as_ref()))?;
    write_files(&folder, &files)?;
    say!("{}", folder.close(None).complete()?);
    if build.is_none_or(|build| build.dirty || build.commit.is_empty()) {
        note!(
            "the tree is not as in a commit: nobody else can make this folder; commit, and make another to publish"
        );
    }
    Ok(())
}

/// Returns all files, after checking them for traces of this machine.
fn checked_files(build: Option<&results::Build>) -> Result<Files> {
    let products = products::build_products()?;
    let mut files = licences::licence_files(&products)?;
    files.insert(
        "README.md".into(),
        File::from_text(readme::readme_text(&products, build)),
    );
    for product in products {
        files.insert(product.name.clone(), product.file);
    }
    add_site(&mut files)?;
    let traces = Traces::of_this_machine();
    let found = files
        .iter()
        .filter_map(|(name, file)| Some(format!("{name}: {}", traces.find_path(&file.bytes)?)));
    let found: Vec<_> = found.collect();
    if !found.is_empty() {
        return Err(failure::listed(
            "files tell where they were made, so nobody else can make the same; flags in crates/host/running/src/images/flags.rs give such \
             paths another name",
            &found.join("\n"),
        ));
    }
    files.insert(sums::FILE.into(), File::from_text(sums::sums_text(&files)));
    Ok(files)
}

/// Adds the files of the documents' site.
fn add_site(files: &mut Files) -> Result<()> {
    let place = Scratch::new()?;
    let made = place.path().join(SITE);
    book::make_site(&made)?;
    for name in sums::files_below(&made, &made)? {
        let bytes = fs::read(made.join(&name)).with_context(|| name.clone())?;
        let executable = false;
        files.insert(format!("{SITE}/{name}"), File { bytes, executable });
    }
    Ok(())
}

/// Writes the files; blocks of zeroes in a disk image take no space.
fn write_files(folder: &Folder, files: &Files) -> Result<()> {
    for (name, file) in files {
        let path = folder.inside(name);
        let above = path.parent().context("a file is in a folder")?;
        fs::create_dir_all(above).with_context(|| above.display().to_string())?;
        Output::claim(TO, &path)?.write_bytes(&file.bytes)?;
        if file.executable {
            let mode = Permissions::from_mode(0o755);
            fs::set_permissions(&path, mode).with_context(|| path.display().to_string())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
