// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes claims about the source's table, one for each row and each pair of governors.

use super::{GOVERNORS, MENU, Ours, PAIRS, ROWS, SourceRow, figure_by_boot};
use crate::outcome::{Claim, Test, Way};

/// Accepted deviation from a published change, in points, if that change is tens of per cent.
const BAND: f64 = 10.0;
/// Accepted deviation from a published change, in points, if that change is a few per cent.
const SMALL: f64 = 2.0;

/// Returns a claim for each row and each pair.
pub fn all_claims(ours: &Ours) -> Vec<Claim> {
    let of_row = |row| (0..PAIRS.len()).map(move |pair| claim(ours, row, pair));
    ROWS.iter().flat_map(of_row).collect()
}

/// Claims that the two governors of a pair differ as in `row`: by the published size if the source states it, or else
/// only in the same direction.
fn claim(ours: &Ours, row: &SourceRow, pair: usize) -> Claim {
    let (one, other) = PAIRS[pair];
    let what = row.name.split(';').next().unwrap_or(row.name);
    let [after, before] = [one, other].map(|which| row.published[which]);
    let [one_of, other_of] =
        [one, other].map(|which| (GOVERNORS[which].1, figure_by_boot(ours, which, row.of)));
    // Few frames are late, so no size is claimed for the change of their number.
    let counted = what == "jank, %";
    let stated = row
        .changes
        .filter(|_| other == MENU)
        .map(|changes| changes[one - 1]);
    let test = match stated {
        Some(expected) if !counted => Test::Size {
            expected,
            band: if expected.abs() < 10.0 { SMALL } else { BAND },
        },
        _ => Test::Sign {
            way: if after < before {
                Way::Falls
            } else {
                Way::Rises
            },
        },
    };
    let stated = stated
        .map(|change| format!(" ({change:+.1} %)"))
        .unwrap_or_default();
    let source = format!(
        "{what}: {before} with {}, {after} with {}{stated}",
        GOVERNORS[other].1, GOVERNORS[one].1
    );
    let claim = Claim::new(source, test, one_of, other_of);
    let claim = match row.changes {
        Some(_) if !counted => claim,
        _ => claim.difference_in("points"),
    };
    // A size test has a band, so only a sign test needs the published figures, which determine its smallest effect.
    let claim = match test {
        Test::Sign { .. } => claim.at_least_share_of(after, before),
        _ => claim,
    };
    match row.why[pair] {
        Some(why) => claim.with_reason(why),
        None => claim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::power::Spent;
    use crate::frames::{Figures, TEO, UTIL};
    use crate::outcome::ByBoot;
    use crate::verdict::Verdict;

    /// Returns the source's figures in place of ours, from three boots whose figures vary by `spread` per cent.
    fn published(spread: f64) -> Ours {
        let boots = [-spread, 0.0, spread].map(|far| {
            let at = |row: usize| {
                let far = |value: f64| value * (1.0 + far / 100.0);
                ROWS[row].published.map(far)
            };
            let all = [MENU, TEO, UTIL].map(|which| Figures {
                frame: at(0)[which],
                late: at(1)[which],
                spent: Spent::with_power(at(2)[which]),
                too_deep: at(3)[which],
                too_shallow: at(4)[which],
                begin: 0.0,
                render: at(5)[which],
                compose: at(6)[which],
            });
            (far.to_string(), all)
        });
        ByBoot::new(boots.into())
    }

    fn verdicts(ours: &Ours) -> Vec<Verdict> {
        all_claims(ours).iter().map(Claim::verdict).collect()
    }

    #[test]
    fn the_source_agrees_with_itself() {
        assert_eq!(verdicts(&published(0.1)), [Verdict::Agrees; 21]);
    }

    #[test]
    fn governors_that_change_places_agree_with_nothing_that_is_said_of_both() {
        let swapped = published(0.1).map(|&[menu, teo, util]| [util, teo, menu]);
        let verdicts = verdicts(&swapped);
        let of_both = verdicts.iter().skip(1).step_by(PAIRS.len());
        assert!(
            of_both.clone().all(|&verdict| verdict == Verdict::Differs),
            "{verdicts:?}"
        );
    }

    #[test]
    fn two_governors_that_choose_alike_do_not_differ() {
        let alike = published(0.1).map(|&[menu, teo, _]| [menu, teo, teo]);
        let verdicts = verdicts(&alike);
        let of_teo = verdicts.iter().skip(2).step_by(PAIRS.len());
        assert!(
            of_teo
                .clone()
                .all(|&verdict| verdict == Verdict::NoDifference),
            "{verdicts:?}"
        );
    }
}
