// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources and tools from which images were built. The comment of a field is also its description in
//! docs/results.schema.json.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Results;

/// Sources and tools of the images.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(default)]
pub struct Build {
    /// Version of the compiler, from rustc's line `release`; empty if it is not known.
    pub rustc: String,
    /// The compiler's commit, 40 digits; empty where rustc does not report it.
    pub rustc_commit: String,
    /// Version of the compiler's LLVM.
    pub llvm: String,
    /// The tree's commit, 40 digits; empty outside a git repository.
    pub commit: String,
    /// Whether files of the tree differed from that commit.
    pub dirty: bool,
    /// SHA-256 of the packed image without our own guests, 64 digits: the hypervisor, and another kernel with its initial
    /// RAM disk; empty where none was packed.
    pub image: String,
    /// SHA-256 of each image of our own guest that the boots needed, 64 digits, by its atomics: `llsc`, `lse`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub guests: BTreeMap<String, String>,
}

impl Build {
    /// Whether both were built from the same sources by the same tools, for runs that may have needed different guests of
    /// ours. Without a guest in common, only a commit shows that the guests are of the same sources.
    pub fn is_of_same_sources(&self, other: &Self) -> bool {
        let without_guests = |build: &Self| Self {
            guests: BTreeMap::new(),
            ..build.clone()
        };
        let mut common = self
            .guests
            .iter()
            .filter_map(|(atomics, ours)| Some(ours == other.guests.get(atomics)?))
            .peekable();
        let committed = !self.dirty && !self.commit.is_empty();
        let comparable = common.peek().is_some() || self.guests == other.guests;
        without_guests(self) == without_guests(other)
            && (committed || comparable)
            && common.all(|alike| alike)
    }

    /// Formats the compiler, for people: `rustc 1.95.0 (59807616e1fa..., LLVM 22.1.2)`.
    pub fn compiler_text(&self) -> String {
        let parts = [
            self.rustc_commit.clone(),
            match self.llvm.as_str() {
                "" => String::new(),
                llvm => format!("LLVM {llvm}"),
            },
        ];
        let more: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        match (self.rustc.as_str(), more.is_empty()) {
            ("", _) => String::new(),
            (rustc, true) => format!("rustc {rustc}"),
            (rustc, false) => format!("rustc {rustc} ({})", more.join(", ")),
        }
    }

    /// Formats the hashes of the images for people: `SHA-256 8d0e..., guest lse 5f3a...`.
    pub fn sums_text(&self) -> String {
        if self.image.is_empty() {
            return String::new();
        }
        let guests = self.guests.iter();
        let guests = guests.map(|(atomics, sum)| format!(", guest {atomics} {sum}"));
        format!("SHA-256 {}{}", self.image, guests.collect::<String>())
    }

    /// Formats the tree for people: its commit, and whether files have changed since.
    pub fn tree_text(&self) -> String {
        self.tree_text_with(self.commit.clone())
    }

    /// Formats the tree for people, with only the first digits of the commit.
    pub fn short_tree(&self) -> String {
        self.tree_text_with(self.commit.chars().take(12).collect())
    }

    fn tree_text_with(&self, commit: String) -> String {
        match (commit.as_str(), self.dirty) {
            ("", _) => String::new(),
            (_, false) => commit,
            (_, true) => format!("{commit}, with changes"),
        }
    }
}

impl Results {
    /// Whether the images of both were built from the same sources; see [`Build::is_of_same_sources`].
    pub fn is_of_same_sources(&self, other: &Self) -> bool {
        match (&self.build, &other.build) {
            (Some(ours), Some(theirs)) => ours.is_of_same_sources(theirs),
            (ours, theirs) => ours.is_none() && theirs.is_none(),
        }
    }
}
