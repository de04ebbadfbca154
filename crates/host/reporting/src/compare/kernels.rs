// SPDX-License-Identifier: MIT OR Apache-2.0
//! Describes the kernels of a comparison, and the properties in which they differ.

use std::collections::BTreeSet;

use page::asked;
use results::Cell;
use results::compare::{Comparison, Pair, Verdict};

use super::side::Side;

/// Names of a kernel's properties, in the order of their texts in [`property_texts`].
const NAMES: [&str; 4] = ["release", "HZ", "cpuidle driver", "governor"];

/// Returns texts that describe one side's kernels. Each text has all values that occur in the side's runs and cells.
fn property_texts(side: &Side) -> [String; NAMES.len()] {
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
            let feature = |name| results.machine.feature_text(name).unwrap_or_default();
            add(0, &feature("linux"));
            add(1, &feature("linux_hz"));
            add(2, driver);
            add(3, governor);
        }
    }
    all.map(|texts| texts.into_iter().collect::<Vec<_>>().join(" or "))
}

/// Describes the kernel of a side. `None` if Linux is not the guest.
pub fn kernel_text(side: &Side) -> Option<String> {
    let [release, hz, driver, governor] = property_texts(side);
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

/// Names the properties in which the kernels of two sides differ if there is more than one, since a verdict then
/// concerns all of these differences together.
pub fn several_differences(a: &Side, b: &Side) -> Option<String> {
    let differ = property_texts(a)
        .into_iter()
        .zip(property_texts(b))
        .zip(NAMES);
    let differ: Vec<&str> = differ
        .filter(|((a, b), _)| without_patches(a) != without_patches(b))
        .map(|(_, name)| name)
        .collect();
    (differ.len() > 1).then(|| {
        format!(
            "A and B differ in more than one thing ({}), and the verdict is on all of them together.",
            differ.join(", ")
        )
    })
}

/// Returns a release without the patches that it names after a `+`, because a patch is the reason for a comparison, and
/// not a further difference. The name of a Debian package after the `+` stays.
fn without_patches(release: &str) -> &str {
    match release.split_once('+') {
        Some((base, patches)) if !patches.starts_with("deb") => base,
        _ => release,
    }
}

/// Explains the verdicts on cells in which only one side's figure depends on a property that the machine does not
/// model. Unless `whole`, ignores cells without a difference, which are not in the table.
pub fn explain_unlike_cells(found: &Comparison<'_>, whole: bool) -> Option<String> {
    let shown = |pair: &&Pair<'_>| whole || pair.verdict() != Verdict::NoDifference;
    let pairs = found.pairs.iter().filter(shown);
    let missing: BTreeSet<&str> = pairs.flat_map(|pair| pair.one_sided_properties()).collect();
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
            releases.map(without_patches),
            [releases[0], releases[0], releases[2]]
        );
    }
}
