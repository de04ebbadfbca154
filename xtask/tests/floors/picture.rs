// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the picture of a crate's floors in `docs/architecture.md`, which is a block of text with the top floor first.
//!
//! ```text
//! hypervisor/src, the top floor first
//!
//! boot        entry  start
//!             survey
//! exits       wfx
//! ```

use std::collections::BTreeSet;

/// A floor of a crate. A floor has one room, which is a folder of modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Floor {
    /// The name of the room's folder.
    pub room: String,
    /// The room's modules. Modules of deeper folders are parts of their parents.
    pub modules: BTreeSet<String>,
}

/// Returns the floors of the crate whose picture begins with `source`, from the lowest floor.
///
/// # Panics
/// Panics if there is no such picture.
pub fn floors(text: &str, source: &str) -> Vec<Floor> {
    let heading = format!("```text\n{source}, the top floor first\n");
    let (_, picture) = text
        .split_once(&heading)
        .unwrap_or_else(|| panic!("there is no picture of {source}"));
    let (picture, _) = picture.split_once("```").expect("the picture ends");
    let mut floors: Vec<Floor> = Vec::new();
    for line in picture.lines().filter(|line| !line.trim().is_empty()) {
        let mut words = line.split_whitespace().map(str::to_owned);
        if !line.starts_with(' ') {
            floors.push(Floor {
                room: words.next().expect("the line is not empty"),
                modules: BTreeSet::new(),
            });
        }
        let floor = floors.last_mut().expect("a picture begins with a room");
        floor.modules.extend(words);
    }
    floors.reverse();
    floors
}
