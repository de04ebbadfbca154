// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records from which inputs each program was built.
//!
//! An entry is a fact about a hash of inputs and a hash of a built file. It stays true whatever happens later, so a
//! build that fails or is interrupted does not have to withdraw it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};
use shell::digest::xxh3_hex;

use crate::contents::Contents;

const RECORD: &str = "programs.json";

/// The latest build of a program.
#[derive(Debug, Serialize, Deserialize)]
struct Built {
    /// The hash of the inputs.
    inputs: String,
    /// The hash of the program's file.
    program: String,
}

/// The latest builds, by the paths of the programs in the workspace.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Programs(BTreeMap<PathBuf, Built>);

impl Programs {
    /// Reads the record in the folder `records`. Without a record, nothing is known.
    pub fn read(records: &Path) -> Self {
        let text = fs::read(records.join(RECORD)).ok();
        text.and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Returns whether each of the `programs` is there, and was built from the `inputs`.
    pub fn are_built(&self, root: &Path, programs: &[PathBuf], inputs: &str) -> bool {
        programs.iter().all(|program| {
            let known = program
                .strip_prefix(root)
                .ok()
                .and_then(|path| self.0.get(path));
            known.is_some_and(|known| {
                known.inputs == inputs && hash_file(program).as_ref() == Some(&known.program)
            })
        })
    }

    /// Records that `program` was built from the `inputs`, which include `contents`. Records nothing if the program
    /// depends on a file that `contents` lacks.
    pub fn add(&mut self, root: &Path, program: &Path, inputs: &str, contents: &Contents) {
        let files = files_of(program);
        let all_known = files.is_some_and(|files| {
            files
                .iter()
                .all(|file| contents.has(root, &root.join(file)))
        });
        if let Ok(path) = program.strip_prefix(root)
            && let Some(hash) = hash_file(program)
            && all_known
        {
            let built = Built {
                inputs: inputs.to_owned(),
                program: hash,
            };
            self.0.insert(path.to_owned(), built);
        }
    }

    pub fn write(&self, records: &Path) -> Result<()> {
        crate::write_record(records, RECORD, self)
    }
}

fn hash_file(path: &Path) -> Option<String> {
    Some(xxh3_hex(&fs::read(path).ok()?))
}

/// Returns the files of this workspace, and of other folders that are not from a registry, on which a program depends.
/// Cargo lists them next to the program (The Cargo Book, Build Cache, Dep-info files).
fn files_of(program: &Path) -> Option<Vec<PathBuf>> {
    let text = fs::read_to_string(program.with_extension("d")).ok()?;
    let (_, files) = text.split_once(": ")?;
    // A space in a path is escaped.
    let files = files.replace("\\ ", "\0");
    let files = files.split_whitespace();
    Some(files.map(|file| file.replace('\0', " ").into()).collect())
}
