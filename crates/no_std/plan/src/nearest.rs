// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the known word that is nearest to an unknown one.

/// Longest word that is compared as a whole.
const MOST: usize = 40;

/// Returns the word in `known` that is the fewest single-letter changes away from `word`; if there
/// are several, the first. `None` if `known` is empty.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known.min_by_key(|known| edit_distance(word, known))
}

/// Returns how many letters must be inserted, deleted, changed or swapped with the next letter to turn `a`
/// into `b` (optimal string alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let (a, b) = (&a[..a.len().min(MOST)], &b[..b.len().min(MOST)]);
    // Row n holds the distances of the first n letters of `a` from all prefixes of `b`.
    let mut rows = [[0; MOST + 1]; 3];
    rows[0] = core::array::from_fn(|letters| letters);
    for n in 1..=a.len() {
        let (last, row) = ((n - 1) % 3, n % 3);
        rows[row][0] = n;
        for m in 1..=b.len() {
            let differs = usize::from(a[n - 1] != b[m - 1]);
            let mut best = (rows[last][m] + 1)
                .min(rows[row][m - 1] + 1)
                .min(rows[last][m - 1] + differs);
            if n > 1 && m > 1 && a[n - 1] == b[m - 2] && a[n - 2] == b[m - 1] {
                best = best.min(rows[(n + 1) % 3][m - 2] + 1);
            }
            rows[row][m] = best;
        }
    }
    rows[a.len() % 3][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_the_fewest_changes() {
        for (a, b, changes) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("wait", "wait", 0),
            ("wiat", "wait", 1),
            ("wai", "wait", 1),
            ("waist", "wait", 1),
            ("want", "wait", 1),
            ("kitten", "sitting", 3),
            ("ca", "abc", 3),
            ("aab", "baa", 2),
            ("abcdef", "badcfe", 3),
        ] {
            assert_eq!(edit_distance(a, b), changes, "{a} {b}");
            assert_eq!(edit_distance(b, a), changes, "{b} {a}");
        }
        let long = "x".repeat(100);
        assert_eq!(edit_distance(&long, &long), 0);
        assert_eq!(edit_distance(&long, "y"), MOST);
    }

    #[test]
    fn the_first_of_the_nearest_is_taken() {
        let known = ["wake", "wait", "trap"];
        assert_eq!(nearest("wiat", known.into_iter()), Some("wait"));
        assert_eq!(nearest("wa", known.into_iter()), Some("wake"));
        assert_eq!(nearest("x", [].into_iter()), None);
    }
}
