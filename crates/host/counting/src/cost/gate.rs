// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether costs have grown.

use super::costs::{Costs, PathCosts};

/// Largest allowed growth of a cost, in per cent.
const MOST: f64 = 2.0;

/// Prefixes of the names of numbers that are allowed to grow.
const FREE: [&str; 2] = [super::numbers::BYTES, super::numbers::BOOT];

/// A cost that has grown or shrunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub what: String,
    pub was: u64,
    pub is: u64,
}

impl Change {
    pub fn new(what: String, was: Option<u64>, is: Option<u64>) -> Option<Self> {
        let (was, is) = (was?, is?);
        (was != is).then_some(Self { what, was, is })
    }

    /// Whether the cost grew by more than is allowed. Sizes and the length of a boot may grow with new features, so
    /// their growth is only reported.
    pub fn grew_too_much(&self) -> bool {
        let gated = !FREE.iter().any(|free| self.what.starts_with(free));
        gated && self.is as f64 > self.was as f64 * (1.0 + MOST / 100.0)
    }

    /// Describes the change.
    pub fn description(&self) -> String {
        let delta = self.is as i64 - self.was as i64;
        let percent = 100.0 * delta as f64 / (self.was as f64).max(1.0);
        format!(
            "{}: {} became {} ({delta:+}, {percent:+.1} %)",
            self.what, self.was, self.is
        )
    }
}

/// Returns the differences between `new` and `old`, and the names of costs that `new` lacks.
pub fn changes(old: &Costs, new: &Costs) -> (Vec<Change>, Vec<String>) {
    let (mut changes, mut gone) = (Vec::new(), Vec::new());
    for was in &old.paths {
        let name = format!("{} ({})", was.path, was.mode.name());
        let mut rows = new.paths.iter();
        let is = rows.find(|is| is.path == was.path && is.mode == was.mode);
        if was.passes != 0 && is.is_none_or(|is| is.passes == 0) {
            gone.push(name);
            continue;
        }
        let Some(is) = is else { continue };
        for (part, of) in PARTS {
            changes.extend(Change::new(format!("{name}, {part}"), of(was), of(is)));
        }
    }
    for (name, &was) in &old.numbers {
        match new.numbers.get(name) {
            Some(&is) => changes.extend(Change::new(name.clone(), Some(was), Some(is))),
            None => gone.push(name.clone()),
        }
    }
    (changes, gone)
}

/// Names both compilers if `rustc` differs from `with`, which compiled baseline `base`. The difference between the
/// compilers may have caused the growth.
pub fn note_other_compiler(base: &str, with: &str, rustc: &str) -> Option<String> {
    (with != rustc).then(|| {
        format!(
            "`{base}` was counted with {with}, this with {rustc}: differences may be the compiler's"
        )
    })
}

type Part = (&'static str, fn(&PathCosts) -> Option<u64>);

/// The numbers in a row that the gate limits, each with its name.
const PARTS: [Part; 2] = [
    ("hypervisor", |row| row.el2.map(|tally| tally.insns)),
    ("guest", |row| row.guest.map(|tally| tally.insns)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::costs::Mode;
    use crate::cost::tally::Tally;

    fn costs(insns: u64) -> Costs {
        let row = PathCosts {
            path: "sgi-send".into(),
            mode: Mode::Inject,
            passes: 24,
            agree: 24,
            set_aside: 0,
            el2: Some(Tally {
                insns,
                ..Tally::default()
            }),
            guest: None,
            skipped: None,
        };
        Costs {
            paths: vec![row],
            ..Costs::default()
        }
    }

    #[test]
    fn two_per_cent_is_the_most() {
        let judge = |was, is| {
            let (changes, _) = changes(&costs(was), &costs(is));
            changes.first().map(Change::grew_too_much)
        };
        assert_eq!(judge(100, 100), None);
        assert_eq!(judge(100, 102), Some(false));
        assert_eq!(judge(100, 103), Some(true));
        assert_eq!(judge(100, 50), Some(false));
        assert_eq!(judge(0, 1), Some(true));
        assert_eq!(judge(45, 46), Some(true));
    }

    #[test]
    fn another_compiler_is_named() {
        let with = "rustc 1.95.0 (59807616e 2026-04-14)";
        assert_eq!(note_other_compiler("x", with, with), None);
        let named = note_other_compiler("x", with, "rustc 1.96.0 (0123456 2026-05-28)").unwrap();
        assert!(
            named.contains(with) && named.contains("rustc 1.96.0"),
            "{named}"
        );
    }

    #[test]
    fn sizes_may_grow_and_round_trips_may_not() {
        let numbers = |bytes, insns| Costs {
            numbers: [
                ("bytes: x".into(), bytes),
                ("insns: round trip".into(), insns),
            ]
            .into(),
            ..Costs::default()
        };
        let (changes, _) = changes(&numbers(10, 10), &numbers(99, 11));
        let fails: Vec<bool> = changes.iter().map(Change::grew_too_much).collect();
        assert_eq!(fails, [false, true]);
    }

    #[test]
    fn what_is_no_longer_counted_is_told() {
        let mut new = costs(1);
        new.paths[0].passes = 0;
        let (_, gone) = changes(&costs(1), &new);
        assert_eq!(gone, ["sgi-send (inject)"]);
    }
}
