// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that boot, with the rules of the architecture watched.
//!
//! Each finding has to be in `tests/strict/known.toml`, and each entry there has to be found where it says, if it says
//! where:
//!
//! ```toml
//! [[known]]
//! rule = "wait-can-end"
//! place = "hypervisor/src/exits/wfx.rs: idle"   # file and function, or the label of assembly
//! test = "first-light"                          # a test in which it is found each time, if there is one
//! ```

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use rules::RULES;
use serde::Deserialize;

use super::case::Case;
use super::cases;
use super::pool::{Tally, Task};
use crate::failure::{BadInput, bad_input};
use crate::session::Session;
use crate::strict::Found;
use crate::terminal::say;
use crate::{files, interrupt, mistake, places, qemu};

/// The test in which EL2 breaks rules, on purpose and one in each function of this file that
/// has the name of a rule.
const PLANTS: &str = "fault-el2-breaks-rules";
const PLANTED: &str = "hypervisor/src/dumps/broken_rules.rs: ";
/// Rules that can't be broken there: the first takes two CPUs, the second one a fault, the third
/// one memory that EL2 both writes and executes.
const NOT_PLANTED: [&str; 3] = ["sgi-after-stores", "device-access", "code-fetched"];
const KNOWN: &str = "tests/strict/known.toml";

/// The file of what is known.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    #[serde(default)]
    known: Vec<Entry>,
}

/// A break of a rule that is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rule: String,
    place: String,
    test: Option<String>,
}

impl Known {
    fn read() -> Result<Self> {
        let path = places::inside(KNOWN);
        let text = files::read_text(&path).map_err(|error| {
            BadInput::error(format!("{KNOWN} can't be read ({error}); correct it"))
        })?;
        let place = || BadInput::context(format!("{KNOWN} can't be used; correct it"));
        let parsed: Result<Self> =
            toml::from_str(&text).map_err(|error| anyhow!(mistake::told(&text, &error)));
        let known = parsed.with_context(place)?;
        for entry in &known.known {
            if !RULES.iter().any(|rule| rule.name == entry.rule) {
                bad_input!("{KNOWN}: there is no rule `{}`", entry.rule);
            }
        }
        Ok(known)
    }

    /// Fails if `test` found what is not known, or not what is known of it.
    fn compare(&self, test: &str, found: &[Found]) -> Result<()> {
        let is = |entry: &Entry, one: &Found| entry.rule == one.rule && entry.place == one.place;
        let (planted, found): (Vec<&Found>, Vec<&Found>) =
            found.iter().partition(|one| one.place.starts_with(PLANTED));
        let unknown = found
            .iter()
            .filter(|one| !self.known.iter().any(|entry| is(entry, one)));
        let mut wrong: Vec<String> = unknown.map(ToString::to_string).collect();
        let here = self
            .known
            .iter()
            .filter(|entry| entry.test.as_deref() == Some(test));
        let gone = here.filter(|entry| !found.iter().any(|one| is(entry, one)));
        wrong.extend(gone.map(|entry| {
            format!(
                "{KNOWN} has `{}` at `{}`, which was not found: take it out",
                entry.rule, entry.place
            )
        }));
        if test == PLANTS {
            wrong.extend(missed(&planted));
        }
        if wrong.is_empty() {
            return Ok(());
        }
        bail!("rules of the architecture:\n  {}", wrong.join("\n  "))
    }
}

/// The rules whose planted break is not among `found`.
fn missed(found: &[&Found]) -> impl Iterator<Item = String> {
    let planted = RULES
        .iter()
        .filter(|rule| !NOT_PLANTED.contains(&rule.name));
    let missed = planted.filter(|rule| {
        let place = format!("{PLANTED}{}", rule.name.replace('-', "_"));
        !found
            .iter()
            .any(|one| one.rule == rule.name && one.place == place)
    });
    missed.map(|rule| {
        format!(
            "`{}` does not notice what is planted in {PLANTED}",
            rule.name
        )
    })
}

/// Runs every test that boots, with `filter` in its name, `jobs` at a time.
pub fn run(filter: &str, jobs: NonZeroUsize) -> Result<()> {
    let known = Known::read()?;
    let cases = cases(filter)?;
    if cases.is_empty() {
        bad_input!("no test that boots has `{filter}` in its name; without a name all are run");
    }
    interrupt::or(qemu::ensure())?;
    for rule in RULES {
        say!("{}: {} [{}]", rule.name, rule.says, rule.cites);
    }
    let places = Mutex::new(BTreeSet::new());
    let watched = |case: &Case| {
        let session = case.strict()?;
        let found = session.found.iter();
        let found = found.map(|one| (one.rule.clone(), one.place.clone()));
        places
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(found);
        known.compare(&case.name, &session.found)?;
        ends_by_itself(case, &session)?;
        Ok(format!(" ({})", session.place))
    };
    let tasks = cases.iter().map(|case| {
        let run = || watched(case);
        Task::new(&case.name, case.lacks_rules(), run)
    });
    let mut tally = Tally::default();
    tally.run(tasks.collect(), jobs)?;
    let places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
    say!("{} places break a rule", places.len());
    for (rule, place) in &places {
        say!("  {rule}: {place}");
    }
    tally.judge()
}

