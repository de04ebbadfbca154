// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of `docs/isolation.md` has the numbers that the tests demand, which
//! are those of a run.

use std::fs;

use crate::places;

/// The number of cases that the test of `class` demands under `deliver`.
fn demanded(class: &str, deliver: &str) -> Option<String> {
    let text = fs::read_to_string(places::inside("tests").join(format!("hostile-{class}.toml")));
    let text = text.expect("every class of the table has a test");
    let name = class.split('-').next().unwrap_or(class);
    let (_, rest) = text.split_once(&format!("hostile {name} {deliver}: "))?;
    Some(rest.split(' ').next()?.to_owned())
}

#[test]
fn the_table_of_hostile_classes_is_that_of_the_tests() {
    let text = fs::read_to_string(places::inside("docs/isolation.md")).unwrap();
    let table = text.split_once("| class | what is tried |").unwrap().1;
    let rows = table
        .lines()
        .skip(2)
        .take_while(|row| row.starts_with("| "));
    let (mut classes, mut sums, mut all) = (Vec::new(), [0u32; 2], None);
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [class, _, inject, direct] = cells[..] else {
            panic!("four cells in {row}");
        };
        if class == "all" {
            all = Some([inject, direct].map(|sum| sum.parse::<u32>().unwrap()));
            continue;
        }
        let class = class.trim_matches('`');
        for (n, (deliver, shown)) in [("inject", inject), ("direct", direct)]
            .into_iter()
            .enumerate()
        {
            let count = demanded(class, deliver);
            assert_eq!(shown, count.as_deref().unwrap_or("-"), "{class}, {deliver}");
            sums[n] += count.map_or(0, |count| count.parse::<u32>().unwrap());
        }
        classes.push(format!("hostile-{class}"));
    }
    assert_eq!(all, Some(sums));
    let cases = super::cases("hostile-").unwrap();
    let names = cases.iter().map(|case| case.name.clone());
    let tests: Vec<String> = names.filter(|name| name != BESIDE).collect();
    classes.sort();
    assert_eq!(classes, tests);
}

/// The test of several classes at once.
const BESIDE: &str = "hostile-beside-a-neighbour";

/// A neighbour changes no case: with one there are as many as without.
#[test]
fn beside_a_neighbour_the_cases_are_the_same() {
    let text = fs::read_to_string(places::inside("tests").join(format!("{BESIDE}.toml"))).unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"hostile "));
    let mut seen = 0;
    for line in lines {
        let [class, deliver, count, ..] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let wanted = demanded(class, deliver.trim_end_matches(':'));
        assert_eq!(wanted.as_deref(), Some(count), "{class}");
        seen += 1;
    }
    assert!(seen > 0);
}
