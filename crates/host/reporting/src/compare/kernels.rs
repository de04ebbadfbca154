// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernels of a comparison: what each is, and in how many ways they differ.

use std::collections::BTreeSet;

use page::asked;
use results::Cell;
use results::compare::{Comparison, Pair, Verdict};

use super::side::Side;

/// Names of a kernel's properties, in the order of their texts in [`properties`].
const NAMES: [&str; 4] = ["release", "HZ", "cpuidle driver", "governor"];

/// Returns a property of the kernels of a side in words: all that its runs and cells have.
fn properties(side: &Side) -> [String; NAMES.len()] {
    let mut all: [BTreeSet<String>; NAMES.len()] = Default::default();
    let linux = |cell: &&Cell| cell.what.workload.is_linux() && !cell.idles_by.is_empty();
    for results in side.runs.iter().map(|run| &run.results) {
        let mut add = |n: usize, text: &str| {
            let text = if text.is_empty() { "unknown" } else { text };
            all[n].insert(text.into());
        };
        for cell in results.cells.iter().filter(linux) {
            let (driver, governor) = cell
                .idles_by
                .split_once('/')
                .unwrap_or((&cell.idles_by, "none"));
            let feature = |name| results.machine.feature(name).unwrap_or_default();
            add(0, &feature("linux"));
            add(1, &feature("linux_hz"));
            add(2, driver);
            add(3, governor);
        }
    }
    all.map(|texts| texts.into_iter().collect::<Vec<_>>().join(" or "))
}

/// Describes the kernel of a side. `None` if Linux is not the guest.
pub fn kernel(side: &Side) -> Option<String> {
    let [release, hz, driver, governor] = properties(side);
    let cells = side.runs.iter().flat_map(|run| &run.results.cells);
    let tables = cells
        .filter(|cell| !cell.idle_states.is_empty())
        .map(|cell| {
            let states: Vec<String> = cell.idle_states.iter().map(ToString::to_string).collect();
            states.join(", ")
        });
    let tables: Vec<String> = tables.collect::<BTreeSet<_>>().into_iter().collect();
    let states = match tables.is_empty() {
        true => String::new(),
        false => format!(
            ", states {} (exit latency/residency, us)",
            tables.join(" or ")
        ),
    };
    (!release.is_empty())
        .then(|| format!("Linux {release}, HZ {hz}, driver {driver}, governor {governor}{states}"))
}

/// Names the properties in which two kernels differ if there is more than one, since a verdict is then on all of them.
pub fn several(a: &Side, b: &Side) -> Option<String> {
    let differ = properties(a).into_iter().zip(properties(b)).zip(NAMES);
    let differ: Vec<&str> = differ
        .filter(|((a, b), _)| unpatched(a) != unpatched(b))
        .map(|(_, name)| name)
        .collect();
    (differ.len() > 1).then(|| {
        format!(
            "A and B differ in more than one thing ({}), and the verdict is on all of them together.",
            differ.join(", ")
        )
    })
}

/// Returns a release without the patches that it names after a `+`: a patch is the reason for a comparison, and not
/// another difference. Debian's packages name themselves there.
fn unpatched(release: &str) -> &str {
    match release.split_once('+') {
        Some((base, patches)) if !patches.starts_with("deb") => base,
        _ => release,
    }
}

/// Explains verdicts on cells of which one side alone depends on what the machine does not model. Unless `whole`, the
/// table lacks cells without a difference.
pub fn unlike(found: &Comparison<'_>, whole: bool) -> Option<String> {
    let shown = |pair: &&Pair<'_>| whole || pair.verdict() != Verdict::NoDifference;
    let pairs = found.pairs.iter().filter(shown);
    let missing: BTreeSet<&str> = pairs.flat_map(|pair| pair.unlike()).collect();
    let missing: Vec<&str> = missing.into_iter().map(asked).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "* One side alone depends on what is true of cores, but not of this machine ({}): the verdict is on the length of code, not on a time.",
            missing.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_no_other_release_and_a_package_is() {
        let releases = ["6.12.107", "6.12.107+000-poll", "6.12.107+deb13-arm64"];
        assert_eq!(
            releases.map(unpatched),
            [releases[0], releases[0], releases[2]]
        );
    }
}
