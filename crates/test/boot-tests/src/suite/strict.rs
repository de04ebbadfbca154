// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs tests that boot, and watches for breaches of the architecture's rules.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use rules::{About, RULES};

use super::case::Case;
use super::cases;
use super::pool::{Outcomes, Task};
use providing::qemu;
use running::session::Session;
use running::strict::BrokenRule;
use shell::failure::bad_input;
use shell::interrupt;
use shell::terminal::say;

/// The tests in which EL2 breaks rules on purpose, each with the rules about an interrupt controller that its machine
/// does not have. Each function in the file [`PLANTED`] breaks the rule after which it is named.
const PLANTS: [(&str, &[&str]); 2] = [
    ("fault-el2-breaks-rules", &["gich-read-back"]),
    (
        "fault-el2-breaks-rules-gicv2",
        &["synchronised", "active-priorities", "gic-writes-done"],
    ),
];
const PLANTED: &str = "hypervisor/src/planted/with/broken_rules.rs: ";
/// Rules that EL2 can't break in these tests: the first needs two CPUs, the second a fault, and the third memory that
/// EL2 both writes and executes.
const NOT_PLANTED: [&str; 3] = ["sgi-after-stores", "device-access", "code-fetched"];

/// Fails if a rule was broken by accident. If `test` is one of [`PLANTS`], also fails if a breach that it makes on
/// purpose was not found.
fn judge(test: &str, found: &[BrokenRule]) -> Result<()> {
    let (planted, found): (Vec<&BrokenRule>, Vec<&BrokenRule>) =
        found.iter().partition(|one| one.place.starts_with(PLANTED));
    let mut wrong: Vec<String> = found.iter().map(ToString::to_string).collect();
    if let Some((_, absent)) = PLANTS.iter().find(|(plants, _)| *plants == test) {
        wrong.extend(missed_plants(&planted, absent));
    }
    if wrong.is_empty() {
        return Ok(());
    }
    bail!("rules of the architecture:\n  {}", wrong.join("\n  "))
}

/// Returns the rules that EL2 breaks in a test whose machine can't break the rules `absent`.
fn planted_rules(absent: &[&str]) -> impl Iterator<Item = &'static About> {
    let all = RULES.iter();
    all.filter(|rule| !NOT_PLANTED.contains(&rule.name) && !absent.contains(&rule.name))
}

/// Names the rules whose planted breach is not among `found`.
fn missed_plants(found: &[&BrokenRule], absent: &[&str]) -> impl Iterator<Item = String> {
    let missed = planted_rules(absent).filter(|rule| {
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

/// Runs every test that boots and has `filter` in its name, `jobs` at a time.
pub fn run(filter: &str, jobs: NonZeroUsize) -> Result<()> {
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
        let session = case.run_strict()?;
        let found = session.found.iter();
        let found = found.map(|one| (one.rule.clone(), one.place.clone()));
        places
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(found);
        judge(&case.name, &session.found)?;
        ends_by_itself(case, &session)?;
        Ok(format!(" ({})", session.place))
    };
    let tasks = cases.iter().map(|case| {
        let run = || watched(case);
        Task::new(&case.name, || case.why_no_rules(), run)
    });
    let mut tally = Outcomes::default();
    tally.run(tasks.collect(), jobs)?;
    let places = places.into_inner().unwrap_or_else(PoisonError::into_inner);
    say!("{} places break a rule", places.len());
    for (rule, place) in &places {
        say!("  {rule}: {place}");
    }
    tally.judge()
}

/// Fails if a boot that should succeed did not end by itself: part of the code was then not checked.
fn ends_by_itself(case: &Case, session: &Session) -> Result<()> {
    match &session.failure {
        Some(failure) if case.is_to_succeed() && !failure.is_about_figures() => {
            bail!("{}", failure.why)
        }
        _ => Ok(()),
    }
}

/// Returns a few short tests of `cases` that together reach every part of the images that any of `cases` reaches
/// ([`Case::reached_parts`]). Each step chooses the test that adds the most parts per second of its time limit; among
/// equals, the test with the shortest boot arguments. A boot that is to fail may take all of its time, in which the
/// checker follows each instruction of a hang, so it counts like the longest tests.
fn covering_cases(cases: &[Case]) -> Vec<&Case> {
    /// The time limit, in seconds, of a test that sets none.
    const USUAL: i64 = 400;
    let reached: Vec<_> = cases.iter().map(Case::reached_parts).collect();
    let mut left: BTreeSet<_> = reached.iter().flatten().collect();
    let mut chosen = Vec::new();
    while !left.is_empty() {
        let worth = |n: &usize| {
            let new = reached[*n].iter().filter(|one| left.contains(one)).count() as i64;
            let limit = match cases[*n].is_to_succeed() {
                true => cases[*n].patience().min(USUAL),
                false => USUAL,
            };
            let worth = new * 1_000_000 / limit;
            (worth, Reverse(cases[*n].append_length()))
        };
        let Some(best) = (0..cases.len()).rev().max_by_key(worth) else {
            break;
        };
        left.retain(|one| !reached[best].contains(*one));
        chosen.push(&cases[best]);
    }
    chosen
}

/// Runs a few tests that together reach all parts, and the tests that break rules on purpose.
pub fn run_few() -> Result<()> {
    let all = cases("")?;
    let mut few = covering_cases(&all);
    for (name, _) in PLANTS {
        let plants = all.iter().find(|case| case.name == name);
        let plants = plants.with_context(|| format!("there is no test `{name}`"))?;
        if few.iter().all(|case| case.name != name) {
            few.push(plants);
        }
    }
    for case in few {
        let name = &case.name;
        let session = case.run_strict()?;
        let place = || format!("{name}, {}", session.place);
        ends_by_itself(case, &session).with_context(place)?;
        judge(name, &session.found).with_context(place)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shell::places;
    use std::fs;

    #[test]
    fn the_documentation_has_every_rule() {
        let text = fs::read_to_string(places::inside("docs/testing.md")).unwrap();
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
        let few = covering_cases(&all);
        let reached = |cases: &mut dyn Iterator<Item = &Case>| {
            cases.flat_map(Case::reached_parts).collect::<BTreeSet<_>>()
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
    fn a_broken_rule_fails_any_test() {
        let found = BrokenRule::new("synchronised", "a.rs: f");
        assert!(judge("one", &[]).is_ok());
        assert!(judge("one", &[found]).is_err());
    }

    #[test]
    fn each_plant_has_to_be_found() {
        let place = |name: &str| format!("{PLANTED}{}", name.replace('-', "_"));
        for (test, absent) in PLANTS {
            let planted = planted_rules(absent);
            let mut found: Vec<BrokenRule> = planted
                .map(|rule| BrokenRule::new(rule.name, &place(rule.name)))
                .collect();
            assert!(judge(test, &found).is_ok());
            found.pop();
            assert!(judge(test, &found).is_err());
            assert!(judge("other", &found).is_ok());
        }
        // Each rule is broken on one of the machines.
        let absent = PLANTS.map(|(_, absent)| absent);
        assert!(absent[0].iter().all(|rule| !absent[1].contains(rule)));
    }
}