/// Fails where a boot that is to succeed does not get to its end: it has not done what is watched.
fn ends_by_itself(case: &Case, session: &Session) -> Result<()> {
    match &session.failure {
        Some(failure) if case.is_to_succeed() && !failure.is_about_figures() => {
            bail!("{}", failure.why)
        }
        _ => Ok(()),
    }
}

/// The tests of `cases` that reach together what any of them does ([`Case::reaches`]), few and short ones:
/// each time the one with the most that is new for the seconds that it may take; of several the one
/// with the fewest boot arguments.
fn covering(cases: &[Case]) -> Vec<&Case> {
    /// Of a test that does not say.
    const USUAL: i64 = 400;
    let reached: Vec<_> = cases.iter().map(Case::reaches).collect();
    let mut left: BTreeSet<_> = reached.iter().flatten().collect();
    let mut chosen = Vec::new();
    while !left.is_empty() {
        let worth = |n: &usize| {
            let new = reached[*n].iter().filter(|one| left.contains(one)).count() as i64;
            let worth = new * 1_000_000 / cases[*n].patience().min(USUAL);
            (worth, Reverse(cases[*n].words()))
        };
        let Some(best) = (0..cases.len()).rev().max_by_key(worth) else {
            break;
        };
        left.retain(|one| !reached[best].contains(*one));
        chosen.push(&cases[best]);
    }
    chosen
}

/// Runs what covers the rest, and what breaks each rule.
pub fn few() -> Result<()> {
    let known = Known::read()?;
    let all = cases("")?;
    let plants = all.iter().find(|case| case.name == PLANTS);
    let plants = plants.with_context(|| format!("there is no test `{PLANTS}`"))?;
    let mut few = covering(&all);
    if few.iter().all(|case| case.name != PLANTS) {
        few.push(plants);
    }
    for case in few {
        let name = &case.name;
        let session = case.strict()?;
        let place = || format!("{name}, {}", session.place);
        ends_by_itself(case, &session).with_context(place)?;
        known.compare(name, &session.found).with_context(place)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_known_can_be_read() {
        Known::read().unwrap();
    }

    #[test]
    fn the_documentation_has_every_rule() {
        let text = fs::read_to_string(places::inside("docs/strict.md")).unwrap();
        let (_, table) = text.split_once("| rule | module |").unwrap();
        let rows = table
            .lines()
            .skip(2)
            .take_while(|row| row.starts_with("| `"));
        let named = rows.map(|row| row.split('`').nth(1).unwrap());
        assert!(named.eq(RULES.iter().map(|rule| rule.name)));
    }

    #[test]
    fn the_few_reach_what_all_do() {
        let all = cases("").unwrap();
        let few = covering(&all);
        let reached = |cases: &mut dyn Iterator<Item = &Case>| {
            cases.flat_map(Case::reaches).collect::<BTreeSet<_>>()
        };
        let of_all = reached(&mut all.iter());
        assert_eq!(reached(&mut few.iter().copied()), of_all);
        for needed in [
            "rouse.neighbour",
            "firmware",
            "deliver direct",
            "rouse.hostile",
        ] {
            assert!(of_all.contains(needed), "{needed}: {of_all:?}");
        }
        let names: Vec<_> = few.iter().map(|case| &case.name).collect();
        assert!(few.len() <= 20, "{names:?}");
    }

    #[test]
    fn what_is_not_known_fails_and_so_does_what_is_gone() {
        let known = Known {
            known: vec![Entry {
                rule: "synchronised".into(),
                place: "a.rs: f".into(),
                test: Some("one".into()),
            }],
        };
        let found = |rule: &str, place: &str| Found::new(rule, place);
        let there = found("synchronised", "a.rs: f");
        assert!(known.compare("one", std::slice::from_ref(&there)).is_ok());
        assert!(known.compare("other", &[]).is_ok());
        assert!(known.compare("other", std::slice::from_ref(&there)).is_ok());
        assert!(known.compare("one", &[]).is_err());
        for (rule, place) in [("synchronised", "a.rs: g"), ("wait-can-end", "a.rs: f")] {
            assert!(
                known
                    .compare("one", &[there.clone(), found(rule, place)])
                    .is_err()
            );
        }
    }

    #[test]
    fn each_plant_has_to_be_found() {
        let planted = RULES
            .iter()
            .filter(|rule| !NOT_PLANTED.contains(&rule.name));
        let place = |name: &str| format!("{PLANTED}{}", name.replace('-', "_"));
        let mut found: Vec<Found> = planted
            .map(|rule| Found::new(rule.name, &place(rule.name)))
            .collect();
        let known = Known::default();
        assert!(known.compare(PLANTS, &found).is_ok());
        found.pop();
        assert!(known.compare(PLANTS, &found).is_err());
        assert!(known.compare("other", &found).is_ok());
    }
}
