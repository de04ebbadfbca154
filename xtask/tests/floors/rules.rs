// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the rules of a house, which is a crate whose modules lie on floors.

use std::collections::BTreeSet;

use super::picture::Floor;
use super::reader::{Module, Uses};

/// Returns all faults, in one line each.
pub fn faults(uses: &Uses, floors: &[Floor], most: usize) -> Vec<String> {
    let mut faults = differences(uses, floors);
    faults.extend(climbs(uses, floors));
    faults.extend(circle(uses, most));
    faults
}

/// Returns the folder of a module, and the part of the module's path within the folder.
fn place(module: &str) -> (&str, Option<&str>) {
    let mut parts = module.split("::");
    (parts.next().unwrap_or(module), parts.next())
}

fn floor_of(floors: &[Floor], module: &str) -> Option<usize> {
    floors
        .iter()
        .position(|floor| floor.room == place(module).0)
}

/// Returns the differences between the picture and the files.
fn differences(uses: &Uses, floors: &[Floor]) -> Vec<String> {
    let shown: BTreeSet<(&str, Option<&str>)> = floors
        .iter()
        .flat_map(|floor| {
            let modules = floor.modules.iter().map(|module| Some(module.as_str()));
            let all = modules.chain([None]);
            all.map(|module| (floor.room.as_str(), module))
        })
        .collect();
    let there: BTreeSet<_> = uses
        .modules
        .iter()
        .filter(|module| !module.is_empty())
        .map(|module| place(module))
        .collect();
    let name = |(room, module): &(&str, Option<&str>)| match module {
        Some(module) => format!("{room}::{module}"),
        None => (*room).to_owned(),
    };
    let missing = there.difference(&shown).map(name);
    let gone = shown.difference(&there).map(name);
    missing
        .map(|module| format!("{module} is not in the picture"))
        .chain(gone.map(|module| format!("{module} is in the picture and has no file")))
        .collect()
}

/// Returns the uses of a higher floor.
fn climbs(uses: &Uses, floors: &[Floor]) -> Vec<String> {
    let climbs = |from: &Module, to: &Module| {
        let (from, to) = (floor_of(floors, from), floor_of(floors, to));
        matches!((from, to), (Some(from), Some(to)) if from < to)
    };
    let up = uses
        .arrows
        .iter()
        .filter(|((from, to), _)| climbs(from, to));
    up.map(|((from, to), path)| format!("{from} uses {to}, which is above it: {path}"))
        .collect()
}

/// Returns a message about the largest circle, if it has more than `most` modules.
pub fn circle(uses: &Uses, most: usize) -> Option<String> {
    let largest = circles(uses).into_iter().max_by_key(Vec::len)?;
    (largest.len() > most).then(|| {
        let (count, names) = (largest.len(), largest.join(", "));
        format!("{count} modules form a circle, and {most} is the most: {names}")
    })
}

/// Removes a module's uses by its own submodules, because a file and its folder are written together.
pub fn between(uses: Uses) -> Uses {
    let up = |from: &str, to: &str| {
        from.strip_prefix(to)
            .is_some_and(|rest| rest.starts_with("::"))
            || to.is_empty()
    };
    let arrows = uses.arrows.into_iter();
    let arrows = arrows.filter(|((from, to), _)| !up(from, to)).collect();
    Uses { arrows, ..uses }
}

/// Returns the strongly connected components of the modules and their uses.
pub fn circles(uses: &Uses) -> Vec<Vec<Module>> {
    let reached = |from: &Module| {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(module) = next.pop() {
            let arrows = uses.arrows.keys().filter(|(from, _)| from == module);
            let new = arrows.map(|(_, to)| to).filter(|to| reached.insert(*to));
            next.extend(new.collect::<Vec<_>>());
        }
        reached
    };
    let all: Vec<_> = uses.modules.iter().map(|one| (one, reached(one))).collect();
    let mut circles = BTreeSet::new();
    for (module, reached) in &all {
        let back = all.iter().filter(|(other, back)| {
            *other == *module || reached.contains(other) && back.contains(module)
        });
        circles.insert(back.map(|(other, _)| (*other).clone()).collect::<Vec<_>>());
    }
    circles.into_iter().collect()
}
