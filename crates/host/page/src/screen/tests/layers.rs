// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests tables of several hypervisors, and rows that represent several cells.

use super::*;

/// Returns cells with the ways of waiting, both under Rouse and on the bare machine.
fn ways_of_layers() -> Results {
    let under = |under, mut cell: Cell| {
        cell.under = under;
        cell
    };
    let direct = ("deliver", "direct");
    let bare = [
        cell(&[("wait", "wfi"), ("trap", "none"), direct], 81, 39, 0),
        cell(&[("wait", "poll-wfi"), ("trap", "none"), direct], 95, 50, 0),
        cell(
            &[
                ("wait", "poll-wfi"),
                ("trap", "none"),
                ("wake", "elide"),
                direct,
            ],
            64,
            23,
            0,
        ),
    ];
    let own = ["none", "wfi"].into_iter().flat_map(|trap| {
        let trap = ("trap", trap);
        let adds = if trap.1 == "wfi" { 20 } else { 0 };
        [
            cell(&[("wait", "wfi"), trap], 157 + adds, 97, 4),
            cell(&[("wait", "wfi"), trap, direct], 81 + adds, 39, 0),
            cell(&[("wait", "poll-wfi"), trap], 171, 108, 4),
            cell(&[("wait", "poll-wfi"), trap, direct], 95, 50, 0),
            cell(&[("wait", "poll-wfi"), trap, ("wake", "elide")], 64, 23, 0),
        ]
    });
    let cells = bare.map(|cell| under(plan::Under::None, cell)).into_iter();
    run(cells
        .chain(own.map(|cell| under(plan::Under::Rouse, cell)))
        .collect())
}

#[test]
fn two_layers_have_columns_by_delivery_and_a_row_of_any_trap() {
    let text = shown(&ways_of_layers());
    for row in [
        "how it waits                              none  rouse: inject  rouse: direct",
        "WFI                                81 (39) / 0   157 (97) / 4    81 (39) / 0",
        "WFI, trapped                                 -   177 (97) / 4   101 (39) / 0",
        "polls, then WFI, any trap          95 (50) / 0  171 (108) / 4    95 (50) / 0",
        "polls, then WFI, no IPI, any trap  64 (23) / 0    64 (23) / 0              -",
    ] {
        assert!(text.lines().any(|line| line == row), "{row}\n{text}");
    }
    assert!(
        text.contains("Under rouse: polled without IPI, a round trip takes 64"),
        "{text}"
    );
}

#[test]
fn a_trap_that_makes_a_difference_under_one_layer_keeps_its_row() {
    let mut results = ways_of_layers();
    let changed = results.cells.iter_mut().find(|cell| {
        cell.under == plan::Under::Rouse
            && cell.what.trap == plan::Trap::Wfi
            && cell.what.wait == Wait::PollWfi
    });
    changed.unwrap().stats.as_mut().unwrap().p50 += 1;
    let text = shown(&results);
    assert!(text.contains("polls, then WFI, WFI trapped "), "{text}");
    assert!(text.contains("polls, then WFI, no IPI, any trap"), "{text}");
}

#[test]
fn receivers_are_named_if_they_vary() {
    let of = |shape, p50| {
        cell(
            &[("workload", "ipi"), ("shape", shape), ("wait", "wfi")],
            p50,
            1,
            0,
        )
    };
    let text = shown(&run(vec![
        of("dry", 6),
        of("self", 79),
        of("one", 87),
        of("broadcast", 104),
    ]));
    for line in [
        "no receiver named: to one CPU.",
        "to itself: WFI",
        "to all: WFI",
        "unsent: WFI",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// Checks that each row describes all its cells correctly, and that each cell belongs to one row.
fn check_rows(cells: &[Cell]) {
    let results = run(cells.to_vec());
    let all: Vec<&Cell> = results.cells.iter().collect();
    let table = Rows::lay_out_to_fit(&all, Scale::for_results(&results), WIDTH);
    for cell in cells {
        let what = &cell.what;
        let value = |title: &str| match title {
            "gap" => what.gap_us.to_string(),
            _ => what.poll_limit_us.to_string(),
        };
        let trap = match (what.trap, what.host_poll_us) {
            (plan::Trap::None, _) => "",
            (_, 0) => ", WFI trapped",
            _ => ", WFI trapped, EL2 polls 50 us",
        };
        let of = table.rows.iter().filter(|row| {
            let mut swept = table.swept.iter().zip(&row.swept);
            swept.all(|(title, shown)| shown == "any" || *shown == value(title))
                && [trap, ", any trap"].contains(&row.trap.as_str())
        });
        let texts: Vec<&str> = of.map(|row| row.texts[0].as_str()).collect();
        let median = cell.stats.unwrap().p50.to_string();
        let is_true = texts.iter().all(|text| text.starts_with(&median));
        assert!(
            !texts.is_empty() && is_true,
            "{trap} {} {}: {median}, {texts:?}",
            what.gap_us,
            what.poll_limit_us
        );
    }
}

#[test]
fn a_row_of_any_value_is_true_of_all_of_them() {
    let cell_of = |gap: &str, limit: &str, trap: &str, bits: u32, bit: u32| {
        let words = [
            ("wait", "poll-wfi"),
            ("gap-us", gap),
            ("poll-limit-us", limit),
            ("trap", trap),
        ];
        cell(
            &words.map(|(key, word)| (key, word)),
            64 + u64::from(bits >> bit & 1),
            1,
            0,
        )
    };
    for bits in 0..1 << 9 {
        let grid = (0..9).map(|bit| {
            let [gap, limit] = [bit / 3, bit % 3].map(|place| ["10", "20", "30"][place as usize]);
            cell_of(gap, limit, "none", bits, bit)
        });
        check_rows(&grid.collect::<Vec<_>>());
    }
    for bits in 0..1 << 8 {
        let cube = (0..8).map(|bit| {
            let [gap, limit, trap] = [bit & 1, bit >> 1 & 1, bit >> 2].map(|place| place as usize);
            cell_of(
                ["10", "20"][gap],
                ["10", "20"][limit],
                ["none", "wfi"][trap],
                bits,
                bit,
            )
        });
        check_rows(&cube.collect::<Vec<_>>());
    }
    for bits in 0..1 << 6 {
        let traps = (0..6).map(|bit| {
            let (limit, trap) = (["10", "20"][bit as usize & 1], bit >> 1);
            let mut cell = cell_of(
                "10",
                limit,
                ["none", "wfi", "wfi"][trap as usize],
                bits,
                bit,
            );
            cell.what.host_poll_us = if trap == 2 { 50 } else { 0 };
            cell
        });
        check_rows(&traps.collect::<Vec<_>>());
    }
}
