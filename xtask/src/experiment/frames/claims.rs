// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the source's table says of each pair of governors.

use super::{Figures, GOVERNORS, MENU, Ours, ROWS, Row, TEO, UTIL, figure};
use crate::experiment::outcome::{Claim, Test, Way};

/// How far a change may be from a published one of tens of per cent, points.
const BAND: f64 = 10.0;
/// The same of a change of a few per cent.
const SMALL: f64 = 2.0;

/// A claim for each row and each pair.
pub fn all(ours: &Ours) -> Vec<Claim> {
    let pairs = [(TEO, MENU), (UTIL, MENU), (UTIL, TEO)];
    let of_row = |row| pairs.map(|(one, other)| claim(ours, row, one, other));
    ROWS.iter().flat_map(of_row).collect()
}

/// That `one` is to `other` as it is in `row`: of the size that the source states, or that way.
fn claim(ours: &Ours, row: &Row, one: usize, other: usize) -> Claim {
    let what = row.name.split([',', ';']).next().unwrap_or(row.name);
    let [after, before] = [one, other].map(|which| row.published[which]);
    let [one_of, other_of] = [one, other].map(|which| (GOVERNORS[which].1, figure(ours, which, row.of)));
    // Few frames are late, so how many more is no size.
    let counted = what == "jank";
    let stated = row.changes.filter(|_| other == MENU).map(|changes| changes[one - 1]);
    let test = match stated {
        Some(expected) if !counted => Test::Size {
            expected,
            band: if expected.abs() < 10.0 { SMALL } else { BAND },
        },
        _ => Test::Sign {
            way: if after < before { Way::Falls } else { Way::Rises },
        },
    };
    let stated = stated.map(|change| format!(" ({change:+.1} %)")).unwrap_or_default();
    let source = format!("{what}: {before} with {}, {after} with {}{stated}", GOVERNORS[other].1, GOVERNORS[one].1);
    let claim = Claim::new(source, test, one_of, other_of);
    let claim = match row.changes {
        Some(_) if !counted => claim,
        _ => claim.in_unit("points"),
    };
    match reason(row.of, one, other) {
        Some(why) => claim.else_because(why),
        None => claim,
    }
}

/// Why it is otherwise here, should it be.
fn reason(_of: fn(&Figures) -> f64, _one: usize, _other: usize) -> Option<&'static str> {
    None
}
